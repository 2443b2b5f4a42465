"""Kernels: the gradient of the cells between two boxes that touch, and the paths within them.

A *seam* is the set of cells between the outermost points of boxes that touch. Across one axis, each
of its cells is that of an image in 2-D times an edge between the boxes: points of that image are
the edges across, and enter with the later one of both ends. So its lower stars are those of an
image in 2-D, and the gradient is chosen alike: a point that is no minimum is matched with one of
its edges, and each further component of its lower link has an edge that is critical.

A path of a seam leads from point to point down to a minimum, or out into a frame. Every edge of the
2-D image that it takes is the side of a square across, whose other sides within both boxes are
where paths of these go on: the *chain* of the path in either box.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.paths import (
    ROOM_OF_STEP,
    TOO_FEW,
    longer,
    path_ends,
    row_number,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]

ROW_STEPS = np.array([-1, 0, 0, 1])
COLUMN_STEPS = np.array([0, -1, 1, 0])
"""The neighbours of a point of a face, v and 3 - v on opposite sides."""
AROUND = np.array([0, 2, 3, 1])
"""The numbers of these neighbours in the order around the point."""
DIRECTIONS = 4
MINIMUM = -1
"""The direction of the path at a minimum, and the first one of a chain that begins at a point."""
NOWHERE = -1
"""The last point of a path that leads into a frame, or whose end is of no interest."""
ROOM = 1 << 10
"""Elements of a list at first."""


class Links(NamedTuple):
    """The path from a point of a face, and its critical edges, by the neighbours that come before.

    Each set of neighbours is a number, in which a neighbour has bit ``3 * (1 + row) + 1 + column``.
    """

    ways: Array
    """The direction of the path from the point, or `MINIMUM`, (512,)."""
    saddles: Array
    """The directions of critical edges, then `MINIMUM`, (512, 3)."""


@cache
def links_of_face() -> Links:
    """Return the links of all sets of neighbours."""
    ways = np.full(1 << 9, MINIMUM, np.int8)
    saddles = np.full((1 << 9, DIRECTIONS - 1), MINIMUM, np.int8)
    for lower in range(1 << 9):
        starts = _components(lower)
        if starts:
            ways[lower] = starts[0]
            saddles[lower, : len(starts) - 1] = starts[1:]
    return Links(ways, saddles)


def _components(lower: int) -> list[int]:
    """Return one direction of each component of a lower link."""
    ends = [_is_in(lower, *_moves(end)) for end in AROUND]
    starts = []
    for i, end in enumerate(AROUND):
        own = _moves(end)
        before = _moves(AROUND[i - 1])
        between = own[0] + before[0], own[1] + before[1]
        if ends[i] and not (ends[i - 1] and _is_in(lower, *between)):
            starts.append(int(end))
    if not starts and ends[0]:  # The lower link of a maximum is a circle.
        starts.append(int(AROUND[0]))
    return starts


def _moves(direction: int) -> tuple[int, int]:
    return int(ROW_STEPS[direction]), int(COLUMN_STEPS[direction])


def _is_in(lower: int, row: int, column: int) -> bool:
    return bool(lower >> (3 * (1 + row) + 1 + column) & 1)


def with_frame(values: Array, framed: Sequence[bool], before: int, after: int) -> Array:
    """Return a face with a border, whose points are `before` all others in the frame.

    The frame lies beyond those of the four sides that are `framed`; other points come `after`.
    """
    padded = np.full((values.shape[0] + 2, values.shape[1] + 2), before, values.dtype)
    padded[1:-1, 1:-1] = values
    sides = padded[0], padded[-1], padded[:, 0], padded[:, -1]
    for side, is_frame in zip(sides, framed, strict=True):
        if not is_frame:
            side[:] = after
    return padded


@kernel()
def match_face(keys, places, links, directions, saddles, minima):
    """Find the gradient of the 2-D image of a seam, whose points have a border.

    Writes to `directions` where the path from each point leads; to `saddles` the points with
    critical edges, in C order, and their directions; and to `minima` the points with none. Returns
    the numbers of both.
    """
    keys = bare(keys)
    places = bare(places)
    rows, columns = directions.shape
    count = 0
    least = 0
    lower = np.empty(columns, np.uint16)
    for y in range(rows):
        lower[:] = 0
        for step in range(9):
            if step != 4:  # Step 4 leads to the point itself.
                add_lower(keys, places, y, step, lower)
        for x in range(columns):
            found = lower[x]
            way = links.ways[found]
            directions[y, x] = way
            if way == MINIMUM:
                minima[least] = y * columns + x
                least += 1
            i = 0
            while i < DIRECTIONS - 1 and links.saddles[found, i] != MINIMUM:
                saddles[count, 0] = y * columns + x
                saddles[count, 1] = links.saddles[found, i]
                count += 1
                i += 1
    return count, least


@subroutine()
def add_lower(keys, places, y, step, lower):
    """Add the bit of a neighbour to the points of a row before which it comes."""
    v = y + step // 3
    first = step % 3
    bit = np.uint16(1 << step)
    for x in range(lower.size):
        key = keys[y + 1, x + 1]
        beside = keys[v, x + first]
        is_before = places[v, x + first] < places[y + 1, x + 1]
        lower[x] |= bit if beside < key or (beside == key and is_before) else np.uint16(0)


@subroutine()
def beyond(point, direction, shape):
    """Return the next point of a face, or `NOWHERE` if it lies in the frame."""
    y = point // shape[1] + ROW_STEPS[direction]
    x = point % shape[1] + COLUMN_STEPS[direction]
    if 0 <= y < shape[0] and 0 <= x < shape[1]:
        return y * shape[1] + x
    return NOWHERE


@subroutine()
def add_edge(edges, count, point, direction, shape, base, steps, offsets):
    """Add the edge from a point of a face to a list, as an edge of the volume of the box."""
    edges = longer(edges, count + 1)
    place = base + point // shape[1] * steps[0] + point % shape[1] * steps[1]
    edges[count] = 4 * place + offsets[direction]
    return edges, count + 1


@kernel()
def list_chains(directions, starts, base, steps, offsets):
    """List the chains of paths from some points of a face.

    `starts` are points and directions: of a critical edge, whose chain is the edge and the paths
    from both of its points, as far as they differ; or `MINIMUM` for the path from the point alone.
    The first point of the face is at place `base` of the volume of a box, and `steps` further for
    each row and column; `offsets` are those of the edges in each direction.

    Returns the edges of all chains, where each one ends among them, and the last points of both
    paths of each.
    """
    shape = directions.shape
    ways = directions.reshape(-1)
    edges = np.empty(ROOM, np.int64)
    ends = np.empty(len(starts), np.int64)
    last = np.full((len(starts), 2), NOWHERE)
    seen = np.full(ways.size, -1)
    count = 0
    for k in range(len(starts)):
        first = starts[k, 0]
        meet = np.int64(NOWHERE)
        if starts[k, 1] != MINIMUM:
            point = first
            while point != NOWHERE:
                seen[point] = k
                if ways[point] == MINIMUM:
                    break
                point = beyond(point, ways[point], shape)
            edges, count = add_edge(edges, count, first, starts[k, 1], shape, base, steps, offsets)
            point = beyond(first, starts[k, 1], shape)
            while point != NOWHERE:
                if seen[point] == k:
                    meet = point
                    break
                if ways[point] == MINIMUM:
                    break
                edges, count = add_edge(
                    edges, count, point, ways[point], shape, base, steps, offsets
                )
                point = beyond(point, ways[point], shape)
            last[k, 1] = point
        point = first
        while point not in (NOWHERE, meet) and ways[point] != MINIMUM:
            edges, count = add_edge(edges, count, point, ways[point], shape, base, steps, offsets)
            point = beyond(point, ways[point], shape)
        last[k, 0] = point
        if meet != NOWHERE:  # From there on both paths are the same.
            last[k] = NOWHERE
        ends[k] = count
    return edges[:count], ends, last


@kernel()
def rows_of_chains(volume, around, starts, edges, ends, states):
    """Follow the paths of a volume from chains of edges, each of which ends at one of the `ends`.

    Arguments are those of :func:`path_ends`; `around` are :func:`path_offsets`, and `starts` has
    the first row of each group of edges. Returns the numbers of the rows to which an odd number of
    paths lead, and how many there are of each chain.
    """
    gradient = bare(volume.gradient)
    states = bare(states)
    paths = (bare(around), volume.home, gradient.size // 3)
    lists = np.empty((3, ROOM), np.int64)
    found = np.empty(ROOM, np.uint32)
    counts = np.empty(ends.size, np.int64)
    size = 0
    first = 0
    for k in range(ends.size):
        begins = bare(edges[first : ends[k]])
        first = ends[k]
        room = lists.shape[1]
        if room < begins.size + ROOM_OF_STEP:
            room = 2 * (begins.size + ROOM_OF_STEP)
            lists = np.empty((3, room), np.int64)
        count = path_ends(begins, gradient, paths, states, bare(lists))
        while count == TOO_FEW:
            room *= 2
            lists = np.empty((3, room), np.int64)
            count = path_ends(begins, gradient, paths, states, bare(lists))
        found = longer(found, size + count)
        for i in range(count):
            found[size + i] = row_number(lists[2, i], gradient, starts)
        size += count
        counts[k] = count
    return found[:size], counts
