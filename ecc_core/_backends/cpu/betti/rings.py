"""The rings of the points of a plane, their minima, maxima and forks, and the steps between them.

The *ring* of a point has its 8 neighbours in clockwise order, one bit each. On one side, that of
those before or of those behind, neighbours are connected along diagonals too (*wide*), on the other
one along axes only (*narrow*). The ring of a fork falls apart.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.links import neighbour_keys
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import (
    ALL,
    I8,
    I64,
    LANES,
    NONE,
    ONE,
    bare,
    count_trailing_zeros,
    lanes_of,
    operation,
    splat,
)

Array = NDArray[Any]

RING = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
SIDES = range(1, 8, 2)
STAR = (1, 7, 5, 3)
"""Sides in the order of the edges to them: by lowest corner, then by axis."""
STEPS_AT_ONCE = 6
"""Steps that are followed without a branch; most paths have no more."""
MOST_ROUNDS = 8
"""The points of paths that take more rounds of `STEPS_AT_ONCE` steps get labels."""


@operation(types.UniTuple(types.uint64, 3))
def compare_ring(builder, keys, at, step, rows, sides, flip, rings):
    """Compare the 64 points from ``keys[at]`` on with their rings.

    `rows` are two words, all ones if there is a row before and a row behind, `sides` those of the
    points that have neighbours on their left and right. Writes to ``rings[at:]`` the neighbours on
    the narrow side of each point, one bit each: those that come before it, or after it if `flip` is
    all ones. Returns the forks, the points without neighbours on the wide side, and those without
    on the narrow side.
    """
    own = keys.load(at, LANES)
    narrow = []
    ring = splat(I8, LANES, 0)
    for i, (y, x) in enumerate(RING):
        key = neighbour_keys(builder, keys, at, [step, step], (0, y, x))
        before = "<=" if (y, x) < (0, 0) else "<"
        word = builder.bitcast(builder.icmp_unsigned(before, key, own), I64)
        for number, exists in ((y, rows), (x, sides)):
            if number:
                word = builder.and_(word, exists[(number + 1) // 2])
        narrow.append(builder.xor(word, flip))
        lanes = lanes_of(builder, narrow[-1])
        bit, none = (splat(I8, LANES, value) for value in (1 << i, 0))
        ring = builder.or_(ring, builder.select(lanes, bit, none))
    rings.store(ring, at)
    # The ends of runs of narrow neighbours along the ring. A corner counts only between two sides.
    ends = []
    for i in SIDES:
        following = builder.and_(narrow[(i + 1) % 8], narrow[(i + 2) % 8])
        ends.append(builder.and_(narrow[i], builder.not_(following)))
    either = [builder.or_(*ends[:2]), builder.or_(*ends[2:])]
    several = [builder.and_(*ends[:2]), builder.and_(*ends[2:]), builder.and_(*either)]
    all_narrow = functools.reduce(builder.and_, narrow)
    some_narrow = functools.reduce(builder.or_, [narrow[i] for i in SIDES])
    return [functools.reduce(builder.or_, several), all_narrow, builder.not_(some_narrow)]


@functools.lru_cache(maxsize=8)
def tables_of(step: int, wide_below: bool) -> list[tuple[Array, Array, Array]]:
    """Return what to do at a point on the lower and on the upper side, by its narrow neighbours.

    For each of the 256 sets of neighbours on the narrow side these are the number of components on
    either side; steps to a member of each, which are L1, ..., Lk along the ring on the lower side,
    and Uk, U1, ... on the upper one, where Ui lies between Li and the next one; and a step to a
    neighbour on the side, 0 if there is none. `step` is the distance between rows.
    """
    offsets = np.array([y * step + x for y, x in RING])
    counts = np.zeros(256, np.uint8)
    members = np.zeros((2, 256, 4), np.int64)
    ways = np.zeros((2, 256), np.int64)
    narrow, wide = members[::-1] if wide_below else members
    for ring in range(256):
        inside = [bool(ring >> i & 1) for i in range(8)]
        ends = [i for i in SIDES if inside[i] and not (inside[i - 7] and inside[i - 6])]
        after = [i - 6 if inside[i - 7] else i - 7 for i in ends]
        count = counts[ring] = len(ends)
        narrow[ring, :count] = offsets[ends]
        wide[ring, :count] = offsets[after]
        for side, own in ((int(wide_below), inside), (int(not wide_below), np.invert(inside))):
            deepest = (-1, 0)
            choices = [i for i in range(8) if own[i] and (i % 2 or side != int(wide_below))]
            # The neighbour that is furthest from the other side is the highest or the lowest one.
            for i in choices:
                gaps = [min((i - j) % 8, (j - i) % 8) for j in range(8) if not own[j]]
                depth = min(gaps, default=8), i % 2
                if depth > deepest:
                    deepest = depth
                    ways[side, ring] = offsets[i]
        # Components of the upper (U) and the lower side (L) alternate: U1 L2 U2 L3 ... Uk L1.
        if wide_below:
            wide[ring, :count] = np.roll(wide[ring, :count], 1)
        members[1, ring, :count] = np.roll(members[1, ring, :count], 1)
    return [(counts, members[side], ways[side]) for side in (0, 1)]


@functools.lru_cache(maxsize=8)
def star_of(step: int) -> tuple[Array, Array]:
    """Return a lower neighbour in each component of the narrow side of a fork, by its neighbours.

    These are the number of components and steps to the first neighbour of each, in the order of
    :data:`STAR`, for each of the 256 sets of neighbours.
    """
    counts = np.zeros(256, np.uint8)
    members = np.zeros((256, 4), np.int64)
    for ring in range(256):
        inside = [bool(ring >> i & 1) for i in range(8)]
        known: set[int] = set()
        for i in STAR:
            if not inside[i] or i in known:
                continue
            known |= _joined_sides(inside, i)
            y, x = RING[i]
            members[ring, counts[ring]] = y * step + x
            counts[ring] += 1
    return counts, members


def _joined_sides(inside: list[bool], side: int) -> set[int]:
    """Return the sides of a ring that corners on the way join with one of them, and this one."""
    found = {side}
    for way in (-1, 1):
        corner = (side + way) % 8
        beside = (side + 2 * way) % 8
        while inside[corner] and inside[beside] and beside not in found:
            found.add(beside)
            corner = (beside + way) % 8
            beside = (beside + 2 * way) % 8
    return found


@subroutine()
def list_places(word, start, places, count):
    """List the places of bits behind the first `count` places; return how many there are then."""
    while word:
        places[count] = start + count_trailing_zeros(word)
        word &= word - ONE
        count += ONE
    return count


@kernel()
def scan_rings(keys, shape, flip, rings, minima, maxima, forks):
    """Find the rings, and list the minima, maxima and forks of an image; return their numbers."""
    rows, columns = shape
    step = columns + 2
    keys = bare(keys)
    rings = bare(rings)
    forks = bare(forks)
    minima = bare(minima)
    maxima = bare(maxima)
    beyond = np.uint8(0 if flip else 255)  # The ring of a point from which no step leads on.
    lows = np.uint64(0)
    highs = np.uint64(0)
    count = np.uint64(0)
    for y in range(rows):
        row = (y + 1) * step + 1
        around = ALL if y > 0 else NONE, ALL if y < rows - 1 else NONE
        for x in range(0, columns, LANES):
            size = min(columns - x, LANES)
            own = ALL >> np.uint64(LANES - size)
            left = ~ONE if x == 0 else ALL
            right = own >> ONE if x + size == columns else ALL
            start = row + x
            apart, wide, narrow = compare_ring(
                keys, start, step, around, (left, right), flip, rings
            )
            low, high = (wide, narrow) if flip else (narrow, wide)
            lows = list_places(low & own, start, minima, lows)
            highs = list_places(high & own, start, maxima, highs)
            count = list_places(apart & own, start, forks, count)
        rings[row - 1] = rings[row + columns] = beyond
    for place in range(step):
        rings[place] = rings[place + (rows + 1) * step] = beyond
    return lows, highs, count


@subroutine()
def node_of(rings, ways, labels, start):
    """Return the label to which steps lead from a point; other points have the label -1.

    The points of long paths are labelled.
    """
    place = np.int64(start)
    step = np.int64(1)
    rounds = 0
    while step:
        # Steps are 0 at the end of a path, so that no branch is needed to stop there.
        for _ in range(STEPS_AT_ONCE):
            place += ways[rings[np.uint64(place)]]
        step = ways[rings[np.uint64(place)]]
        rounds += 1
        if rounds > MOST_ROUNDS and labels[np.uint64(place)] >= 0:
            break
    label = labels[np.uint64(place)]
    if rounds > MOST_ROUNDS:
        place = np.int64(start)
        while labels[np.uint64(place)] < 0:
            labels[np.uint64(place)] = label
            place += ways[rings[np.uint64(place)]]
    return label


@kernel()
def list_edges(keys, rings, forks, tables, chained, labels, edges):
    """List the edges at forks, which join nodes of one side; `tables` are those of this side.

    They form a chain through all components of that side around a fork, or a star from the first.
    Returns their number.
    """
    counts = bare(tables[0])
    members = bare(tables[1])
    ways = bare(tables[2])
    keys = bare(keys)
    rings = bare(rings)
    forks = bare(forks)
    labels = bare(labels)
    ends = bare(edges.nodes)
    edge_keys = bare(edges.keys)
    places = bare(edges.places)
    edge = np.uint64(0)
    for f in range(forks.size):
        place = np.int64(forks[f])
        ring = np.uint64(rings[np.uint64(place)])
        first = node_of(rings, ways, labels, place + members[ring, 0])
        for i in range(1, counts[ring]):
            node = node_of(rings, ways, labels, place + members[ring, np.uint64(i)])
            places[edge] = place
            edge_keys[edge] = keys[np.uint64(place)]
            ends[edge, 0] = first
            ends[edge, 1] = node
            first = node if chained else first
            edge += ONE
    return edge


@kernel()
def nodes_at(rings, ways, labels, step, points, nodes):
    """Write the nodes to which steps lead from points in C order."""
    rings = bare(rings)
    ways = bare(ways)
    labels = bare(labels)
    points = bare(points)
    nodes = bare(nodes)
    columns = np.uint64(step - 2)
    for i in range(points.size):
        point = np.uint64(points[i])
        place = point + np.uint64(step) + ONE + np.uint64(2) * (point // columns)
        nodes[i] = node_of(rings, ways, labels, place)
