"""Lower stars: the cells that enter with a point of a volume, and how paths of edges leave them.

A cell belongs to its last vertex, the point with which it enters, and the cells of a point are its
*lower star* (Robins, Wood and Sheppard, 2011). Its edges lead to the *ends*, the lower ones of the
six neighbours along the axes; squares lie between two ends that are no opposites, and cubes between
three. So the ends and squares are the vertices and edges of a graph on the surface of an
octahedron, whose components are those of the lower link. Each of them has a *tree* of squares: an
edge that is no root is matched with the square that leads to its parent.

Places have a layer before the first point along each axis, and one more behind the last slice, for
edges that are partly in a frame. The *gradient* has one byte an edge: that of the edge along axis a
whose lower corner is at place c comes at *address* ``a * width + c``. Edges are numbered
``4 * address + a``. The byte

- is 0 for an edge that is matched with a point, joins components, or lies in the frame,
- v + 1 for one that is matched with the square between it and end v of its last point,
- `ROW` for one that closes a loop.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.betti.links import LINKS, MOST_MEMBERS, Points, lower_neighbours
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import LANES, ONE

Array = NDArray[Any]

LINK = LINKS[3, 1]
WIDE_LINK = LINKS[3, 3]
ENDS = [LINK.members[i] for i in LINK.ends]
"""The ends of the edges at a point; ends v and 5 - v are opposite each other."""
EDGES = len(ENDS)
SIDES = [(v, w) for v, w in itertools.combinations(range(EDGES), 2) if v + w != EDGES - 1]
SQUARES = len(SIDES)
CORNERS = [(v, w, x) for v in (0, 5) for w in (1, 4) for x in (2, 3)]
LINK_BITS = np.uint64((1 << len(LINK.members)) - 1)
# A parent is an end of an edge, 0 to 5, or one of these.
ROOT = 6
ABSENT = 7
PARENT_BITS = 3
ROUNDS = 3  # Vectors grow trees by so many steps; ends that are further away are left to tables.
ROW = np.uint8(255)

AXES = [int(np.flatnonzero(end)[0]) for end in ENDS]


def _sum(ends: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the neighbour at the corner of a cell that is opposite to the point."""
    steps = [ENDS[v] for v in ends]
    z, y, x = map(sum, zip(*steps, strict=True))
    return z, y, x


END_BITS = np.array(LINK.ends)
OPPOSITE = [_sum(side) for side in SIDES]
SQUARE_BITS = np.array([LINK.members.index(corner) for corner in OPPOSITE])
PAIRS = np.array(SIDES)


def _cubes_at(side: tuple[int, int]) -> list[int]:
    """Return the cubes with both ends of a square."""
    return [cube for cube, ends in enumerate(CORNERS) if set(side) <= set(ends)]


CUBES_AT = np.array([_cubes_at(side) for side in SIDES])
SHARED = np.array([WIDE_LINK.members.index(member) for member in LINK.members])


def _cube_with(member: tuple[int, int, int]) -> int:
    """Return a cube that contains a neighbour."""

    def contains(ends: tuple[int, ...]) -> bool:
        pairs = zip(member, _sum(ends), strict=True)
        return all(step in (0, far) for step, far in pairs)

    return [contains(ends) for ends in CORNERS].index(True)


_CUBE_WITH = np.array([_cube_with(member) for member in WIDE_LINK.members], np.uint8)


@cache
def tree_words() -> Array:
    """Return the trees of all links: three bits an end for its parent, `ROOT` or `ABSENT`."""
    words = np.empty(1 << len(LINK.members), np.uint32)
    _fill_tree_words(words)
    return words


@subroutine()
def squares_of(link):
    """Return the squares of a star as a set of bits."""
    squares = np.int64(0)
    for s in range(SQUARES):
        v = END_BITS[PAIRS[s, 0]]
        w = END_BITS[PAIRS[s, 1]]
        squares |= (link >> v & link >> w & link >> SQUARE_BITS[s] & 1) << s
    return squares


@kernel()
def _fill_tree_words(words):
    """Find a tree of each component, by distance from its first end."""
    for link in range(words.size):
        squares = squares_of(link)
        word = 0
        seen = 0
        for root in range(EDGES):
            if not link >> END_BITS[root] & 1:
                word |= ABSENT << PARENT_BITS * root
                continue
            if seen >> root & 1:
                continue
            word |= ROOT << PARENT_BITS * root
            seen |= 1 << root
            front = 1 << root
            while front:
                reached = 0
                for s in range(SQUARES):
                    for k in range(2):
                        v = PAIRS[s, k]
                        w = PAIRS[s, 1 - k]
                        if squares >> s & front >> v & 1 and not seen >> w & 1:
                            word |= v << PARENT_BITS * w
                            seen |= 1 << w
                            reached |= 1 << w
                front = reached
        words[link] = word


