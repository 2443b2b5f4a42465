"""How well a small network learns with each normalization of `EulerCurveLayer`.

    python -m benchmarks.normalization

Writes benchmarks/results/normalization.json and .md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from scipy.stats import ttest_rel
from torch import Tensor, nn

from ecc_core.nn import EulerCurveLayer, parameter_groups

Normalize = Literal["side", "batch"]

OUTPUT = Path(__file__).parent / "results" / "normalization"
KINDS: tuple[Normalize | None, ...] = None, "side", "batch"
SEEDS = 10
SIDE = 48
CLASSES = 4
OBJECTS = 5
EPOCHS = 30
ABOUT = f"""Images of {SIDE} x {SIDE} points show {OBJECTS} discs and rings with noise; the class is
the number of rings (1 to {CLASSES}). Two convolutions, `EulerCurveLayer(16, normalize=...)` and a
linear layer are trained on 300 images for {EPOCHS} epochs (AdamW, 0.003). Accuracy on 400 other
images, mean and standard deviation of {SEEDS} seeds with images of their own; p of the paired
t-test against no normalization. Written by `python -m benchmarks.normalization`."""


def images(rng: np.random.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Return noisy images (count, 1, SIDE, SIDE), and their classes."""
    y, x = np.mgrid[:SIDE, :SIDE]
    values = rng.normal(0, 0.3, (count, SIDE, SIDE))
    classes = rng.integers(0, CLASSES, count)
    for image, rings in zip(values, classes + 1, strict=True):
        objects = np.zeros((SIDE, SIDE))
        for is_ring in rng.permutation(np.arange(OBJECTS) < rings):
            row, column, radius = *rng.uniform(6, SIDE - 6, 2), rng.uniform(3.5, 5.5)
            distance = np.hypot(y - row, x - column)
            objects[(distance < radius) & ((distance > radius - 2) | ~is_ring)] = 1
        image += objects
    return torch.from_numpy(values[:, None].astype(np.float32)), torch.from_numpy(classes)


def accuracy(normalize: Normalize | None, seed: int) -> float:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    given, classes = images(rng, 300)
    others, wanted = images(rng, 400)
    convolutions = nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 8, 5, padding=2)
    )
    layer = EulerCurveLayer(16, normalize=normalize)
    layer.calibrate(convolutions(given[:64]))
    network = nn.Sequential(convolutions, layer, nn.Flatten(), nn.Linear(8 * 16, CLASSES))
    optimizer = torch.optim.AdamW(parameter_groups(network, lr=3e-3, weight_decay=1e-2))
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(given)).split(32):
            loss = nn.functional.cross_entropy(network(given[batch]), classes[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        is_right = network(others).argmax(1) == wanted
    return is_right.float().mean().item()


def main() -> None:
    torch.set_num_threads(1)
    found = {str(kind): [accuracy(kind, seed) for seed in range(SEEDS)] for kind in KINDS}
    lines = ["# Normalization of curves", "", ABOUT, ""]
    lines += ["| normalize | accuracy | p |", "|---|---|---|"]
    for kind, values in found.items():
        p = "" if kind == "None" else f"{ttest_rel(values, found['None']).pvalue:.2g}"
        lines.append(f"| {kind} | {np.mean(values):.3f} ± {np.std(values, ddof=1):.3f} | {p} |")
    OUTPUT.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    OUTPUT.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
