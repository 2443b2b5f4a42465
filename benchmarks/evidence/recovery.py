"""Directions and shapes recovered from their curves by gradient descent, from a grid of starts.

    python benchmarks/evidence/recovery.py [--quick]

Writes benchmarks/results/evidence/recovery.{json,md}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from outcome import Outcome, Row, report
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.draw import disk
from skimage.transform import resize
from torch import Tensor

from ecc_core.nn import EulerCurveLayer, EulerTransformLayer

QUESTION = "Are directions and shapes recovered from their curves by gradient descent?"
CONCLUSION = """
Directions: descent alone finds them from up to 100 degrees away, and from 120 degrees on in 2 or 3
of 5 cases only. Starting from the best of 8 evenly spread directions, it always finds them. Shapes:
no. The overlap with the mask is 0.75 at best, for a ring from a disc; from noise it is at most
0.27, and from probabilities of 0.1 almost nothing is found.
"""
TEXT = """
Directions: the curves of 16 smooth random images (24 x 24 pixels, 12 thresholds) in a hidden
direction are given; the direction of a layer is to be found with Adam (rate 0.05, 200 steps). It
starts at angles from 0 to 180 degrees from the hidden one, which is drawn 5 times. "Best of 8"
begins with the one of 8 evenly spread directions whose curves are nearest to the given ones,
whatever the start. A direction is found if it is within 5 degrees.

Shapes: the transform of a mask (32 x 32 pixels, 32 directions, 32 heights) is given; the
probabilities of all points are to be found by descent on the mean squared difference of
transforms (Adam, rate 0.1, 400 steps, `extension="min"`), from several starts. The overlap is the
intersection over union with the mask, of probabilities above one half.
"""
SIDE = 24
SCALE = 1.5 / 24
ANGLES = np.arange(0, 181, 20)
GRID = 8


def images(seed: int) -> Tensor:
    rng = np.random.default_rng(seed)
    fields = [gaussian_filter(rng.standard_normal((SIDE, SIDE)), 2) for _ in range(16)]
    stack = np.stack(fields)
    return torch.from_numpy((stack / stack.std()).astype(np.float32))


def layer_at(angles: Any) -> EulerCurveLayer:
    vectors = np.stack([np.cos(angles), np.sin(angles)], -1)
    return EulerCurveLayer(
        12, range=(-3, 3), directions=vectors, direction_scale=2 * SCALE, learn_thresholds=False
    )


def descend(loss_of: Callable[[], Tensor], parameters: Any, rate: float, steps: int) -> None:
    optimizer = torch.optim.Adam(parameters, rate)
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def angle_found(start: float, hidden: float, best_of: int, seed: int, steps: int) -> float:
    """Return degrees between the hidden direction and the one that is found."""
    stack = images(seed)
    with torch.no_grad():
        wanted = layer_at([hidden])(stack)
        if best_of:
            angles = np.arange(best_of) * 2 * np.pi / best_of
            differences = layer_at(angles)(stack) - wanted
            distances = differences.square().mean((0, 2))
            start = angles[int(distances.argmin())]
    layer = layer_at([start])

    def loss() -> Tensor:
        return (layer(stack) - wanted).square().mean()

    descend(loss, layer.parameters(), 0.05, steps)
    true = torch.tensor([np.cos(hidden), np.sin(hidden)]).float()
    cosine = float(layer.directions[0].detach() @ true)
    return float(np.rad2deg(np.arccos(np.clip(cosine, -1, 1))))


def directions(seeds: int, steps: int) -> list[Row]:
    rows: list[Row] = []
    hidden = np.random.default_rng(0).uniform(0, 2 * np.pi, seeds)
    for degrees in ANGLES:
        row: Row = {"degrees away at the start": int(degrees)}
        for name, best_of in (("descent alone", 0), (f"best of {GRID}, then descent", GRID)):
            found = [
                angle_found(
                    angle + np.deg2rad(degrees), angle, best_of=best_of, seed=seed, steps=steps
                )
                for seed, angle in enumerate(hidden)
            ]
            row[name] = f"{sum(angle < 5 for angle in found)} of {seeds}"
            row[f"{name}: degrees at the end"] = float(np.median(found))
        rows.append(row)
    return rows


def shapes() -> dict[str, Tensor]:
    """Return masks of 32 x 32 points."""
    masks = {
        name: np.zeros((32, 32), bool) for name in ("ring", "two discs", "square with 2 holes")
    }
    masks["ring"][disk((16, 16), 11)] = True
    masks["ring"][disk((16, 16), 5)] = False
    for centre in ((10, 9), (20, 22)):
        masks["two discs"][disk(centre, 6)] = True
    square = masks["square with 2 holes"]
    square[5:27, 5:27] = True
    square[9:15, 9:13] = square[17:23, 17:24] = False
    horse = ~np.pad(data.horse(), 20, constant_values=True)
    masks["horse"] = resize(horse.astype(float), (32, 32), anti_aliasing=True) > 0.5
    return {name: torch.from_numpy(mask) for name, mask in masks.items()}


def starts(seed: int) -> dict[str, Tensor]:
    """Return the logits with which optimization begins."""
    noise = torch.randn(32, 32, generator=torch.Generator().manual_seed(seed))
    grid = torch.arange(32) - 15.5
    disc = (8 - (grid[:, None] ** 2 + grid**2).sqrt()) / 4
    return {
        "even, 0.5": 0.01 * noise,
        "noise": noise,
        "disc": disc,
        "even, 0.1": 0.01 * noise - 2.2,
    }


def overlap_found(mask: Tensor, logits: Tensor, steps: int) -> float:
    layer = EulerTransformLayer(
        32, 32, range=(-23, 23), extension="min", learn_directions=False, learn_heights=False
    )
    wanted = layer(mask.float()).detach()
    logits = logits.clone().requires_grad_()

    def loss() -> Tensor:
        difference = layer(logits.sigmoid()) - wanted
        return difference.square().mean()

    descend(loss, [logits], 0.1, steps)
    found = logits > 0
    return float((found & mask).sum() / (found | mask).sum())


def run(quick: bool) -> Outcome:
    torch.set_num_threads(1)
    seeds, steps = (1, 10) if quick else (5, 200)
    rows: list[Row] = []
    for name, mask in shapes().items():
        overlaps = {}
        for start, logits in starts(0).items():
            overlaps[start] = overlap_found(mask, logits, 2 * steps)
        rows.append({"shape": name, **overlaps})
    tables = {"Directions that are found": directions(seeds, steps), "Overlap of shapes": rows}
    title = "Recovering directions and shapes"
    return Outcome(title, TEXT, tables, {}, QUESTION, CONCLUSION)


if __name__ == "__main__":
    report("recovery", run)
