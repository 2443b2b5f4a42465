"""Soft curves of small images, of many channels, directions and windows, on one CPU thread.

    python -m benchmarks.soft_small

Each call is forward and backward. Times are those of the processor in the calling thread, the least
of interleaved runs. Writes benchmarks/results/soft-small.{json,md}.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.soft import over_cells, over_heights, over_points
from ecc_core._torch.cells import coefficients_of
from ecc_core.nn import EulerCurveLayer, EulerCurveMap, EulerTransformLayer
from ecc_core.nn.functional import soft_euler_curve

OUTPUT = Path(__file__).parent / "results" / "soft-small"
TURNS = 5
"""Calls take at least so many turns."""
SECONDS = 0.3
"""All turns of a call take about so many seconds at least."""
A_TURN = 0.02
"""The seconds of a turn, or those of one call if it takes longer."""
LEVELS = 32
Call = Callable[[], None]


def backward(compute: Callable[[Tensor], Tensor], image: Tensor) -> Call:
    upstream = torch.ones_like(compute(image))
    return lambda: compute(image).backward(upstream)


def least(calls: dict[str, Call]) -> dict[str, float]:
    """Return the least seconds of each call.

    In its turn a call follows itself. After ways in plain PyTorch, which replace what caches hold,
    a layer of small images takes up to 2.5 times as long.
    """
    best = dict.fromkeys(calls, float("inf"))
    begin = time.thread_time()
    turns = 0
    while turns < TURNS or time.thread_time() - begin < SECONDS * len(calls):
        turns += 1
        for name, call in calls.items():
            turn = time.thread_time()
            while time.thread_time() - turn < A_TURN:
                start = time.thread_time()
                call()
                best[name] = min(best[name], time.thread_time() - start)
    return best


def row(case: str, calls: dict[str, Call]) -> dict[str, Any]:
    """Return a row that compares the first call with the others."""
    seconds = least(calls)
    first, *others = calls
    return {
        "case": case,
        "ms": {name: 1e3 * value for name, value in seconds.items()},
        "ratios": {name: seconds[first] / seconds[name] for name in others},
    }


def transform_case(
    images: int, side: int, directions: int, heights: int
) -> tuple[EulerTransformLayer, Tensor]:
    """Return a layer at connectivity 1, whose cells have the least weight of points, and images."""
    reach = 0.75 * side
    layer = EulerTransformLayer(
        directions, heights, range=(-reach, reach), extension="min", connectivity=1
    )
    return layer, torch.rand(images, side, side).requires_grad_()


def as_leaves(layer: EulerTransformLayer) -> tuple[Tensor, Tensor, float]:
    """Return directions and heights as parameters of their own, and the sharpness."""
    units = layer.directions.detach().requires_grad_()
    levels = layer.heights.detach().requires_grad_()
    return units, levels, float(layer.sharpness)


def transforms(images: int, side: int, directions: int, heights: int) -> dict[str, Any]:
    """Return a row of the layer and the plain sum, at connectivity 1, with all gradients."""
    layer, given = transform_case(images, side, directions, heights)
    units, levels, slope = as_leaves(layer)
    steps = {
        "layer": backward(layer, given),
        "PyTorch, cells": backward(lambda x: over_heights(x, units, levels, slope), given),
    }
    return row(f"{images} x {side} x {side}, {directions} directions, {heights} heights", steps)


def rows() -> list[dict[str, Any]]:
    levels = torch.linspace(0, 1, LEVELS).requires_grad_()
    sharpness = 4.0 * (LEVELS - 1)

    def curve(image: Tensor) -> Tensor:
        return soft_euler_curve(image, levels, sharpness=sharpness, connectivity=1)

    maps = torch.rand(8, 64, 8, 8).requires_grad_()
    image = torch.rand(1, 1, 64, 64).requires_grad_()
    weights = coefficients_of(image.detach()[0], 1, "split").flatten(1)
    slope = torch.tensor(sharpness)
    layer = EulerCurveLayer(LEVELS, range=(0, 1))
    convolution = nn.Conv2d(64, 64, 3, padding=1)
    of_maps = {
        "curves": backward(curve, maps),
        "convolution 64 -> 64, 3 x 3": backward(convolution, maps),
    }
    of_image = {
        "curves": backward(curve, image),
        "layer": backward(layer, image),
        "PyTorch, points": backward(lambda x: over_points(x[0], weights, levels, slope), image),
        "PyTorch, cells": backward(lambda x: over_cells(x[0], levels, slope), image),
    }
    of_directions = {
        "16 directions": backward(_directed(16), image),
        "1": backward(_directed(1), image),
    }
    found = [
        row("8 x 64 maps of 8 x 8, 32 thresholds", of_maps),
        row("one image of 64 x 64, 32 thresholds", of_image),
        row("16 directions, one image of 64 x 64", of_directions),
    ]
    sizes = [
        (16, 28, 16, 16),
        (32, 28, 16, 16),
        (64, 28, 64, 16),
        (8, 64, 16, 32),
        (2, 256, 16, 32),
    ]
    found.extend(transforms(*size) for size in sizes)
    found.extend(windows())
    return found


def _directed(directions: int) -> EulerCurveLayer:
    """Return a layer of curves along directions."""
    return EulerCurveLayer(LEVELS, range=(0, 1), directions=directions, direction_scale=1 / 64)


def windows() -> Iterator[dict[str, Any]]:
    """Yield rows of maps of curves of windows, against the curve of the whole image."""
    large = torch.rand(1, 1, 512, 512).requires_grad_()
    volume = torch.rand(1, 1, 64, 64, 64).requires_grad_()
    for given, window, connectivity, count in (
        (large, 32, 2, 16),
        (large, 64, 2, 16),
        (large, 32, 1, 16),
        (large, 16, 2, 8),
        (large, 8, 2, 8),
        (volume, 32, 3, 8),
        (volume, 16, 3, 8),
        (volume, 16, 1, 8),
    ):
        axes = given.dim() - 2
        options: dict[str, Any] = {
            "range": (0, 1),
            "connectivity": connectivity,
            "n_spatial": axes,
        }
        calls = {
            "map": backward(EulerCurveMap(count, window=window, padding=0, **options), given),
            "whole image": backward(EulerCurveLayer(count, **options), given),
        }
        sides = " x ".join(map(str, given.shape[2:]))
        case = f"windows of {window} of {sides}, connectivity {connectivity}, {count} thresholds"
        yield row(case, calls)


def table(found: list[dict[str, Any]]) -> str:
    lines = [
        "# Small images, directions and windows on one CPU thread",
        "",
        f"Forward and backward, float32, torch {torch.__version__}. Ratios are of the first call",
        "to the others. Written by `python -m benchmarks.soft_small`.",
        "",
        "| case | ms | ratio to |",
        "|---|---|---|",
    ]
    for one in found:
        times = ", ".join(f"{name}: {ms:.3g}" for name, ms in one["ms"].items())
        ratios = ", ".join(f"{name}: {ratio:.2f}" for name, ratio in one["ratios"].items())
        lines.append(f"| {one['case']} | {times} | {ratios} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = rows()
    OUTPUT.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    OUTPUT.with_suffix(".md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
