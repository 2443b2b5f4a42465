"""Kernels of soft transforms of simplicial complexes, with LANES directions side by side."""

from __future__ import annotations

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.soft.points import (
    DOUBLE_REACH,
    SINGLE_REACH,
    exponentials,
    whole_vectors,
)
from ecc_core._backends.cpu.soft.simplex_operations import (
    BLOCK,
    Run,
    add_all_gradients,
    add_levels,
    add_points,
    add_rates,
    take_totals,
    transpose,
)
from ecc_core._backends.cpu.soft.step_tables import POINTS_A_TABLE, prepare_runs

VALID = 0
OUTSIDE = 1
APART = 2
REPEATED = 3
POINTS_NOT_FINITE = 4
WEIGHTS_NOT_FINITE = 5
DIRECTIONS_NOT_FINITE = 6
LEVELS_NOT_NUMBERS = 7
SHAPE_OUTSIDE = 8
POINTS = POINTS_A_TABLE // LANES  # A table has so many points, with LANES directions each.


@kernel()
def check_simplices(rows, shapes):
    """Return what is wrong with the first simplex of points of these shapes, and its number."""
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            if not 0 <= rows[i, j] < shapes.size:
                return OUTSIDE, i
        for j in range(1, rows.shape[1]):
            if shapes[rows[i, j]] != shapes[rows[i, 0]]:
                return APART, i
            for k in range(j):
                if rows[i, k] == rows[i, j]:
                    return REPEATED, i
    return VALID, 0


@kernel(error_model="numpy", fastmath={"nnan", "nsz", "reassoc"})
def _fill_table(given, start, stop, table):
    """Copy some members in LANES directions to a table; return the levels that are near any.

    All points are above the levels before these, and have entered at those after them. Heights are
    finite, so that their extremes may be found in any order.
    """
    heights, coefficients, members, levels, sharpness = given
    own, scratch, odds = table
    least = np.float64(heights[members[start], 0])
    most = least
    for i in range(start, stop):
        point = members[i]
        at = (i - start) * LANES
        for lane in range(LANES):
            height = np.float64(heights[point, lane])
            scratch[0, at + lane] = height
            own[at + lane] = coefficients[point, lane]
            least = min(least, height)
            most = max(most, height)
    size = (stop - start) * LANES
    for at in range(size, whole_vectors(size)):
        scratch[0, at] = least
    reach = (DOUBLE_REACH if odds.itemsize == 8 else SINGLE_REACH) / sharpness
    low = np.searchsorted(levels, least - reach)
    high = np.searchsorted(levels, most + reach)
    return low, high


@kernel(error_model="numpy")
def _write_odds(count, bounds, sharpness, table):
    """Write the exponentials of the heights of a table, relative to the middle of a run."""
    _, scratch, odds = table
    middle, least, most = bounds
    for at in range(whole_vectors(count)):
        scratch[1, at] = min(max(scratch[0, at] - middle, least), most)
    exponentials(scratch[1], sharpness, scratch[2], odds, whole_vectors(count))


@kernel(error_model="numpy")
def _memory(coefficients, levels, sharpness):
    """Return a table (coefficients, heights with two rows of scratch, odds), and runs of levels.

    There is one factor more than levels, for the spare row of :class:`Run`.
    """
    factors = np.ones(levels.size + 1, coefficients.dtype)
    ends, bounds = prepare_runs(levels, sharpness, coefficients.itemsize == 8, factors)
    own = np.empty(POINTS_A_TABLE, coefficients.dtype)
    return (own, np.empty((3, POINTS_A_TABLE)), np.empty_like(own)), (ends, bounds, factors)


