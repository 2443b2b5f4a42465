"""Image persistence of tunnels: births in a volume, and deaths in the union with another one.

The boundary matrix has a row for each edge that closes a loop when it enters the volume, in whose
order pivots are the last, and a column for each square that fills a loop when it enters the union,
in whose order columns are reduced. Edges that join components have no row, as they never are the
last of a loop; squares that close a cavity of the union have no column, as they fill nothing.

Vertices, edges and squares are numbered by their lowest corner in the grid of vertices: edges along
axis a are ``3 * corner + a``, squares normal to axis a likewise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.bit_trees import first_row, make_tree, take_out, toggle
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import sort_keys

Array = NDArray[Any]
Points = NDArray[np.int64]

ABSENT = np.uint32(0xFFFFFFFF)
"""The rank of cells that the grid does not have."""
NONE = -1
SIDES = 4  # of a square
ROOM = 1 << 10  # elements of a list at first


class Grid(NamedTuple):
    """The vertices of a volume, and its cubes with one more, of which is what is around it."""

    shape: tuple[int, int, int]
    vertices: bool
    """Whether the points of the image are vertices; otherwise they are cubes."""

    @property
    def steps(self) -> Points:
        """Distances of vertices along the axes."""
        _, rows, columns = self.shape
        return np.array([rows * columns, columns, 1])


def grid_of(points: tuple[int, ...], vertices: bool) -> Grid:
    """Return the grid of a volume of points."""
    depth, height, width = (n + (not vertices) for n in points)
    return Grid((depth, height, width), vertices)


def cell_ranks(ranks: Array, grid: Grid, dimension: int) -> Array:
    """Return the ranks at which the edges (1) or squares (2) of a volume enter, `ABSENT` if none.

    A cell enters with the last of its vertices, or with the first of the cubes that contain it.
    """
    found = np.full((*grid.shape, 3), ABSENT)
    if not grid.vertices:
        ranks = np.pad(ranks, 1, constant_values=ABSENT)
    combine = np.maximum if grid.vertices else np.minimum
    for axis in range(3):
        along = [(other == axis) == (dimension == 1) for other in range(3)]
        cells = ranks
        for other in range(3):
            if along[other] == grid.vertices:  # vertices along the cell, cubes across
                cells = combine(_without(cells, other, -1), _without(cells, other, 0))
            elif not grid.vertices:  # the cubes along the cell, without the frame
                cells = _without(_without(cells, other, 0), other, -1)
        sides = zip(grid.shape, along, strict=True)
        inside = tuple(slice(n - 1) if spans else slice(n) for n, spans in sides)
        found[..., axis][inside] = cells
    return found.reshape(-1)


def _without(values: Array, axis: int, at: int) -> Array:
    """Return values without the first (0) or the last (-1) along an axis."""
    span = slice(1, None) if at == 0 else slice(None, -1)
    return values[(slice(None),) * axis + (span,)]


def cells_in_order(ranks: Array) -> tuple[Points, Array]:
    """Return the cells in the order in which they enter, and their ranks."""
    (present,) = np.nonzero(ranks != ABSENT)
    order = present[sort_keys(ranks[present])]
    return order, ranks[order]


def loop_edges(edges: Points, grid: Grid) -> NDArray[np.bool_]:
    """Return which edges close a loop, of all in the order in which they enter."""
    closes = np.empty(edges.size, np.bool_)
    corners, axes = np.divmod(edges, 3)
    join_ends(corners, corners + grid.steps[axes], int(np.prod(grid.shape)), closes)
    return closes


def filling_squares(squares: Points, grid: Grid) -> NDArray[np.bool_]:
    """Return which squares fill a loop: those that join no cubes in the opposite order."""
    lengths = np.array(grid.shape)
    closes = np.empty(squares.size, np.bool_)
    above, below = np.empty((2, squares.size), np.int64)
    write_sides(squares, grid.steps, lengths, above, below)
    join_ends(above, below, int(lengths.prod()) + 1, closes)
    return closes[::-1]


@kernel()
def write_sides(squares, steps, lengths, above, below):
    """Write the cubes on both sides of squares, in the opposite order; 0 is outside."""
    for k in range(squares.size):
        square = squares[squares.size - 1 - k]
        corner = square // 3
        axis = square % 3
        at = corner // steps[axis] % lengths[axis]
        above[k] = corner + 1 if at < lengths[axis] - 1 else 0
        below[k] = corner - steps[axis] + 1 if at > 0 else 0


@kernel()
def join_ends(first, second, count, closes):
    """Join nodes along edges in their order, and write which edges close a loop."""
    parents = np.arange(count)
    for k in range(first.size):
        one = find(parents, first[k])
        other = find(parents, second[k])
        closes[k] = one == other
        parents[max(one, other)] = min(one, other)


class Squares(NamedTuple):
    """The squares that fill loops of a union, in the order in which they enter."""

    squares: Points
    ranks: Array
    """Of the points with which they enter."""


def squares_of(ranks: Array, vertices: bool) -> Squares:
    """Return the squares of a union, of whose points the ranks are given."""
    grid = grid_of(ranks.shape, vertices)
    squares, deaths = cells_in_order(cell_ranks(ranks, grid, 2))
    fills = filling_squares(squares, grid)
    return Squares(squares[fills], deaths[fills])


def image_pairs(ranks: Array, union: Squares, vertices: bool) -> tuple[Array, Array, Points]:
    """Return where tunnels are born in a volume, and die in the union.

    Births are ranks of points of the volume, deaths those of the union, and the last are squares
    of the union, of which each kills one class at most.
    """
    grid = grid_of(ranks.shape, vertices)
    edges, births = cells_in_order(cell_ranks(ranks, grid, 1))
    closes = loop_edges(edges, grid)
    edges = edges[closes][::-1]
    births = births[closes][::-1]
    rows = np.full(3 * int(np.prod(grid.shape)), NONE, np.int32)
    rows[edges] = np.arange(edges.size, dtype=np.int32)
    squares, deaths = union
    columns = np.empty((squares.size, SIDES), np.int32)
    write_columns(squares, grid.steps, rows, columns)
    owners = np.full(edges.size, NONE, np.int32)
    reduce_squares(columns, owners)
    (paired,) = np.nonzero(owners != NONE)
    killed = owners[paired]
    return births[paired], deaths[killed], squares[killed]


@kernel()
def write_columns(squares, steps, rows, columns):
    """Write the rows of the four edges of squares."""
    rows = bare(rows)
    columns = bare(columns)
    for j in range(squares.size):
        corner = squares[j] // 3
        axis = squares[j] % 3
        low = 1 if axis == 0 else 0
        high = 1 if axis == 2 else 2
        columns[j, 0] = rows[3 * corner + low]
        columns[j, 1] = rows[3 * corner + high]
        columns[j, 2] = rows[3 * (corner + steps[high]) + low]
        columns[j, 3] = rows[3 * (corner + steps[low]) + high]


@kernel()
def reduce_squares(columns, owners):
    """Reduce columns of four rows over Z/2, and write which one each row is the pivot of.

    Rows are numbered from the last one, and are `NONE` for edges without one. Only what a column
    has become by adding others is listed.
    """
    columns = bare(columns)
    owners = bare(owners)
    spans = np.zeros((columns.shape[0], 2), np.int64)
    listed = np.empty(ROOM, np.int32)
    size = 0
    tree, levels = make_tree(owners.size)
    for j in range(columns.shape[0]):
        pivot = np.int64(NONE)
        for k in range(SIDES):
            row = np.int64(columns[j, k])
            if row != NONE and (pivot == NONE or row < pivot):
                pivot = row
        if pivot == NONE:
            continue
        if owners[pivot] == NONE:
            owners[pivot] = j
            continue
        for k in range(SIDES):
            if columns[j, k] != NONE:
                toggle(tree, levels, np.int64(columns[j, k]))
        while pivot != NONE and owners[pivot] != NONE:
            other = np.int64(owners[pivot])
            if spans[other, 1] > 0:
                for k in range(spans[other, 0], spans[other, 1]):
                    toggle(tree, levels, np.int64(listed[k]))
            else:
                for k in range(SIDES):
                    if columns[other, k] != NONE:
                        toggle(tree, levels, np.int64(columns[other, k]))
            pivot = first_row(tree, levels)
        if pivot == NONE:
            continue
        owners[pivot] = j
        spans[j, 0] = size
        listed, size = take_out(tree, levels, listed, size)
        spans[j, 1] = size
