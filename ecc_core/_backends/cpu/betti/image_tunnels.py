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
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare

Array = NDArray[Any]
Points = NDArray[np.int64]

ABSENT = np.uint32(0xFFFFFFFF)
"""The rank of cells that the grid does not have."""
NONE = -1
ROOM = 1 << 10  # elements of a list at first


class Cells(NamedTuple):
    """Cells in the order in which they enter."""

    numbers: Array
    """uint32"""
    ranks: Array
    """The ranks of the points with which the cells enter, uint32."""


class Times(NamedTuple):
    """When points enter by their values, for each rank, uint64.

    Intervals that end when they begin are empty. Points that never enter do so after all others, at
    the end of an interval before those at the beginning of one.
    """

    births: Array
    deaths: Array


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


def cells_in_order(ranks: Array) -> Cells:
    """Return the cells in the order in which they enter; those of one point by their numbers."""
    begins = np.zeros(ranks.size + 2, np.uint32)
    count = count_cells(ranks, begins)
    cells = Cells(np.empty(count, np.uint32), np.empty(count, np.uint32))
    place_cells(ranks, begins, cells.numbers, cells.ranks)
    return cells


@kernel()
def count_cells(ranks, begins):
    """Write where the cells of each rank begin in their order; return how many cells there are."""
    ranks = bare(ranks)
    begins = bare(begins)
    last = np.int64(0)
    for i in range(ranks.size):
        rank = ranks[i]
        if rank != ABSENT:
            begins[np.uint64(rank) + np.uint64(1)] += 1
            last = max(last, np.int64(rank))
    for rank in range(last + 1):
        begins[rank + 1] += begins[rank]
    return np.int64(begins[last + 1])


@kernel()
def place_cells(ranks, begins, numbers, entering):
    """Write the numbers and ranks of cells in their order."""
    ranks = bare(ranks)
    begins = bare(begins)
    numbers = bare(numbers)
    entering = bare(entering)
    for i in range(ranks.size):
        rank = ranks[i]
        if rank != ABSENT:
            at = begins[np.uint64(rank)]
            begins[np.uint64(rank)] += 1
            numbers[at] = i
            entering[at] = rank


class Loops(NamedTuple):
    """Edges that close loops of a volume, the last one first."""

    rows: Array
    """The number of each edge among them, or `ABSENT`, uint32."""
    ranks: Array
    """The ranks of the points with which the edges enter."""


def loops_of(ranks: Array, grid: Grid) -> Loops:
    """Return the edges that close loops of a volume, of whose points the ranks are given."""
    edges = cells_in_order(cell_ranks(ranks, grid, 1))
    vertices = int(np.prod(grid.shape))
    closes = np.empty(edges.numbers.size, np.bool_)
    count = close_loops(edges.numbers, grid.steps, np.arange(vertices, dtype=np.int32), closes)
    rows = np.full(3 * vertices, ABSENT)
    births = np.empty(count, np.uint32)
    number_loops(edges, closes, rows, births)
    return Loops(rows, births)


@kernel()
def close_loops(edges, steps, parents, closes):
    """Join vertices along edges in their order, and write which edges close a loop."""
    edges = bare(edges)
    parents = bare(parents)
    closes = bare(closes)
    count = 0
    for k in range(edges.size):
        corner = np.int64(edges[k]) // 3
        step = steps[np.int64(edges[k]) % 3]
        one = find(parents, corner)
        other = find(parents, corner + step)
        closes[k] = one == other
        count += one == other
        parents[max(one, other)] = min(one, other)
    return count


@kernel()
def number_loops(edges, closes, rows, births):
    """Write the numbers of the edges that close loops, from the last one, and their ranks."""
    row = 0
    for k in range(closes.size - 1, -1, -1):
        if closes[k]:
            rows[edges.numbers[k]] = row
            births[row] = edges.ranks[k]
            row += 1


def squares_of(ranks: Array, vertices: bool) -> Cells:
    """Return the squares that fill loops of a union, of whose points the ranks are given.

    They are those that join no cubes in the opposite order.
    """
    grid = grid_of(ranks.shape, vertices)
    squares = cells_in_order(cell_ranks(ranks, grid, 2))
    fills = np.empty(squares.numbers.size, np.bool_)
    cubes = np.arange(int(np.prod(grid.shape)) + 1, dtype=np.int32)
    fill_loops(squares.numbers, grid.steps, _ends_of(grid), cubes, fills)
    return Cells(squares.numbers[fills], squares.ranks[fills])


