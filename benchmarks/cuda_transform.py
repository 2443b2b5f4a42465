"""Times of transforms on a CUDA device, against the CPU, pyECT and plain CuPy.

    python -m benchmarks.cuda_transform [--quick] [--output benchmarks/results/cuda_transform]

64 directions and 256 heights of images that are on the device already, by the clock, from the call
until the device has finished; the least of several calls. On the CPU, kernels are first compiled by
a call on a small part of the image, and calls that take more than half a second are made once. The
values of the device are compared with those of the CPU. pyECT is measured where it can be imported,
on a complex made before. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import ecc_core as ecc
from benchmarks.cuda_peers import seconds
from benchmarks.cuda_timing import field
from benchmarks.pages import cuda_device

DIRECTIONS = 64
HEIGHTS = 256
SHAPES = [(512, 512), (2048, 2048), (128, 128, 128), (512, 512, 512)]
CPU_SECONDS = 0.5  # Longer calls on the CPU are not repeated.
MOST_CUPY = 1 << 24
"""Points; plain CuPy takes too long for more."""

Call = Callable[[], Any]


def masks(shape: tuple[int, ...]) -> dict[str, Any]:
    fields = {"noise": field(shape, 0, "float32")[0], "sigma 8": field(shape, 8, "float32")[0]}
    return {name: values > float(cupy.median(values)) for name, values in fields.items()}


def by_cupy(mask: Any, directions: np.ndarray, heights: np.ndarray) -> Call:
    """Return a transform (V) by slices for each orthant, `searchsorted` and `bincount`."""
    ndim = mask.ndim
    levels = cupy.asarray(heights)

    def coefficients(negative: tuple[bool, ...]) -> Any:
        padded = cupy.pad(mask, 1)
        total = cupy.zeros(mask.shape, np.int8)
        for spans in itertools.product((0, 1), repeat=ndim):
            cells = cupy.ones(mask.shape, bool)
            ends = [range(span + 1) for span in spans]
            for corner in itertools.product(*ends):
                steps = [c if less else -c for c, less in zip(corner, negative, strict=True)]
                starts = [1 + step for step in steps]
                box = [slice(at, at + n) for at, n in zip(starts, mask.shape, strict=True)]
                cells &= padded[tuple(box)]
            total += (-1) ** sum(spans) * cells.astype(np.int8)
        return total

    def transform() -> Any:
        values = cupy.zeros((len(directions), heights.size), np.int64)
        for negative in itertools.product((False, True), repeat=ndim):
            rows = np.flatnonzero(((directions < 0) == negative).all(axis=1))
            found = coefficients(negative) if rows.size else cupy.zeros(mask.shape, np.int8)
            places = cupy.nonzero(found)
            weights = found[places].astype(np.float64)
            centred = [p - (n - 1) / 2 for p, n in zip(places, mask.shape, strict=True)]
            for row in rows.tolist():
                height = centred[0] * directions[row, 0]
                for x, u in zip(centred[1:], directions[row, 1:], strict=True):
                    height = height + x * u
                bins = cupy.searchsorted(levels, height)
                counts = cupy.bincount(bins, weights, minlength=heights.size + 1)
                values[row] = cupy.cumsum(counts[:-1]).astype(np.int64)
        return values

    return transform


def by_pyect(mask: Any, directions: np.ndarray) -> Call | None:
    """Return the WECT of the cubical complex in 2-D, if pyECT can be imported."""
    if mask.ndim != 2 or find_spec("pyect") is None or find_spec("trimesh") is None:
        return None
    import pyect
    import torch

    complex_ = pyect.weighted_cubical(torch.from_numpy(mask.get()))
    own = np.stack([directions[:, 1], -directions[:, 0]], axis=1)  # (column, minus row)
    module = pyect.WECT(torch.from_numpy(own).float(), HEIGHTS).cuda()
    dimensions = [(cells.cuda(), weights.cuda()) for cells, weights in complex_.dimensions]

    def transform() -> Any:
        with torch.inference_mode():
            values = module(dimensions)
        torch.cuda.synchronize()
        return values

    return transform


def on_cpu(call: Callable[[Any], Any], image: np.ndarray) -> tuple[Any, float]:
    """Return the values of a transform, and the least time of up to three calls in milliseconds."""
    corner = (slice(8),) * image.ndim
    call(image[corner])  # It compiles.
    best = float("inf")
    end = time.perf_counter() + CPU_SECONDS
    for _ in range(3):
        start = time.perf_counter()
        found = call(image).values
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            break
    return found, 1e3 * best


def measure(shape: tuple[int, ...], name: str, mask: Any) -> list[dict[str, Any]]:
    directions = ecc.sample_directions(DIRECTIONS, mask.ndim)
    reach = float(np.linalg.norm(shape)) / 2
    heights = np.linspace(-reach, reach, HEIGHTS)
    weights = mask * field(shape, 2, "float32")[0]
    cases = {
        "mask": (mask, {}),
        "int weights": ((weights * 100).astype(np.int64), {"weighted": True}),
        "float weights": (weights, {"weighted": True}),
    }
    rows = []
    for (kind, (image, options)), connectivity in itertools.product(cases.items(), (1, mask.ndim)):
        call = partial(
            ecc.euler_transform,
            directions=directions,
            heights=heights,
            connectivity=connectivity,
            **options,
        )
        host = image.get()
        known, cpu = on_cpu(call, host)
        found = call(image).values.get()
        if kind == "float weights":
            equal = bool(np.allclose(found, known, rtol=0, atol=1e-9 * host.size**0.5))
        else:
            equal = bool((found == known).all())
        row: dict[str, Any] = {"shape": list(shape), "image": name, "of": kind}
        row |= {"connectivity": connectivity, "equal": equal}
        row["ms"] = 1e3 * seconds(partial(call, image), 10)
        row["cpu_ms"] = cpu
        if kind == "mask" and connectivity == 1:
            if mask.size <= MOST_CUPY:
                plain = by_cupy(mask, directions, heights)
                found = plain().get()
                row["equal"] &= bool((found == known).all())
                row["cupy_ms"] = 1e3 * seconds(plain, 2)
            if pyect := by_pyect(mask, directions):
                row["pyect_ms"] = 1e3 * seconds(pyect, 3)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def regions(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the row of labels: squares of 16 x 16 pixels that touch."""
    side = 16
    count = int(np.prod([n // side for n in shape]))
    ids = cupy.arange(1, count + 1, dtype=np.int32).reshape([n // side for n in shape])
    labels = ids
    for axis in range(len(shape)):
        labels = cupy.repeat(labels, side, axis)
    labels = cupy.where(cupy.random.default_rng(1).random(shape) < 0.02, 0, labels)
    call = partial(ecc.region_transforms, directions=16, heights=32, normalize="radius")
    known, cpu = on_cpu(call, labels.get())
    found = call(labels).values.get()
    equal = bool((found == known).all())
    times = {"ms": 1e3 * seconds(lambda: call(labels), 10), "cpu_ms": cpu}
    return {"shape": list(shape), "regions": count, "equal": equal, **times}


def markdown(report: dict[str, Any]) -> str:
    lines = [
        f"# Transforms on {report['device']}",
        "",
        f"{DIRECTIONS} directions, {HEIGHTS} heights; ms by the clock, image and results on the "
        f"device. CPU: the same machine, {report['cores']} cores.",
        "",
        "| image | | of | connectivity | ms | CPU | CPU / ms | CuPy / ms | pyECT / ms | equal |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in report["rows"]:
        size = " x ".join(map(str, row["shape"]))
        others = [
            f"{row[name] / row['ms']:.0f}" if name in row else ""
            for name in ("cupy_ms", "pyect_ms")
        ]
        lines.append(
            f"| {size} | {row['image']} | {row['of']} | {row['connectivity']} | {row['ms']:.3f} "
            f"| {row['cpu_ms']:.2f} | {row['cpu_ms'] / row['ms']:.1f} | {' | '.join(others)} "
            f"| {'yes' if row['equal'] else 'NO'} |"
        )
    lines += ["", "Touching regions, 16 directions and 32 heights:", ""]
    lines += ["| labels | regions | ms | CPU | CPU / ms | equal |", "|---|---|---|---|---|---|"]
    for row in report["regions"]:
        lines.append(
            f"| {' x '.join(map(str, row['shape']))} | {row['regions']} | {row['ms']:.3f} "
            f"| {row['cpu_ms']:.2f} | {row['cpu_ms'] / row['ms']:.1f} "
            f"| {'yes' if row['equal'] else 'NO'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out 512 x 512 x 512")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_transform"))
    arguments = parser.parse_args()
    device = cuda_device()
    shapes = SHAPES[:-1] if arguments.quick else SHAPES
    report: dict[str, Any] = {"device": device, "cores": len(os.sched_getaffinity(0)), "rows": []}
    for shape in shapes:
        for name, mask in masks(shape).items():
            report["rows"] += measure(shape, name, mask)
    report["regions"] = [regions(shape) for shape in ((1024, 1024), (4096, 4096), (256,) * 3)]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    arguments.output.with_suffix(".md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
