"""Kernels of soft transforms of simplicial complexes, with LANES directions side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.soft.points import (
    DOUBLE_REACH,
    LEAST_ODDS,
    MOST_ODDS,
    SINGLE_REACH,
    exponentials,
    whole_vectors,
)
from ecc_core._backends.cpu.soft.step_tables import POINTS_A_TABLE, prepare_runs

VALID = 0
OUTSIDE = 1
APART = 2
REPEATED = 3
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
    finite, so that their extremes are those of any order.
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


def _odds_against(builder: Any, factor: Any, odds: Any) -> Any:
    """Return the exponential of how far heights are above a level, which is never 0 or infinite."""
    element = odds.type.element
    least = llvm.splat(element, LANES, LEAST_ODDS)
    most = llvm.splat(element, LANES, MOST_ODDS)
    against = builder.fmul(factor, odds)
    against = builder.select(builder.fcmp_ordered(">", against, most), most, against)
    return builder.select(builder.fcmp_ordered("<", against, least), least, against)


def _step(builder: Any, against: Any) -> Any:
    one = llvm.splat(against.type.element, LANES, 1.0)
    return builder.fdiv(one, builder.fadd(one, against))


def _adder_of_levels(derivatives: bool) -> Any:
    """Return the operation that adds the sums over the points of a table to those of a level."""
    kinds = 3 if derivatives else 1

    @llvm.operation()
    def add_level(builder, table, factor, level, j, points, sums):
        """Add the sums of weight * s, and perhaps * s' and * s' * (level - height).

        `sums` is (levels, kinds, LANES), in double precision; a table's have that of the weights.
        """
        own, scratch, odds = table
        vector = ir.VectorType(own.element, LANES)
        slots = [cgutils.alloca_once(builder, vector) for _ in range(kinds)]
        for slot in slots:
            builder.store(ir.Constant(vector, [0.0] * LANES), slot)
        factors = llvm.each(builder, factor, LANES)
        at_level = llvm.each(builder, level, LANES)
        with cgutils.for_range(builder, points) as loop:
            at = builder.mul(loop.index, llvm.I64(LANES))
            weight = own.load(at, LANES)
            against = _odds_against(builder, factors, odds.load(at, LANES))
            step = _step(builder, against)
            terms = [builder.fmul(weight, step)]
            if derivatives:
                slope = builder.fmul(against, builder.fmul(step, step))
                change = builder.fmul(weight, slope)
                distance = builder.fsub(at_level, scratch.load(at, LANES))
                spread = builder.fmul(change, _converted(builder, distance, own.element))
                terms += [change, spread]
            for slot, term in zip(slots, terms, strict=True):
                builder.store(builder.fadd(builder.load(slot), term), slot)
        for kind, slot in enumerate(slots):
            row = builder.add(builder.mul(j, llvm.I64(kinds)), llvm.I64(kind))
            at = builder.mul(row, llvm.I64(LANES))
            total = _converted(builder, builder.load(slot), sums.element)
            sums.store(builder.fadd(sums.load(at, LANES), total), at)

    return add_level


_add_level, _add_level_with_derivatives = (_adder_of_levels(own) for own in (False, True))


@llvm.operation()
def _add_upstream(builder, upstream, factors, first, last, points, odds, entered, rates):
    """Add upstream * s and upstream * s', of the levels from `first` on, to all points of a table.

    `upstream` is (levels, LANES).
    """
    lanes = llvm.I64(LANES)
    with cgutils.for_range(builder, points) as loop:
        at = builder.mul(loop.index, lanes)
        own = odds.load(at, LANES)
        slots = []
        for totals in (entered, rates):
            slot = cgutils.alloca_once(builder, own.type)
            builder.store(totals.load(at, LANES), slot)
            slots.append(slot)
        with cgutils.for_range(builder, builder.sub(last, first)) as inner:
            j = builder.add(first, inner.index)
            flow = upstream.load(builder.mul(j, lanes), LANES)
            factor = llvm.each(builder, builder.load(factors.one(j)), LANES)
            against = _odds_against(builder, factor, own)
            step = _step(builder, against)
            slope = builder.fmul(against, builder.fmul(step, step))
            for slot, part in zip(slots, (step, slope), strict=True):
                term = builder.fmul(flow, part)
                builder.store(builder.fadd(builder.load(slot), term), slot)
        for slot, totals in zip(slots, (entered, rates), strict=True):
            totals.store(builder.load(slot), at)


@kernel(error_model="numpy")
def _memory(coefficients, levels, sharpness):
    """Return a table: coefficients, heights and what they become, and odds; then runs of levels."""
    factors = np.empty(levels.size, coefficients.dtype)
    ends, bounds = prepare_runs(levels, sharpness, coefficients.itemsize == 8, factors)
    own = np.empty(POINTS_A_TABLE, coefficients.dtype)
    return (own, np.empty((3, POINTS_A_TABLE)), np.empty_like(own)), (ends, bounds, factors)


def _converted(builder: Any, vector: Any, element: Any) -> Any:
    """Return a vector of floats in another precision."""
    if vector.type.element == element:
        return vector
    convert = builder.fptrunc if isinstance(element, ir.FloatType) else builder.fpext
    return convert(vector, ir.VectorType(element, LANES))


@kernel(error_model="numpy")
def write_curves(given, offsets, part, results):
    """Write the curves of all shapes in some directions.

    `given` are the heights and coefficients (points, LANES), the points in the order of their
    shapes, the increasing levels and the sharpness. The points of shape i are
    ``offsets[i]:offsets[i + 1]``, and `part` is the first direction and the one behind the last.
    `results` are the curves (shapes, directions, levels) and their derivatives by level and by
    sharpness, which may be empty.
    """
    curves, slopes_of, spreads_of = results
    _, coefficients, _, levels, sharpness = given
    table, (ends, bounds, factors) = _memory(coefficients, levels, sharpness)
    own = table[0]
    derivatives = slopes_of.size > 0
    sums = np.empty((levels.size, 3 if derivatives else 1, LANES))
    entered = np.empty((levels.size + 1, LANES))
    totals = np.empty((levels.size, LANES), own.dtype)
    for shape in range(offsets.size - 1):
        sums[:] = 0
        entered[:] = 0
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            points = min(POINTS, offsets[shape + 1] - start)
            low, high = _fill_table(given, start, start + points, table)
            begin = 0
            for run in range(ends.size):
                first = max(begin, low)
                last = min(ends[run], high)
                begin = ends[run]
                if first >= last:
                    continue
                ends_of_run = bounds[run, 0], bounds[run, 1], bounds[run, 2]
                _write_odds(points * LANES, ends_of_run, sharpness, table)
                for j in range(first, last):
                    if derivatives:
                        level = levels[j]
                        _add_level_with_derivatives(table, factors[j], level, j, points, sums)
                    else:
                        _add_level(table, factors[j], levels[j], j, points, sums)
            for i in range(points):
                for lane in range(LANES):
                    entered[high, lane] += own[i * LANES + lane]
        for j in range(levels.size):
            for lane in range(LANES):
                entered[j + 1, lane] += entered[j, lane]
                sums[j, 0, lane] += entered[j, lane]
        for j in range(levels.size):
            for lane in range(LANES):
                totals[j, lane] = sums[j, 0, lane]
        for lane in range(part[1] - part[0]):
            for j in range(levels.size):
                curves[shape, part[0] + lane, j] = totals[j, lane]
        if not derivatives:
            continue
        for lane in range(part[1] - part[0]):
            for j in range(levels.size):
                slopes_of[shape, part[0] + lane, j] = sums[j, 1, lane] * sharpness
                spreads_of[shape, part[0] + lane, j] = sums[j, 2, lane]


@kernel(error_model="numpy")
def write_gradients(given, offsets, part, upstream, by_coefficients, by_heights):
    """Write the gradients of coefficients and heights (points, LANES) of all shapes.

    Other arguments are those of :func:`write_curves`, and `upstream` is (shapes, directions,
    levels).
    """
    _, coefficients, members, levels, sharpness = given
    table, (ends, bounds, factors) = _memory(coefficients, levels, sharpness)
    own, _, odds = table
    entered = np.empty_like(own)
    rates = np.empty_like(own)
    flow = np.zeros((levels.size + 1, LANES), own.dtype)
    after = np.zeros((levels.size + 1, LANES), own.dtype)  # sums from each level on
    slope = own.dtype.type(sharpness)
    for shape in range(offsets.size - 1):
        for j in range(levels.size - 1, -1, -1):
            for lane in range(part[1] - part[0]):
                flow[j, lane] = upstream[shape, part[0] + lane, j]
                after[j, lane] = after[j + 1, lane] + flow[j, lane]
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            points = min(POINTS, offsets[shape + 1] - start)
            low, high = _fill_table(given, start, start + points, table)
            entered[: points * LANES] = 0
            rates[: points * LANES] = 0
            begin = 0
            for run in range(ends.size):
                first = max(begin, low)
                last = min(ends[run], high)
                begin = ends[run]
                if first < last:
                    ends_of_run = bounds[run, 0], bounds[run, 1], bounds[run, 2]
                    _write_odds(points * LANES, ends_of_run, sharpness, table)
                    _add_upstream(flow, factors, first, last, points, odds, entered, rates)
            for i in range(points):
                for lane in range(LANES):
                    at = i * LANES + lane
                    point = members[start + i]
                    by_coefficients[point, lane] = entered[at] + after[high, lane]
                    by_heights[point, lane] = -slope * own[at] * rates[at]


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
def find_offsets(shapes, offsets):
    """Write where the points of each shape begin; whether points are in the order of shapes."""
    offsets[:] = 0
    in_order = True
    for i in range(shapes.size):
        offsets[shapes[i] + 1] += 1
        in_order &= i == 0 or shapes[i - 1] <= shapes[i]
    for i in range(1, offsets.size):
        offsets[i] += offsets[i - 1]
    return in_order
