"""Image persistence of tunnels: births in a volume, and deaths in the union with another one.

The boundary matrix has a row for each edge that closes a loop when it enters the volume, in whose
order pivots are the last, and a column for each square that fills a loop when it enters the union,
in whose order columns are reduced. The gradient of both orders (``both_gradients.py``) removes
nearly all of them, and what is left is reduced as the tunnels of one volume are.

Points that are closed cubes are the vertices of the dual complex, in which they enter in the
opposite order. Rows and columns are exchanged there: those of the union are rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti import tunnels
from ecc_core._backends.cpu.betti.both_gradients import (
    NO_CLASS,
    LeftCells,
    column_cells,
    match_both,
    row_cells,
)
from ecc_core._backends.cpu.betti.cells import cycles_of
from ecc_core._backends.cpu.betti.forest import Loops
from ecc_core._backends.cpu.betti.reduction import NONE, Columns
from ecc_core._backends.cpu.betti.trees import EntryOrder
from ecc_core._backends.cpu.betti.union_loops import StarLoops, edges_that_close
from ecc_core._backends.cpu.betti.volume import Volume

Array = NDArray[Any]
Points = NDArray[np.int64]


class Union(NamedTuple):
    """The union of two volumes, and what closes its loops: rows of cubes, columns of vertices."""

    order: EntryOrder
    """The order of the points that are adjacent along axes: for closed cubes, those of the
    complement."""
    loops: StarLoops


class Tunnels(NamedTuple):
    """The tunnels of a volume, and what its tunnels in the union are found from."""

    births: Points
    deaths: Points
    order: EntryOrder
    loops: dict[int, Loops]
    """The loops of both forests, by connectivity, as for :func:`tunnel_pairs`."""


class ImagePairs(NamedTuple):
    """The tunnels of a volume: their births, their deaths in the union, and their killers.

    A killer is a cell of the union that ends a tunnel; it ends at most one tunnel of each volume.
    """

    births: Points
    deaths: Points
    killers: Points


def image_pairs(own: Tunnels, union: Union) -> ImagePairs:
    """Return the tunnels of a volume in the union."""
    cubes = own.order.kind.complement
    if cubes:
        closing = union.loops
        filling = StarLoops(own.order.size - 1 - own.loops[3].places, cycles_of(own.loops[3]))
        rows, columns = union.order, own.order
    else:
        closing = edges_that_close(own.loops[1])
        filling = union.loops
        rows, columns = own.order, union.order
    special = match_both(rows, columns)
    closes = np.zeros(special.volume.width, np.uint8)
    np.bitwise_or.at(closes, rows.places_of_vertices(closing.points), np.uint8(1) << closing.parts)
    row_parts = row_cells(special, closes)
    column_parts = _with_filling(column_cells(special), columns, filling)
    row_of, column_of = _reduced(
        special.volume, rows, row_parts=row_parts, columns=columns, squares=column_parts
    )
    births = rows.points(row_parts.places[row_of])
    deaths = columns.points(column_parts.places[column_of])
    killers = column_parts.classes[column_of]
    if cubes:
        births, deaths = deaths, births
        killers = row_parts.classes[row_of]
    known = killers != NO_CLASS  # What has no class lasts for no time.
    return ImagePairs(births[known], deaths[known], killers[known])


def _with_filling(left: LeftCells, order: EntryOrder, filling: StarLoops) -> LeftCells:
    """Return squares that are left, and then those that fill loops, each with its own class."""
    places = order.places_of_vertices(filling.points).astype(left.places.dtype)
    return LeftCells(
        np.concatenate([left.places, places]),
        np.concatenate([left.parts, filling.parts]),
        np.concatenate([left.classes, np.arange(places.size)]),
    )


def _reduced(
    volume: Volume, rows: EntryOrder, row_parts: LeftCells, columns: EntryOrder, squares: LeftCells
) -> tuple[Points, Points]:
    """Return the numbers of the edges and squares that are paired."""
    edges = tunnels.Cells(row_parts.places, rows.keys[row_parts.places], row_parts.parts)
    starts, numbers, positions = tunnels.row_numbers(volume, edges)
    entering = tunnels.Cells(squares.places, columns.keys[squares.places], squares.parts)
    order = tunnels.entry_order(entering, volume.width)
    in_order = Columns(entering.places[order], entering.parts[order])
    owners = tunnels.owners_of(volume, starts, positions=positions, columns=in_order, workers=1)[
        numbers
    ]
    paired = np.flatnonzero(owners != NONE)
    return paired, order[owners[paired]].astype(np.int64)
