"""Persistence of the classes between components and cavities: tunnels of a volume.

Points that are closed cubes (T-construction) are the vertices of the dual complex, in which they
enter in the opposite order, after all that is around the image. Its pairs of an edge and a square
are those of the image, with births and deaths exchanged, and of what is left on a torus its squares
are tunnels of the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.gradient import (
    IGNORED,
    MOST_CRITICAL,
    PAIRED,
    at_home,
    match_stars,
)
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.order import entry_order, stable_order
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]

POINTS_AT_ONCE = 1 << 16  # of the slices whose critical cells are listed together


def tunnel_pairs(image: Array, never: Array, filtration: Filtration) -> tuple[Array, Array]:
    """Return the points at which the tunnels of a volume are born and die, in C order.

    `never` tells which points, in C order, never enter: they enter after all others here. Tunnels
    that are born and die at one point are left out. Those that never die, of which a periodic
    volume without axes of length 1 has three, have the death -1.
    """
    shape = np.array(image.shape)
    steps = np.array([(shape[1] + 2) * (shape[2] + 2), shape[2] + 2, 1])
    ranks = _ranks(image, never, filtration)
    wraps = filtration.boundary.wraps
    home = home_of(image.shape, wraps) if any(wraps) else None
    links, edges, squares = _critical_cells(ranks, shape, steps, home)
    for cells in (edges, squares):
        cells[:] = cells[stable_order(ranks[cells[:, 0]])]
    del ranks
    points, cubes, faces = links
    edges = edges[~join(points, edges[:, 1], steps, home)]
    squares = squares[~join(cubes, squares[::-1, 1], -steps, home)[::-1]]
    del points, cubes, links
    faces[edges[:, 1]] = np.arange(len(edges))[::-1]  # the last one comes first
    cells = np.ascontiguousarray(squares[:, 1])
    columns = boundaries(cells, stable_order(cells), faces, steps, home)
    del faces
    pivots = reduce(*columns, len(edges))[::-1]
    paired = pivots >= 0
    left = np.delete(squares, pivots[paired], axis=0) if filtration.cubes else edges[~paired]
    pairs = np.stack([edges[paired, 0], squares[pivots[paired], 0]])
    pairs = pairs[:, pairs[0] != pairs[1]]
    births, deaths = _inner(pairs[::-1] if filtration.cubes else pairs, image.shape)
    births = np.append(births, _inner(left[:, 0], image.shape))
    return births, np.append(deaths, np.full(len(left), -1))


def _inner(places: Array, shape: tuple[int, ...]) -> Array:
    """Convert places in a volume with a halo to places in the volume."""
    index = np.unravel_index(places, [n + 2 for n in shape])
    inner: Array = np.ravel_multi_index(tuple(i - 1 for i in index), shape)
    return inner


def home_of(shape: tuple[int, ...], wraps: Sequence[bool]) -> Array:
    """Return the place in an image of each one of the image with a halo of one point.

    Along axes that do not wrap, places in the halo are their own.
    """
    halo = [n + 2 for n in shape]
    places = np.arange(math.prod(halo), dtype=index_type(math.prod(halo))).reshape(halo)
    return wrap_halo(places, wraps).reshape(-1)


def wrap_halo(padded: Array, wraps: Sequence[bool]) -> Array:
    """Fill the halo of one point with the opposite sides of the image, along axes that wrap."""
    for axis, touch in enumerate(wraps):
        if touch:
            along = np.moveaxis(padded, axis, 0)
            along[0] = along[-2]
            along[-1] = along[1]
    return padded


def index_type(places: int) -> type[np.int32 | np.int64]:
    """Return a dtype for cells of so many places, of which each has three of a kind."""
    return np.int32 if 3 * places < 2**31 else np.int64


def _ranks(image: Array, never: Array, filtration: Filtration) -> Array:
    """Return the order in which the vertices enter, flat and with a halo of one point."""
    order = entry_order(image, never, filtration.superlevel)
    shape = np.array(image.shape) + 2
    size, cubes = order.size, filtration.cubes
    dtype = index_type(math.prod(shape))
    ranks = np.empty(size, dtype)
    ranks[order[::-1] if cubes else order] = np.arange(size, dtype=dtype)
    inner = ranks.reshape(image.shape)
    padded = np.pad(inner, 1, constant_values=-1 if cubes else size)
    return wrap_halo(padded, filtration.boundary.wraps).reshape(-1)


def _critical_cells(
    ranks: Array, shape: Array, steps: Array, home: Array | None
) -> tuple[tuple[Array, Array, Array], Array, Array]:
    """Return a gradient, and its critical edges and squares with their points, in C order."""
    points, cubes = np.zeros((2, ranks.size), ranks.dtype)
    faces = np.full(3 * ranks.size, IGNORED, ranks.dtype)
    depth = max(1, POINTS_AT_ONCE // (shape[1] * shape[2]))
    most = MOST_CRITICAL * depth * shape[1] * shape[2]
    rooms = np.empty((2, most, 2), ranks.dtype)
    found: tuple[list[Array], list[Array]] = [], []
    for first in range(0, shape[0], depth):
        last = min(first + depth, shape[0])
        gradient = points, cubes, faces
        counts = match_stars(ranks, shape, steps, home, first, last, *gradient, *rooms)
        for cells, room, count in zip(found, rooms, counts, strict=True):
            cells.append(room[:count].copy())
    edges, squares = map(np.concatenate, found)
    return (points, cubes, faces), edges, squares


@kernel()
def join(parents, cells, steps, home):
    """Join what lies on both sides of cells, in the given order; return which of them join trees.

    For edges the sides are points, for squares, with steps downwards, cubes.
    """
    joins = np.zeros(cells.size, np.bool_)
    for i in range(cells.size):
        place = cells[i] // 3
        first = find(parents, place)
        second = find(parents, at_home(home, place + steps[cells[i] % 3]))
        if first != second:
            parents[first] = second
            joins[i] = True
    return joins


@subroutine()
def side_of(square, steps, home, k):
    """Return one of the four edges of a square."""
    corner, normal = square // 3, square % 3
    axis, other = (normal + 1) % 3, (normal + 2) % 3
    if k & 1:
        axis, other = other, axis
    return 3 * at_home(home, corner + (steps[other] if k & 2 else 0)) + axis


@subroutine()
def square_at(edge, direction, steps, home):
    """Return the square that an edge spans with a direction."""
    axis = direction >> 1
    corner = edge // 3 - (0 if direction & 1 else steps[axis])
    return 3 * at_home(home, corner) + 3 - edge % 3 - axis


@subroutine()
def boundary(square, faces, steps, home, states, queue):
    """Return the critical edges to which an odd number of gradient paths lead from a square.

    They are the first so many of the list returned. `states` has for each edge the number of
    squares on paths above it that have not been passed, and in the last bit whether an odd number
    of paths has come down to it; all are 0 before and after.
    """
    size = i = 0
    edge, below = -1, square
    while True:
        if size + 4 > queue.size:
            queue = np.concatenate((queue, np.empty_like(queue)))
        for k in range(4):
            side = side_of(below, steps, home, k)
            if side != edge and faces[side] != IGNORED:
                if states[side] == 0:
                    queue[size] = side
                    size += 1
                states[side] += 2
        while i < size and faces[queue[i]] > PAIRED:
            i += 1
        if i == size:
            break
        edge = queue[i]
        i += 1
        below = square_at(edge, PAIRED - faces[edge], steps, home)
    # What was found is found again: the first part of the queue is reused.
    ready = reached = 0
    edge, below, odd = -1, square, 1
    while True:
        for k in range(4):
            side = side_of(below, steps, home, k)
            if side != edge and faces[side] != IGNORED:
                states[side] ^= odd
                states[side] -= 2
                if states[side] < 2:
                    queue[ready] = side
                    ready += 1
        while ready > reached:
            ready -= 1
            edge, odd = queue[ready], states[queue[ready]]
            states[edge] = 0
            if faces[edge] <= PAIRED:
                break
            if odd:
                queue[ready] = queue[reached]
                queue[reached] = edge
                reached += 1
                ready += 1
        else:
            return queue, reached
        below = square_at(edge, PAIRED - faces[edge], steps, home)


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
    """Return the first row of a set, or -1."""
    if tree[levels[-1]] == 0:
        return -1
    row = 0
    for k in range(levels.size - 1, -1, -1):
        row = row << 6 | count_trailing_zeros(tree[levels[k] + row])
    return row


@kernel()
def boundaries(squares, order, faces, steps, home):
    """Return the boundaries of critical squares: the rows of all, and those of each (first, end).

    They are computed in the given order, in which squares that follow each other should be near.
    """
    faces, squares = bare(faces), bare(squares)
    states = np.zeros(faces.size, np.uint8)
    queue = np.empty(1 << 10, faces.dtype)
    entries = np.empty(1 << 10, faces.dtype)
    spans = np.empty((squares.size, 2), np.int64)
    size = 0
    for j in order:
        queue, count = boundary(squares[j], faces, steps, home, states, queue)
        while size + count > entries.size:
            entries = np.concatenate((entries, np.empty_like(entries)))
        for k in range(count):
            entries[size + k] = faces[queue[k]]
        spans[j, 0], spans[j, 1] = size, size + count
        size += count
    return entries, size, spans


@kernel()
def reduce(entries, size, spans, rows):
    """Reduce columns over Z/2 from the first one on; return for each row the column it is first in.

    That is -1 for a row that is first in none. Columns may become 0, or be 0 from the beginning.
    `entries` has the rows of all columns, and a place for more behind the first `size`; `spans`
    tells which of them are those of each column.
    """
    levels = np.zeros(1, np.int64)
    words = (rows >> 6) + 1
    total = words
    while words > 1:
        levels = np.append(levels, total)
        words = (words >> 6) + 1
        total += words
    tree = np.zeros(total, np.uint64)
    owners = np.full(rows, -1, np.int64)
    for j in range(len(spans)):
        if spans[j, 0] == spans[j, 1]:
            continue
        pivot = entries[spans[j, 0]]
        for k in range(spans[j, 0] + 1, spans[j, 1]):
            pivot = min(pivot, entries[k])
        if owners[pivot] < 0:
            owners[pivot] = j
            continue
        other = j
        while other >= 0:
            for k in range(spans[other, 0], spans[other, 1]):
                toggle(tree, levels, entries[k])
            pivot = first_row(tree, levels)
            other = owners[pivot] if pivot >= 0 else -1
        if pivot >= 0:
            owners[pivot] = j
        spans[j, 0] = size
        while pivot >= 0:
            if size == entries.size:
                entries = np.concatenate((entries, np.empty_like(entries)))
            entries[size] = pivot
            size += 1
            toggle(tree, levels, pivot)
            pivot = first_row(tree, levels)
        spans[j, 1] = size
    return owners