@kernel(error_model="numpy")
def write_curves(given, offsets, part, curves):
    """Write the curves (shapes, directions, levels) of all shapes in some directions.

    `given` are the heights and coefficients (points, LANES), the points in the order of their
    shapes, the increasing levels and the sharpness. The points of shape i are
    ``offsets[i]:offsets[i + 1]``, and `part` is the first direction and the one behind the last.
    """
    _, coefficients, _, levels, sharpness = given
    table, (ends, bounds, factors) = _memory(coefficients, levels, sharpness)
    own, _, odds = table
    count = levels.size
    rows = _whole_blocks(count)
    sums = np.zeros((count + 1, LANES))
    entered = np.zeros((count + 1, LANES))
    totals = np.zeros((rows, LANES), own.dtype)
    lines = np.empty((LANES, rows), own.dtype)
    for shape in range(offsets.size - 1):
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            points = min(POINTS, offsets[shape + 1] - start)
            low, high = _fill_table(given, start, start + points, table)
            begin = 0
            for number in range(ends.size):
                first = max(begin, low)
                last = min(ends[number], high)
                begin = ends[number]
                if first < last:
                    ends_of_run = bounds[number, 0], bounds[number, 1], bounds[number, 2]
                    _write_odds(points * LANES, ends_of_run, sharpness, table)
                    run = Run(first, last, count)
                    add_levels(own, odds, factors, run, points, sums)
            add_points(own, points, high, entered)
        take_totals(sums, entered, count, totals)
        for j in range(0, rows, BLOCK):
            for lane in range(0, LANES, BLOCK):
                transpose(totals, j * LANES + lane, LANES, lines, lane * rows + j, rows)
        for lane in range(part[1] - part[0]):
            for j in range(count):
                curves[shape, part[0] + lane, j] = lines[lane, j]


@kernel()
def _whole_blocks(count):
    """Return a number of levels rounded up to whole blocks."""
    return (count + BLOCK - 1) // BLOCK * BLOCK


@kernel(error_model="numpy")
def _read_upstream(upstream, lines, flow):
    """Write the upstream gradients of a shape (directions, levels) as (levels, LANES)."""
    for lane in range(len(upstream)):
        for j in range(upstream.shape[1]):
            lines[lane, j] = upstream[lane, j]
    rows = lines.shape[1]
    for j in range(0, rows, BLOCK):
        for lane in range(0, LANES, BLOCK):
            transpose(lines, lane * rows + j, rows, flow, j * LANES + lane, LANES)


@kernel(error_model="numpy")
def write_gradients(given, offsets, part, upstream, rates):
    """Write the gradients of the heights (points, LANES) of all shapes.

    Other arguments are those of :func:`write_curves`, and `upstream` is (shapes, directions,
    levels).
    """
    _, coefficients, members, levels, sharpness = given
    table, (ends, bounds, factors) = _memory(coefficients, levels, sharpness)
    own, _, odds = table
    count = levels.size
    rows = _whole_blocks(count)
    flow = np.zeros((max(rows, count + 1), LANES), own.dtype)
    lines = np.zeros((LANES, rows), own.dtype)
    of_table = np.empty_like(own)
    slope = own.dtype.type(sharpness)
    for shape in range(offsets.size - 1):
        _read_upstream(upstream[shape, part[0] : part[1]], lines, flow)
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            points = min(POINTS, offsets[shape + 1] - start)
            low, high = _fill_table(given, start, start + points, table)
            of_table[: points * LANES] = 0
            begin = 0
            for number in range(ends.size):
                first = max(begin, low)
                last = min(ends[number], high)
                begin = ends[number]
                if first < last:
                    ends_of_run = bounds[number, 0], bounds[number, 1], bounds[number, 2]
                    _write_odds(points * LANES, ends_of_run, sharpness, table)
                    run = Run(first, last, count)
                    add_rates(flow, factors, run, points, odds, of_table)
            for i in range(points):
                point = members[start + i]
                for lane in range(LANES):
                    at = i * LANES + lane
                    rates[point, lane] = -slope * own[at] * of_table[at]


