"""Kernels of surfaces: pairs of ranks as codes, and the events of the cells that they own.

Every point has the cells between it and its next neighbours: the cell of a set S of axes extends
along the axes in S. Sets of axes, and corners of the box of neighbours, are numbers with a bit for
each axis. ``docs/design/surface.md`` derives the formulas. Curves of the first image in the sets of
the second one would need no kernels of their own, and take 14 times as long for 16 thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import part_of
from ecc_core._backends.cpu.scans.planes import HAS_COMPRESS, compress

VECTOR_BYTES = 64
MOST_EVENTS = 34
"""Vectors that a vector of points may append to one list."""
COUNTED_BYTES = 1 << 13  # Lists of events are counted and emptied when they are as long as this.
EVENT_BYTES = COUNTED_BYTES + (MOST_EVENTS + 1) * VECTOR_BYTES


class _Codes:
    """Vectors of codes, their comparisons, and two lists of bins to append to."""

    def __init__(
        self, builder: Any, corners: list[Any], left: Any, bins: Any, lists: Any, counts: Any
    ) -> None:
        vector = corners[0].type
        self.builder = builder
        self.element = vector.element
        self.lanes = vector.count
        self.half = self.element.width // 2
        self.low = llvm.splat(self.element, self.lanes, (1 << self.half) - 1)
        self.corners = corners
        ndim = len(corners).bit_length() - 1
        self.axes = [1 << i for i in range(ndim)]
        lane = ir.VectorType(llvm.I64, self.lanes)
        numbers = ir.Constant(lane, [llvm.I64(i) for i in range(self.lanes)])
        self.valid = builder.icmp_signed("<", numbers, llvm.each(builder, left, self.lanes))
        second, unused = (
            builder.trunc(n, self.element) if self.element.width < 64 else n for n in bins
        )
        self._second, self._unused = (llvm.each(builder, n, self.lanes) for n in (second, unused))
        self._lists = lists
        self.counts = counts

    def maximum(self, a: Any, b: Any) -> Any:
        """Return codes of the larger first ranks and the larger second ranks."""
        parts = ir.VectorType(ir.IntType(self.half), 2 * self.lanes)
        a, b = (self.builder.bitcast(code, parts) for code in (a, b))
        larger = self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)
        return self.builder.bitcast(larger, ir.VectorType(self.element, self.lanes))

    def without(self, a: Any, b: Any) -> Any:
        return self.builder.and_(a, self.builder.not_(b))

    def row_of_bins(self, code: Any) -> Any:
        """Return the first bin of the first ranks."""
        half = llvm.splat(self.element, self.lanes, self.half)
        return self.builder.mul(self.builder.lshr(code, half), self._second)

    def append(self, sign: int, place: Any, chosen: Any) -> None:
        """Append the chosen bins to the list of a sign."""
        builder = self.builder
        which = int(sign < 0)
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
            equal = self.builder.icmp_unsigned("==", values[cell], values[cell | axis])
            same = self.builder.and_(both, equal)
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
    smallest second rank before it. The join of the step and its predecessor is then subtracted.
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
        least = {}  # The smallest second rank of the cubes of a cell that precede the corner.
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
                    pair = least[cell], least[cell ^ axis]
                    least[cell] = builder.select(builder.icmp_unsigned("<", *pair), *pair)
        second = seconds[corner]
        row = codes.row_of_bins(codes.corners[corner])
        free = [axis for axis in codes.axes if not corner & axis]
        own = [cell for cell in corners if cell & corner == corner]
        # A corner that is a step for a cell is also a step for all smaller cells.
        less = {c: builder.icmp_unsigned("<", second, least[c]) for c in own}
        steps = {c: builder.and_(codes.valid, less[c]) for c in own}
        # The cube itself has a single step and no join.
        some = {c: builder.icmp_unsigned("!=", least[c], codes.low) for c in own}
        joins = {c: builder.and_(steps[c], some[c]) for c in own if c}
        for axis in free:
            codes.cancel(joins, least, axis)
        for cell in own:
            if not (free and cell & free[0]):
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
    def append(builder, codes, at, steps, left, bins, plus, minus, counts):
        places = [at]
        for step in steps:
            places += [builder.add(place, step) for place in places]
        lanes = 8 * VECTOR_BYTES // codes.element.width
        corners = [codes.load(place, lanes) for place in places]
        vectors = _Codes(builder, corners, left, bins, (plus, minus), counts)
        add(vectors)
        return vectors.counts

    return append


vertex_events = _events(_add_vertices)
cube_events = _events(_add_cubes)
"""The kernels of the V-construction and of the T-construction; that of T in 3-D has all signs
reversed."""


@kernel()
def pack_codes(first, second, pitch, extents, codes, place, never):
    """Write the codes of two boxes of keys; all other codes are `never`.

    `extents` are (slices, rows, columns), `pitch` is the distance between rows of keys, and `place`
    is that of the first point in `codes`, and the distances to the next (point, row, slice) there.
    Keys and codes are followed by room for a vector.
    """
    slices, rows, columns = extents
    at, steps = place
    written = 0
    half = np.uint64(4 * codes.itemsize)
    for z in range(slices):
        for y in range(rows):
            target = at + y * steps[1] + z * steps[2]
            for i in range(written, target):
                codes[i] = never
            start = (z * rows + y) * pitch
            upper = part_of(first, start, columns)
            lower = part_of(second, start, columns)
            own = part_of(codes, target, columns)
            for x in range(columns):
                own[x] = (upper[x] << half) | lower[x]
            written = target + columns
    for i in range(written, codes.size):
        codes[i] = never


@kernel()
def _count(plus, minus, counts, histograms):
    """Count both lists in turn, so that an addition to a bin waits less for the previous one."""
    both = min(counts[0], counts[1])
    for i in range(both):
        histograms[0, plus[i]] += 1
        histograms[1, minus[i]] += 1
    for i in range(both, counts[0]):
        histograms[0, plus[i]] += 1
    for i in range(both, counts[1]):
        histograms[1, minus[i]] += 1


@kernel()
def add_cells(codes, extents, steps, bins, cubes, lists, histograms):
    """Add the cells of a block of codes to one histogram for each sign.

    `extents` are the numbers of points (columns, rows, slices) from the first code. There are as
    many `steps` as the image has axes. `bins` are as for ``vertex_events``. `cubes` is True for the
    T-construction, with all signs reversed in 3-D, and otherwise None, so that each version
    compiles one construction.
    """
    lanes = VECTOR_BYTES // codes.itemsize
    plus, minus = lists
    counts = (0, 0)
    for z in range(extents[2]):
        for y in range(extents[1]):
            start = y * steps[1] + z * steps[-1]
            for x in range(0, extents[0], lanes):
                left = extents[0] - x
                if cubes is None:
                    counts = vertex_events(codes, start + x, steps, left, bins, plus, minus, counts)
                else:
                    counts = cube_events(codes, start + x, steps, left, bins, plus, minus, counts)
                if max(counts[0], counts[1]) * codes.itemsize >= COUNTED_BYTES:
                    _count(plus, minus, counts, histograms)
                    counts = (0, 0)
    _count(plus, minus, counts, histograms)
