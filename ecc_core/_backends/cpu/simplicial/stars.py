"""Stars of points: the neighbours of each, and the triangles at it by the places of two neighbours.

Whether a point is the last one of an edge or of a triangle depends on which of its neighbours come
before it. So the signs that belong to a point in LANES orders follow from one comparison with each
neighbour, without memory for sums: a triangle belongs to it if two neighbours come before.

Stars are also how complexes of edges and triangles are checked, without sorting them. Neighbours of
a point are found by comparing all of them at once, so that there must be few: complexes with hubs,
or with more triangles at a point than there is room for, are checked by :mod:`complexes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.simplicial.complexes import Rows
from ecc_core._backends.cpu.simplicial.counts import LANES

MOST_NEIGHBOURS = 255
"""Of a point, whose places take a byte."""
SPARE = 2
"""Places of neighbours besides one for each triangle, of which a border needs one."""
SUMS = MOST_NEIGHBOURS
"""Row of memory, behind those of the neighbours, for the signs that belong to a point."""
LIMITS = SUMS + 1
"""Row for what the codes of neighbours before a point are below; the next one for lower numbers."""
ROWS_OF_MEMORY = LIMITS + 2
NOWHERE = 2**16
"""More than any place."""
AT_ONCE = 16
"""Neighbours, or triangles, of a point that are compared at once."""


class Stars(NamedTuple):
    """The neighbours and the triangles of all points.

    Both are in lists, one for each point: their number, and as many entries.
    """

    starts: NDArray[np.int64]
    """Where the lists of each point begin, and where those of the last one end."""
    neighbours: NDArray[np.int32]
    """Lists of points."""
    triangles: NDArray[np.uint16]
    """Lists of two places among the neighbours, of which the first one counts 256."""

    @property
    def points(self) -> int:
        return self.starts.size - 1


def _entry(builder: Any, lists: llvm.Elements, at: Any) -> Any:
    """Return an entry, none of which is negative, in 64 bits."""
    return builder.zext(builder.load(lists.one(at)), llvm.I64)


@llvm.operation(types.int64)
def _length(builder, lists, start):
    """Return how many entries a list has."""
    return _entry(builder, lists, start)


@llvm.operation()
def _append(builder, lists, start, number):
    """Append to a list, which has room."""
    count = _entry(builder, lists, start)
    place = builder.add(builder.add(start, count), llvm.I64(1))
    builder.store(builder.trunc(number, lists.element), lists.one(place))
    longer = builder.add(count, llvm.I64(1))
    builder.store(builder.trunc(longer, lists.element), lists.one(start))


def _places(builder: Any, lists: llvm.Elements, start: Any, numbers: list[Any]) -> list[Any]:
    """Return the places of numbers in a list; NOWHERE, or more, of those that are not in it."""
    count = _entry(builder, lists, start)
    wanted = [
        llvm.each(builder, builder.trunc(number, lists.element), AT_ONCE) for number in numbers
    ]
    slots = [cgutils.alloca_once(builder, llvm.I64) for _ in numbers]

    def look(first: Any) -> list[Any]:
        """Return the places among the entries from `first` on."""
        entries = lists.load(builder.add(builder.add(start, llvm.I64(1)), first), AT_ONCE)
        left = builder.sub(count, first)
        most = llvm.I64(AT_ONCE)
        left = builder.select(builder.icmp_unsigned("<", left, most), left, most)
        bits = builder.sub(builder.shl(llvm.I64(1), left), llvm.I64(1))
        found = []
        for number in wanted:
            same = builder.bitcast(builder.icmp_signed("==", entries, number), ir.IntType(AT_ONCE))
            word = builder.and_(builder.zext(same, llvm.I64), bits)
            place = builder.cttz(word, ir.Constant(llvm.I1, 0))  # 64 if no bit is set
            nowhere = builder.icmp_unsigned("==", word, llvm.I64(0))
            place = builder.add(builder.select(nowhere, llvm.I64(NOWHERE), place), first)
            found.append(place)
        return found

    for slot, place in zip(slots, look(llvm.I64(0)), strict=True):
        builder.store(place, slot)
    with builder.if_then(builder.icmp_unsigned(">", count, llvm.I64(AT_ONCE)), likely=False):
        more = builder.udiv(builder.sub(count, llvm.I64(1)), llvm.I64(AT_ONCE))
        with cgutils.for_range(builder, more) as loop:
            first = builder.mul(builder.add(loop.index, llvm.I64(1)), llvm.I64(AT_ONCE))
            for slot, place in zip(slots, look(first), strict=True):
                before = builder.load(slot)
                nearer = builder.icmp_unsigned("<", place, before)
                builder.store(builder.select(nearer, place, before), slot)
    return [builder.load(slot) for slot in slots]


@llvm.operation(types.int64)
def _find(builder, lists, start, number):
    """Return the place of a number in a list, or NOWHERE or more."""
    return _places(builder, lists, start, [number])[0]


@llvm.operation(types.UniTuple(types.int64, 2))
def _find_two(builder, lists, start, first, second):
    """Return the places of two numbers in a list, each NOWHERE or more if it is not there."""
    return _places(builder, lists, start, [first, second])


@kernel()
def _count_ends(rows, counts):
    """Count the rows of each point; whether all rows have numbers of points."""
    points = counts.size
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            number = rows[i, j]
            if not 0 <= number < points:
                return False
            counts[number] += 1
    return True


@llvm.operation(types.boolean)
def _is_full(builder, lists, starts, point):
    """Whether the list of a point has no room."""
    start = builder.load(starts.one(point))
    stop = builder.load(starts.one(builder.add(point, llvm.I64(1))))
    taken = builder.add(builder.add(start, llvm.I64(1)), _entry(builder, lists, start))
    return builder.icmp_unsigned(">=", taken, stop)


@kernel()
def _lay_out(room, starts):
    """Write where the lists of the points begin, which have a number before their entries."""
    starts[0] = 0
    for p in range(room.size):
        starts[p + 1] = starts[p] + room[p] + 1


@kernel()
def _empty_lists(starts, lists):
    """Make all lists empty."""
    for p in range(starts.size - 1):
        lists[starts[p]] = 0


@kernel()
def _add_edges(rows, starts, neighbours):
    """Make the ends of each edge neighbours; whether all edges have two ends."""
    for i in range(len(rows)):
        a = rows[i, 0]
        b = rows[i, 1]
        if a == b:
            return False
        _append(neighbours, starts[a], b)
        _append(neighbours, starts[b], a)
    return True


@llvm.operation(types.boolean)
def _any_equal(builder, lists, start):
    """Whether any of up to AT_ONCE entries of a list are equal."""
    kind = ir.VectorType(lists.element, AT_ONCE)
    indices = ir.Constant(kind, list(range(AT_ONCE)))
    limit = llvm.each(builder, builder.load(lists.one(start)), AT_ONCE)
    is_there = builder.icmp_unsigned("<", indices, limit)
    # What is behind the list becomes numbers that no entry has, each once.
    others = ir.Constant(kind, [-1 - lane for lane in range(AT_ONCE)])
    entries = lists.load(builder.add(start, llvm.I64(1)), AT_ONCE)
    own = builder.select(is_there, entries, others)
    found = ir.Constant(ir.VectorType(llvm.I1, AT_ONCE), None)
    for step in range(1, AT_ONCE // 2 + 1):
        turn = [(lane + step) % AT_ONCE for lane in range(AT_ONCE)]
        order = ir.Constant(ir.VectorType(ir.IntType(32), AT_ONCE), turn)
        found = builder.or_(
            found, builder.icmp_signed("==", own, builder.shuffle_vector(own, own, order))
        )
    return builder.icmp_unsigned(
        "!=", builder.bitcast(found, ir.IntType(AT_ONCE)), ir.IntType(AT_ONCE)(0)
    )


@kernel()
def _drop_repeated(starts, lists):
    """Keep one of equal entries of each list."""
    for p in range(starts.size - 1):
        start = starts[p]
        count = _length(lists, start)
        if count <= AT_ONCE and not _any_equal(lists, start):
            continue
        lists[start] = 0
        for i in range(count):
            number = np.int64(lists[start + 1 + i])
            if _find(lists, start, number) >= NOWHERE:
                _append(lists, start, number)


@kernel()
def _add_sides(rows, starts, neighbours):
    """Make the points of each triangle neighbours; whether all have three points, and room."""
    for i in range(len(rows)):
        for j in range(3):
            a = rows[i, j]
            b = rows[i, j - 2]
            if a == b:
                return False
            if _find(neighbours, starts[a], b) >= NOWHERE:
                if _is_full(neighbours, starts, a) or _is_full(neighbours, starts, b):
                    return False
                _append(neighbours, starts[a], b)
                _append(neighbours, starts[b], a)
    return True


@kernel()
def _add_triangles(rows, starts, neighbours, triangles):
    """Add triangles to the stars; whether all have three points, sides and room."""
    points = np.uint64(starts.size - 1)
    for i in range(len(rows)):
        first = min(rows[i, 0], rows[i, 1])
        last = max(rows[i, 0], rows[i, 1])
        c = max(last, rows[i, 2])
        middle = min(last, rows[i, 2])
        a = min(first, middle)
        b = max(first, middle)
        if np.uint64(a) >= points or np.uint64(c) >= points or a == b or b == c:
            return False
        of_a = starts[np.uint64(a)]
        of_b = starts[np.uint64(b)]
        of_c = starts[np.uint64(c)]
        b_of_a, c_of_a = _find_two(neighbours, of_a, b, c)
        a_of_b, c_of_b = _find_two(neighbours, of_b, a, c)
        a_of_c, b_of_c = _find_two(neighbours, of_c, a, b)
        if (b_of_a | c_of_a | c_of_b) >= NOWHERE:
            return False
        if (
            _is_full(triangles, starts, a)
            or _is_full(triangles, starts, b)
            or _is_full(triangles, starts, c)
        ):
            return False
        _append(triangles, of_a, (b_of_a << 8) | c_of_a)
        _append(triangles, of_b, (a_of_b << 8) | c_of_b)
        _append(triangles, of_c, (a_of_c << 8) | b_of_c)
    return True


def make_stars(given: Sequence[Rows], points: int, complete: bool) -> Stars | None:
    """Return the stars of a complex of points, edges and triangles, which are int64.

    None if it has larger simplices, more of them at a point than there is room for, or if anything
    is wrong with it.
    """
    by_size = {rows.shape[1]: rows for rows in given}
    if points >= 2**31 or max(by_size, default=2) > 3:
        return None
    edges = by_size.get(2, np.empty((0, 2), np.int64))
    triangles = by_size.get(3, np.empty((0, 3), np.int64))
    room = np.full(points, SPARE if complete else 0, np.int32)
    sources = [edges, triangles] if complete else [edges]
    if not all(_count_ends(rows, room) for rows in sources):
        return None
    if room.max(initial=0) > MOST_NEIGHBOURS or 3 * len(triangles) > room.sum(dtype=np.int64):
        return None
    starts = np.empty(points + 1, np.int64)
    _lay_out(room, starts)
    size = int(starts[-1]) + AT_ONCE  # which are read behind the last list
    neighbours = np.empty(size, np.int32)
    _empty_lists(starts, neighbours)
    if not _add_edges(edges, starts, neighbours):
        return None
    _drop_repeated(starts, neighbours)
    if complete and not _add_sides(triangles, starts, neighbours):
        return None
    lists_of_triangles = np.empty(size, np.uint16)
    _empty_lists(starts, lists_of_triangles)
    if not _add_triangles(triangles, starts, neighbours, lists_of_triangles):
        return None
    _drop_repeated(starts, lists_of_triangles)
    return Stars(starts, neighbours, lists_of_triangles)


@llvm.operation(types.uint64)
def _sum_star(builder, stars, p, codes, memory):
    """Write the signs that belong to a point in LANES orders; which of them are not 0, as bits.

    They are written to row SUMS of `memory`.
    """
    starts, neighbours, triangles = stars
    lanes = llvm.I64(LANES)

    def row(number: Any) -> Any:
        return builder.mul(number, lanes)

    one = llvm.splat(codes.element, LANES, 1)
    start = builder.load(starts.one(p))
    first = builder.add(start, llvm.I64(1))
    own = codes.load(row(p), LANES)
    # Of points with equal codes that with the lower number comes before.
    memory.store(own, row(llvm.I64(LIMITS)))
    memory.store(builder.add(own, one), row(llvm.I64(LIMITS + 1)))
    slot = cgutils.alloca_once(builder, own.type)
    builder.store(one, slot)
    with cgutils.for_range(builder, _entry(builder, neighbours, start)) as loop:
        other = _entry(builder, neighbours, builder.add(first, loop.index))
        is_lower = builder.zext(builder.icmp_signed("<", other, p), llvm.I64)
        limit = memory.load(row(builder.add(llvm.I64(LIMITS), is_lower)), LANES)
        is_before = builder.icmp_unsigned("<", codes.load(row(other), LANES), limit)
        mask = builder.sext(is_before, own.type)  # -1 for each that is
        memory.store(mask, row(loop.index))
        builder.store(builder.add(builder.load(slot), mask), slot)
    with cgutils.for_range(builder, _entry(builder, triangles, start)) as loop:
        pair = _entry(builder, triangles, builder.add(first, loop.index))
        places = builder.lshr(pair, llvm.I64(8)), builder.and_(pair, llvm.I64(255))
        sides = [memory.load(row(place), LANES) for place in places]
        builder.store(builder.sub(builder.load(slot), builder.and_(*sides)), slot)
    total = builder.load(slot)
    memory.store(total, row(llvm.I64(SUMS)))
    bits = builder.icmp_signed("!=", total, ir.Constant(total.type, None))
    return builder.zext(builder.bitcast(bits, ir.IntType(LANES)), llvm.I64)


@kernel()
def add_stars(stars, codes, shift, lanes, memory, histograms):
    """Add the signs of all simplices to the bins of their points, of the first `lanes` orders.

    `codes` are (points, LANES), and less than the largest number of their dtype. The bin is the
    code divided by ``2**shift``, rounded up. `memory` (ROWS_OF_MEMORY, LANES) has signed numbers of
    the size of codes.
    """
    most = (1 << shift) - 1
    wanted = np.uint64((1 << lanes) - 1)
    for p in range(len(codes)):
        word = _sum_star(stars, p, codes, memory) & wanted
        while word != llvm.NONE:
            lane = llvm.count_trailing_zeros(word)
            word &= word - llvm.ONE
            bin_ = (np.int64(codes[p, lane]) + most) >> shift
            histograms[lane, bin_] += memory[SUMS, lane]
