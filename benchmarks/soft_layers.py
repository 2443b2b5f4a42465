"""Layers at their defaults on one CPU thread, against plain PyTorch and against themselves.

    python -m benchmarks.soft_layers

Each call is forward and backward from a given gradient, for the gradients of images and parameters.
What a row compares is called by turns in one process, and times are the least of the processor.
The ways in plain PyTorch, whose thresholds are parameters without a condition:

- *loop, cells*: one threshold after another, the sum of the sigmoids of all cells, by pooling;
- *loop, points*: the same over points, whose coefficients are given and cost nothing;
- *ramp, cells*: linear steps as wide as the spacing of thresholds that are even and fixed, so that
  every cell adds to two bins (`scatter_add`), and a cumulative sum;
- *ramp, points*: the same over points, whose coefficients are given and cost nothing. This is less
  than what the layer computes: neither coefficients, nor gradients of thresholds.
- *DECT, cells* and *DECT, points*: a sigmoid for each cell or point, direction and height
  (arXiv:2310.07630), the second without edges and squares.

Writes benchmarks/results/soft-layers.{json,md}.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.report import machine
from benchmarks.soft import over_heights
from benchmarks.soft_small import Call, as_leaves, backward, least, transform_case
from ecc_core._torch.cells import cell_values, coefficients_of
from ecc_core.nn import EulerCurveLayer, EulerCurveMap
from ecc_core.nn.functional import soft_euler_curve

OUTPUT = Path(__file__).parent / "results" / "soft-layers"
CURVES = [((4, 28, 28), 32), ((32, 64, 64), 32), ((4, 64, 64), 32), ((4, 256, 256), 64)]
"""Shapes of images, and thresholds."""
TRANSFORMS = [(1, 28, 16, 16), (32, 28, 16, 16), (64, 28, 64, 16), (8, 64, 16, 32)]
"""Images, side, directions and heights."""
MAPS = [(1, 64), (4, 64), (4, 256)]
"""Images, and their side."""
CONNECTIVITY = 2
WINDOW = 16


def cells(image: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield the signs of cells and their values (batch, cells)."""
    for extent, values in cell_values(image, CONNECTIVITY):
        yield (-1) ** sum(extent), values.flatten(1)


def loop_over_cells(image: Tensor, levels: Tensor, sharpness: float) -> Tensor:
    kinds = list(cells(image))
    curve = []
    for level in levels:
        sums = [s * torch.sigmoid(sharpness * (level - v)).sum(1) for s, v in kinds]
        curve.append(sum(sums))
    return torch.stack(curve, 1)


def loop_over_points(
    image: Tensor, coefficients: Tensor, levels: Tensor, sharpness: float
) -> Tensor:
    values = image.flatten(1)
    steps = [coefficients * torch.sigmoid(sharpness * (level - values)) for level in levels]
    return torch.stack([step.sum(1) for step in steps], 1)


def ramp(values: Tensor, weights: Tensor, first: float, gap: float, count: int) -> Tensor:
    """Return sums of steps that rise linearly around the level, over as much as a gap."""
    place = ((values - first) / gap + 0.5).clamp(0, count)
    bin = place.detach().floor()
    rest = weights * (place - bin)
    counts = values.new_zeros(len(values), count + 2)
    index = bin.long()
    counts = counts.scatter_add(1, index, weights - rest).scatter_add(1, index + 1, rest)
    return counts.cumsum(1)[:, :count]


def ramp_over_cells(image: Tensor, first: float, gap: float, count: int) -> Tensor:
    parts = [(torch.full_like(v, s), v) for s, v in cells(image)]
    signs, values = (torch.cat(part, 1) for part in zip(*parts, strict=True))
    return ramp(values, signs, first, gap, count)


def compared(case: str, calls: dict[str, Call], bars: dict[str, str]) -> list[dict[str, Any]]:
    """Return a row for each call: its milliseconds, and how many times those of the first it takes.

    `bars` are what these ratios should be.
    """
    seconds = least(calls)
    first = next(iter(seconds.values()))
    return [
        {"case": case, "what": name, "ms": 1e3 * t, "ratio": t / first, "bar": bars.get(name, "")}
        for name, t in seconds.items()
    ]


def flushed(call: Call) -> Call:
    """Return a call in which subnormal floats are zero."""

    def flush() -> None:
        torch.set_flush_denormal(True)
        call()
        torch.set_flush_denormal(False)

    return flush


