"""Soft transforms of batches of simplicial complexes, whose shapes may differ in size.

A simplex contributes weight * s(l * (t - h)) with the height h of its highest point. So each point
has a coefficient in each direction, the signed weights of the simplices that belong to it, and a
curve is a sum over points. As for exact transforms, LANES directions of a point are next to each
other: coefficients, steps, sums and gradients are all vectors over directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.simplicial.counts import LANES, add_simplices
from ecc_core._backends.cpu.soft.points import DOUBLE_REACH
from ecc_core._backends.cpu.soft.transform import FEW_TERMS, POINTS_A_TABLE, _tabulate, _workspace

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

VALID = 0
OUTSIDE = 1
APART = 2
POINTS = POINTS_A_TABLE // LANES  # of a table


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
    return VALID, 0


@kernel(error_model="numpy")
def _fill_table(given, start, stop, space):
    """Tabulate the steps of some members in LANES directions; write their coefficients to `own`."""
    heights, coefficients, members, levels, sharpness, own, packed = given
    for i in range(start, stop):
        point = members[i]
        at = (i - start) * LANES
        for lane in range(LANES):
            packed[0, at + lane] = heights[point, lane]
            own[at + lane] = coefficients[point, lane]
    # As for points on a line, along which they are projected.
    points = (packed, np.ones((1, 1)), levels, sharpness)
    return _tabulate(points, 0, 0, (stop - start) * LANES, space)


@llvm.operation()
def _add_level(builder, own, steps, slopes, packed, level, j, points, sums):
    """Add the sums over the points of a table of weight * (s, s', s' * (level - height)).

    `sums` is (levels, 3, LANES), in double precision; the other sums have that of the weights.
    """
    vector = ir.VectorType(own.element, LANES)
    slots = [cgutils.alloca_once_value(builder, ir.Constant(vector, None)) for _ in range(3)]
    start = builder.mul(j, llvm.I64(POINTS_A_TABLE))
    at_level = llvm.each(builder, level, LANES)
    with cgutils.for_range(builder, points) as loop:
        at = builder.mul(loop.index, llvm.I64(LANES))
        weight = own.load(at, LANES)
        step, slope = (table.load(builder.add(start, at), LANES) for table in (steps, slopes))
        distance = builder.fsub(at_level, packed.load(at, LANES))
        change = builder.fmul(weight, slope)
        spread = builder.fmul(change, _converted(builder, distance, own.element))
        for slot, term in zip(slots, (builder.fmul(weight, step), change, spread), strict=True):
            builder.store(builder.fadd(builder.load(slot), term), slot)
    for kind, slot in enumerate(slots):
        at = builder.mul(builder.add(builder.mul(j, llvm.I64(3)), llvm.I64(kind)), llvm.I64(LANES))
        total = _converted(builder, builder.load(slot), sums.element)
        sums.store(builder.fadd(sums.load(at, LANES), total), at)


@llvm.operation()
def _add_upstream(builder, upstream, steps, slopes, j, points, entered, rates):
    """Add upstream * s and upstream * s' of one level to every point of a table.

    `upstream` is (levels, LANES).
    """
    flow = upstream.load(builder.mul(j, llvm.I64(LANES)), LANES)
    start = builder.mul(j, llvm.I64(POINTS_A_TABLE))
    with cgutils.for_range(builder, points) as loop:
        at = builder.mul(loop.index, llvm.I64(LANES))
        for table, totals in ((steps, entered), (slopes, rates)):
            term = builder.fmul(flow, table.load(builder.add(start, at), LANES))
            totals.store(builder.fadd(totals.load(at, LANES), term), at)


def _converted(builder: Any, vector: Any, element: Any) -> Any:
    """Return a vector of floats in another precision."""
    if vector.type.element == element:
        return vector
    convert = builder.fptrunc if isinstance(element, ir.FloatType) else builder.fpext
    return convert(vector, ir.VectorType(element, LANES))


@kernel(error_model="numpy")
def write_curves(given, offsets, order, part, results):
    """Write the curves of all shapes in some directions.

    `given` are the heights and coefficients (points, LANES), the points in the order of their
    shapes, the sorted levels and the sharpness. The points of shape i are
    ``offsets[i]:offsets[i + 1]``, `order` holds the original places of the levels, and `part` is
    the first direction and the one behind the last. `results` are the curves (shapes, directions,
    levels) and their derivatives by level and by sharpness, which may be empty.
    """
    curves, slopes_of, spreads_of = results
    heights, coefficients, members, levels, sharpness = given
    space = _workspace(coefficients, levels, sharpness)
    _, _, _, steps, slopes = space
    own = np.empty(POINTS_A_TABLE, coefficients.dtype)
    packed = np.empty((1, POINTS_A_TABLE))
    table = (heights, coefficients, members, levels, sharpness, own, packed)
    sums = np.empty((levels.size, 3, LANES))
    entered = np.empty((levels.size + 1, LANES))
    for shape in range(offsets.size - 1):
        sums[:] = 0
        entered[:] = 0
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            stop = min(start + POINTS, offsets[shape + 1])
            low, high, _ = _fill_table(table, start, stop, space)
            for j in range(low, high):
                _add_level(own, steps, slopes, packed, levels[j], j, stop - start, sums)
            for i in range(stop - start):
                for lane in range(LANES):
                    entered[high, lane] += own[i * LANES + lane]
        for j in range(levels.size):
            for lane in range(LANES):
                entered[j + 1, lane] += entered[j, lane]
                sums[j, 0, lane] += entered[j, lane]
        for lane in range(part[1] - part[0]):
            for j in range(levels.size):
                curves[shape, part[0] + lane, order[j]] = sums[j, 0, lane]
        if slopes_of.size == 0:
            continue
        for lane in range(part[1] - part[0]):
            for j in range(levels.size):
                slopes_of[shape, part[0] + lane, order[j]] = sums[j, 1, lane] * sharpness
                spreads_of[shape, part[0] + lane, order[j]] = sums[j, 2, lane]


@kernel(error_model="numpy")
def write_gradients(given, offsets, order, part, upstream, by_coefficients, by_heights):
    """Write the gradients of coefficients and heights (points, LANES) of all shapes.

    Other arguments are those of :func:`write_curves`, and `upstream` is (shapes, directions,
    levels).
    """
    heights, coefficients, members, levels, sharpness = given
    space = _workspace(coefficients, levels, sharpness)
    _, _, _, steps, slopes = space
    own = np.empty(POINTS_A_TABLE, coefficients.dtype)
    packed = np.empty((1, POINTS_A_TABLE))
    entered = np.empty_like(own)
    rates = np.empty_like(own)
    table = (heights, coefficients, members, levels, sharpness, own, packed)
    flow = np.zeros((levels.size + 1, LANES), own.dtype)
    after = np.zeros((levels.size + 1, LANES), own.dtype)  # sums from each level on
    slope = own.dtype.type(sharpness)
    for shape in range(offsets.size - 1):
        for j in range(levels.size - 1, -1, -1):
            for lane in range(part[1] - part[0]):
                flow[j, lane] = upstream[shape, part[0] + lane, order[j]]
                after[j, lane] = after[j + 1, lane] + flow[j, lane]
        for start in range(offsets[shape], offsets[shape + 1], POINTS):
            stop = min(start + POINTS, offsets[shape + 1])
            low, high, count = _fill_table(table, start, stop, space)
            entered[:count] = 0
            rates[:count] = 0
            for j in range(low, high):
                _add_upstream(flow, steps, slopes, j, stop - start, entered, rates)
            for i in range(start, stop):
                for lane in range(LANES):
                    at = (i - start) * LANES + lane
                    by_coefficients[members[i], lane] = entered[at] + after[high, lane]
                    by_heights[members[i], lane] = -slope * own[at] * rates[at]


@kernel(error_model="numpy")
def add_to_heaviest(rows, heaviest, sign, codes, lanes, by_coefficients, by_weights):
    """Add the gradient of each simplex's weight to that of its heaviest point."""
    for i in range(len(rows)):
        total = 0.0
        for lane in range(lanes):
            last = rows[i, 0]
            for j in range(1, rows.shape[1]):
                if codes[rows[i, j], lane] >= codes[last, lane]:
                    last = rows[i, j]
            total += by_coefficients[last, lane]
        by_weights[heaviest[i]] += sign * total


