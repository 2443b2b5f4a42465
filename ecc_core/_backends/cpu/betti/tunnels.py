"""Persistence of the classes between components and cavities: tunnels of a volume.

A *row* of the boundary matrix is a critical edge that closes a loop when it enters, a *column* a
critical square that closes one of the complement. Both are loops of the forests that give
components and cavities, and as many. A column consists of the rows to which an odd number of paths
of the gradient lead from the cycle around a hole of the link of its point.

Points that are closed cubes (T-construction) are the vertices of the dual complex, in which they
enter in the opposite order, after all that is around the image. Its pairs of a row and a column are
those of the image, with births and deaths exchanged, and of what is left on a torus its columns are
tunnels of the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.forest import Volume
from ecc_core._backends.cpu.betti.stars import (
    ROW,
    edge_at_home,
    edge_offsets,
    far_offsets,
    path_offsets,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.pool import share

Array = NDArray[Any]

NONE = -1
SLABS_A_WORKER = 2
ROOM = 1 << 10  # elements of a list at first


class Cells(NamedTuple):
    """Rows or columns in any order."""

    places: Array
    """Places of their points in the volume."""
    keys: Array
    """Keys of the points, which enter in the order of keys, equal ones in that of places."""
    parts: Array
    """The root that a row leads to, or the squares of the cycle of a column, as a set of bits."""


class Matrix(NamedTuple):
    """Columns in the order in which they enter, and rows in the opposite order."""

    row_places: Array
    places: Array
    cycles: Array
    spans: Array
    """Where the rows of each column are listed: (first, end)."""
    owners: Array
    """The column that each row is the pivot of, or `NONE`."""


class RowEdges(NamedTuple):
    """The edges of rows in their order."""

    edges: Array
    rows: Array
    starts: Array
    """For each line along the last axis the index of its first row."""


class Paired(NamedTuple):
    """The places of rows and columns that are paired, and of those that are left."""

    rows: Array
    columns: Array
    rows_left: Array
    columns_left: Array


def reduced(volume: Volume, rows: Cells, columns: Cells, workers: int) -> Paired:
    """Pair the edges that close loops with the squares that close those of the complement."""
    places = volume.gradient.size // 3
    in_place, entry = _orders(rows, places)
    row_places = rows.places[in_place]
    edges = np.empty(row_places.size, np.int64)
    offsets = edge_offsets(volume.steps)
    mark_rows(row_places, rows.parts[in_place], offsets, volume.home, volume.gradient, edges)
    numbers = np.empty(row_places.size, np.int32)
    numbers[entry[::-1]] = np.arange(row_places.size, dtype=np.int32)
    by_edge = sort_keys(edges.view(np.uint64), (3 * places).bit_length())
    edges, lines = edges[by_edge], np.arange(volume.shape[0] * volume.shape[1] + 1)
    starts = np.searchsorted(edges, 3 * volume.shape[2] * lines)
    row_edges = RowEdges(edges, numbers[by_edge], starts)
    in_place, order = _orders(columns, places)
    nearby = np.empty(order.size, np.int64)
    nearby[order] = np.arange(order.size)
    order = in_place[order]
    matrix = Matrix(
        row_places[entry[::-1]],
        columns.places[order],
        columns.parts[order],
        np.zeros((order.size, 2), np.int64),
        np.full(row_places.size, NONE, np.int32),
    )
    _reduce_slabs(volume, row_edges, matrix, nearby, workers)
    paired = matrix.owners != NONE
    owners = matrix.owners[paired]
    return Paired(
        matrix.row_places[paired],
        matrix.places[owners],
        matrix.row_places[~paired],
        np.delete(matrix.places, owners),
    )


def _orders(cells: Cells, places: int) -> tuple[Array, Array]:
    """Return the order of places of cells, and that in which they enter of these."""
    in_place = sort_keys(cells.places.astype(np.uint64), places.bit_length())
    return in_place, sort_keys(cells.keys[in_place])


def _reduce_slabs(
    volume: Volume, rows: RowEdges, matrix: Matrix, nearby: Array, workers: int
) -> None:
    """Reduce the columns of slabs of the volume, and then those that leave their slab.

    `nearby` lists the columns such that those that follow each other are near.
    """
    ends = _slab_ends(matrix.places, volume.shape, workers)
    slabs = np.searchsorted(ends, matrix.places, side="right") - 1
    near = nearby[np.argsort(slabs[nearby], kind="stable")]
    order = np.argsort(slabs, kind="stable")
    firsts = np.searchsorted(slabs[order], np.arange(ends.size))
    tables = far_offsets(volume.steps), path_offsets(volume.steps)
    found: list[tuple[Array, Array, Array]] = []

    def work(queue: Iterator[int]) -> None:
        states = np.zeros(volume.gradient.size, np.uint8)
        for slab in queue:
            own = slice(firsts[slab], firsts[slab + 1])
            within = ends[slab], ends[slab + 1]
            listed, size = list_columns(volume, tables, rows, matrix, near[own], states)
            listed, size, late = reduce(matrix, order[own], within, listed, size)
            found.append((order[own], listed[:size].copy(), late))

    share(range(ends.size - 1), work, workers)
    if ends.size == 2:
        return
    size = 0
    for own, listed, _ in found:
        matrix.spans[own] += size
        size += listed.size
    late = np.sort(np.concatenate([late for *_, late in found]))
    listed = np.concatenate([listed for _, listed, _ in found])
    reduce(matrix, late, (ends[0], ends[-1]), listed, size)


def _slab_ends(places: Array, shape: tuple[int, int, int], workers: int) -> Array:
    """Return the first places of slabs with about as many columns each, and the end of the last."""
    depth, slice_size = shape[0], shape[1] * shape[2]
    count = 1 if workers == 1 else min(depth, SLABS_A_WORKER * workers)
    before = np.cumsum(np.bincount(places // slice_size, minlength=depth))
    cuts = np.searchsorted(before, places.size * np.arange(1, count) / count)
    return np.unique([0, *cuts, depth]) * slice_size


@kernel()
def mark_rows(places, roots, offsets, home, gradient, edges):
    """Mark the edges of rows in the gradient, and list them."""
    for i in range(places.size):
        edges[i] = edge_at_home(home, 3 * places[i] + offsets[roots[i]])
        gradient[edges[i]] = ROW


@subroutine()
def longer(array):
    """Return a copy of an array with room for more elements than it has."""
    return np.concatenate((array, np.empty(array.size + ROOM, array.dtype)))


@subroutine()
def count_down(side, gradient, states, queue, size):
    """Count a path that comes to an edge, and list the edge if it is the first one."""
    side = np.uint64(side)
    if gradient[side]:
        if states[side] == 0:
            queue[size] = side
            size += 1
        states[side] += np.uint8(2)
    return size


@subroutine()
def pass_down(side, odd, gradient, states, queue, size):
    """Let a path come down to an edge, and list the edge if it is the last one."""
    side = np.uint64(side)
    if gradient[side]:
        state = np.uint8((states[side] ^ odd) - 2)
        states[side] = state
        if state < 2:
            queue[size] = side
            size += 1
    return size


@subroutine()
def path_ends(first_edge, cycle, gradient, tables, home, states, queue):
    """Return the rows to which an odd number of paths lead from the squares of a cycle.

    They are the first so many edges of the list returned. `states` has for each edge the number of
    squares on paths above it that have not been passed, and in the last bit whether an odd number
    of paths has come down to it; all are 0 before and after. The edges at the point itself are left
    out, since each is one of two squares.
    """
    far, around = tables
    size = i = 0
    left = cycle
    while left:
        s = count_trailing_zeros(np.uint64(left))
        left &= left - 1
        for k in range(2):
            side = edge_at_home(home, first_edge + far[s, k])
            size = count_down(side, gradient, states, queue, size)
    while i < size:
        edge = queue[i]
        i += 1
        kind = gradient[np.uint64(edge)]
        if kind == ROW:
            continue
        if size + 3 > queue.size:
            queue = longer(queue)
        axis, end = edge % 3, np.int64(kind) - 1
        for k in range(3):
            side = edge_at_home(home, edge + around[axis, end, k])
            size = count_down(side, gradient, states, queue, size)
    # What was found is found again: the first part of the queue is reused.
    ready = reached = 0
    left = cycle
    while left:
        s = count_trailing_zeros(np.uint64(left))
        left &= left - 1
        for k in range(2):
            side = edge_at_home(home, first_edge + far[s, k])
            ready = pass_down(side, np.uint8(1), gradient, states, queue, ready)
    while ready > reached:
        ready -= 1
        edge = queue[ready]
        odd, kind = states[np.uint64(edge)], gradient[np.uint64(edge)]
        states[np.uint64(edge)] = 0
        if kind == ROW:
            if odd:
                queue[ready] = queue[reached]
                queue[reached] = edge
                reached += 1
                ready += 1
            continue
        axis, end = edge % 3, np.int64(kind) - 1
        for k in range(3):
            side = edge_at_home(home, edge + around[axis, end, k])
            ready = pass_down(side, odd, gradient, states, queue, ready)
    return queue, reached


@subroutine()
def row_at(edge, rows, width):
    """Return the row of an edge."""
    line = edge // (3 * width)
    low, high = rows.starts[line], rows.starts[line + 1]
    while high - low > 1:
        middle = (low + high) >> 1
        if rows.edges[middle] <= edge:
            low = middle
        else:
            high = middle
    return rows.rows[low]


@kernel()
def list_columns(volume, tables, rows, matrix, chosen, states):
    """List the rows of columns; return all of them, and their number.

    `tables` are :func:`far_offsets` and :func:`path_offsets`.
    """
    gradient, states, home = bare(volume.gradient), bare(states), volume.home
    tables = bare(tables[0]), bare(tables[1])
    rows = RowEdges(bare(rows.edges), bare(rows.rows), bare(rows.starts))
    places, cycles, spans = bare(matrix.places), bare(matrix.cycles), bare(matrix.spans)
    queue = np.empty(ROOM, np.int64)
    listed, size = np.empty(ROOM, np.int32), 0
    for j in chosen:
        cycle = np.int64(cycles[j])
        queue, count = path_ends(3 * places[j], cycle, gradient, tables, home, states, queue)
        while size + count > listed.size:
            listed = longer(listed)
        for k in range(count):
            listed[size + k] = row_at(queue[k], rows, volume.shape[2])
        spans[j, 0], spans[j, 1] = size, size + count
        size += count
    return listed, size


@subroutine()
def toggle(tree, levels, row):
    """Add a row to a set, or remove it; a bit of each higher level tells whether a word has any."""
    for k in range(levels.size):
        word = levels[k] + (row >> 6)
        before = tree[word]
        tree[word] = before ^ ONE << np.uint64(row & 63)
        if before and tree[word]:
            return
        row >>= 6


@subroutine()
def first_row(tree, levels):
    """Return the first row of a set, or `NONE`."""
    if tree[levels[-1]] == 0:
        return NONE
    row = 0
    for k in range(levels.size - 1, -1, -1):
        row = row << 6 | count_trailing_zeros(tree[levels[k] + row])
    return row


@subroutine()
def make_tree(rows):
    """Return an empty set of rows, and where its levels begin."""
    levels = np.zeros(1, np.int64)
    words = (rows >> 6) + 1
    total = words
    while words > 1:
        levels = np.append(levels, total)
        words = (words >> 6) + 1
        total += words
    return np.zeros(total, np.uint64), levels


@subroutine()
def take_out(tree, levels, rows, size):
    """List the rows of a set behind `size` others, and remove them."""
    row = first_row(tree, levels)
    while row != NONE:
        if size == rows.size:
            rows = longer(rows)
        rows[size] = row
        size += 1
        toggle(tree, levels, row)
        row = first_row(tree, levels)
    return rows, size


@kernel()
def reduce(matrix, chosen, within, rows, size):
    """Reduce columns over Z/2 by adding earlier ones, until no other column has the same pivot.

    Columns are chosen in the order in which they enter. They own rows whose places lie within a
    range; those that come to another row are returned. A column that enters before the owner of its
    pivot takes its place, and the other one is reduced further. `rows` are those of all columns,
    `size` of them so far. Both are returned, since columns that have changed are listed anew.
    """
    row_places, spans, owners = bare(matrix.row_places), bare(matrix.spans), bare(matrix.owners)
    tree, levels = make_tree(owners.size)
    late, left = np.empty(chosen.size, np.int64), 0
    for first in chosen:
        j, changed = first, False
        pivot = np.int64(NONE)
        for k in range(spans[j, 0], spans[j, 1]):
            if pivot == NONE or rows[k] < pivot:
                pivot = np.int64(rows[k])
        while pivot != NONE:
            own = within[0] <= row_places[pivot] < within[1]
            other = np.int64(owners[pivot]) if own else np.int64(NONE)
            if other != NONE and other < j:
                if not changed:
                    for k in range(spans[j, 0], spans[j, 1]):
                        toggle(tree, levels, np.int64(rows[k]))
                for k in range(spans[other, 0], spans[other, 1]):
                    toggle(tree, levels, np.int64(rows[k]))
                changed = True
                pivot = first_row(tree, levels)
                continue
            if changed:
                spans[j, 0] = size
                rows, size = take_out(tree, levels, rows, size)
                spans[j, 1] = size
                changed = False
            if not own:
                late[left] = j
                left += 1
                break
            owners[pivot] = j
            if other == NONE:
                break
            j = other
        if changed:  # nothing is left of it
            spans[j, 1] = spans[j, 0]
    return rows, size, late[:left]
