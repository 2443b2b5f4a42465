"""Tables of the logistic function and its derivative, for some points and the levels near them.

Levels next to each other form a run, whose steps share one exponential a point.
"""

from __future__ import annotations

import math

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.soft.points import (
    DOUBLE_REACH,
    LEAST_ODDS,
    MOST_ODDS,
    SINGLE_REACH,
    exponentials,
    whole_vectors,
)

# In units of 1 / sharpness: a run of levels, which share one exponential a point, has at most this
# span. Points further away from it than the margin count as points at the margin, where s(-36) is
# 2e-16. Exponents of odds are at most the sum of both, so that no odds are subnormal floats, as in
# `points`.
SINGLE_SPAN = 48.0
DOUBLE_SPAN = 160.0
SINGLE_MARGIN = 36.0
DOUBLE_MARGIN = 80.0
POINTS_A_TABLE = 1 << 10  # Tables of 16 levels then fit into the second-level cache.


@kernel(error_model="numpy")
def _run_ends(levels, sharpness, span):
    """Return the ends of the runs of increasing levels that share one exponential a point."""
    ends = np.empty(levels.size, np.int64)
    count = first = 0
    for j in range(1, levels.size + 1):
        if j == levels.size or not sharpness * (levels[j] - levels[first]) <= span:
            ends[count] = first = j
            count += 1
    return ends[:count]


@kernel(error_model="numpy")
def prepare_runs(levels, sharpness, double, factors):
    """Return the ends of runs and their bounds, and write the exponentials of the levels.

    `bounds` has shape (runs, 3): the middle of each run, and the range relative to it to which
    heights are limited.
    """
    ends = _run_ends(levels, sharpness, DOUBLE_SPAN if double else SINGLE_SPAN)
    margin = (DOUBLE_MARGIN if double else SINGLE_MARGIN) / sharpness
    bounds = np.empty((ends.size, 3))
    first = 0
    for run in range(ends.size):
        half = (levels[ends[run] - 1] - levels[first]) / 2
        middle = levels[first] + half
        bounds[run, 0] = middle
        bounds[run, 1] = -half - margin
        bounds[run, 2] = half + margin
        for j in range(first, ends[run]):
            factors[j] = math.exp(-sharpness * (levels[j] - middle))
        first = ends[run]
    return ends, bounds


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _write_steps(factor, odds, steps, slopes, count):
    """Write s and s' = s * (1 - s) for one level."""
    one = steps.dtype.type(1)
    least = steps.dtype.type(LEAST_ODDS)
    most = steps.dtype.type(MOST_ODDS)
    for p in range(count):
        against = max(min(factor * odds[p], most), least)
        s = one / (one + against)
        steps[p] = s
        slopes[p] = against * s * s


@kernel(error_model="numpy")
def step_workspace(weights, levels, sharpness):
    """Return what `tabulate_steps` needs; its caller may use the second row of the third array."""
    buffer = np.empty((2, POINTS_A_TABLE), weights.dtype)
    factors = np.empty(levels.size, weights.dtype)
    ends, bounds = prepare_runs(levels, sharpness, weights.itemsize == 8, factors)
    steps = np.empty((levels.size, POINTS_A_TABLE), weights.dtype)
    return (
        (ends, bounds, factors),
        np.empty((3, POINTS_A_TABLE)),
        buffer,
        steps,
        np.empty_like(steps),
    )


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def _extent(heights, count):
    """Return the least and the largest of some heights, none of which is NaN, by vectors."""
    least = most = heights[0]
    for p in range(1, count):
        least = min(least, heights[p])
        most = max(most, heights[p])
    return least, most


@kernel(error_model="numpy")
def tabulate_steps(given, k, first, last, space):
    """Write s and s' of some points to tables, for the levels that are near any of them.

    Returns the range of these levels, and the number of points, which are repeated up to a multiple
    of LANES. They are above the levels before that range, and have entered at those after it.
    """
    positions, directions, levels, sharpness = given
    (ends, bounds, factors), scratch, buffer, steps, slopes = space
    heights = scratch[0]
    odds = buffer[0]
    size = last - first
    count = whole_vectors(size)
    heights[:size] = 0
    for axis in range(len(positions)):
        for p in range(size):
            heights[p] += directions[k, axis] * positions[axis, first + p]
    heights[size:count] = heights[0]
    reach = (DOUBLE_REACH if odds.itemsize == 8 else SINGLE_REACH) / sharpness
    least, most = _extent(heights, size)
    low = np.searchsorted(levels, least - reach)
    high = np.searchsorted(levels, most + reach)
    begin = 0
    for run in range(ends.size):
        middle = bounds[run, 0]
        first_place = bounds[run, 1]
        last_place = bounds[run, 2]
        if low < ends[run] and begin < high:
            for p in range(count):
                scratch[1, p] = min(max(heights[p] - middle, first_place), last_place)
            exponentials(scratch[1], sharpness, scratch[2], odds, count)
            for j in range(max(begin, low), min(ends[run], high)):
                _write_steps(factors[j], odds, steps[j], slopes[j], count)
        begin = ends[run]
    return low, high, count