class SoftComplexes(NamedTuple):
    """Points (n, d) of shapes, their simplices and weights, and unit vectors (k, d).

    Numbers are floats of one dtype, whose precision sums have.
    """

    points: Array
    weights: Array | None
    """(n,); None if all weigh 1. A simplex weighs as much as its heaviest point."""
    simplices: Sequence[Integers]
    vectors: Array
    levels: Floats
    sharpness: float
    shapes: Integers
    """The shape of each point."""
    shape_count: int
    """Number of shapes."""
    workers: int | None

    def curves(self, derivatives: bool) -> tuple[Array, Array, Array]:
        """Curves (shapes, k, n), and their derivatives by the level and by the sharpness.

        Unless `derivatives`, these are empty: (0, k, n).
        """
        order, levels = self._levels()
        members, offsets = self._members()
        heaviest = self._heaviest()
        one = len(self.vectors), levels.size
        counts = self.shape_count, *[self.shape_count if derivatives else 0] * 2
        results = tuple(np.empty((count, *one), self.points.dtype) for count in counts)

        def work(starts: Iterator[int]) -> None:
            for start in starts:
                part = start, min(start + LANES, len(self.vectors))
                heights, codes = self._heights(part)
                own = self._coefficients(codes, heaviest)
                given = heights, own, members, levels, self.sharpness
                write_curves(given, offsets, order, part, results)

        self._share(work)
        curves, slopes, spreads = results
        return curves, slopes, spreads

    def gradients(self, upstream: Array, of_weights: bool) -> tuple[Array, Array, Array]:
        """Gradients of points, of weights (zero unless `of_weights`) and of vectors."""
        order, levels = self._levels()
        members, offsets = self._members()
        heaviest = self._heaviest()
        by_vectors = np.zeros(self.vectors.shape, self.points.dtype)

        def work(starts: Iterator[int]) -> tuple[Array, Array]:
            by_points = np.zeros(self.points.shape)
            by_weights = np.zeros(len(self.points))
            for start in starts:
                part = start, min(start + LANES, len(self.vectors))
                lanes = part[1] - part[0]
                heights, codes = self._heights(part)
                own = self._coefficients(codes, heaviest)
                entered = np.empty_like(own)
                rates = np.empty_like(own)
                given = heights, own, members, levels, self.sharpness
                write_gradients(given, offsets, order, part, upstream, entered, rates)
                by_points += rates[:, :lanes] @ self.vectors[slice(*part)]
                by_vectors[slice(*part)] = rates[:, :lanes].T @ self.points
                if of_weights:
                    by_weights += entered[:, :lanes].sum(axis=1)
                    for rows, top in zip(self.simplices, heaviest, strict=True):
                        sign = 1 - 2 * (rows.shape[1] % 2 == 0)
                        add_to_heaviest(rows, top, sign, codes, lanes, entered, by_weights)
            return by_points, by_weights

        parts = self._share(work)
        points, weights = (sum(found[1:], found[0]) for found in zip(*parts, strict=True))
        return points, weights, by_vectors

    def _levels(self) -> tuple[NDArray[np.intp], Floats]:
        """The order of the levels, and the sorted levels; infinite ones are beyond all heights."""
        reach = float(np.abs(self.points).max(initial=0)) * self.points.shape[1]
        beyond = reach + 2 * DOUBLE_REACH / self.sharpness
        order = self.levels.argsort()
        return order, self.levels[order].clip(-beyond, beyond)

    def _members(self) -> tuple[Integers, Integers]:
        """The points in the order of their shapes, and where those of each shape begin."""
        counts = np.bincount(self.shapes, minlength=self.shape_count)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if (self.shapes[1:] >= self.shapes[:-1]).all():
            return np.arange(len(self.shapes)), offsets
        return np.argsort(self.shapes, kind="stable"), offsets

    def _heaviest(self) -> list[Integers]:
        """The heaviest point of each simplex, by dimension; empty lists without weights."""
        if self.weights is None:
            return []
        tops = [self.weights[rows].argmax(axis=1)[:, None] for rows in self.simplices]
        return [
            np.take_along_axis(rows, top, axis=1)[:, 0]
            for rows, top in zip(self.simplices, tops, strict=True)
        ]

    def _heights(self, part: tuple[int, int]) -> tuple[Array, Array]:
        """Heights (n, LANES) in some directions, of which the first is repeated, and codes."""
        vectors = self.vectors[slice(*part)]
        chosen = np.zeros(LANES, np.intp)
        chosen[: len(vectors)] = np.arange(len(vectors))
        heights = self.points @ np.ascontiguousarray(vectors[chosen].T)
        return heights, ordered_keys(heights)

    def _coefficients(self, codes: Array, heaviest: Sequence[Integers]) -> Array:
        """The signed weights of the simplices that belong to each point: (n, LANES)."""
        dtype = self.points.dtype
        own = np.ones(1, dtype) if self.weights is None else self.weights
        sums = np.empty(codes.shape, dtype)
        sums[:] = own[:, None]
        for i, rows in enumerate(self.simplices):
            sign = dtype.type(1 - 2 * (rows.shape[1] % 2 == 0))
            weights = sign * (own if self.weights is None else self.weights[heaviest[i]])
            add_simplices(rows, weights, int(self.weights is not None), codes, sums)
        return sums

    def _share(self, work: Any) -> list[Any]:
        terms = len(self.points) * len(self.vectors) * self.levels.size
        starts = range(0, len(self.vectors), LANES)
        return share(starts, work, thread_count(self.workers, terms // FEW_TERMS))
