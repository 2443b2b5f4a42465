"""Topological losses of segmentations on one thread, forward and backward.

    python benchmarks/losses.py [--quick]

Everything is measured in turns in one process. Writes benchmarks/results/losses.json and .md. The
losses of the literature are those of benchmarks/evidence/topological_losses.py, written after their
papers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import torch
from report import Row, in_turns, row, run
from scipy.ndimage import gaussian_filter
from torch import Tensor

from ecc_core.nn import EulerCurveLoss

sys.path.insert(0, str(Path(__file__).parent / "evidence"))

from topological_losses import centreline_dice, persistence_loss

TURNS = 5
WINDOW = 32
Loss = Callable[[Tensor, Tensor], Tensor]
ABOUT = """Forward and backward passes of losses of a batch of four probability maps with one
channel, on one thread; times of the processor. They answer different questions:
`EulerCurveLoss` compares numbers of components and holes at 8 thresholds in windows of 32 x 32
pixels, clDice compares skeletons (of 5 iterations) where they are, and TopoLoss persistence
diagrams in the same windows. The last two are written in PyTorch after their papers, TopoLoss
with our persistence pairs. Which of them trains better is another question: see the evidence."""


def maps(side: int) -> tuple[Tensor, Tensor]:
    """Probabilities between 0 and 1, and the walls of cells."""
    rng = np.random.default_rng(0)
    smooth = gaussian_filter(rng.standard_normal((4, 1, side, side)), (0, 0, 3, 3))
    target = np.abs(smooth) < 0.3 * smooth.std()
    noisy = gaussian_filter(target + rng.normal(0, 0.5, target.shape), (0, 0, 1, 1))
    prediction = torch.from_numpy(noisy.clip(0, 1).astype(np.float32))
    return prediction, torch.from_numpy(target.astype(np.float32))


def step(loss: Loss, prediction: Tensor, target: Tensor) -> Tensor:
    """The gradient of a loss."""
    asked = prediction.clone().requires_grad_()
    loss(asked, target).backward()
    assert asked.grad is not None
    return asked.grad


def losses(quick: bool) -> Iterator[Row]:
    """Losses of four images against ours."""
    torch.set_num_threads(1)
    for side in (64,) if quick else (64, 256):
        prediction, target = maps(side)
        candidates: dict[str, Loss] = {
            "ours": EulerCurveLoss(window=WINDOW),
            "clDice": centreline_dice,
            "TopoLoss": partial(persistence_loss, window=WINDOW),
        }
        calls = {name: partial(step, loss, prediction, target) for name, loss in candidates.items()}
        for call in calls.values():
            assert call().abs().sum() > 0
        times = in_turns(calls, TURNS, process_time)
        for name in ("clDice", "TopoLoss"):
            other = (name, times[name])
            yield row(f"4 x {side}x{side} float32", 2, 1, times["ours"], other, faster=True)


if __name__ == "__main__":
    run("losses", "Topological losses on the CPU", ABOUT, {"losses": losses})
