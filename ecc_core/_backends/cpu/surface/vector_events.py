"""The pairs of ranks at which cells enter, for a vector of points at a time.

A *code* is a pair of ranks in one unsigned integer, the first rank in its upper half. The cells
that are computed at a point lie between it and its neighbours one step on: the cell of a set S of
axes spans both of them along the axes in S. Sets of axes are numbers with one bit for each axis,
and so are the corners of the box of neighbours. ``docs/design/surface.md`` derives the formulas.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.scans.vector_coefficients import HAS_COMPRESS, compress

__all__ = ["MOST_EVENTS", "VECTOR_BYTES", "cube_events", "vertex_events"]

VECTOR_BYTES = 64
MOST_EVENTS = 34  # vectors that are appended to one list for a vector of points


class _Codes:
    """Vectors of codes: comparisons, and two lists of bins to append to."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any) -> None:
        codes, at, steps, left, bins, plus, minus, counts = args
        self.builder = builder
        self.element = context.get_value_type(sig.args[0].dtype)
        self.half = self.element.width // 2
        self.lanes = 8 * VECTOR_BYTES // self.element.width
        self.low = llvm.splat(self.element, self.lanes, (1 << self.half) - 1)
        self.ndim = len(sig.args[2])
        data = llvm.data(context, builder, sig.args[0], codes)
        self.corners = []
        for corner in range(1 << self.ndim):
            place = at
            for axis, step in enumerate(cgutils.unpack_tuple(builder, steps)):
                place = builder.add(place, step) if corner >> axis & 1 else place
            self.corners.append(llvm.load(builder, data, place, self.element, self.lanes))
        lane = ir.VectorType(llvm.I64, self.lanes)
        numbers = ir.Constant(lane, [llvm.I64(i) for i in range(self.lanes)])
        self.valid = builder.icmp_signed("<", numbers, llvm.each(builder, left, self.lanes))
        second, unused = (
            builder.trunc(n, self.element) if self.element.width < 64 else n
            for n in cgutils.unpack_tuple(builder, bins)
        )
        self._second, self._unused = (llvm.each(builder, n, self.lanes) for n in (second, unused))
        self._lists = [
            llvm.data(context, builder, kind, value)
            for kind, value in zip(sig.args[5:7], (plus, minus), strict=True)
        ]
        self.counts = cgutils.unpack_tuple(builder, counts)

    def maximum(self, a: Any, b: Any) -> Any:
        """The larger of the first ranks and the larger of the second ranks."""
        parts = ir.VectorType(ir.IntType(self.half), 2 * self.lanes)
        a, b = (self.builder.bitcast(code, parts) for code in (a, b))
        larger = self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)
        return self.builder.bitcast(larger, ir.VectorType(self.element, self.lanes))

    def equal(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_unsigned("==", a, b)

    def less(self, a: Any, b: Any) -> Any:
        return self.builder.icmp_unsigned("<", a, b)

    def sort(self, codes: list[Any], i: int, j: int) -> None:
        a, b = codes[i], codes[j]
        swap = self.less(b, a)
        codes[i], codes[j] = self.builder.select(swap, b, a), self.builder.select(swap, a, b)

    def without(self, a: Any, b: Any) -> Any:
        return self.builder.and_(a, self.builder.not_(b))

    def append(self, sign: int, code: Any, chosen: Any) -> None:
        """Append the bins of the chosen codes to the list of a sign."""
        builder, which = self.builder, int(sign < 0)
        first = builder.lshr(code, llvm.splat(self.element, self.lanes, self.half))
        place = builder.add(builder.mul(first, self._second), builder.and_(code, self.low))
        count = self.counts[which]
        if HAS_COMPRESS:
            place = compress(builder, place, chosen)
            kept = builder.ctpop(builder.bitcast(chosen, ir.IntType(self.lanes)))
            kept = builder.zext(kept, llvm.I64)
        else:
            place = builder.select(chosen, place, self._unused)
            kept = llvm.I64(self.lanes)
        llvm.store(builder, place, self._lists[which], count)
        self.counts[which] = builder.add(count, kept)


def _sign(axes: int) -> int:
    return -1 if axes.bit_count() & 1 else 1


def _add_vertices(codes: _Codes) -> None:
    """Cells of the V-construction: each enters at the largest ranks of its vertices."""
    builder, pairs = codes.builder, list(codes.corners)
    cells = range(len(pairs))
    for axis in (1 << i for i in range(codes.ndim)):
        for cell in cells:
            if cell & axis:
                pairs[cell] = codes.maximum(pairs[cell], pairs[cell ^ axis])
    left = [codes.valid] * len(pairs)
    for axis in (1 << i for i in range(codes.ndim)):  # two cells of opposite signs at one pair
        for cell in cells:
            if not cell & axis:
                other = cell | axis
                both = builder.and_(left[cell], left[other])
                same = builder.and_(both, codes.equal(pairs[cell], pairs[other]))
                left[cell], left[other] = (codes.without(left[c], same) for c in (cell, other))
    for cell in cells:
        codes.append(_sign(cell), pairs[cell], left[cell])


def _add_cubes(codes: _Codes) -> None:
    """Cells of the T-construction: each enters on the staircase of the cubes that contain it."""
    for corner in range(len(codes.corners)):
        _add_steps(codes, corner)
    ordered: dict[tuple[int, int], list[Any]] = {}
    for cell in range(1, len(codes.corners)):
        _add_joins(codes, cell, _ordered(codes, cell, 0, ordered))


def _add_steps(codes: _Codes, corner: int) -> None:
    """The steps of staircases that are the pair of ranks of one corner.

    A corner is a step for a cell unless one of the cell's other cubes enters no later. If it is one
    for a cell it is one for the smaller cells, so that cells cancel in pairs along an axis.
    """
    own = codes.corners[corner]
    free = [1 << i for i in range(codes.ndim) if not corner >> i & 1]
    before: dict[int, Any] = {}
    for other in range(len(codes.corners)):
        if other != corner:
            largest = codes.maximum(own, codes.corners[other])
            before[other] = codes.equal(largest, own)
            if other > corner:  # of two equal pairs the lower corner is the step
                before[other] = codes.without(before[other], codes.equal(own, codes.corners[other]))

    def is_step(cell: int) -> Any:
        found = codes.valid
        for other in range(len(codes.corners)):
            if other != corner and other & cell == other:
                found = codes.without(found, before[other])
        return found

    for cell in range(len(codes.corners)):
        if cell & corner != corner or (free and cell & free[0]):
            continue
        chosen = is_step(cell)
        if free:
            chosen = codes.without(chosen, is_step(cell | free[0]))
        codes.append(_sign(cell), own, chosen)


def _ordered(
    codes: _Codes, cell: int, corner: int, known: dict[tuple[int, int], list[Any]]
) -> list[Any]:
    """The codes of the corners of a cell, moved to another corner, in increasing order."""
    if not cell:
        return [codes.corners[corner]]
    if (cell, corner) not in known:
        axis = 1 << cell.bit_length() - 1
        halves = [_ordered(codes, cell ^ axis, c, known) for c in (corner, corner | axis)]
        known[cell, corner] = _merge(codes, *halves)
    return known[cell, corner]


def _merge(codes: _Codes, a: list[Any], b: list[Any]) -> list[Any]:
    """Two ordered lists of the same length, a power of two, as one (Batcher's odd-even merge)."""
    if len(a) == 1:
        merged = a + b
        codes.sort(merged, 0, 1)
        return merged
    even, odd = _merge(codes, a[0::2], b[0::2]), _merge(codes, a[1::2], b[1::2])
    merged = [code for pair in zip(even, odd, strict=True) for code in pair]
    for i in range(1, len(merged) - 1, 2):
        codes.sort(merged, i, i + 1)
    return merged


def _add_joins(codes: _Codes, cell: int, ordered: list[Any]) -> None:
    """The joins of neighbouring steps of a staircase."""
    builder = codes.builder
    least = builder.and_(ordered[0], codes.low)
    for code in ordered[1:]:
        second = builder.and_(code, codes.low)
        is_step = codes.less(second, least)
        join = builder.or_(codes.without(code, codes.low), least)
        codes.append(-_sign(cell), join, builder.and_(is_step, codes.valid))
        least = builder.select(is_step, second, least)


def _signature(codes: Any, steps: Any, plus: Any, minus: Any) -> Any:
    pair = types.UniTuple(types.intp, 2)
    return pair(codes, types.intp, steps, types.intp, pair, plus, minus, pair)


@intrinsic
def vertex_events(
    typingctx: Any,
    codes: Any,
    at: Any,
    steps: Any,
    left: Any,
    bins: Any,
    plus: Any,
    minus: Any,
    counts: Any,
) -> Any:
    """Append the bins at which the cells of a vector of points enter to two lists, by their sign.

    `at` is the place of the first point in `codes`, `steps` lead to the next point along each axis,
    and `left` is how many points are wanted. `bins` are the number of second ranks, and a bin that
    is not used. Returns the new lengths of the lists, which need room for ``MOST_EVENTS`` vectors.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = _Codes(context, builder, sig, args)
        _add_vertices(vectors)
        return context.make_tuple(builder, sig.return_type, vectors.counts)

    return _signature(codes, steps, plus, minus), codegen


@intrinsic
def cube_events(
    typingctx: Any,
    codes: Any,
    at: Any,
    steps: Any,
    left: Any,
    bins: Any,
    plus: Any,
    minus: Any,
    counts: Any,
) -> Any:
    """As :func:`vertex_events` for the T-construction; in 3-D the signs are reversed."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = _Codes(context, builder, sig, args)
        _add_cubes(vectors)
        return context.make_tuple(builder, sig.return_type, vectors.counts)

    return _signature(codes, steps, plus, minus), codegen