@cache
def hole_cycles() -> Array:
    """Return the squares around the hole with a cube, at ``8 * squares + cube``.

    A hole is a component of the complement of the link: cubes that do not belong to the star,
    connected across squares that do not. The squares that it has on one side only are a cycle.
    """
    cycles = np.empty(len(CORNERS) << SQUARES, np.uint16)
    _fill_hole_cycles(cycles)
    return cycles


@subroutine()
def hole_around(squares, cube):
    """Return the cubes connected to one across squares that do not belong to a star."""
    hole = grown = 1 << cube
    while grown:
        grown = 0
        for s in range(SQUARES):
            sides = 1 << CUBES_AT[s, 0] | 1 << CUBES_AT[s, 1]
            if not squares >> s & 1 and hole & sides:
                grown |= sides & ~hole
        hole |= grown
    return hole


@subroutine()
def hole_with(upper, member):
    """Return the cubes of the hole with one of 26 neighbours, of which the upper ones are given."""
    link = np.int64(0)
    for i in range(len(SHARED)):
        link |= (~upper >> SHARED[i] & 1) << i
    return hole_around(squares_of(link), _CUBE_WITH[member])


@kernel()
def _fill_hole_cycles(cycles):
    """Find the squares around the hole with each cube, for all sets of squares."""
    for number in range(cycles.size):
        squares = number >> 3
        hole = hole_around(number >> 3, number & 7)
        cycle = 0
        for s in range(SQUARES):
            if squares >> s & (hole >> CUBES_AT[s, 0] ^ hole >> CUBES_AT[s, 1]) & 1:
                cycle |= 1 << s
        cycles[number] = cycle


def cycles_around(upper_links: Array, members: Array) -> Array:
    """Return the squares around the holes of links with a member, as sets of bits.

    `upper_links` are the neighbours, of 26, that enter after the point.
    """
    squares = np.zeros(members.size, np.int64)
    lower = ~upper_links
    for s, (v, w) in enumerate(SIDES):
        bits = (SHARED[i] for i in (LINK.ends[v], LINK.ends[w], SQUARE_BITS[s]))
        first, second, corner = (lower >> np.uint32(bit) for bit in bits)
        squares |= (first & second & corner & np.uint32(1)).astype(np.int64) << s
    found: Array = hole_cycles()[squares << 3 | _CUBE_WITH[members]]
    return found


def ends_at(members: Array) -> Array:
    """Return the numbers of the ends that are members of links."""
    numbers = np.zeros(len(LINK.members), np.uint8)
    numbers[LINK.ends] = np.arange(EDGES)
    found: Array = numbers[members]
    return found


@subroutine()
def at_home(home, place):
    """Return the place inside the layers of a point whose place may be in a layer."""
    if home is None:
        return place
    return home[place]


@subroutine()
def edge_at_home(home, edge, width):
    """Return the edge inside the layers that stands for an edge which may begin in a layer."""
    if home is None:
        return edge
    place = (edge >> 2) - (edge & 3) * width
    return edge + 4 * (np.int64(home[place]) - place)


@subroutine()
def path_index(axis, byte, side):
    """Return where :func:`path_offsets` has one of the three edges next to an edge."""
    return axis << 5 | byte << 2 | side


Steps = tuple[int, int, int]
"""Distances of places along the axes."""


def edge_offsets(steps: Steps, width: int) -> Array:
    """Return the numbers of the edges from a point to its ends, minus four times its place."""
    offsets = []
    for end, axis in zip(ENDS, AXES, strict=True):
        corner = min(sum(end), 0) * steps[axis]
        offsets.append(4 * (corner + axis * width) + axis)
    return np.array(offsets)


def far_offsets(steps: Steps, width: int) -> Array:
    """Return the numbers of the two edges of each square that do not enter with its point.

    They are relative to four times the place of the point, as those of :func:`edge_offsets`.
    """
    edges = edge_offsets(steps, width)
    moves = 4 * (np.array(ENDS) @ steps)
    return np.array([(moves[w] + edges[v], moves[v] + edges[w]) for v, w in SIDES])


def path_offsets(steps: Steps, width: int) -> Array:
    """Return where paths go on, at the :func:`path_index` of an edge and its byte.

    These are the differences between the numbers of the edge and of the three other edges of the
    square that it is matched with.
    """
    offsets = np.zeros(1 << 7, np.int64)
    for axis in range(3):
        for end in range(EDGES):
            other = AXES[end]
            if other == axis:
                continue
            move = sum(ENDS[end]) * steps[other]
            corner = min(move, 0)
            across = 4 * (corner + (other - axis) * width) + other - axis
            first = path_index(axis, end + 1, 0)
            offsets[first : first + 3] = 4 * move, across, across + 4 * steps[axis]
    return offsets


