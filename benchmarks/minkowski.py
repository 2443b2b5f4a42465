"""Times of Minkowski curves against Euler curves, borders, and counting configurations.

    python benchmarks/minkowski.py [--quick] [--only SECTION]

As benchmarks/cpu.py: all in one process, in turns, and checked to be equal. Writes
benchmarks/results/minkowski.json and minkowski.md.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from cpu import as_dtype, field, levels
from report import Row, in_turns, row, run

import ecc_core as ecc

COUNT = 256


def euler(quick: bool) -> Iterator[Row]:
    """Exact functionals against the Euler characteristic alone."""
    shapes = [(64,) * 3, (256,) * 2] if quick else [(128,) * 3, (1024,) * 2]
    for shape, dtype, sigma in itertools.product(shapes, ("float32", "uint8"), (0, 2, 8)):
        image = as_dtype(field(shape, sigma), dtype)
        at = levels(dtype)
        case = f"{'x'.join(map(str, shape))} {dtype} {f'sigma {sigma}' if sigma else 'noise'}"
        for connectivity in (1, len(shape)):
            options = {"connectivity": connectivity, "workers": 1}
            calls = {
                "ours": lambda image=image, at=at, o=options: ecc.minkowski_curves(image, at, **o),
                "euler_curve": lambda image=image, at=at, o=options: ecc.euler_curve(
                    image, at, **o
                ),
            }
            timed = in_turns(calls, 5, time.thread_time)
            np.testing.assert_array_equal(
                timed["ours"].result.euler, timed["euler_curve"].result[1]
            )
            other = "euler_curve", timed["euler_curve"]
            yield row(case, connectivity, 1, timed["ours"], other, "<= 2.5")


def borders(quick: bool) -> Iterator[Row]:
    """Euler curves of periodic images and half-open windows against those of closed images."""
    for n, ndim in ((64, 3), (256, 2)) if quick else ((256, 3), (4096, 2)):
        image = field((n,) * ndim, 2)
        at = levels("float32")
        for connectivity in (1, ndim):
            one = partial(ecc.euler_curve, image, at, connectivity=connectivity, workers=1)
            boundaries = "closed", "periodic", "half-open"
            calls = {boundary: partial(one, boundary=boundary) for boundary in boundaries}
            timed = in_turns(calls, 7, time.thread_time)
            for boundary in ("periodic", "half-open"):
                case = f"{n}^{ndim} float32 sigma 2, {boundary}"
                closed = "closed", timed["closed"]
                yield row(case, connectivity, 1, timed[boundary], closed, "<= 1.05")


def configurations(points: np.ndarray) -> np.ndarray:
    """Return volume, surface, mean breadth and Euler characteristic of the cubes of a set.

    The published method: numbers of the 256 configurations of 2 x 2 x 2 points, and a table.
    """
    padded = np.pad(points, 1).astype(np.uint8)
    code = np.zeros(tuple(n - 1 for n in padded.shape), np.uint8)
    corners = list(itertools.product((0, 1), repeat=3))
    for bit, corner in enumerate(corners):
        box = [slice(c, n - 1 + c) for c, n in zip(corner, padded.shape, strict=True)]
        code |= padded[tuple(box)] << bit
    return TABLE @ np.bincount(code.ravel(), minlength=256)


def _has_ends(corner: tuple[int, ...], fixed: list[tuple[int, int]]) -> bool:
    """Whether a corner of a cube lies at the given ends of axes."""
    return all(corner[axis] == end for axis, end in fixed)


def _table() -> np.ndarray:
    """Return the values of each configuration, the share of its corner in the cells around it."""
    corners = list(itertools.product((0, 1), repeat=3))
    table = np.zeros((4, 256))
    weights = {3: (1, -6, 1.5, -1), 2: (0, 2, -1, 1), 1: (0, 0, 0.5, -1), 0: (0, 0, 0, 1)}
    for code in range(256):
        inside = {c for bit, c in enumerate(corners) if code >> bit & 1}
        for kind in itertools.product((None, 0, 1), repeat=3):  # None is between two points.
            fixed = [(axis, end) for axis, end in enumerate(kind) if end is not None]
            cubes = [corner for corner in corners if _has_ends(corner, fixed)]
            if inside.intersection(cubes):
                dimension = 3 - kind.count(None)
                share = 0.5**dimension
                table[:, code] += share * np.array(weights[dimension])
    return table


TABLE = _table()


def published(quick: bool) -> Iterator[Row]:
    """Exact functionals at 256 thresholds against the published method at each of them."""
    n = 48 if quick else 128
    image = field((n,) * 3, 2)
    at = levels("float32")
    calls = {
        "ours": lambda: ecc.minkowski_curves(image, at, workers=1),
        "configurations": lambda: configurations(image <= at[COUNT // 2]),
    }
    calls["ours"]()
    timed = in_turns(calls, 5, time.thread_time)
    found = timed["ours"].result.values[:, COUNT // 2]
    np.testing.assert_allclose(found, timed["configurations"].result)
    one = timed["configurations"]
    all_of_them = one._replace(seconds=COUNT * one.seconds)
    case = f"{n}^3 float32 sigma 2"
    name = "256 x configurations in NumPy"
    yield row(case, 3, 1, timed["ours"], (name, all_of_them), ">= 1000", faster=True)


QUANTIMPY = """
import sys, time
import numpy as np
from importlib.metadata import version
from quantimpy.minkowski import functionals
points = np.load(sys.argv[1])
times = []
for _ in range(3):
    start = time.thread_time()
    functionals(points)
    times.append(time.thread_time() - start)
