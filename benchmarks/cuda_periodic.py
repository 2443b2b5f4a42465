"""Times of topology of periodic volumes on a CUDA device, beside those of volumes that end.

    python -m benchmarks.cuda_periodic [--quick] [--output benchmarks/results/cuda_periodic]

256^3 float32 voxels that are on the device, connectivity 1, 256 thresholds, regions that last for
three tenths of the range. Milliseconds by the clock, from the call until the device has finished,
the least of several calls, of images that end along all axes and that are periodic along all of
them.

Writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cupy

import ecc_core as ecc
from benchmarks.cuda_pairs import field, seconds
from benchmarks.pages import cuda_device, paragraph_of

HEAD = "| function | image | closed ms | periodic ms |"
LEAST = 0.3
"""How long regions last, of the range."""


def rows_of(side: int, sigma: float) -> list[dict[str, Any]]:
    """Return a row for each function."""
    image = field((side,) * 3, sigma)
    span = float(image.min()), float(image.max())
    least = LEAST * (span[1] - span[0])
    options: dict[str, Any] = {"connectivity": 1}
    calls: dict[str, Callable[..., Any]] = {
        "betti_curves": lambda **b: ecc.betti_curves(image, 256, range=span, **options, **b),
        "persistence_pairs": lambda **b: ecc.persistence_pairs(image, **options, **b),
        "component_curves": lambda **b: ecc.component_curves(
            image, 256, range=span, **options, **b
        ),
        "persistent_regions": lambda **b: ecc.persistent_regions(image, least, **options, **b),
    }
    rows = []
    for name, call in calls.items():
        row: dict[str, Any] = {"function": name, "image": f"{side}^3 sigma {sigma:g}"}
        row["image"] = row["image"] if sigma else f"{side}^3 noise"
        for word in ("closed", "periodic"):
            row[f"{word}_ms"] = 1e3 * seconds(partial(call, boundary=word))
        rows.append(row)
        print(row, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/cuda_periodic"))
    arguments = parser.parse_args()
    side = 64 if arguments.quick else 256
    rows = rows_of(side, 0) + rows_of(side, 2)
    name = cuda_device()
    report = json.dumps({"device": name, "rows": rows}, indent=1)
    arguments.output.with_suffix(".json").write_text(report + "\n")
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    for row in rows:
        times = f"{row['closed_ms']:.1f} | {row['periodic_ms']:.1f}"
        lines.append(f"| `{row['function']}` | {row['image']} | {times} |")
    table = "\n".join(lines)
    text = paragraph_of(__doc__, 2)
    page = f"# Periodic volumes on a CUDA device\n\n{name}; cupy {cupy.__version__}. {text}\n"
    arguments.output.with_suffix(".md").write_text(f"{page}\n{table}\n")


if __name__ == "__main__":
    main()
