"""The curve by about twenty plain lines of numba, beside ours.

    python benchmarks/plain_numba.py

Writes benchmarks/results/plain_numba.{json,md}.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numba
import numpy as np
from evidence.outcome import best_times, machine
from pages import rule
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

RESULTS = Path(__file__).parent / "results"
LEVELS = np.arange(256)


@numba.njit
def plain_2d(image: Any) -> Any:
    """Return the changes of the curve of an image in 2-D; a cell enters with its largest corner."""
    changes = np.zeros(256, np.int64)
    rows, columns = image.shape
    for i in range(rows):
        for j in range(columns):
            a = image[i, j]
            changes[a] += 1
            if i + 1 < rows:
                changes[max(a, image[i + 1, j])] -= 1
            if j + 1 < columns:
                b = max(a, image[i, j + 1])
                changes[b] -= 1
                if i + 1 < rows:
                    changes[max(b, image[i + 1, j], image[i + 1, j + 1])] += 1
    return np.cumsum(changes)


@numba.njit
def plain_3d(image: Any) -> Any:
    """Return the changes in 3-D; maxima of edges and squares are used for several cells."""
    changes = np.zeros(257, np.int64)
    planes, rows, columns = image.shape
    never = 256  # The value of points beyond the border.
    for i in range(planes):
        for j in range(rows):
            down = i + 1 < planes
            right = j + 1 < rows
            x = y = z = w = never  # The values of the column before the first.
            for k in range(columns - 1, -1, -1):
                a = image[i, j, k]
                b = max(a, image[i, j + 1, k]) if right else never
                c = max(a, image[i + 1, j, k]) if down else never
                d = max(b, c, image[i + 1, j + 1, k]) if down and right else never
                changes[a] += 1
                changes[b] -= 1
                changes[c] -= 1
                changes[d] += 1
                changes[max(a, x)] -= 1
                changes[max(b, y)] += 1
                changes[max(c, z)] += 1
                changes[max(d, w)] -= 1
                x = a
                y = b
                z = c
                w = d
    return np.cumsum(changes[:256])


def measure(shape: tuple[int, ...]) -> dict[str, Any]:
    """Return times on one thread, after checking that the curves are equal."""
    smooth = gaussian_filter(np.random.default_rng(0).standard_normal(shape), 2)
    image = np.interp(smooth, (smooth.min(), smooth.max()), (0, 255)).astype(np.uint8)
    plain = plain_2d if len(shape) == 2 else plain_3d
    calls = {
        "ecc_core": lambda: ecc.euler_curve(image, LEVELS, connectivity=1, workers=1),
        "plain numba": lambda: plain(image),
    }
    np.testing.assert_array_equal(calls["ecc_core"]().values, calls["plain numba"]())
    best = best_times(calls)
    return {
        "image": " x ".join(map(str, shape)),
        "ms": 1e3 * best["ecc_core"],
        "plain numba, ms": 1e3 * best["plain numba"],
        "ratio": best["plain numba"] / best["ecc_core"],
    }


def main() -> None:
    rows = [measure(shape) for shape in [(512, 512), (2048, 2048), (128, 128, 128)]]
    where = machine()
    lines = [
        "# About twenty plain lines of numba",
        "",
        "uint8, 256 levels, connectivity 1, one thread.",
        "",
    ]
    lines += [f"| {' | '.join(rows[0])} |", rule(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:.3g}" if isinstance(cell, float) else cell for cell in row.values())
        lines.append(f"| {' | '.join(cells)} |")
    facts = [f"{name} {value}" for name, value in where.items()]
    lines += ["", f"On: {', '.join(facts)}.", ""]
    (RESULTS / "plain_numba.md").write_text("\n".join(lines), encoding="utf-8")
    found = json.dumps({"rows": rows, "machine": where}, indent=1)
    (RESULTS / "plain_numba.json").write_text(found + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
