"""Kernels: edges between boxes that touch, with the points at which they enter, and their joins."""

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare

ROWS_WRAP = np.uint8(1)
"""An edge crosses the side at which the rows of a face begin again."""
COLUMNS_WRAP = np.uint8(2)
"""An edge crosses the side at which the columns of a face begin again."""


class Face(NamedTuple):
    """The points of one side of a box."""

    nodes: Any
    """The nodes of the points, (rows, columns)."""
    keys: Any
    """The keys of the points, uint64."""
    first: int
    """The place of the first point in the whole image."""


@subroutine()
def is_later(key, place, other_key, other_place):
    """Return whether a point enters after another one, or is the same point."""
    return key > other_key or (key == other_key and place >= other_place)


@subroutine()
def later_of(key, place, other_key, other_place):
    """Return the key and the place of the point that enters after the other one."""
    if is_later(other_key, other_place, key, place):
        return other_key, other_place
    return key, place


@subroutine()
def crossed_sides(over_row, over_column):
    """Return the sides of a face that an edge crosses, as a set of bits."""
    sides = np.uint8(0)
    if over_row:
        sides |= ROWS_WRAP
    if over_column:
        sides |= COLUMNS_WRAP
    return sides


@subroutine()
def wrapped(index, length, wraps):
    """Return an index of a face, and whether it crosses a side; -1 beyond a side that is closed."""
    if 0 <= index < length:
        return index, False
    if not wraps:
        return -1, False
    return index + (length if index < 0 else -length), True


@kernel()
def edges_between(near, far, steps, wraps, wide):
    """Return the edges between two faces that touch, and the points with which they enter.

    These are pairs of nodes, keys, places and the sides of the faces that they cross. Places grow
    by `steps` for each row and column of a face. `wraps` tells along which axes of the face
    opposite sides touch.

    If `wide`, points are neighbours along diagonals too. A diagonal is left out where a point
    opposite to one of its ends has entered before: the edges within the faces and the straight ones
    join its ends. Of successive edges between the same nodes the first to enter is listed.
    """
    nodes = near.nodes
    keys = near.keys
    first = near.first
    far_nodes = far.nodes
    far_keys = far.keys
    far_first = far.first
    rows, columns = nodes.shape
    reach = 1 if wide else 0
    more = columns * (9 if wide else 1)  # A row adds at most so many edges.
    count = 0
    edges = np.empty((more, 2), np.int32)
    edge_keys = np.empty(more, np.uint64)
    places = np.empty(more, np.int64)
    crossed = np.empty(more, np.uint8)
    for y in range(rows):
        if count + more > places.size:
            room = count + more
            edges = np.concatenate((edges[:count], np.empty((room, 2), np.int32)))
            edge_keys = np.concatenate((edge_keys[:count], np.empty(room, np.uint64)))
            places = np.concatenate((places[:count], np.empty(room, np.int64)))
            crossed = np.concatenate((crossed[:count], np.empty(room, np.uint8)))
        for x in range(columns):
            own = keys[y, x]
            own_place = first + y * steps[0] + x * steps[1]
            straight = far_keys[y, x]
            straight_place = far_first + y * steps[0] + x * steps[1]
            for row in range(y - reach, y + reach + 1):
                v, over_row = wrapped(row, rows, wraps[0])
                if v < 0:
                    continue
                for column in range(x - reach, x + reach + 1):
                    u, over_column = wrapped(column, columns, wraps[1])
                    if u < 0:
                        continue
                    far_place = far_first + v * steps[0] + u * steps[1]
                    key, place = later_of(own, own_place, far_keys[v, u], far_place)
                    if row != y or column != x:
                        beside = first + v * steps[0] + u * steps[1]
                        if is_later(key, place, straight, straight_place):
                            continue
                        if is_later(key, place, keys[v, u], beside):
                            continue
                    sides = crossed_sides(over_row, over_column)
                    near_node = nodes[y, x]
                    far_node = far_nodes[v, u]
                    if count:
                        last = count - 1
                        same = edges[last, 0] == near_node and edges[last, 1] == far_node
                        if same and crossed[last] == sides:
                            if is_later(key, place, edge_keys[last], places[last]):
                                continue
                            count -= 1
                    edges[count, 0] = near_node
                    edges[count, 1] = far_node
                    edge_keys[count] = key
                    places[count] = place
                    crossed[count] = sides
                    count += 1
    return edges[:count], edge_keys[:count], places[:count], crossed[:count]


@subroutine()
def root_of(parents, turns, node):
    """Return the root of a node and the sides that the path to it crosses; halve the path."""
    turn = np.uint8(0)
    while parents[node] != node:
        parent = parents[node]
        above = parents[parent]
        turns[node] ^= turns[parent]
        parents[node] = above
        turn ^= turns[node]
        node = above
    return node, turn


@kernel()
def join_around(edges, crossed, ages, spans, ended, loops):
    """Join nodes along edges, in their order, where paths can lead around the image.

    Each node knows which sides of the image the path to its parent crosses, in a bit for each axis.
    `spans` has a bit for each of the 8 classes of loops; those that are set are known from the
    beginning. Writes the node that ends and the edge at which it does to `ended`, and to `loops`
    the edges that close a loop of a class that those before do not span. Returns the numbers of
    both.
    """
    parents = np.arange(ages.size)
    turns = np.zeros(ages.size, np.uint8)
    ended = bare(ended)
    loops = bare(loops)
    count = 0
    closed = 0
    for i in range(edges.shape[0]):
        elder, turn = root_of(parents, turns, np.int64(edges[i, 0]))
        younger, other = root_of(parents, turns, np.int64(edges[i, 1]))
        turn ^= other ^ crossed[i]
        if elder == younger:
            if not spans >> turn & 1:
                for known in range(8):
                    if spans >> known & 1:
                        spans |= 1 << (known ^ np.int64(turn))
                loops[closed] = i
                closed += 1
            continue
        if ages[younger] < ages[elder]:
            elder, younger = younger, elder
        parents[younger] = elder
        turns[younger] = turn
        ended[count, 0] = younger
        ended[count, 1] = i
        count += 1
    return count, closed
