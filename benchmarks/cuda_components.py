"""Sizes of components and persistent regions on a CUDA device, against a core of its host.

    python -m benchmarks.cuda_components [--quick] [--output benchmarks/results/cuda_components]

256 thresholds; regions of components that last for a tenth of the range, cut at half of their
height or not. Images are on the device. Milliseconds by the clock, from the call until the device
has finished, the least of several calls. The host computes a volume of an eighth of the points on
one core, with which the device is compared, and whose time is then multiplied by eight.

Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import ecc_core as ecc
from benchmarks.cuda_timing import field
from benchmarks.pages import cuda_device, markdown_table, paragraph_of

HEAD = "| function | image | device ms | one core ms | ratio |"
TURNS = 4
Compute = Callable[[Any], Any]


def calls(dtype: str) -> dict[str, Compute]:
    """Return the functions to measure."""
    last = 255 if dtype == "uint8" else 1
    levels = np.linspace(0, last, 256).astype(dtype)
    regions = partial(ecc.persistent_regions, min_persistence=last / 10, superlevel=True, workers=1)
    return {
        "component_curves": lambda image: ecc.component_curves(image, levels, workers=1),
        "persistent_regions": regions,
        "persistent_regions, rel_height=0.5": partial(regions, rel_height=0.5),
    }


def milliseconds(call: Callable[[], Any]) -> float:
    best = np.inf
    for _ in range(TURNS):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        call()
        cupy.cuda.Device().synchronize()
        best = min(best, 1e3 * (time.perf_counter() - start))
    return best


def measure(name: str, compute: Compute, side: int, dtype: str, sigma: float) -> dict[str, Any]:
    """Return one row of the table."""
    (image,) = field((side,) * 3, sigma, dtype)
    part = cupy.ascontiguousarray(image[: side // 2, : side // 2, : side // 2])
    host = part.get()
    compute(host[:16, :16, :16])  # It compiles.
    found = compute(part)
    start = time.perf_counter()
    known = compute(host)
    core = 1e3 * (time.perf_counter() - start)
    for own, true in zip(found, known, strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(own), true)
    ours = milliseconds(lambda: compute(image))
    kind = f"sigma {sigma}" if sigma else "noise"
    row = {"function": name, "image": f"{side}^3 {dtype} {kind}"}
    return row | {"device ms": ours, "one core ms": 8 * core, "ratio": 8 * core / ours}


def line(row: dict[str, Any]) -> str:
    columns = HEAD.strip("| ").split(" | ")[2:]
    numbers = " | ".join(f"{row[name]:.3g}" for name in columns)
    return f"| `{row['function']}` | {row['image']} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_components"))
    arguments = parser.parse_args()
    rows = []
    for dtype, sigma in (("uint8", 2), ("float32", 2), ("uint8", 0)):
        for name, compute in calls(dtype).items():
            rows.append(
                measure(
                    name, compute, side=64 if arguments.quick else 512, dtype=dtype, sigma=sigma
                )
            )
            print(line(rows[-1]), flush=True)
    name = cuda_device()
    about = f"{name}; cupy {cupy.__version__}, numpy {np.__version__}."
    text = paragraph_of(__doc__, 2)
    report = {"device": name, "rows": rows}
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    table = markdown_table(HEAD, map(line, rows))
    title = "# Components on a CUDA device"
    arguments.output.with_suffix(".md").write_text(f"{title}\n\n{about} {text}\n\n{table}\n")


if __name__ == "__main__":
    main()
