"""Coefficients of every point, and launches of the kernels that compute them."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import ArrayView
from ecc_core._backends.cuda.bins import BINS
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.compile import processors
from ecc_core._backends.cuda.samples import THREADS, Samples, samples_of
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.cuda.variants import ELEMENTS, Variant

POINTS = Struct("points.cuh", "Points")
OUT, NAN = POINTS.word("coefficients"), POINTS.word("not_finite")
WARPS = THREADS // 32
COLUMNS = 30  # of a warp
WIDE = [ELEMENTS[name] for name in ("float64", "int64", "uint64")]  # 64 bits
RESIDENT = {True: 3, False: 2}  # blocks that must fit on a multiprocessor
STEPS = (16, 128)  # slices of a warp: at least, and where there are enough blocks
WAVES = 32  # blocks for each multiprocessor, if there are so many


def point_coefficients(
    view: ArrayView, mask: Any, variant: Variant, direction: Any = None
) -> tuple[Any, Any]:
    """Return int8 coefficients of the image's shape, and a flag on the device, set for a NaN."""
    out = cupy.empty(view.array.shape, np.int8)
    flag = cupy.zeros(1, np.int64)
    if out.size:
        samples = samples_of(view, mask, variant, None, direction, vector=False)
        call = plan_points(samples, {"OUTPUT": 0})
        first = call.places[1]
        words = (first + OUT, out.data.ptr), (first + NAN, flag.data.ptr)
        call.launch(words)
    return out, flag


def plan_points(samples: Samples, macros: dict[str, Any], rows: int = 0, bins: int = 0) -> Call:
    """Return a launch without addresses and Bins.

    `rows` are the labels that a block counts in shared memory, `bins` those of each region.
    """
    images, depth, height, width = samples.shape
    flat, lines = depth == 1, _rows_of_lane(samples)
    warps = images * -(-width // COLUMNS) * -(-height // lines)
    wanted = depth * warps // (WAVES * WARPS * processors(samples.device)) + 1
    steps = min(max(wanted, STEPS[0]), STEPS[1], depth)
    macros = samples.options | macros
    macros |= {"FLAT": int(flat), "ROWS": lines, "BLOCKS": RESIDENT[flat]}
    points = POINTS(label_strides=[height * width, width, 1], steps=steps, rows=rows)
    grid, shared = (-(-warps * -(-depth // steps) // WARPS),), 16 * -(-rows * bins // 4)
    given = samples.image, points, BINS()
    return plan_call("points", "points", macros, grid, THREADS, given, shared)


def _rows_of_lane(samples: Samples) -> int:
    """Return how many rows a lane has; registers limit them."""
    _, depth, height, _ = samples.shape
    if height == 1:
        return 1
    if depth == 1:
        return 14
    wide = samples.options["DIRECTIONAL"] or samples.options["ELEMENT"] in WIDE
    return 4 if wide else 6
