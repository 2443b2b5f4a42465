"""Times of the CUDA backend against the time of reading the image once.

    python -m benchmarks.cuda [--quick] [--output benchmarks/results/cuda]

Checks every case against the CPU backend (large ones against a part), then times it: the kernel by
CUDA events or by replaying a CUDA graph, and whole calls by the clock. The floor of a case is its
bytes at the rate of a max-reduction of 4 GiB, measured in the same run. Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from benchmarks.cuda_timing import field, read_rate, replay
from benchmarks.pages import cuda_device
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import ArrayView, element_of
from ecc_core._request.filtration import Filtration

BINS = 256


def levels(dtype: str) -> np.ndarray:
    if dtype == "float32":
        return np.linspace(0, 1, BINS)
    return np.arange(np.iinfo(dtype).max + 1)


def cases(quick: bool) -> list[tuple[tuple[int, ...], str, int]]:
    small = [((n, n), "float32", 1) for n in (128, 256, 512, 1024, 2048)]
    small += [((n, n, n), "float32", 1) for n in (128, 256)]
    large = [((4096, 4096), "float32", 1), ((8192, 8192), "float32", 1)]
    large += [((512, 512, 512), "float32", 1), ((1024, 1024, 1024), "float32", 1)]
    large += [((1024, 1024, 1024), "uint8", 1), ((1024, 1024, 1024), "uint16", 1)]
    large += [((128, 128), "float32", 4096)]
    return small + ([] if quick else large)


def filtration_of(images: Any, cubes: bool, nan: str) -> Filtration:
    ndim = images.ndim - 1
    return Filtration(ndim, ndim if cubes else 1, nan=nan)


def check(image: Any, dtype: str, cubes: bool) -> bool:
    """Whether results are equal to the CPU backend's on a corner of the first images."""
    from ecc_core._backends.cpu import launch as cpu

    side = slice(0, 1100 if image.ndim == 3 else 150)
    corner = image[(slice(2), *[side] * (image.ndim - 1))]
    host = corner.get()
    filtration = filtration_of(image, cubes, "omit")
    known = cpu.curve(host, levels(dtype), filtration)
    found = launch.curve(corner, levels(dtype), filtration)
    return bool((found.get() == known).all())


def measure(shape: tuple[int, ...], dtype: str, images: int, rate: float) -> list[dict[str, Any]]:
    rows = []
    for sigma in (0, 2, 8):
        image = field(shape, sigma, dtype, images)
        thresholds = levels(dtype)
        for cubes in (False, True):
            filtration = filtration_of(image, cubes, "raise")
            adopted = ArrayView(image, element_of(image.dtype), None)
            call = partial(launch.enqueue, adopted, thresholds, filtration)
            good = check(image, dtype, cubes)
            small = image.nbytes < 1 << 27
            seconds = replay(call) if small else replay(call, times=10)
            floor = image.nbytes / rate
            rows.append(
                {
                    "shape": list(shape),
                    "images": images,
                    "dtype": dtype,
                    "sigma": sigma,
                    "connectivity": filtration.connectivity,
                    "ms": seconds * 1e3,
                    "floor_ms": floor * 1e3,
                    "ratio": seconds / floor,
                    "equal": good,
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def whole_calls() -> dict[str, float]:
    """Return the microseconds of a call from Python with arrays on the device."""
    image = field((1024, 1024), 2, "float32")
    thresholds = levels("float32")
    result = {}
    for nan in ("omit", "raise"):
        filtration = filtration_of(image, True, nan)
        for _ in range(20):
            launch.curve(image, thresholds, filtration)
        cupy.cuda.Device().synchronize()
        best = float("inf")
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(50):
                launch.curve(image, thresholds, filtration)
            cupy.cuda.Device().synchronize()
            best = min(best, (time.perf_counter() - start) / 50)
        result[nan] = best * 1e6
    return result


def name(row: dict[str, Any]) -> str:
    size = " x ".join(map(str, row["shape"]))
    return f"{row['images']} of {size}" if row["images"] > 1 else size


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Return a line for each image and dtype, with the time of the slower connectivity."""
    worst: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
    for row in rows:
        times = worst.setdefault((name(row), row["dtype"]), {})
        found = (row["ms"] * 1e3, row["ratio"])
        times[row["sigma"]] = max(found, times.get(row["sigma"], found))
    lines = ["| image | dtype | sigma 2 | sigma 8 | noise |", "|---|---|---|---|---|"]
    for (size, dtype), times in worst.items():
        cells = (f"{times[s][0]:.1f} us, {times[s][1]:.2f} x floor" for s in (2, 8, 0))
        lines.append(f"| {size} | {dtype} | {' | '.join(cells)} |")
    return lines


def markdown(report: dict[str, Any]) -> str:
    lines = [
        f"# {report['device']}",
        "",
        f"Read rate {report['read_rate'] / 1e12:.2f} TB/s; {BINS} thresholds for float32.",
        "",
        *summary(report["kernels"]),
        "",
        "| image | dtype | sigma | connectivity | ms | x floor | equal to CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {name(row)} | {row['dtype']} | {row['sigma'] or 'noise'} | {row['connectivity']} "
        f"| {row['ms']:.4f} | {row['ratio']:.2f} | {'yes' if row['equal'] else 'NO'} |"
        for row in report["kernels"]
    ]
    lines += ["", "From Python, 1024 x 1024, microseconds:", ""]
    lines += [f"- nan={nan!r}: {value:.1f}" for nan, value in report["calls_us"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda"))
    arguments = parser.parse_args()
    device = cuda_device()
    report: dict[str, Any] = {"device": device, "read_rate": read_rate()}
    report["kernels"] = [
        row for case in cases(arguments.quick) for row in measure(*case, report["read_rate"])
    ]
    report["calls_us"] = whole_calls()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    arguments.output.with_suffix(".md").write_text(markdown(report))
    print(markdown(report))


if __name__ == "__main__":
    main()
