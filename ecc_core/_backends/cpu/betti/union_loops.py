"""Loops of the union of two volumes: what tunnels of either of them may end with.

If points are vertices, tunnels end at squares that close a loop of cubes in the opposite order; if
they are closed cubes, at edges of the dual complex that close one. Several of them may enter with
one point. They do so by their numbers then, which are those of their lowest corners and their axes,
so that the classes of both volumes end with the same ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import end_of
from ecc_core._backends.cpu.betti.forest import Loops
from ecc_core._backends.cpu.betti.stars import (
    CORNERS,
    CUBES_AT,
    ENDS,
    SHARED,
    SIDES,
    SQUARES,
    WIDE_LINK,
    ends_at,
    squares_of,
)
from ecc_core._backends.cpu.betti.trees import VolumeBasins, loops_among
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare, count_trailing_zeros

Array = NDArray[Any]

NOBODY = -1
CUBES = len(CORNERS)


def _corner_sets() -> Array:
    """Return the members of the wide link that each cube of a star contains."""
    sets = np.zeros(CUBES, np.uint32)
    for k, ends in enumerate(CORNERS):
        far = np.sum([ENDS[v] for v in ends], axis=0)
        for bit, member in enumerate(WIDE_LINK.members):
            if all(along in (0, side) for along, side in zip(member, far, strict=True)):
                sets[k] |= np.uint32(1 << bit)
    return sets


def _by_number() -> Array:
    """Return the squares of a star in the order of their lowest corners, then of their normals."""

    def number(s: int) -> tuple[list[int], int]:
        sides = np.array([ENDS[v] for v in SIDES[s]])
        corner = np.minimum(sides, 0).sum(axis=0)
        (normal,) = np.flatnonzero(~sides.any(axis=0))
        return corner.tolist(), int(normal)

    return np.array(sorted(range(SQUARES), key=number))


_CORNER_SETS = _corner_sets()
_SQUARES_BY_NUMBER = _by_number()


class StarLoops(NamedTuple):
    """Cells that close loops, in the order of their points, and of their numbers for one point."""

    points: Array
    """Vertices in C order."""
    parts: Array
    """The end of an edge, or a set of squares, the last of which closes a cycle of all of them."""


def edges_that_close(loops: Loops) -> StarLoops:
    """Return the edges that close loops of vertices adjacent along axes, by ends of components."""
    return StarLoops(loops.places, ends_at(loops.members))


def squares_that_close(found: VolumeBasins) -> StarLoops:
    """Return the squares that close loops of what is between points, from the last point on."""
    basins = found.basins
    places = np.concatenate([basins.edges.places, basins.loops.places])
    places, first = np.unique(places, return_index=True)
    links = np.concatenate([basins.edges.lower_links, basins.loops.lower_links])[first]
    room = basins.edges.places.size + basins.loops.places.size
    nodes = np.empty((room, 2), np.int32)
    forks = np.empty(room, np.int32)
    cycles = np.empty(room, np.uint16)
    offsets = np.array(WIDE_LINK.members) @ found.order.staged.steps
    count = list_squares(places, links, basins.paths, offsets, nodes, forks, cycles)
    forks = forks[:count]
    closes = loops_among(found, nodes[:count], forks)
    points = found.order.points(forks[closes])
    return StarLoops(points[::-1], cycles[:count][closes][::-1])


@kernel()
def list_squares(places, links, paths, offsets, nodes, forks, cycles):
    """List the squares that join holes of links, from the last one, as edges between nodes.

    `places` are those of the flipped image, whose order is the opposite one, `links` the neighbours
    that come before them there. A cycle are the squares that one of the holes, with the cubes
    joined to it, has on one side only. Returns how many there are.
    """
    labels = bare(paths[0])
    ways = bare(paths[1])
    count = 0
    groups = np.empty(CUBES, np.int64)
    holes = np.empty(CUBES, np.int64)
    for i in range(places.size):
        upper = flipped(np.uint32(links[i]))
        link = np.int64(0)
        for k in range(SHARED.size):
            link |= np.int64(~upper >> np.uint32(SHARED[k]) & np.uint32(1)) << k
        squares = squares_of(link)
        for cube in range(CUBES):
            groups[cube] = 1 << cube
            holes[cube] = NOBODY
            around = upper & _CORNER_SETS[cube]
            if around:
                member = count_trailing_zeros(np.uint64(around))
                beside = np.uint64(places[i] - offsets[member])
                holes[cube] = labels[end_of(labels, ways, beside)]
        for s in range(SQUARES):
            if not squares >> s & 1:
                join_cubes(groups, holes, s)
        for k in range(SQUARES - 1, -1, -1):
            s = _SQUARES_BY_NUMBER[k]
            one = CUBES_AT[s, 0]
            other = CUBES_AT[s, 1]
            if not squares >> s & 1 or groups[one] >> other & 1:
                continue
            if holes[one] != NOBODY and holes[other] != NOBODY:
                nodes[count, 0] = holes[one]
                nodes[count, 1] = holes[other]
                forks[count] = places[i]
                cycle = 0
                for side in range(SQUARES):
                    within = groups[one] >> CUBES_AT[side, 0] ^ groups[one] >> CUBES_AT[side, 1]
                    cycle |= (squares >> side & within & 1) << side
                cycles[count] = cycle
                count += 1
            join_cubes(groups, holes, s)
    return count


@subroutine()
def flipped(link):
    """Return the set of the 26 neighbours that are opposite to those of another set."""
    found = np.uint32(0)
    for bit in range(26):
        found |= (link >> np.uint32(bit) & np.uint32(1)) << np.uint32(25 - bit)
    return found


@subroutine()
def join_cubes(groups, holes, square):
    """Join the groups of the cubes on both sides of a square, one of which may be in a hole."""
    one = CUBES_AT[square, 0]
    other = CUBES_AT[square, 1]
    joined = groups[one] | groups[other]
    hole = max(holes[one], holes[other])
    for cube in range(CUBES):
        if joined >> cube & 1:
            groups[cube] = joined
            holes[cube] = hole
