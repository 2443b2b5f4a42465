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

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti import tunnels
from ecc_core._backends.cpu.betti.both_gradients import (
    NO_CLASS,
    Filtered,
    LeftCells,
    column_cells,
    filtered,
    match_both,
    row_cells,
)
from ecc_core._backends.cpu.betti.cells import cycles_of
from ecc_core._backends.cpu.betti.forest import Loops
from ecc_core._backends.cpu.betti.reduction import NONE, Columns
from ecc_core._backends.cpu.betti.stars import ends_at
from ecc_core._backends.cpu.betti.trees import VolumeBasins
from ecc_core._backends.cpu.betti.union_loops import (
    StarLoops,
    edges_that_close,
    squares_that_close,
)
from ecc_core._backends.cpu.betti.volume import Volume

Array = NDArray[Any]
Points = NDArray[np.int64]


class Union(NamedTuple):
    """The union of two volumes, and what closes its loops: rows of cubes, columns of vertices."""

    order: Filtered
    loops: StarLoops


class ImagePairs(NamedTuple):
    """Where tunnels are born in a volume and die in the union, and the numbers of what kills them.

    Both volumes have the same numbers, and what has one kills one tunnel of each at most.
    """

    births: Points
    deaths: Points
    killers: Points


def union_of(values: Array, shown: Array | None, around: VolumeBasins) -> Union:
    """Return the union, whose complement has the basins `around` it."""
    cubes = around.kind.connectivity == 1
    loops = edges_that_close(around) if cubes else squares_that_close(around)
    return Union(filtered(values, shown, Kind(1, cubes)), loops)


def image_pairs(
    values: Array, shown: Array | None, loops: dict[int, Loops], union: Union
) -> ImagePairs:
    """Return the tunnels of a volume in the union; `loops` are those of its forests.

    They are by connectivity, as for :func:`tunnel_pairs`.
    """
    kind = union.order.kind
    own = filtered(values, shown, kind)
    if kind.complement:
        closing = union.loops
        filling = _filling(own, loops[3])
        rows, columns = union.order, own
    else:
        closing = StarLoops(loops[1].places, ends_at(loops[1].members))
        filling = union.loops
        rows, columns = own, union.order
    special = match_both(rows, columns)
    closes = np.zeros(special.volume.width, np.uint8)
    np.bitwise_or.at(closes, rows.places(closing.points), np.uint8(1) << closing.parts)
    row_parts = row_cells(special, closes)
    column_parts = _with_filling(column_cells(special), columns, filling)
    row_of, column_of = _reduced(special.volume, rows, row_parts, columns, column_parts)
    births = rows.points(row_parts.places[row_of])
    deaths = columns.points(column_parts.places[column_of])
    killers = column_parts.classes[column_of]
    if kind.complement:
        births, deaths = deaths, births
        killers = row_parts.classes[row_of]
    known = killers != NO_CLASS  # What has no class lasts for no time.
    return ImagePairs(births[known], deaths[known], killers[known])


def _filling(order: Filtered, loops: Loops) -> StarLoops:
    """Return the loops of the complement as columns of vertices, of which it is flipped."""
    return StarLoops(order.size - 1 - loops.places, cycles_of(loops))


def _with_filling(left: LeftCells, order: Filtered, filling: StarLoops) -> LeftCells:
    """Return squares that are left, and then those that fill loops, each with its own class."""
    places = order.places(filling.points).astype(left.places.dtype)
    return LeftCells(
        np.concatenate([left.places, places]),
        np.concatenate([left.parts, filling.parts]),
        np.concatenate([left.classes, np.arange(places.size)]),
    )


def _reduced(
    volume: Volume, rows: Filtered, row_parts: LeftCells, columns: Filtered, squares: LeftCells
) -> tuple[Points, Points]:
    """Return the numbers of the edges and squares that are paired."""
    edges = tunnels.Cells(row_parts.places, rows.keys[row_parts.places], row_parts.parts)
    starts, numbers, positions = tunnels.row_numbers(volume, edges)
    entering = tunnels.Cells(squares.places, columns.keys[squares.places], squares.parts)
    order = tunnels.entry_order(entering, volume.width)
    in_order = Columns(entering.places[order], entering.parts[order])
    owners = tunnels.owners_of(volume, starts, positions, in_order, 1)[numbers]
    paired = np.flatnonzero(owners != NONE)
    return paired, order[owners[paired]].astype(np.int64)