@llvm.operation(types.UniTuple(types.uint64, 2))
def match_links(builder, keys, points, labels, planes, gradient):
    """Compare 64 points with their neighbours as :func:`compare_links` does, and match their edges.

    Writes the first half of the planes, and to the staged gradient the edges of those of the
    block's own points whose ends are in one component of the lower link. Returns the minima, and
    the other points.
    """
    lower = lower_neighbours(builder, LINK, keys, points, labels, planes)
    seen, apart, parents = _grow_trees(builder, lower)
    _write_parents(builder, points, parents, apart, gradient)
    return [builder.not_(seen), apart]


@llvm.operation(types.UniTuple(types.uint64, 2))
def match_both_links(builder, keys, others, points, planes, gradient):
    """Match the edges that enter with one of 64 points in two filtrations at once.

    They are matched with squares that also enter with it in both. Planes are those of both links,
    one after the other. Returns the points with an end that these trees do not reach, and the
    points whose links differ.
    """
    links = []
    for first, filtered in ((0, keys), (MOST_MEMBERS, others)):
        links.append(lower_neighbours(builder, LINK, filtered, points, None, planes, first))
    in_both = []
    differ: Any = llvm.I64(0)
    for one, other in zip(*links, strict=True):
        in_both.append(builder.and_(one, other))
        differ = builder.or_(differ, builder.xor(one, other))
    _, apart, parents = _grow_trees(builder, in_both)
    _write_parents(builder, points, parents, apart, gradient)
    return [apart, differ]


def _write_parents(builder: Any, points: Points, parents: Any, apart: Any, gradient: Any) -> None:
    """Write the parents of the ends of 64 points to the gradient, but for points `apart`."""
    slice_, row = points.steps
    matched = builder.and_(points.own, builder.not_(apart))
    width = builder.udiv(gradient.shape[0], llvm.I64(3))  # Edges along each axis.
    for v, axis in enumerate(AXES):
        place = builder.add(points.at, builder.mul(width, llvm.I64(axis)))
        if v < EDGES // 2:  # The end is the lower corner of its edge.
            place = builder.sub(place, (slice_, row, llvm.I64(1))[axis])
        found = gradient.load(place, LANES)
        for bit, word in enumerate(parents[v]):
            lanes = llvm.lanes_of(builder, builder.and_(word, matched))
            byte = [llvm.splat(llvm.I8, LANES, value) for value in (1 << bit, 0)]
            found = builder.or_(found, builder.select(lanes, *byte))
        gradient.store(found, place)


def _grow_trees(builder: Any, lower: list[Any]) -> tuple[Any, Any, list[list[Any]]]:
    """Emit a few steps of trees from the first ends of links.

    Returns where any end is lower, where these steps miss an end, and for each end its parent
    plus 1, as three words of bits.
    """
    nothing: Any = llvm.I64(0)
    ends = [lower[i] for i in LINK.ends]
    squares = []
    for s, (v, w) in enumerate(SIDES):
        corner = lower[SQUARE_BITS[s]]
        squares.append(builder.and_(corner, builder.and_(ends[v], ends[w])))
    seen = nothing
    reached = []
    for end in ends:
        reached.append(builder.and_(end, builder.not_(seen)))
        seen = builder.or_(seen, end)
    parents = [[nothing] * PARENT_BITS for _ in ends]
    for _ in range(ROUNDS):
        before = list(reached)
        for square, side in zip(squares, SIDES, strict=True):
            for parent, end in (side, side[::-1]):
                new = builder.and_(builder.and_(square, before[parent]), builder.not_(reached[end]))
                reached[end] = builder.or_(reached[end], new)
                for bit in range(PARENT_BITS):
                    if parent + 1 >> bit & 1:
                        parents[end][bit] = builder.or_(parents[end][bit], new)
    apart = nothing
    for end, word in zip(ends, reached, strict=True):
        apart = builder.or_(apart, builder.and_(end, builder.not_(word)))
    return seen, apart, parents


@subroutine()
def write_star(tree, place, edges, home, gradient):
    """Write the gradient of the edges of a star."""
    for end in range(EDGES):
        parent = tree >> PARENT_BITS * end & 7
        if parent < ROOT:
            edge = edge_at_home(home, 4 * place + edges[end], gradient.size // 3)
            gradient[np.uint64(edge >> 2)] = parent + 1


@subroutine()
def roots_of(tree):
    """Return the roots of the trees of a link, as a set of members."""
    roots = np.uint64(0)
    for end in range(EDGES):
        if tree >> PARENT_BITS * end & 7 == ROOT:
            roots |= ONE << np.uint64(END_BITS[end])
    return roots
