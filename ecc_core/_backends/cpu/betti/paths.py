"""Paths of the gradient of a volume: from the cycle around a hole to the rows of its column."""

from __future__ import annotations

import numpy as np

from ecc_core._backends.cpu.betti.stars import (
    PAIRS,
    ROW,
    edge_at_home,
    path_index,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import (
    LANES,
    NONE,
    ONE,
    count_bits,
    count_trailing_zeros,
    small_keys,
)

REACHED = np.uint8(1)
ODD = np.uint8(2)
LANE_BITS = 6
SIDES = 3  # A square has so many edges besides the one that is matched with it.
# The byte of an edge whose paths have been followed has the bit `KNOWN`, and from `KNOWN_BIT` on a
# bit for each of the three next edges that leads to rows. The byte `ROW` has the bit `KNOWN`, too.
KNOWN = 8
KNOWN_BIT = 4
# An entry of the stack holds, from its lowest bit on: which next edges are left, which lead to
# rows, which next edge of the entry below it is (or `FIRST`), and the edge itself.
LEFT = 7
LIVE_BIT = 3
SIDE_BIT = 7
FIRST = 3
EDGE_BIT = 9
MOST_BOUNDARY = 30
"""The most edges that the squares of a star have."""
# A list may grow by so many elements before its room is looked at again.
ROOM_OF_STEP = 1 + SIDES + MOST_BOUNDARY
TOO_FEW = -1
# If all paths of a column have at most so many steps, edges where paths meet are followed once for
# each path. The limit is lowered while many columns have more; of smooth volumes, 99 in 100 have
# fewer.
MOST_STEPS = 256
LEAST_LIMIT = 32


@subroutine()
def longer(array, size):
    """Return an array that begins with another one and has room for so many elements, or more."""
    if size <= array.size:
        return array
    room = np.empty(max(size, array.size + (array.size >> 1)), array.dtype)
    # numba takes seconds to compile an assignment to a slice, whose error names both shapes.
    for i in range(array.size):
        room[i] = array[i]
    return room


@subroutine()
def group_of(edge, width):
    """Return the group of an edge: 64 places of an axis."""
    axis = edge & 3
    return 3 * (((edge >> 2) - axis * width) >> LANE_BITS) + axis


@subroutine()
def row_number(edge, gradient, starts):
    """Return the number of the row with an edge; `starts` has the first one of each group."""
    address = np.uint64(edge >> 2)
    lane = address & np.uint64(LANES - 1)
    marked = ~small_keys(gradient, address - lane, ROW - 1)
    first = np.int64(starts[np.uint64(group_of(edge, gradient.size // 3))])
    return first + count_bits(marked & ((ONE << lane) - ONE))


@kernel()
def number_rows(edges, gradient, starts, numbers):
    """Mark the edges of rows in the gradient, and number them by group and place.

    `starts`, of one element more than there are groups, are all 0 before.
    """
    width = gradient.size // 3
    for edge in edges:
        gradient[edge >> 2] = ROW
        starts[group_of(edge, width) + 1] += 1
    for group in range(1, starts.size):
        starts[group] += starts[group - 1]
    for i in range(edges.size):
        numbers[i] = row_number(edges[i], gradient, starts)


@subroutine()
def next_edge(edge, byte, side, paths):
    """Return one of the edges to which paths go on from an edge."""
    around, home, width = paths
    index = np.uint64(path_index(edge & 3, byte & 7, side))
    return edge_at_home(home, edge + around[index], width)


@subroutine()
def next_sides(edge, byte, gradient, paths):
    """Return which of the edges next to one that is no row may lead to rows, as a set of bits."""
    if byte & KNOWN:
        return np.int64(byte) >> KNOWN_BIT
    sides = 0
    for side in range(SIDES):
        beyond = next_edge(edge, byte, side, paths)
        sides |= (gradient[np.uint64(beyond >> 2)] != 0) << side
    return sides


@subroutine()
def list_boundary(first_edge, squares, gradient, offsets, paths, edges):
    """List the edges of the boundary of some squares of a star; return how many.

    `offsets` are :func:`far_offsets` and :func:`edge_offsets`. The edges of the star itself belong
    to several squares, and cancel in a cycle.
    """
    far = offsets[0]
    own = offsets[1]
    count = 0
    ends = NONE
    while squares:
        square = np.uint64(count_trailing_zeros(np.uint64(squares)))
        squares &= squares - 1
        ends ^= ONE << np.uint64(PAIRS[square, 0]) | ONE << np.uint64(PAIRS[square, 1])
        for k in range(2):  # Every edge is written, without a branch, and kept if it is left.
            edge = edge_at_home(paths[1], first_edge + far[square, k], paths[2])
            edges[count] = edge
            count += gradient[np.uint64(edge >> 2)] != 0
    while ends:
        end = np.uint64(count_trailing_zeros(np.uint64(ends)))
        ends &= ends - ONE
        edge = edge_at_home(paths[1], first_edge + own[end], paths[2])
        edges[count] = edge
        count += gradient[np.uint64(edge >> 2)] != 0
    return count


@subroutine()
def short_path_ends(far_edges, gradient, paths, lists, limit):
    """List the edges of the rows at the ends of all paths from some edges, if these are few.

    An edge is listed as often as paths lead to it. The edges come first in the last of the `lists`,
    which are those of :func:`reach`. Returns how many there are, or `TOO_FEW` if paths have more
    steps than the `limit`. Most paths of noise have one or two steps, which a processor cannot
    predict, so the only branches are those of the loop.
    """
    queue = lists[0]
    ends = lists[2]
    queued = np.uint64(0)
    for edge in far_edges:
        queue[queued] = edge
        queued += ONE
    rows = np.uint64(0)
    at = np.uint64(0)
    while at < queued:
        if at == limit:
            return np.int64(TOO_FEW)
        edge = queue[at]
        at += ONE
        byte = gradient[np.uint64(edge >> 2)]
        is_row = byte == ROW
        ends[rows] = edge
        rows += np.uint64(is_row)
        left = np.int64(byte) >> KNOWN_BIT if byte & KNOWN else np.int64(LEFT)
        left &= np.int64(is_row) - 1
        for side in range(SIDES):
            beyond = next_edge(edge, byte, side, paths)
            queue[queued] = beyond
            queued += np.uint64((left >> side & 1) & (gradient[np.uint64(beyond >> 2)] != 0))
    return np.int64(rows)


@subroutine()
def begin_paths(far_edges, gradient, paths, states, stack, ends):
    """Push the edges from which paths may lead to rows, and list those that are rows.

    Returns the numbers of both.
    """
    depth = np.int64(0)
    rows = np.int64(0)
    for edge in far_edges:
        address = np.uint64(edge >> 2)
        byte = gradient[address]
        if byte == ROW:
            ends[rows] = edge
            rows += states[address] == 0
            states[address] = REACHED
            continue
        sides = next_sides(edge, byte, gradient, paths)
        if sides == 0:
            gradient[address] = 0
            continue
        stack[depth] = edge << EDGE_BIT | FIRST << SIDE_BIT | sides
        depth += 1
    return depth, rows


@subroutine()
def reach(far_edges, gradient, paths, states, lists):
    """List the edges on paths from some edges to rows, each one behind those that it leads to.

    Edges from which no path leads to a row are removed from the gradient, so that they are visited
    only once; the others are marked in `states`. `lists` has a stack, the edges, and the rows.
    Returns the numbers of edges and rows, or `TOO_FEW` rows if these lists are too short.
    """
    stack = lists[0]
    reached = lists[1]
    ends = lists[2]
    room = stack.size - ROOM_OF_STEP
    count = np.int64(0)
    depth, rows = begin_paths(far_edges, gradient, paths, states, stack, ends)
    while depth:
        if depth + count + rows > room:
            forget(states, reached, count)
            forget(states, ends, rows)
            return count, np.int64(TOO_FEW)
        top = stack[depth - 1]
        edge = top >> EDGE_BIT
        address = np.uint64(edge >> 2)
        byte = gradient[address]
        goes_on = False
        while top & LEFT:
            side = count_trailing_zeros(np.uint64(top))
            top &= top - 1
            beyond = next_edge(edge, byte, side, paths)
            there = np.uint64(beyond >> 2)
            following = gradient[there]
            if following == ROW:
                top |= 1 << LIVE_BIT + side
                ends[rows] = beyond
                rows += states[there] == 0
                states[there] = REACHED
                continue
            if following & KNOWN and states[there]:
                top |= 1 << LIVE_BIT + side
                continue
            sides = next_sides(beyond, following, gradient, paths)
            if sides == 0:
                gradient[there] = 0
                continue
            stack[depth - 1] = top
            stack[depth] = beyond << EDGE_BIT | side << SIDE_BIT | sides
            depth += 1
            goes_on = True
            break
        if goes_on:
            continue
        depth -= 1
        live = top >> LIVE_BIT & LEFT
        if live == 0:
            gradient[address] = 0
            continue
        gradient[address] = byte & 7 | KNOWN | live << KNOWN_BIT
        if depth:
            stack[depth - 1] |= 1 << LIVE_BIT + (top >> SIDE_BIT & FIRST)
        # An edge at which paths begin may have been listed already, as the next one of another.
        reached[count] = edge
        count += states[address] == 0
        states[address] = REACHED
    return count, rows


@subroutine()
def forget(states, edges, count):
    """Unmark the first edges of a list."""
    for k in range(count):
        states[np.uint64(edges[k] >> 2)] = 0


@subroutine()
def path_ends(far_edges, gradient, paths, states, lists):
    """List the edges of the rows to which an odd number of paths lead from some edges.

    `paths` are :func:`path_offsets` and the home and number of places. `states` are 0 before and
    after. The edges come first in the last of the `lists`, which are those of :func:`reach`.
    Returns their number, or `TOO_FEW` if the lists are too short.
    """
    count, rows = reach(far_edges, gradient, paths, states, lists)
    if rows == TOO_FEW:
        return rows
    reached = lists[1]
    ends = lists[2]
    for edge in far_edges:
        if states[np.uint64(edge >> 2)]:
            states[np.uint64(edge >> 2)] ^= ODD
    for i in range(count - 1, -1, -1):  # In this order, an edge precedes those that it leads to.
        edge = reached[i]
        address = np.uint64(edge >> 2)
        odd = states[address] & ODD
        states[address] = 0
        if not odd:
            continue
        byte = gradient[address]
        sides = np.int64(byte) >> KNOWN_BIT
        while sides:
            side = count_trailing_zeros(np.uint64(sides))
            sides &= sides - 1
            states[np.uint64(next_edge(edge, byte, side, paths) >> 2)] ^= ODD
    odd_rows = np.int64(0)
    for k in range(rows):
        edge = ends[k]
        address = np.uint64(edge >> 2)
        ends[odd_rows] = edge
        odd_rows += states[address] > REACHED
        states[address] = 0
    return odd_rows
