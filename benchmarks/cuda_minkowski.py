"""Times of Minkowski curves on a CUDA device, against Euler curves of the same images.

    python -m benchmarks.cuda_minkowski [--quick] [--output benchmarks/results/cuda_minkowski]

256 thresholds and images that are on the device already, by the clock, from the call until the
device has finished; the least of several calls, in turns. "default": thresholds over the range of
the image; otherwise they are given. A part of each image is compared with the CPU backend. Writes
JSON and Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import ecc_core as ecc
from benchmarks.cuda_timing import field
from benchmarks.pages import cuda_device, markdown_table, paragraph_of

TURNS = 15
HEAD = "| case | connectivity | estimator | ms | `euler_curve` ms | ratio |"


def in_turns(calls: list[Callable[[], Any]]) -> list[float]:
    """Return the least milliseconds of each call."""
    least = [np.inf] * len(calls)
    for turn in range(TURNS + 1):
        for i, call in enumerate(calls):
            cupy.cuda.Device().synchronize()
            start = time.perf_counter()
            call()
            cupy.cuda.Device().synchronize()
            if turn:
                least[i] = min(least[i], 1e3 * (time.perf_counter() - start))
    return least


def measure(image: Any, case: str, default: bool, connectivity: int, estimator: str) -> Any:
    """Return one row of the table."""
    at: Any = 256
    if not default:
        at = np.arange(256) if image.dtype == np.uint8 else np.linspace(0, 1, 256)
    options: dict[str, Any] = {"connectivity": connectivity}
    more = options | {"estimator": estimator}
    part = image[:24]
    found = ecc.minkowski_curves(part, at, **more).values.get()
    np.testing.assert_array_equal(found, ecc.minkowski_curves(part.get(), at, **more).values)
    ours, euler = in_turns(
        [
            lambda: ecc.minkowski_curves(image, at, **more),
            lambda: ecc.euler_curve(image, at, **options),
        ]
    )
    row = {"case": case, "connectivity": connectivity, "estimator": estimator}
    return row | {"ms": ours, "euler_ms": euler, "ratio": ours / euler}


def line(row: dict[str, Any]) -> str:
    numbers = " | ".join(f"{row[key]:.3g}" for key in ("ms", "euler_ms", "ratio"))
    return f"| {row['case']} | {row['connectivity']} | {row['estimator']} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_minkowski"))
    arguments = parser.parse_args()
    shapes = [(64,) * 3, (512,) * 2] if arguments.quick else [(512,) * 3, (8192,) * 2]
    rows = []
    for shape, dtype, sigma in itertools.product(shapes, ("float32", "uint8"), (0, 4)):
        (image,) = field(shape, sigma, dtype)
        ndim = len(shape)
        name = f"{shape[0]}^{ndim} {dtype} {f'sigma {sigma}' if sigma else 'noise'}"
        kinds = [(True, ndim, "exact"), (False, ndim, "exact"), (False, 1, "exact")]
        if dtype == "float32":
            kinds.append((False, ndim, "crofton-4" if ndim == 2 else "crofton-13"))
        for kind in kinds:
            rows.append(measure(image, name + ", default" * kind[0], *kind))
            print(line(rows[-1]), flush=True)
    name = cuda_device()
    about = f"{name}; cupy {cupy.__version__}, numpy {np.__version__}."
    text = paragraph_of(__doc__, 2)
    report = {"device": name, "rows": rows}
    arguments.output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    table = markdown_table(HEAD, map(line, rows))
    arguments.output.with_suffix(".md").write_text(
        f"# Minkowski curves on a CUDA device\n\n{about} {text}\n\n{table}\n"
    )


if __name__ == "__main__":
    main()
