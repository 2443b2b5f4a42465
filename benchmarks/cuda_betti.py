"""Times of Betti curves on a CUDA device, against one core of the same machine.

    python -m benchmarks.cuda_betti [--quick] [--output benchmarks/results/cuda_betti]

256 thresholds and images that are on the device already, by the clock, from the call until the
device has finished; the least of several calls. Values are compared with those of the CPU backend.
Writes JSON and Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupyx.scipy.ndimage import gaussian_filter

import ecc_core as ecc
from benchmarks.cuda_peers import seconds
from benchmarks.pages import cuda_device, markdown_table

HEAD = "| case | connectivity | device ms | Euler ms | one core ms | core / device | bytes |"


def field(n: int, sigma: float, dtype: str) -> Any:
    """Return noise or smooth noise over all values of the dtype."""
    values = cupy.random.default_rng(0).random((n,) * 3, dtype=cupy.float32)
    if sigma:
        values = gaussian_filter(values, sigma)
    values = (values - values.min()) / (values.max() - values.min())
    return (values * 255.99).astype(cupy.uint8) if dtype == "uint8" else values


def measure(n: int, sigma: float, dtype: str, connectivity: int) -> dict[str, Any]:
    """Return one row of the table."""
    image = field(n, sigma, dtype)
    at = np.arange(256) if dtype == "uint8" else np.linspace(0, 1, 256)
    options: dict[str, Any] = {"connectivity": connectivity}
    device = seconds(lambda: ecc.betti_curves(image, at, **options), 5)
    euler = seconds(lambda: ecc.euler_curve(image, at, **options), 5)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    found = ecc.betti_curves(image, at, **options).values.get()
    extra = (pool.total_bytes() - before) / image.size
    host = image.get()
    ecc.betti_curves(host[:8], at, workers=1, **options)
    start = time.perf_counter()
    known = ecc.betti_curves(host, at, workers=1, **options).values
    core = time.perf_counter() - start
    np.testing.assert_array_equal(found, known)
    return {
        "case": f"{n}^3 {dtype} {f'sigma {sigma}' if sigma else 'noise'}",
        "connectivity": connectivity,
        "device_ms": device * 1e3,
        "euler_ms": euler * 1e3,
        "core_ms": core * 1e3,
        "ratio": core / device,
        "extra_bytes_a_point": extra,
    }


def line(row: dict[str, Any]) -> str:
    numbers = (row[k] for k in ("device_ms", "euler_ms", "core_ms", "ratio"))
    shown = " | ".join(f"{number:.4g}" for number in numbers)
    extra = row["extra_bytes_a_point"]
    return f"| {row['case']} | {row['connectivity']} | {shown} | {extra:.3g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_betti"))
    arguments = parser.parse_args()
    n = 128 if arguments.quick else 512
    cases = [(0, "uint8", 3), (2, "uint8", 3), (2, "uint8", 1), (2, "float32", 3)]
    rows = []
    for case in cases:
        rows.append(measure(n, *case))
        print(line(rows[-1]), flush=True)
    name = cuda_device()
    about = f"{name}; cupy {cupy.__version__}, numpy {np.__version__}. Bytes: beside the image."
    arguments.output.with_suffix(".json").write_text(
        json.dumps({"device": name, "rows": rows}, indent=1) + "\n"
    )
    table = markdown_table(HEAD, map(line, rows))
    arguments.output.with_suffix(".md").write_text(
        f"# Betti curves on a CUDA device\n\n{about}\n\n{table}\n"
    )


if __name__ == "__main__":
    main()
