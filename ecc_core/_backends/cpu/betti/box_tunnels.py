"""Rows and columns of a box of a volume, which ends at its faces, reduced without other boxes.

A box has more rows and columns than loops, because other boxes can still change some. An edge that
joins components within the box may close a loop in the volume: it is a row unless the younger
component dies before another box can reach it. A square that closes a loop of the complement within
the box may close a cavity of the volume, and its column is then reduced to nothing.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.basins import open_points
from ecc_core._backends.cpu.betti.cells import column_cells, row_cells
from ecc_core._backends.cpu.betti.critical_matrix import CriticalCells, Lists
from ecc_core._backends.cpu.betti.forest import Loops, join
from ecc_core._backends.cpu.betti.launch import grow, laid_out
from ecc_core._backends.cpu.betti.pieces import face_keys
from ecc_core._backends.cpu.betti.reduction import NONE, Columns, Rows
from ecc_core._backends.cpu.betti.seam_columns import Surroundings
from ecc_core._backends.cpu.betti.tunnels import (
    Cells,
    entry_order,
    reduce_at_once,
    row_numbers,
)
from ecc_core._backends.cpu.betti.volume import Volume, empty_volume

Array = NDArray[Any]

CYCLES = 1 << 12
"""More than any set of squares of a star: ids of columns of a box are below 0."""


class BoxTunnels(NamedTuple):
    """Rows and columns of a box."""

    volume: Volume
    """The gradient of the box, with marks of rows."""
    starts: Array
    """The number of the first row of each group of edges of the box."""
    rows: CriticalCells
    """The rows, sorted by their numbers."""
    columns: CriticalCells
    lists: Lists


def box_tunnels(around: Surroundings, workers: int | None) -> BoxTunnels:
    """Return the rows of a box, and its reduced columns."""
    volume = empty_volume(around.box.shape)
    rows = _by_part(_rows(around, volume, workers))
    columns = _by_part(_columns(around, volume, workers))
    starts, numbers, positions = row_numbers(volume, rows)
    by_number = np.empty(numbers.size, np.int64)
    by_number[numbers] = np.arange(numbers.size)
    owners = np.full(numbers.size, NONE, np.int32)
    firsts = np.zeros(owners.size, np.int64)
    order = entry_order(columns, volume.width)
    in_order = Columns(columns.places[order], columns.parts[order])
    listed = reduce_at_once(volume, Rows(starts, positions, owners, firsts), in_order)
    filled = _in_image(around, volume, columns, order)
    return BoxTunnels(
        volume,
        starts,
        _in_image(around, volume, rows, by_number),
        filled._replace(ids=filled.ids - CYCLES),
        Lists(listed, firsts, owners),
    )


def _by_part(cells: Cells) -> Cells:
    """Sort cells by their parts, so that those of one point have an order, too."""
    order = np.argsort(cells.parts, kind="stable")
    return Cells(*(part[order] for part in cells))


def _rows(around: Surroundings, volume: Volume, workers: int | None) -> Cells:
    """Return the critical edges that close a loop, or may do so; write the gradient."""
    pairing = around.pairing
    values, shown = around.within
    field = laid_out(values, shown)
    (forest,), _ = grow(
        field,
        [pairing.kind],
        [pairing.plan],
        0,
        pairing.filtration.nan,
        workers,
        around.open_sides,
        volume=volume,
    )
    nodes, edges, _ = forest.joined()
    for side in around.open_sides:
        face = pairing.ordered(face_keys(field, pairing.plan, *side))
        open_points(forest.nodes_of(side), face, nodes)
    order = np.lexsort((edges.places, edges.keys))
    kept, _, closed = join(nodes, edges, order, np.empty(0, np.int64))
    undecided = Loops(edges.places[kept], edges.members[kept], edges.lower_links[kept])
    parts = [*(part.loops for part in forest.parts), closed, undecided]
    loops = Loops(*map(np.concatenate, zip(*parts, strict=True)))
    return row_cells(loops, *_located_by(around, volume))


def _columns(around: Surroundings, volume: Volume, workers: int | None) -> Cells:
    """Return the critical squares that close no cavity within the box."""
    pairing = around.pairing
    cubes = pairing.filtration.cubes
    # What is beyond an open side belongs to the complement of the box. So does what is around the
    # volume, but not around the dual complex, whose frame is a part of it.
    closed = itertools.product(range(3), (0, 1))
    without_frame = [(axis, 1 - side) for axis, side in closed if around.framed((axis, side))]
    values, shown = around.within
    if shown is not None:
        shown = np.flip(shown)
    (forest,), (histogram,) = grow(
        laid_out(np.flip(values), shown),
        [kind_of(pairing.filtration, complement=not cubes)],
        [pairing.plan],
        0,
        pairing.filtration.nan,
        workers,
        without_frame,
        volume=volume,
        framed=True,
    )
    _, _, loops = forest.join(histogram)
    return column_cells(loops, *_located_by(around, volume))


def _located_by(around: Surroundings, volume: Volume) -> tuple[Any, ...]:
    """Return what :func:`row_cells` and :func:`column_cells` need besides loops."""
    pairing = around.pairing
    return *around.within, volume, pairing.plan, pairing.filtration.cubes


def _in_image(around: Surroundings, volume: Volume, cells: Cells, order: Array) -> CriticalCells:
    """Return cells of a box in some order, with their places in the image."""
    index = np.unravel_index(cells.places[order], volume.shape)
    inner = np.ravel_multi_index(tuple(along - 1 for along in index), around.box.shape)
    return CriticalCells(
        cells.keys[order].astype(np.uint64),
        around.box.in_image(inner),
        cells.parts[order].astype(np.int64),
    )
