"""How large the critical complex of a volume is, and how much of it crosses the faces of blocks.

    python -m benchmarks.critical_complex --sides 64 128 256

Of each volume: points that have critical cells, edges that close loops (rows), squares that fill
them (columns), and row numbers that reduced columns keep; and the share of columns that are paired
with a row in another block of the given side, which are those that no block could reduce alone.
The table is benchmarks/results/critical_complex.md.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

import ecc_core as ecc
from ecc_core._backends.cpu.betti import cells, tunnels

RESULTS = Path(__file__).parent / "results" / "critical_complex.md"
BLOCK = 64
MOST_NOISE = 128
"""The most points along the side of a volume of noise."""
LARGE = 1024
"""The points along the side of the volume to which sizes are extrapolated."""
BYTES_OF_ROW = 4 + 4 + 4 + 4 + 8
"""The bytes of its place, key, position and owner, and of the place of its column."""
BYTES_OF_COLUMN = 4 + 4 + 2
BYTES_OF_ENTRY = 4


def volume(side: int, sigma: float) -> np.ndarray:
    noise = np.random.default_rng(0).standard_normal((side,) * 3, np.float32)
    return ndimage.gaussian_filter(noise, sigma) if sigma else noise


def measured(image: np.ndarray) -> dict[str, float]:
    """Return the sizes of the critical complex of a volume."""
    found = {"rows": 0, "columns": 0, "entries": 0}
    reduce = tunnels.reduce_columns
    pair = cells.reduced

    def listed(*given: Any) -> Any:
        result = reduce(*given)
        found["entries"] = max(found["entries"], int(result[1]))
        return result

    def counted(of: Any, rows: Any, columns: Any, workers: int) -> Any:
        found["rows"] += len(rows.positions)
        found["columns"] += len(columns.places)
        return pair(of, rows, columns, workers)

    tunnels.reduce_columns = listed
    cells.reduced = counted
    try:
        pairs = ecc.persistence_pairs(image, 1, workers=1, connectivity=1)
    finally:
        tunnels.reduce_columns = reduce
        cells.reduced = pair
    blocks = (points // BLOCK for points in (pairs.birth_points, pairs.death_points))
    apart = np.any(np.not_equal(*blocks), axis=1)
    return {**found, "apart": float(apart.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--sigmas", type=float, nargs="+", default=[2, 0])
    arguments = parser.parse_args()
    lines = [
        "# The critical complex of volumes",
        "",
        "Measured by `python -m benchmarks.critical_complex`: float32 noise, smoothed or not,",
        f"connectivity 1. *Apart*: columns whose row lies in another block of {BLOCK}^3 points.",
        f"The last column is what rows, columns and reduced columns of {LARGE}^3 points take, if",
        "there are as many in each voxel.",
        "",
        "| side | sigma | rows / 1000 voxels | columns / 1000 voxels | entries / column | apart "
        f"| GiB of {LARGE}^3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for sigma in arguments.sigmas:
        for side in arguments.sides:
            if not sigma and side > MOST_NOISE:
                continue
            one = measured(volume(side, sigma))
            voxels = side**3
            size = one["rows"] * BYTES_OF_ROW + one["columns"] * BYTES_OF_COLUMN
            size += one["entries"] * BYTES_OF_ENTRY
            large = size / voxels * LARGE**3 / 2**30
            lines.append(
                f"| {side} | {sigma:g} | {1e3 * one['rows'] / voxels:.2f} "
                f"| {1e3 * one['columns'] / voxels:.2f} "
                f"| {one['entries'] / max(one['columns'], 1):.1f} "
                f"| {100 * one['apart']:.0f} % | {large:.2f} |"
            )
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
