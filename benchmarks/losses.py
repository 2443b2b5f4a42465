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

import gudhi
import numpy as np
import torch
from numpy.typing import NDArray
from report import Row, in_turns, row, run
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

from ecc_core.nn import (
    BettiCurveLayer,
    BettiMatchingLoss,
    EulerCurveLayer,
    EulerCurveLoss,
    LifetimeLayer,
    PersistenceLoss,
)

sys.path.insert(0, str(Path(__file__).parent / "evidence"))

from topological_losses import centreline_dice

TURNS = 5
WINDOW = 32
LEVELS = 32
"""Thresholds of layers of curves; twice the classes of layers of lifetimes."""
Loss = Callable[[Tensor, Tensor], Tensor]
ABOUT = """Forward and backward passes of losses of a batch of four probability maps with one
channel, on one thread; times of the processor. They answer different questions:
`EulerCurveLoss` compares numbers of components and holes at 8 thresholds in windows of 32 x 32
pixels, clDice compares skeletons (of 5 iterations) where they are, and `PersistenceLoss` (TopoLoss)
persistence diagrams in the same windows, of which `BettiMatchingLoss` matches the classes that are
at one place. clDice is written in PyTorch after its paper. Which of
them trains better is another question: see the evidence.

TopoLoss with GUDHI is the same as `PersistenceLoss` with the pairs of GUDHI's cubical complexes,
one for each image or window. Layers that find pairs, `BettiCurveLayer` with 32 thresholds and
`LifetimeLayer` with 16 classes, are compared with `EulerCurveLayer` with 32 thresholds."""


def maps(side: int) -> tuple[Tensor, Tensor]:
    """Return probabilities between 0 and 1, and the walls of cells."""
    rng = np.random.default_rng(0)
    smooth = gaussian_filter(rng.standard_normal((4, 1, side, side)), (0, 0, 3, 3))
    target = np.abs(smooth) < 0.3 * smooth.std()
    noisy = gaussian_filter(target + rng.normal(0, 0.5, target.shape), (0, 0, 1, 1))
    prediction = torch.from_numpy(noisy.clip(0, 1).astype(np.float32))
    return prediction, torch.from_numpy(target.astype(np.float32))


def step(loss: Loss, prediction: Tensor, target: Tensor) -> Tensor:
    """Return the gradient of a loss."""
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
            "PersistenceLoss": PersistenceLoss(WINDOW),
            "BettiMatchingLoss": BettiMatchingLoss(WINDOW),
        }
        calls = {name: partial(step, loss, prediction, target) for name, loss in candidates.items()}
        for call in calls.values():
            assert call().abs().sum() > 0
        times = in_turns(calls, TURNS, process_time)
        case = f"4 x {side}x{side} float32"
        for name in ("clDice", "PersistenceLoss", "BettiMatchingLoss"):
            yield row(case, 2, 1, times["ours"], (name, times[name]), faster=True)
        other = "clDice", times["clDice"]
        yield row(f"{case}, PersistenceLoss", 2, 1, times["PersistenceLoss"], other, faster=True)


def layers(quick: bool) -> Iterator[Row]:
    """Layers that find pairs against EulerCurveLayer."""
    torch.set_num_threads(1)
    modules: dict[str, nn.Module] = {
        "EulerCurveLayer": EulerCurveLayer(LEVELS, range=(0, 1)),
        "BettiCurveLayer": BettiCurveLayer(LEVELS, range=(0, 1)),
        "LifetimeLayer": LifetimeLayer(LEVELS // 2),
    }
    rng = np.random.default_rng(0)
    for count, side in ((32, 64),) if quick else ((32, 64), (4, 256)):
        noise = rng.random((count, 1, side, side), np.float32)
        smooth = gaussian_filter(noise, (0, 0, 2, 2))
        smooth = (smooth - smooth.min()) / np.ptp(smooth)
        for kind, values in (("noise", noise), ("smooth", smooth)):
            image = torch.from_numpy(values)
            calls = {name: partial(step_of, module, image) for name, module in modules.items()}
            times = in_turns(calls, TURNS, process_time)
            other = "EulerCurveLayer", times["EulerCurveLayer"]
            for name in ("BettiCurveLayer", "LifetimeLayer"):
                yield row(f"{count} x {side}x{side} {kind}, {name}", 2, 1, times[name], other)


def step_of(layer: nn.Module, image: Tensor) -> Tensor:
    """Return the gradient of the sum of squares of what a layer returns."""
    asked = image.clone().requires_grad_()
    layer(asked).square().sum().backward()
    assert asked.grad is not None
    return asked.grad


def gudhi_loss(prediction: Tensor, target: Tensor, window: int) -> Tensor:
    """Return TopoLoss, with the pairs of GUDHI."""
    total = prediction.new_zeros(())
    parts = []
    for given in (prediction, target):
        windows = given.unfold(2, window, window).unfold(3, window, window)
        parts.append(windows.reshape(-1, window, window))
    for own, true in zip(*parts, strict=True):
        values = own.flatten()
        levels = true.flatten()
        arrays = [given.detach().numpy() for given in (own, true)]
        found, wanted = map(gudhi_pairs, arrays)
        for (finite, essential), (of_true, lasting) in zip(found, wanted, strict=True):
            births = torch.cat([values[essential], values[finite[:, 0]]])
            deaths = torch.cat([values.new_zeros(len(essential)), values[finite[:, 1]]])
            first, last = levels[of_true].unbind(1)
            count = len(lasting) + int(((first >= 0.5) & (last < 0.5)).sum())
            order = (deaths - births).detach().argsort()
            kept = order[:count]
            rest = order[count:]
            total = total + (1 - births[kept]).square().sum() + deaths[kept].square().sum()
            total = total + (births[rest] - deaths[rest]).square().sum()
    return total / len(parts[0])


def gudhi_pairs(image: NDArray[np.float32]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return points of births and deaths (k, 2), and of births alone, for each dimension."""
    cells = gudhi.CubicalComplex(top_dimensional_cells=-image)
    cells.compute_persistence()
    finite, essential = cells.cofaces_of_persistence_pairs()
    found = []
    for dimension in range(2):
        each = []
        for pairs, width in ((finite, 2), (essential, 1)):
            given = pairs[dimension] if dimension < len(pairs) else np.empty(0, np.int64)
            # Cells are numbered in Fortran order.
            places = np.unravel_index(given.ravel().astype(np.int64), image.shape, order="F")
            each.append(np.ravel_multi_index(places, image.shape).reshape(-1, width))
        found.append((each[0], each[1][:, 0]))
    return found


def against_gudhi(quick: bool) -> Iterator[Row]:
    """PersistenceLoss of four images against TopoLoss with GUDHI."""
    torch.set_num_threads(1)
    side = 64 if quick else 128
    for window in (side, WINDOW):
        prediction, target = maps(side)
        candidates: dict[str, Loss] = {
            "ours": PersistenceLoss(window),
            "TopoLoss, GUDHI": partial(gudhi_loss, window=window),
        }
        torch.testing.assert_close(*(loss(prediction, target) for loss in candidates.values()))
        calls = {name: partial(step, loss, prediction, target) for name, loss in candidates.items()}
        times = in_turns(calls, TURNS, process_time)
        case = f"4 x {side}x{side} float32, windows of {window}"
        other = ("TopoLoss, GUDHI", times["TopoLoss, GUDHI"])
        yield row(case, 2, 1, times["ours"], other, ">= 20", faster=True)


if __name__ == "__main__":
    sections = {"losses": losses, "gudhi": against_gudhi, "layers": layers}
    run("losses", "Topological losses on the CPU", ABOUT, sections)
