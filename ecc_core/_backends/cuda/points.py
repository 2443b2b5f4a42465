"""Launches of `points.cu`, which finds coefficients of images with any strides, masks or labels."""

from typing import Any

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda.bins import BINS
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, processors
from ecc_core._backends.cuda.samples import THREADS, Samples

POINTS = Struct("points.cuh", "Points")
WARPS = THREADS // 32
COLUMNS = 30  # Columns that a warp owns.
WIDE_ELEMENTS = [ELEMENTS[name] for name in ("float64", "int64", "uint64")]
"""Types of samples of 64 bits."""
RESIDENT = {True: 3, False: 2}
"""Blocks that must fit on a multiprocessor, by whether images have a single slice."""
SLICES_A_WARP = (16, 128)  # The fewest slices of a warp, and the most.
MOST_ROWS_OF_LANE = 14  # The most rows of a lane in images of one slice.
FEW_ROWS_OF_LANE = 4
WAVES = 32
"""Blocks for each multiprocessor, if the image has so many."""


def _rows_of_lane(samples: Samples, *, wide: bool) -> int:
    """Return how many rows of an image a lane reads: as many as registers allow, or a few.

    Small images take as long as one of their warps, so that a few rows are better.
    """
    images, depth, height, width = samples.shape
    if height == 1:
        return 1
    if depth > 1:
        return 4 if wide else 6
    warps = images * ceil_div(width, COLUMNS) * ceil_div(height, MOST_ROWS_OF_LANE)
    return FEW_ROWS_OF_LANE if warps < processors(samples.device) else MOST_ROWS_OF_LANE


def plan_points(samples: Samples, macros: dict[str, Any], rows: int = 0, bins: int = 0) -> Call:
    """Return the launch of the kernel of points.cu, without addresses and Bins.

    `rows` are the labels that a block counts in shared memory, `bins` those of each region.
    """
    images, depth, height, width = samples.shape
    flat = depth == 1
    wide = samples.options["ELEMENT"] in WIDE_ELEMENTS
    wide |= bool(samples.options["DIRECTIONAL"])
    lines = _rows_of_lane(samples, wide=wide)
    warps = images * ceil_div(width, COLUMNS) * ceil_div(height, lines)
    wanted = depth * warps // (WAVES * WARPS * processors(samples.device)) + 1
    steps = min(max(wanted, SLICES_A_WARP[0]), SLICES_A_WARP[1], depth)
    macros = samples.options | macros
    macros |= {"FLAT": int(flat), "ROWS": lines, "BLOCKS": RESIDENT[flat]}
    points = POINTS(label_strides=[height * width, width, 1], steps=steps, rows=rows)
    grid = (ceil_div(warps * ceil_div(depth, steps), WARPS),)
    shared = 16 * ceil_div(rows * bins, 4)
    given = samples.image, points, BINS()
    return plan_call("points", "points", macros, grid, THREADS, given, shared)