@kernel(error_model="numpy")
def write_all_gradients(given, offsets, part, upstream, results):
    """Write all gradients, as `write_gradients` does those of the heights.

    `results` are those of coefficients and heights (points, LANES), and those of levels (levels +
    1, LANES) and of the sharpness (LANES,), which are added up in double precision.
    """
    _, coefficients, members, levels, sharpness = given
    by_coefficients, by_heights, by_levels, by_sharpness = results
    table, (ends, bounds, factors) = _memory(coefficients, levels, sharpness)
    own = table[0]
    count = levels.size
    rows = _whole_blocks(count)
    flow = np.zeros((max(rows, count + 1), LANES), own.dtype)
    lines = np.zeros((LANES, rows), own.dtype)
    after = np.zeros((count + 1, LANES), own.dtype)  # Sums of `flow` from each level on.
    entered = np.empty_like(own)
    rates = np.empty_like(own)
    spreads = np.empty_like(own)
    slope = own.dtype.type(sharpness)
    places = np.append(levels, 0.0)
    for shape in range(offsets.size - 1):
        _read_upstream(upstream[shape, part[0] : part[1]], lines, flow)
        for j in range(count - 1, -1, -1):
            for lane in range(LANES):
                after[j, lane] = after[j + 1, lane] + flow[j, lane]
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            points = min(POINTS, offsets[shape + 1] - start)
            low, high = _fill_table(given, start, start + points, table)
            entered[: points * LANES] = 0
            rates[: points * LANES] = 0
            spreads[: points * LANES] = 0
            sums = entered, rates, spreads, by_levels
            begin = 0
            for number in range(ends.size):
                first = max(begin, low)
                last = min(ends[number], high)
                begin = ends[number]
                if first < last:
                    ends_of_run = bounds[number, 0], bounds[number, 1], bounds[number, 2]
                    _write_odds(points * LANES, ends_of_run, sharpness, table)
                    run = Run(first, last, count)
                    add_all_gradients(flow, table, factors, places, run, points, sums)
            for i in range(points):
                point = members[start + i]
                for lane in range(LANES):
                    at = i * LANES + lane
                    by_coefficients[point, lane] = entered[at] + after[high, lane]
                    by_heights[point, lane] = -slope * own[at] * rates[at]
                    by_sharpness[lane] += own[at] * spreads[at]


@kernel(error_model="numpy")
def add_to_heaviest(rows, heaviest, sign, heights, lanes, by_coefficients, by_weights):
    """Add the gradient of each simplex's weight to that of its heaviest point."""
    for i in range(len(rows)):
        total = 0.0
        for lane in range(lanes):
            last = rows[i, 0]
            for j in range(1, rows.shape[1]):
                if heights[rows[i, j], lane] >= heights[last, lane]:
                    last = rows[i, j]
            total += by_coefficients[last, lane]
        by_weights[heaviest[i]] += sign * total


@kernel()
def examine(points, weights, vectors, levels, shapes, offsets):
    """Check values, and write where the points of each shape begin.

    Returns what is wrong, a bound of the heights, whether points are in the order of their shapes,
    and whether levels increase.
    """
    farthest = 0.0
    longest = 0.0
    for i in range(len(points)):
        for axis in range(points.shape[1]):
            if not np.isfinite(points[i, axis]):
                return POINTS_NOT_FINITE, farthest, False, False
            farthest = max(farthest, np.float64(abs(points[i, axis])))
    for i in range(weights.size):
        if not np.isfinite(weights[i]):
            return WEIGHTS_NOT_FINITE, farthest, False, False
    for i in range(len(vectors)):
        for axis in range(vectors.shape[1]):
            if not np.isfinite(vectors[i, axis]):
                return DIRECTIONS_NOT_FINITE, farthest, False, False
            longest = max(longest, np.float64(abs(vectors[i, axis])))
    increasing = True
    for j in range(levels.size):
        if np.isnan(levels[j]):
            return LEVELS_NOT_NUMBERS, farthest, False, False
        increasing &= j == 0 or levels[j - 1] <= levels[j]
    offsets[:] = 0
    in_order = True
    for i in range(shapes.size):
        if not 0 <= shapes[i] < offsets.size - 1:
            return SHAPE_OUTSIDE, farthest, False, False
        offsets[shapes[i] + 1] += 1
        in_order &= i == 0 or shapes[i - 1] <= shapes[i]
    for i in range(1, offsets.size):
        offsets[i] += offsets[i - 1]
    return VALID, points.shape[1] * farthest * longest, in_order, increasing
