"""Heights of weighted points in a direction, counted into the bins of sorted levels.

The height of a point x in direction u is, in float64 and in this order, each product and each sum
rounded::

    (u[0] * x[0] + u[1] * x[1]) + u[2] * x[2]

Bin j of a histogram takes what lies in (level j - 1, level j], the last bin what lies above all
levels. A bin is guessed in fast arithmetic; every guess that is not certain is settled by
comparing the height itself with the levels.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.pool import thread_count
from ecc_core._orthants import ORTHANTS
from ecc_core._request.resources import available_cores

Floats = NDArray[np.float64]

POINTS_AT_ONCE = 1024  # Coordinates of so many points stay in the first-level cache.
TOLERANCE = 2.0**-20  # A guess that is further from a level, in bin widths, is certain.
MOST_CELLS = 2**20
MOST_CACHED_LEVELS = 1024  # The spacing of up to so many levels is cached.
SIGNS = 1 - 2 * (np.arange(ORTHANTS)[:, None] >> np.array([2, 1, 0]) & 1)  # (slices, rows, columns)
# Points times directions; for less work a second thread costs more than it saves.
MOST_SERIAL_WORK = 2**20


def workers_for(workers: int | None, work: int) -> int:
    """Return the number of threads for so many points times directions."""
    return thread_count(workers, available_cores() if work > MOST_SERIAL_WORK else 1)


class Grid(NamedTuple):
    """Sorted levels and what it takes to guess where a height lies among them."""

    levels: Floats
    origin: float
    scale: float
    """Cells per unit of height; ``(height - origin) * scale`` is the place on the grid."""
    first: NDArray[np.int64]
    """For each cell the number of levels in the cells before it; empty if the levels are evenly
    spaced, then the cells end at the levels."""


def make_grid(levels: Floats, reach: float, *, scaled: bool = False) -> Grid:
    """Return the grid of sorted levels for heights of at most `reach`, in magnitude.

    A grid that will be `scaled` has one cell for all levels, unless they are evenly spaced.
    """
    low, width, error = (
        _known_spacing(levels.tobytes()) if levels.size <= MOST_CACHED_LEVELS else _spacing(levels)
    )
    if error < TOLERANCE / 4:
        scale = (levels.size - 1) / width
        rounding = 16 * sys.float_info.epsilon * (reach + abs(low)) * scale
        if rounding < TOLERANCE / 4:
            return Grid(levels, low, scale, np.empty(0, dtype=np.int64))
    cells = min(4 * levels.size, MOST_CELLS)
    scale = cells / width if 0 < width < np.inf and not scaled else np.inf
    if scale == np.inf:
        return Grid(levels, low, 0.0, np.array([0, levels.size]))
    cell = np.clip((levels - low) * scale, 0, cells - 1).astype(np.int64)
    first = np.searchsorted(cell, np.arange(cells + 1))
    return Grid(levels, low, scale, first.astype(np.int64))


def _spacing(levels: Floats) -> tuple[float, float, float]:
    """Return the lowest finite level, the distance to the highest one, and the unevenness.

    The unevenness is the largest distance of a level from its place on an evenly spaced line, in
    steps; infinity if there is no such line.
    """
    finite = levels[np.isfinite(levels)]
    if finite.size == 0:
        return 0.0, 0.0, math.inf
    low = float(finite[0])
    width = float(finite[-1]) - low
    if not 0 < width < math.inf or finite.size < levels.size:
        return low, width, math.inf
    scale = (levels.size - 1) / width
    if scale == math.inf:
        return low, width, math.inf
    off_line = (levels - low) * scale - np.arange(levels.size)
    return low, width, float(np.abs(off_line).max())


@lru_cache(maxsize=64)
def _known_spacing(raw: bytes) -> tuple[float, float, float]:
    """Return the spacing of levels, which are often those of the previous call."""
    return _spacing(np.frombuffer(raw))


@subroutine(error_model="numpy")
def find_bin(height, grid):
    """Return the bin of one height."""
    levels = grid.levels
    top = grid.levels.size
    position = (height - grid.origin) * grid.scale
    if grid.first.size:
        cell = int(min(position, grid.first.size - 2.0)) if position > 0.0 else 0
        low = grid.first[cell]
        high = grid.first[cell + 1]
    else:  # The cell may be off by one: rounding moves the place by much less than that.
        cell = 0
        if position > 0.0:
            cell = int(min(position, float(top)))
        low = max(cell - 1, 0)
        high = min(cell + 2, top)
    while low < high:
        middle = (low + high) >> 1
        if height <= levels[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@subroutine(error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def _guess(x, y, z, directions, d, origin, scale, top, bins):
    """Guess bins among evenly spaced levels.

    Returns whether any height is too close to a level for its bin to be certain.
    """
    to_x = directions[d, 2] * scale
    to_y = directions[d, 1] * scale
    to_z = directions[d, 0] * scale
    offset = -origin * scale
    close = 0
    for i in range(x.size):
        position = x[i] * to_x + (y[i] * to_y + (z[i] * to_z + offset))
        position = min(max(position, 0.0), top)
        upper = np.ceil(position - TOLERANCE)
        close |= (upper - position) <= TOLERANCE
        bins[i] = np.uint32(np.int32(upper))
    return close


@subroutine(error_model="numpy")
def _scatter(bins, weights, histograms, d):
    # Additions to the same bin wait for each other, and neighbours often share a bin, so each
    # iteration adds four points that are far apart.
    count = weights.size
    quarter = count >> 2
    for i in range(quarter):
        j = i + quarter
        k = j + quarter
        m = k + quarter
        histograms[d, bins[i]] += weights[i]
        histograms[d, bins[j]] += weights[j]
        histograms[d, bins[k]] += weights[k]
        histograms[d, bins[m]] += weights[m]
    for i in range(4 * quarter, count):
        histograms[d, bins[i]] += weights[i]


@kernel(error_model="numpy")
def add_points(points, count, directions, part, grid, bins, histograms):
    """Add the first `count` of (x, y, z, weight) to the histograms of a part of the directions."""
    x, y, z, weights = points
    even = grid.first.size == 0
    top = float(grid.levels.size)
    origin = grid.origin
    scale = grid.scale
    for start in range(0, count, POINTS_AT_ONCE):
        stop = min(start + POINTS_AT_ONCE, count)
        xs = x[start:stop]
        ys = y[start:stop]
        zs = z[start:stop]
        ws = weights[start:stop]
        for d in range(part[0], part[1]):
            if not even or _guess(xs, ys, zs, directions, d, origin, scale, top, bins):
                for i in range(xs.size):  # Heights are compared with the levels themselves.
                    row = directions[d, 0] * zs[i] + directions[d, 1] * ys[i]
                    bins[i] = find_bin(row + directions[d, 2] * xs[i], grid)
            _scatter(bins, ws, histograms, d)


@kernel(error_model="numpy")
def accumulate(histograms, order, sign, values):
    """Write the cumulative sums of the histograms, times `sign`, to the rows that `order` gives."""
    for d in range(order.size):
        row = np.uint64(order[d])
        total = sign * histograms[d, 0]
        for j in range(values.shape[1]):
            values[row, j] = total
            total += sign * histograms[d, j + 1]
