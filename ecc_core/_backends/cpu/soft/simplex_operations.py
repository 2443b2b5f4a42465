"""Operations on LANES directions at once, of which kernels of soft transforms are made.

A table has the coefficients, heights and odds of some points, LANES directions of each next to each
other. The odds of a point times the factor of a level are exp(sharpness * (height - level)), the
odds against having entered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.simplicial.counts import LANES
from ecc_core._backends.cpu.soft.points import MOST_ODDS

BLOCK = 8
"""Rows and columns that are transposed together."""
CONTRACTED = ("contract",)  # LLVM may make one operation of a product and a sum.


class Run(NamedTuple):
    """Levels next to each other: rows of tables of levels."""

    first: Any
    last: Any
    """The level behind the last one."""
    spare: Any
    """A row without a level, which completes the last pair of an odd number of levels."""


def _converted(builder: Any, vector: Any, element: Any) -> Any:
    """Return a vector of floats in another precision."""
    if vector.type.element == element:
        return vector
    convert = builder.fptrunc if isinstance(element, ir.FloatType) else builder.fpext
    return convert(vector, ir.VectorType(element, LANES))


def _odds_below(builder: Any, factor: Any, odds: Any) -> Any:
    """Return the exponential of how far heights are above a level, limited to `MOST_ODDS`."""
    most = llvm.splat(odds.type.element, LANES, MOST_ODDS)
    against = builder.fmul(factor, odds)
    return builder.select(builder.fcmp_ordered(">", against, most), most, against)


def _two_steps(builder: Any, factors: Any, odds: Any) -> list[Any]:
    """Return s at two levels by one division, 1 / (a * b), for 1 / a and 1 / b.

    The product of limited odds is far from infinite, and its inverse is no subnormal float.
    """
    one = llvm.splat(odds.type.element, LANES, 1.0)
    first, second = (builder.fadd(one, _odds_below(builder, f, odds)) for f in factors)
    inverse = builder.fdiv(one, builder.fmul(first, second))
    return [builder.fmul(second, inverse), builder.fmul(first, inverse)]


def _sum_of_products(builder: Any, total: Any, left: Any, right: Any) -> Any:
    product = builder.fmul(left, right, flags=CONTRACTED)
    return builder.fadd(total, product, flags=CONTRACTED)


def _slope(builder: Any, step: Any) -> Any:
    """Return s' = s - s * s."""
    square = builder.fmul(step, step, flags=CONTRACTED)
    return builder.fsub(step, square, flags=CONTRACTED)


def _slot(builder: Any, value: Any) -> Any:
    """Return the place of a variable, which LLVM keeps in registers."""
    slot = cgutils.alloca_once(builder, value.type)
    builder.store(value, slot)
    return slot


@contextmanager
def _pairs_of_levels(builder: Any, run: Run) -> Iterator[list[Any]]:
    """Loop over the rows of levels in pairs."""
    two = llvm.I64(2)
    pairs = builder.sdiv(builder.add(builder.sub(run.last, run.first), llvm.I64(1)), two)
    with cgutils.for_range(builder, pairs) as loop:
        level = builder.add(run.first, builder.mul(loop.index, two))
        following = builder.add(level, llvm.I64(1))
        is_level = builder.icmp_signed("<", following, run.last)
        yield [level, builder.select(is_level, following, run.spare)]


def _factors_of(builder: Any, factors: Any, rows: list[Any]) -> list[Any]:
    numbers = [builder.load(factors.one(row)) for row in rows]
    return [llvm.each(builder, number, LANES) for number in numbers]


@llvm.operation()
def add_levels(builder, own, odds, factors, run, points, sums):
    """Add the sums of weight * s over the points of a table to those of a run, (levels, LANES).

    The latter are in double precision, the former in that of the weights.
    """
    vector = ir.VectorType(own.element, LANES)
    with _pairs_of_levels(builder, run) as rows:
        both = _factors_of(builder, factors, rows)
        slots = [_slot(builder, ir.Constant(vector, [0.0] * LANES)) for _ in rows]
        with cgutils.for_range(builder, points) as loop:
            at = builder.mul(loop.index, llvm.I64(LANES))
            weight = own.load(at, LANES)
            steps = _two_steps(builder, both, odds.load(at, LANES))
            for slot, step in zip(slots, steps, strict=True):
                total = _sum_of_products(builder, builder.load(slot), weight, step)
                builder.store(total, slot)
        for slot, row in zip(slots, rows, strict=True):
            _add_vector(builder, sums, row, builder.load(slot))


def _add_vector(builder: Any, sums: Any, row: Any, terms: Any) -> None:
    at = builder.mul(row, llvm.I64(LANES))
    converted = _converted(builder, terms, sums.element)
    sums.store(builder.fadd(sums.load(at, LANES), converted), at)