volume, surface, _, _ = functionals(np.pad(points, 2))  # The border is no part of this set.
print(version("quantimpy"), min(times), volume, 8 * surface)
"""
CLOSE = 0.01
"""The relative difference of surfaces by quantimpy and by Crofton's formula."""


def quantimpy(quick: bool) -> Iterator[Row]:
    """Exact functionals at 256 thresholds against the estimates of quantimpy at each of them."""
    # Names the interpreter of an environment in which quantimpy loads.
    if "QUANTIMPY_PYTHON" not in os.environ:
        return
    n = 48 if quick else 128
    image = field((n,) * 3, 2)
    at = levels("float32")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.npy"
        np.save(path, image <= at[COUNT // 2])
        command = [os.environ["QUANTIMPY_PYTHON"], "-c", QUANTIMPY, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    calls = {"ours": partial(ecc.minkowski_curves, image, at, workers=1)}
    ours = in_turns(calls, 5, time.thread_time)["ours"]
    estimate = ecc.minkowski_curves(image, at[COUNT // 2 :][:1], estimator="crofton-13")
    volume, surface = map(float, said[2:])
    np.testing.assert_array_equal(volume, ours.result.volume[COUNT // 2])
    np.testing.assert_allclose(surface, estimate.surface[0], rtol=CLOSE)
    theirs = ours._replace(seconds=COUNT * float(said[1]), turns=3)
    name = f"256 x quantimpy {said[0]}"
    yield row(f"{n}^3 float32 sigma 2", 3, 1, ours, (name, theirs), ">= 1000", faster=True)


SECTIONS = {"quantimpy": quantimpy, "euler": euler, "borders": borders, "published": published}

ABOUT = """\
256 thresholds and one worker. All calls of a row are repeated alternately in one process, at least
20 ms each time, and the least processor times are compared. The published method counts the
configurations of 2 x 2 x 2 points of one set. So does quantimpy, in an environment of its own since
its wheels do not load with NumPy 2: its volume is exact, and its surface an estimate, within 1 % of
that by Crofton's formula. Times at one threshold are multiplied by 256. Written by
`python benchmarks/minkowski.py`."""

if __name__ == "__main__":
    run("minkowski", "Minkowski functionals on the CPU", ABOUT, SECTIONS)