def curves(shape: tuple[int, ...], count: int) -> list[dict[str, Any]]:
    image = torch.rand(shape).requires_grad_()
    layer = EulerCurveLayer(count, range=(0, 1))
    levels = torch.linspace(0, 1, count).requires_grad_()
    sharpness = float(layer.sharpness)
    gap = 1 / (count - 1)
    weights = coefficients_of(image.detach(), CONNECTIVITY, "raster").flatten(1)
    assert torch.allclose(layer(image), loop_over_cells(image, levels, sharpness), atol=0.02)
    assert torch.allclose(
        layer(image), loop_over_points(image, weights, levels, sharpness), atol=0.02
    )
    own = backward(layer, image)
    calls = {
        "layer": own,
        "subnormals flushed": flushed(own),
        "loop, cells": backward(lambda x: loop_over_cells(x, levels, sharpness), image),
        "loop, points": backward(lambda x: loop_over_points(x, weights, levels, sharpness), image),
        "ramp, cells": backward(lambda x: ramp_over_cells(x, 0, gap, count), image),
        "ramp, points": backward(lambda x: ramp(x.flatten(1), weights, 0, gap, count), image),
    }
    loop = ">= 30" if shape[-1] > 64 else ">= 10"
    bars = {"subnormals flushed": ">= 0.77", "loop, cells": loop, "ramp, cells": ">= 2"}
    sides = " x ".join(map(str, shape))
    return compared(f"`EulerCurveLayer`, {sides}, {count} thresholds", calls, bars)


def many_thresholds() -> list[dict[str, Any]]:
    image = torch.rand(4, 64, 64).requires_grad_()
    calls = {
        f"{count} thresholds": backward(EulerCurveLayer(count, range=(0, 1)), image)
        for count in (32, 1024)
    }
    return compared("`EulerCurveLayer`, 4 x 64 x 64", calls, {"1024 thresholds": "<= 3"})


def transforms(images: int, side: int, directions: int, heights: int) -> list[dict[str, Any]]:
    """Weights extend to cells by their minimum and points are vertices, as in DECT."""
    layer, given = transform_case(images, side, directions, heights)
    units, levels, slope = as_leaves(layer)
    grid = [torch.arange(side) - (side - 1) / 2] * 2
    positions = torch.stack(torch.meshgrid(*grid, indexing="ij"), -1).flatten(0, 1)

    def over_points(weights: Tensor) -> Tensor:
        entered = torch.sigmoid(slope * (levels[:, None, None] - positions @ units.T))
        return torch.einsum("bc,nck->bkn", weights.flatten(1), entered)

    calls = {
        "layer": backward(layer, given),
        "DECT, cells": backward(lambda x: over_heights(x, units, levels, slope), given),
        "DECT, points": backward(over_points, given),
    }
    case = f"`EulerTransformLayer`, {images} x {side} x {side}, {directions} directions, "
    return compared(f"{case}{heights} heights", calls, {"DECT, cells": ">= 3"})


def maps(images: int, side: int) -> list[dict[str, Any]]:
    """The map against views of windows and the function, with thresholds that are parameters."""
    image = torch.rand(images, 1, side, side).requires_grad_()
    layer = EulerCurveMap(window=WINDOW, range=(0, 1))
    levels = layer.thresholds.detach().requires_grad_()
    slope = float(layer.sharpness)
    stride = WINDOW // 2
    before = (WINDOW - stride) // 2

    def unfolded(image: Tensor) -> Tensor:
        padded = pad(image, [before] * 4, value=torch.inf)
        windows = padded.unfold(2, WINDOW, stride).unfold(3, WINDOW, stride)
        return soft_euler_curve(windows, levels, sharpness=slope).movedim(-1, 2)

    assert torch.allclose(layer(image), unfolded(image).flatten(1, 2), atol=1e-4)
    calls = {"map": backward(layer, image), "unfold and the function": backward(unfolded, image)}
    bars = {"unfold and the function": ">= 1"}
    return compared(f"`EulerCurveMap`, {images} x {side} x {side}", calls, bars)


def table(found: list[dict[str, Any]]) -> str:
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    lines = [
        "# Layers at their defaults on one CPU thread",
        "",
        f"{machine()['cpu']}; {versions}. Forward and backward, float32, images of noise; ms of",
        "the processor, and how many times as long as the layer others take. Written by",
        "`python -m benchmarks.soft_layers`, which says what they do.",
        "",
        "| case | what | ms | times the first | bar |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        cells = one["case"], one["what"], f"{one['ms']:.3g}", f"{one['ratio']:.2f}", one["bar"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = [row for case in CURVES for row in curves(*case)]
    found += many_thresholds()
    found += [row for case in TRANSFORMS for row in transforms(*case)]
    found += [row for case in MAPS for row in maps(*case)]
    OUTPUT.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    OUTPUT.with_suffix(".md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
