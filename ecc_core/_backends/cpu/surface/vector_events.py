"""The pairs of ranks at which cells enter, for a vector of points at a time.

A *code* is an unsigned integer that contains a pair of ranks, the first one in its upper half.
Every point has the cells between it and its next neighbours: the cell of a set S of axes extends
along the axes in S. Sets of axes, and corners of the box of neighbours, are numbers with a bit for
each axis. ``docs/design/surface.md`` derives the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.scans.vector_coefficients import HAS_COMPRESS, compress

VECTOR_BYTES = 64
MOST_EVENTS = 34  # vectors that a vector of points may append to one list


class _Codes:
    """Vectors of codes, their comparisons, and two lists of bins to append to."""

    def __init__(
        self, builder: Any, corners: list[Any], left: Any, bins: Any, lists: Any, counts: Any
    ) -> None:
        vector = corners[0].type
        self.builder, self.element, self.lanes = builder, vector.element, vector.count
        self.half = self.element.width // 2
        self.low = llvm.splat(self.element, self.lanes, (1 << self.half) - 1)
        self.corners, self.axes = corners, [1 << i for i in range(len(corners).bit_length() - 1)]
        lane = ir.VectorType(llvm.I64, self.lanes)
        numbers = ir.Constant(lane, [llvm.I64(i) for i in range(self.lanes)])
        self.valid = builder.icmp_signed("<", numbers, llvm.each(builder, left, self.lanes))
        second, unused = (
            builder.trunc(n, self.element) if self.element.width < 64 else n for n in bins
        )
        self._second, self._unused = (llvm.each(builder, n, self.lanes) for n in (second, unused))
        self._lists, self.counts = lists, counts

    def maximum(self, a: Any, b: Any) -> Any:
        """Return codes of the larger first ranks and the larger second ranks."""
        parts = ir.VectorType(ir.IntType(self.half), 2 * self.lanes)
        a, b = (self.builder.bitcast(code, parts) for code in (a, b))
        larger = self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)
        return self.builder.bitcast(larger, ir.VectorType(self.element, self.lanes))

    def minimum(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.less(a, b), a, b)

    def equal(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_unsigned("==", a, b)

    def less(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_unsigned("<", a, b)

    def without(self, a: Any, b: Any) -> Any:
        return self.builder.and_(a, self.builder.not_(b))

    def row_of_bins(self, code: Any) -> Any:
        """Return the first bin of the first ranks."""
        half = llvm.splat(self.element, self.lanes, self.half)
        return self.builder.mul(self.builder.lshr(code, half), self._second)

    def append(self, sign: int, place: Any, chosen: Any) -> None:
        """Append the chosen bins to the list of a sign."""
        builder, which = self.builder, int(sign < 0)
        count = self.counts[which]
        if HAS_COMPRESS:
            place = compress(builder, place, chosen)
            kept = builder.ctpop(builder.bitcast(chosen, ir.IntType(self.lanes)))
            kept = builder.zext(kept, llvm.I64)
        else:
            place = builder.select(chosen, place, self._unused)
            kept = llvm.I64(self.lanes)
        self._lists[which].store(place, count)
        self.counts[which] = builder.add(count, kept)

    def cancel(self, left: dict[int, Any], values: dict[int, Any], axis: int) -> None:
        """Remove pairs of cells with and without an axis whose values are equal."""
        for cell in [cell for cell in left if not cell & axis and cell | axis in left]:
            both = self.builder.and_(left[cell], left[cell | axis])
            same = self.builder.and_(both, self.equal(values[cell], values[cell | axis]))
            left[cell] = self.without(left[cell], same)
            left[cell | axis] = self.without(left[cell | axis], same)


def _sign(axes: int) -> int:
    return -1 if axes.bit_count() & 1 else 1


def _add_vertices(codes: _Codes) -> None:
    """Append the cells of the V-construction, each at the largest ranks of its vertices."""
    pairs = dict(enumerate(codes.corners))
    for axis in codes.axes:
        for cell in pairs:
            if cell & axis:
                pairs[cell] = codes.maximum(pairs[cell], pairs[cell ^ axis])
    left = dict.fromkeys(pairs, codes.valid)
    for axis in codes.axes:
        codes.cancel(left, pairs, axis)
    for cell, pair in pairs.items():
        second = codes.builder.and_(pair, codes.low)
        place = codes.builder.add(codes.row_of_bins(pair), second)
        codes.append(_sign(cell), place, left[cell])


def _add_cubes(codes: _Codes) -> None:
    """Append the cells of the T-construction, which enter on the staircases of their cubes.

    In the order of codes, a corner is a step of a staircase if its second rank is less than the
    smallest second rank before it. The join of the two is then subtracted.
    """
    builder = codes.builder
    corners = range(len(codes.corners))
    seconds = [builder.and_(code, codes.low) for code in codes.corners]
    earlier = {
        (a, b): builder.icmp_unsigned("<=", codes.corners[a], codes.corners[b])
        for a in corners
        for b in corners
        if a < b
    }
    for corner in corners:
        least = {}  # smallest second rank of the cubes of a cell that precede the corner
        for other in corners:
            if other < corner:
                least[other] = builder.select(earlier[other, corner], seconds[other], codes.low)
            elif other > corner:
                least[other] = builder.select(earlier[corner, other], codes.low, seconds[other])
            else:
                least[other] = codes.low
        for axis in codes.axes:
            for cell in corners:
                if cell & axis:
                    least[cell] = codes.minimum(least[cell], least[cell ^ axis])
        _add_corner(
            codes, corner, seconds[corner], {c: least[c] for c in corners if c & corner == corner}
        )


def _add_corner(codes: _Codes, corner: int, second: Any, least: dict[int, Any]) -> None:
    """Append the entries of one corner: its steps, and their joins with the steps before.

    A corner that is a step for a cell is also a step for all smaller cells.
    """
    builder, row = codes.builder, codes.row_of_bins(codes.corners[corner])
    free = [axis for axis in codes.axes if not corner & axis]
    steps, joins = {}, {}
    for cell, rank in least.items():
        steps[cell] = builder.and_(codes.valid, codes.less(second, rank))
        if cell:  # the cube itself has a single step and no join
            joins[cell] = codes.without(steps[cell], codes.equal(rank, codes.low))
    for axis in free:
        codes.cancel(joins, least, axis)
    for cell in [cell for cell in least if not (free and cell & free[0])]:
        left = codes.without(steps[cell], steps[cell | free[0]]) if free else steps[cell]
        codes.append(_sign(cell), builder.add(row, second), left)
    for cell, left in joins.items():
        codes.append(-_sign(cell), builder.add(row, least[cell]), left)


def _events(add: Callable[[_Codes], None]) -> Any:
    """Return an operation that appends the cells of a vector of points, as `add` does.

    It appends the bins at which they enter to a list for each sign. `at` is the place of the first
    point in `codes`, `steps` are the distances to the next point along each axis, and `left` is the
    number of points that remain. `bins` are the number of second ranks, and a bin that is not used.
    Returns the new lengths of the lists, which must have room for ``MOST_EVENTS`` vectors.
    """

    @llvm.operation(types.UniTuple(types.intp, 2))
    def append(
        builder: Any,
        codes: Any,
        at: Any,
        steps: Any,
        left: Any,
        bins: Any,
        plus: Any,
        minus: Any,
        counts: Any,
    ) -> Any:
        places = [at]
        for step in steps:
            places += [builder.add(place, step) for place in places]
        lanes = 8 * VECTOR_BYTES // codes.element.width
        corners = [codes.load(place, lanes) for place in places]
        vectors = _Codes(builder, corners, left, bins, (plus, minus), counts)
        add(vectors)
        return vectors.counts

    return append


vertex_events, cube_events = _events(_add_vertices), _events(_add_cubes)
"""Of the V-construction, and of the T-construction, in 3-D with all signs reversed."""
