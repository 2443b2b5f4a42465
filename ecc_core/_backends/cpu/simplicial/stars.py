"""Stars of points: the neighbours of each, and the triangles at it by the places of two neighbours.

:mod:`star_sums` adds up the signs of the simplices of a star. Stars are also how complexes of edges
and triangles are checked, without sorting them. Neighbours of a point are found by comparing all of
them at once, so that there must be few: complexes with hubs, or with more triangles at a point than
there is room for, are checked by :mod:`complexes`.
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

LINE = 16
"""Entries that are compared at once. Lists take whole lines, and neighbours of one a cache line."""
MOST_NEIGHBOURS = 127
"""The most neighbours of a point: places then take seven bits, and sums of signs eight."""
NOWHERE = 2**16

DONE = 0
NO_ROOM = 1
NO_COMPLEX = 2


class Stars(NamedTuple):
    """The neighbours and the triangles of all points.

    Both are in lists, one for each point, of a head and as many entries as that tells. The place of
    an entry is the distance from the head. Heads are negative, or large where there is no sign, so
    that no entry equals one. Entries are not 0, and lists of zeros are empty.
    """

    starts: NDArray[np.int64]
    """Where the lists of each point begin, and where those of the last one end."""
    neighbours: NDArray[np.int32]
    """Lists of points, which are counted from 1."""
    triangles: NDArray[np.uint16]
    """Lists of two places among the neighbours, of which the first one counts 256."""

    @property
    def points(self) -> int:
        return self.starts.size - 1


def entry(builder: Any, lists: llvm.Elements, at: Any) -> Any:
    """Return an entry, none of which is negative, in 64 bits."""
    return builder.zext(builder.load(lists.one(at)), llvm.I64)


@llvm.operation(types.int64)
def _count(builder, lists, start):
    """Return how many entries a list has."""
    return length_of(builder, lists, start)


def length_of(builder: Any, lists: llvm.Elements, start: Any) -> Any:
    """Return how many entries a list has, in 64 bits."""
    return builder.zext(builder.neg(builder.load(lists.one(start))), llvm.I64)


def _appended(builder: Any, lists: llvm.Elements, starts: Any, point: Any, number: Any) -> Any:
    """Append to the list of a point; return whether it had room."""
    start = builder.load(starts.one(point))
    stop = builder.load(starts.one(builder.add(point, llvm.I64(1))))
    place = builder.add(length_of(builder, lists, start), llvm.I64(1))
    at = builder.add(start, place)
    has_room = builder.icmp_unsigned("<", at, stop)
    with builder.if_then(has_room, likely=True):
        builder.store(builder.trunc(number, lists.element), lists.one(at))
        head = builder.neg(builder.trunc(place, lists.element))
        builder.store(head, lists.one(start))
    return has_room


@llvm.operation(types.boolean)
def _append(builder, lists, starts, point, number):
    """Append to the list of a point; return whether it had room."""
    return _appended(builder, lists, starts, point, number)


@llvm.operation(types.boolean)
def _join(builder, neighbours, starts, a, b):
    """Make two points neighbours of each other; return whether both lists had room."""
    one = llvm.I64(1)
    of_a = _appended(builder, neighbours, starts, a, builder.add(b, one))
    of_b = _appended(builder, neighbours, starts, b, builder.add(a, one))
    return builder.and_(of_a, of_b)


def _look(builder: Any, lists: llvm.Elements, first: Any, number: Any) -> Any:
    """Return how far behind `first` a number is; more than a line if it is not in this one."""
    wanted = llvm.each(builder, builder.trunc(number, lists.element), LINE)
    same = builder.icmp_signed("==", lists.load(first, LINE), wanted)
    word = builder.zext(builder.bitcast(same, ir.IntType(LINE)), llvm.I64)
    return builder.cttz(word, ir.Constant(llvm.I1, 0))  # It is 64 if no bit is set.


def _found(builder: Any, lists: llvm.Elements, starts: Any, point: Any, number: Any) -> Any:
    """Return the first place of a number in the list of a point, or NOWHERE."""
    start = builder.load(starts.one(point))
    slot = cgutils.alloca_once_value(builder, llvm.I64(NOWHERE))
    lines = builder.lshr(length_of(builder, lists, start), llvm.I64(LINE.bit_length() - 1))
    with cgutils.for_range(builder, builder.add(lines, llvm.I64(1))) as loop:
        first = builder.mul(loop.index, llvm.I64(LINE))
        distance = _look(builder, lists, builder.add(start, first), number)
        is_there = builder.icmp_unsigned("<", distance, llvm.I64(LINE))
        place = builder.add(first, distance)
        before = builder.load(slot)
        is_first = builder.and_(is_there, builder.icmp_unsigned("<", place, before))
        builder.store(builder.select(is_first, place, before), slot)
    return builder.load(slot)


@llvm.operation(types.int64)
def _find(builder, lists, starts, point, number):
    """Return the first place of a number in the list of a point, or NOWHERE."""
    return _found(builder, lists, starts, point, number)


@llvm.operation(types.boolean)
def _are_joined(builder, neighbours, starts, a, b):
    """Return whether a point is a neighbour of another one."""
    place = _found(builder, neighbours, starts, a, builder.add(b, llvm.I64(1)))
    return builder.icmp_unsigned("<", place, llvm.I64(NOWHERE))


@llvm.operation(types.UniTuple(types.int64, 6))
def _sides(builder, neighbours, starts, a, b, c):
    """Return the places of the points of a triangle, as `_sides_in_lines` does, in any lines."""
    pairs = ((a, b), (a, c), (b, a), (b, c), (c, a), (c, b))
    one = llvm.I64(1)
    return [_found(builder, neighbours, starts, p, builder.add(q, one)) for p, q in pairs]


@llvm.operation(types.UniTuple(types.int64, 6))
def _sides_in_lines(builder, lists, starts, a, b, c):
    """Return the places of b and c in the list of a, of a and c in that of b, and of a and b.

    The last two are in the list of c. Those that are not in the first line are more than it has.
    """
    one = llvm.I64(1)
    places = []
    for point, others in ((a, (b, c)), (b, (a, c)), (c, (a, b))):
        start = builder.load(starts.one(point))
        places += [_look(builder, lists, start, builder.add(other, one)) for other in others]
    return places


@kernel()
def _count_ends(rows, counts):
    """Count the rows of each point; return whether all numbers in rows are those of points."""
    points = counts.size
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            number = rows[i, j]
            if not 0 <= number < points:
                return False
            counts[number] += 1
    return True


@kernel()
def _lay_out(room, starts):
    """Write where the lists of the points begin, which take whole lines."""
    starts[0] = 0
    for p in range(room.size):
        lines = (room[p] + LINE) // LINE
        starts[p + 1] = starts[p] + lines * LINE


@kernel()
def _add_edges(rows, starts, neighbours):
    """Make the ends of each edge neighbours, as often as it is given."""
    points = np.uint64(starts.size - 1)
    for i in range(len(rows)):
        a = np.uint64(rows[i, 0])
        b = np.uint64(rows[i, 1])
        if a >= points or b >= points or a == b:
            return NO_COMPLEX
        if not _join(neighbours, starts, a, b):
            return NO_ROOM
    return DONE


def _any_equal_of(lanes: int) -> Any:
    """Return the operation that compares so many elements of a list, its head among them."""

    @llvm.operation(types.boolean)
    def any_equal(builder, lists, start):
        """Return whether any entries of a list, which has less than so many, are equal."""
        kind = ir.VectorType(lists.element, lanes)
        places = ir.Constant(kind, list(range(lanes)))
        length = builder.trunc(length_of(builder, lists, start), lists.element)
        is_there = builder.icmp_unsigned("<=", places, llvm.each(builder, length, lanes))
        # Behind the list are distinct numbers, which no head and no entry has.
        others = ir.Constant(kind, [-2 * LINE * LINE - lane for lane in range(lanes)])
        own = builder.select(is_there, lists.load(start, lanes), others)
        found = ir.Constant(ir.VectorType(llvm.I1, lanes), None)
        for step in range(1, lanes // 2 + 1):
            turn = [(lane + step) % lanes for lane in range(lanes)]
            order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), turn)
            turned = builder.shuffle_vector(own, own, order)
            found = builder.or_(found, builder.icmp_signed("==", own, turned))
        word = builder.bitcast(found, ir.IntType(lanes))
        return builder.icmp_unsigned("!=", word, ir.IntType(lanes)(0))

    return any_equal


_any_equal_of_few, _any_equal = (_any_equal_of(lanes) for lanes in (LINE // 2, LINE))


@kernel()
def _drop_repeated(starts, lists):
    """Keep the first one of equal entries of each list."""
    for p in range(starts.size - 1):
        start = starts[p]
        count = _count(lists, start)
        if count < LINE // 2:
            repeated = _any_equal_of_few(lists, start)
        else:
            repeated = count >= LINE or _any_equal(lists, start)
        if not repeated:
            continue
        kept = 0
        for i in range(count):
            number = np.int64(lists[start + 1 + i])
            if _find(lists, starts, p, number) > kept:  # The number is not among those kept.
                kept += 1
                lists[start + kept] = number
        lists[start] = -kept


@kernel()
def _add_sides(rows, starts, neighbours):
    """Make the points of each edge or triangle neighbours that are none yet."""
    points = np.uint64(starts.size - 1)
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            a = np.uint64(rows[i, j])
            b = np.uint64(rows[i, j - 1])
            if a >= points or b >= points or a == b:
                return NO_COMPLEX
            if _are_joined(neighbours, starts, a, b):
                continue
            if not _join(neighbours, starts, a, b):
                return NO_ROOM
    return DONE


@kernel()
def _add_triangles(rows, starts, neighbours, triangles, seen):
    """Add triangles with all their sides to the stars of their points.

    Returns DONE or what is wrong, and whether a triangle may have been given twice: `seen` has a
    word for each point, and a triangle a bit in that of its first point.
    """
    points = np.uint64(starts.size - 1)
    repeated = llvm.NONE
    for i in range(len(rows)):
        lower = min(rows[i, 0], rows[i, 1])
        upper = max(rows[i, 0], rows[i, 1])
        middle = min(upper, rows[i, 2])
        a = np.uint64(min(lower, middle))
        b = np.uint64(max(lower, middle))
        c = np.uint64(max(upper, rows[i, 2]))
        if a >= points or c >= points:
            return NO_COMPLEX, False
        places = _sides_in_lines(neighbours, starts, a, b, c)
        b_of_a, c_of_a, a_of_b, c_of_b, a_of_c, b_of_c = places
        if (b_of_a | c_of_a | a_of_b | c_of_b | a_of_c | b_of_c) >= LINE:
            places = _sides(neighbours, starts, a, b, c)
            b_of_a, c_of_a, a_of_b, c_of_b, a_of_c, b_of_c = places
            # A side is missing, or a point is repeated, since none is a neighbour of itself.
            if (b_of_a | c_of_a | c_of_b) >= NOWHERE:
                return NO_COMPLEX, False
        if not (
            _append(triangles, starts, a, (b_of_a << 8) | c_of_a)
            and _append(triangles, starts, b, (a_of_b << 8) | c_of_b)
            and _append(triangles, starts, c, (a_of_c << 8) | b_of_c)
        ):
            return NO_ROOM, False
        bit = llvm.ONE << np.uint64((b_of_a & 7) << 3 | (c_of_a & 7))
        repeated |= seen[a] & bit
        seen[a] |= bit
    return DONE, repeated != llvm.NONE


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
    # Nearly all complexes have room in lists of a line.
    stars = _empty_stars(np.arange(0, LINE * points + 1, LINE))
    outcome = _add_edges(edges, stars.starts, stars.neighbours)
    if outcome == DONE:
        _drop_repeated(stars.starts, stars.neighbours)
        if complete:
            outcome = _add_sides(triangles, stars.starts, stars.neighbours)
    if outcome == DONE:
        outcome = _fill_triangles(triangles, stars)
    if outcome == NO_ROOM:
        stars, outcome = _roomy_stars(points, edges, triangles, complete)
    return stars if outcome == DONE else None


def _roomy_stars(points: int, edges: Rows, triangles: Rows, complete: bool) -> tuple[Stars, int]:
    """Return stars with room for up to MOST_NEIGHBOURS at each point, and the outcome."""
    # A triangle may bring two neighbours.
    sources = [edges, triangles, triangles] if complete else [edges, triangles]
    room = np.zeros(points, np.int64)
    is_complex = [_count_ends(rows, room) for rows in sources]
    outcome = DONE if all(is_complex) else NO_COMPLEX
    starts = np.empty(points + 1, np.int64)
    _lay_out(np.minimum(room, MOST_NEIGHBOURS), starts)
    stars = _empty_stars(starts)
    for rows in sources[:2] if complete else [edges]:
        if outcome == DONE:
            outcome = _add_sides(rows, starts, stars.neighbours)
    if outcome == DONE:
        outcome = _fill_triangles(triangles, stars)
    return stars, outcome


def _empty_stars(starts: NDArray[np.int64]) -> Stars:
    """Return empty lists that begin at `starts`."""
    size = int(starts[-1])
    return Stars(starts, np.zeros(size, np.int32), np.zeros(size, np.uint16))


def _fill_triangles(rows: Rows, stars: Stars) -> int:
    """Add triangles to the stars, each once. Returns DONE, NO_ROOM or NO_COMPLEX."""
    if len(rows) == 0:
        return DONE
    seen = np.zeros(stars.points, np.uint64)
    outcome: int
    outcome, repeated = _add_triangles(rows, *stars, seen)
    if repeated:
        _drop_repeated(stars.starts, stars.triangles)
    return outcome