def _ends_of(grid: Grid) -> Array:
    """Return bits for each vertex: whether it is the first (0 to 2) or last (3 to 5) of an axis."""
    ends = np.zeros(grid.shape, np.uint8)
    for axis in range(3):
        along = np.moveaxis(ends, axis, 0)
        along[0] |= 1 << axis
        along[-1] |= 1 << axis + 3
    return ends.reshape(-1)


@kernel()
def fill_loops(squares, steps, ends, parents, fills):
    """Join cubes through squares in the opposite order, and write which squares join none.

    A cube has the number of its lowest corner plus 1; 0 is outside.
    """
    squares = bare(squares)
    ends = bare(ends)
    parents = bare(parents)
    fills = bare(fills)
    for k in range(squares.size - 1, -1, -1):
        corner = np.int64(squares[k]) // 3
        axis = np.int64(squares[k]) % 3
        bits = np.int64(ends[corner])
        above = np.int64(0) if bits >> axis + 3 & 1 else corner + 1
        below = np.int64(0) if bits >> axis & 1 else corner - steps[axis] + 1
        one = find(parents, above)
        other = find(parents, below)
        fills[k] = one == other
        parents[max(one, other)] = min(one, other)


def image_pairs(
    ranks: Array, union: Cells, times: Times, vertices: bool
) -> tuple[Array, Array, Points]:
    """Return where tunnels are born in a volume, and die in the union, if they last.

    Births are ranks of points of the volume, deaths those of the union, and the last are squares
    of the union, of which each kills one class at most.
    """
    grid = grid_of(ranks.shape, vertices)
    loops = loops_of(ranks, grid)
    owners = np.full(loops.ranks.size, NONE, np.int32)
    pivots = np.empty(union.numbers.size, np.uint32)
    write_pivots(union.numbers, grid.steps, loops.rows, pivots)
    reduce_squares(union.numbers, pivots, grid.steps, loops.rows, owners)
    lasts = np.empty(owners.size, np.bool_)
    write_lasting(owners, loops.ranks, union.ranks, times, lasts)
    killed = owners[lasts]
    return loops.ranks[lasts], union.ranks[killed], union.numbers[killed]


@kernel()
def write_lasting(owners, births, deaths, times, lasts):
    """Write which classes have an interval that is not empty."""
    for row in range(owners.size):
        ends = owners[row] != NONE
        if ends:
            ends = times.births[births[row]] < times.deaths[deaths[owners[row]]]
        lasts[row] = ends


@subroutine()
def rows_of(square, steps, rows):
    """Return the rows of the four edges of a square."""
    corner = np.int64(square) // 3
    axis = np.int64(square) % 3
    low = 1 if axis == 0 else 0
    high = 1 if axis == 2 else 2
    return (
        rows[3 * corner + low],
        rows[3 * corner + high],
        rows[3 * (corner + steps[high]) + low],
        rows[3 * (corner + steps[low]) + high],
    )


@kernel()
def write_pivots(squares, steps, rows, pivots):
    """Write the first row of each square, or `ABSENT`.

    In a loop without branches many of the rows, which are anywhere, are read at a time.
    """
    squares = bare(squares)
    rows = bare(rows)
    pivots = bare(pivots)
    for j in range(squares.size):
        one, two, three, four = rows_of(squares[j], steps, rows)
        pivots[j] = min(min(one, two), min(three, four))


@kernel()
def reduce_squares(squares, pivots, steps, rows, owners):
    """Reduce the columns of squares over Z/2, and write which one each row is the pivot of.

    Rows are numbered from the last one. Only what a column has become by adding others is listed.
    """
    squares = bare(squares)
    rows = bare(rows)
    owners = bare(owners)
    pivots = bare(pivots)
    spans = np.zeros((squares.size, 2), np.int64)
    listed = np.empty(ROOM, np.int32)
    size = 0
    tree, levels = make_tree(owners.size)
    for j in range(squares.size):
        if pivots[j] == ABSENT:
            continue
        pivot = np.int64(pivots[j])
        if owners[pivot] == NONE:
            owners[pivot] = j
            continue
        for row in rows_of(squares[j], steps, rows):
            if row != ABSENT:
                toggle(tree, levels, np.int64(row))
        while pivot != NONE and owners[pivot] != NONE:
            other = np.int64(owners[pivot])
            if spans[other, 1] > 0:
                for k in range(spans[other, 0], spans[other, 1]):
                    toggle(tree, levels, np.int64(listed[k]))
            else:
                for row in rows_of(squares[other], steps, rows):
                    if row != ABSENT:
                        toggle(tree, levels, np.int64(row))
            pivot = first_row(tree, levels)
        if pivot == NONE:
            continue
        owners[pivot] = j
        spans[j, 0] = size
        listed, size = take_out(tree, levels, listed, size)
        spans[j, 1] = size