@llvm.operation()
def add_points(builder, own, points, row, sums):
    """Add the weights of all points of a table to a row of sums."""
    total = _slot(builder, own.load(llvm.I64(0), LANES))
    with cgutils.for_range(builder, builder.sub(points, llvm.I64(1))) as loop:
        at = builder.mul(builder.add(loop.index, llvm.I64(1)), llvm.I64(LANES))
        builder.store(builder.fadd(builder.load(total), own.load(at, LANES)), total)
    _add_vector(builder, sums, row, builder.load(total))


@llvm.operation()
def take_totals(builder, sums, entered, levels, totals):
    """Write the total sums of a shape, and set its sums to zero.

    The total at a level is the sum over points near it, plus the weights of all points that have
    entered up to it.
    """
    nothing = ir.Constant(ir.VectorType(sums.element, LANES), [0.0] * LANES)
    running = _slot(builder, nothing)
    with cgutils.for_range(builder, levels) as loop:
        at = builder.mul(loop.index, llvm.I64(LANES))
        before = builder.fadd(builder.load(running), entered.load(at, LANES))
        builder.store(before, running)
        total = builder.fadd(before, sums.load(at, LANES))
        totals.store(_converted(builder, total, totals.element), at)
        for used in (sums, entered):
            used.store(nothing, at)


def _interleaving(first: int) -> ir.Constant:
    """Return the shuffle that takes elements of two rows by turns, from the first one of each on.

    Elements of the second row are numbered behind those of the first one.
    """
    order = []
    for i in range(BLOCK // 2):
        order += [first + i, first + i + BLOCK]
    return ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), order)


@llvm.operation()
def transpose(builder, source, begin, stride, target, to, step):
    """Transpose BLOCK rows of as many numbers; distances between rows are in elements."""
    rows = []
    for i in range(BLOCK):
        at = builder.add(begin, builder.mul(stride, llvm.I64(i)))
        rows.append(source.load(at, BLOCK))
    half = BLOCK // 2
    low = _interleaving(0)
    high = _interleaving(half)
    for _ in range(BLOCK.bit_length() - 1):
        pairs = zip(rows[:half], rows[half:], strict=True)
        rows = [builder.shuffle_vector(*pair, order) for pair in pairs for order in (low, high)]
    for i, row in enumerate(rows):
        target.store(row, builder.add(to, builder.mul(step, llvm.I64(i))))


@llvm.operation()
def add_rates(builder, flow, factors, run, points, odds, rates):
    """Add upstream * s', of the levels of a run, to all points of a table.

    `flow` are upstream gradients (levels, LANES), which are 0 in the spare row.
    """
    lanes = llvm.I64(LANES)
    with cgutils.for_range(builder, points) as loop:
        at = builder.mul(loop.index, lanes)
        own = odds.load(at, LANES)
        rate = _slot(builder, rates.load(at, LANES))
        with _pairs_of_levels(builder, run) as rows:
            steps = _two_steps(builder, _factors_of(builder, factors, rows), own)
            for row, step in zip(rows, steps, strict=True):
                upstream = flow.load(builder.mul(row, lanes), LANES)
                slope = _slope(builder, step)
                builder.store(_sum_of_products(builder, builder.load(rate), upstream, slope), rate)
        rates.store(builder.load(rate), at)


@llvm.operation()
def add_all_gradients(builder, flow, table, factors, levels, run, points, sums):
    """Add upstream * s, upstream * s', and what the levels of a run and the sharpness need.

    The sums are, for all points of a table, upstream * s, upstream * s' and upstream * s' * (level
    - height), and for each level (levels, LANES), in double precision, weight * upstream * s'.
    """
    own, scratch, odds = table
    of_points = sums[:3]
    by_levels = sums[3]
    lanes = llvm.I64(LANES)
    with _pairs_of_levels(builder, run) as rows:
        both = _factors_of(builder, factors, rows)
        places = _factors_of(builder, levels, rows)
        flows = [flow.load(builder.mul(row, lanes), LANES) for row in rows]
        nothing = ir.Constant(flows[0].type, [0.0] * LANES)
        slots = [_slot(builder, nothing) for _ in rows]
        with cgutils.for_range(builder, points) as loop:
            at = builder.mul(loop.index, lanes)
            weight = own.load(at, LANES)
            height = scratch.load(at, LANES)
            totals = [part.load(at, LANES) for part in of_points]
            steps = _two_steps(builder, both, odds.load(at, LANES))
            for i, step in enumerate(steps):
                rate = builder.fmul(flows[i], _slope(builder, step))
                distance = builder.fsub(places[i], height)
                distance = _converted(builder, distance, own.element)
                terms = (flows[i], step), (rate, distance)
                totals[0] = _sum_of_products(builder, totals[0], *terms[0])
                totals[1] = builder.fadd(totals[1], rate)
                totals[2] = _sum_of_products(builder, totals[2], *terms[1])
                level = _sum_of_products(builder, builder.load(slots[i]), weight, rate)
                builder.store(level, slots[i])
            for part, total in zip(of_points, totals, strict=True):
                part.store(total, at)
        for slot, row in zip(slots, rows, strict=True):
            _add_vector(builder, by_levels, row, builder.load(slot))
