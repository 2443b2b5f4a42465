"""Tunnels of boxes of a volume that are joined where they touch.

The volume is cut between points: its cells are those of boxes, each an image that ends at its
faces, and the cells of the seams between them (`seams.py`). Each of these parts has a discrete
gradient of its own, which matches cells of one point only. So there are a few more critical cells
than in memory, whose pairs do not last, but no path leaves a box for another one: those of a seam
lead to the seam itself and to the boxes on both sides, and those of a box stay in it. Each box is
read once, with the points around it, and gives its share of the columns of its seams.

Columns are reduced in their box as far as they go. A piece consists of the rows and columns that
columns of its open sides can reach (`critical_matrix.py`); the rest is final.

Points are vertices here. Closed cubes are the vertices of the dual complex, as in `tunnels.py`: the
volume is flipped, points enter in the opposite order, and a frame, which precedes all of them, lies
around the volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, kind_of
from ecc_core._backends.cpu.betti import pair_pieces
from ecc_core._backends.cpu.betti.box_tunnels import BoxTunnels, box_tunnels
from ecc_core._backends.cpu.betti.critical_matrix import (
    REDUCED,
    Final,
    Lists,
    Matrix,
    Sums,
    cells_of,
    joined,
    left_over,
    reduced,
    sums_of,
)
from ecc_core._backends.cpu.betti.pair_around import loops_around
from ecc_core._backends.cpu.betti.pair_boxes import Box, Pairing, PairPiece, together
from ecc_core._backends.cpu.betti.pair_pieces import in_order
from ecc_core._backends.cpu.betti.reduction import NONE
from ecc_core._backends.cpu.betti.seam_columns import SeamColumns, SeamsOfBox, Surroundings
from ecc_core._backends.cpu.betti.seams import NOWHERE, rows_of_chains
from ecc_core._backends.cpu.betti.stars import path_offsets
from ecc_core._backends.pair_options import PairOptions, Pairs

Array = NDArray[Any]


class TunnelPiece(NamedTuple):
    """What is known of a box."""

    box: Box
    matrix: Matrix
    """Rows and columns that other boxes can change."""
    pairs: Pairs
    """The pairs that are final and last long enough."""
    components: PairPiece | None
    """The components of a periodic volume, whose first loops around it are tunnels."""


class TunnelPairing(Pairing):
    """What boxes are joined by: the order of points that are vertices."""

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.filtration, complement=self.filtration.cubes)

    def stays_open(self, axis: int) -> bool:
        return self.wraps[axis]

    def of_components(self) -> Pairing:
        return Pairing.of(replace(self, dimension=0))

    def ends(self, final: Final, box: Box) -> Pairs:
        """Return the pairs of rows and columns."""
        of_rows, of_columns = (self.events(cells.keys, cells.places, box.whole) for cells in final)
        return self.listed(of_rows, of_columns)


def piece_of(
    image: Array,
    options: PairOptions,
    start: Sequence[int],
    stop: Sequence[int],
    whole: Sequence[int],
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> TunnelPiece:
    """Return the piece of a box from `start` to `stop`, of a volume of the shape `whole`.

    The image is that of the box and the points around it that the volume has.
    """
    pairing = TunnelPairing.of(options)
    shape = tuple(last - first for first, last in zip(start, stop, strict=True))
    box = Box(tuple(start), shape, tuple(whole))
    around = Surroundings(image, mask, box, pairing)
    components = None
    if any(pairing.wraps):
        values, shown = around.within
        components = pair_pieces.piece_of(
            values, pairing.of_components(), start, whole, mask=shown, workers=workers
        )
    if pairing.filtration.cubes:
        around = around.flipped()
    found = box_tunnels(around, workers)
    seams = SeamsOfBox(around, found.volume, found.rows.keys.size)
    matrix = _with_seams(found, seams)
    more = matrix.rows.keys.size - found.rows.keys.size
    lists = Lists(
        found.lists.listed,
        np.pad(found.lists.firsts, (0, more)),
        np.pad(found.lists.owners, (0, more), constant_values=NONE),
    )
    left, final = left_over(matrix, lists)
    return TunnelPiece(around.box, left, pairing.ends(final, around.box), components)


def _with_seams(found: BoxTunnels, seams: SeamsOfBox) -> Matrix:
    """Return the rows and columns of a box and its seams; only the latter are listed."""
    count = found.columns.keys.size
    states = np.zeros(found.volume.gradient.size, np.uint8)
    around = path_offsets(found.volume.steps, found.volume.width)
    none = np.empty(0, np.uint32)
    parts = [Sums(found.columns, np.full(count, REDUCED, np.int8), np.zeros(count, int), none)]
    for one in seams.columns():
        rows, counts = rows_of_chains(
            found.volume, around, found.starts, one.edges, one.ends, states
        )
        parts.append(_sums_of_seam(one, rows, counts))
    return Matrix(cells_of([found.rows, *seams.rows.values()]), sums_of(parts))


def _sums_of_seam(one: SeamColumns, rows: Array, counts: Array) -> Sums:
    """Return columns with the rows of the box and those of seams."""
    known = one.rows != NOWHERE
    within, _ = np.nonzero(known)
    column_of = np.concatenate([np.repeat(np.arange(counts.size), counts), within])
    entries = np.concatenate([rows, one.rows[known].astype(np.uint32)])
    shares = np.full(counts.size, one.share, np.int8)
    in_order = np.argsort(column_of, kind="stable")
    return Sums(one.cells, shares, counts + known.sum(axis=1), entries[in_order])


def join_pieces(
    low: TunnelPiece, high: TunnelPiece, axis: int, options: PairOptions
) -> TunnelPiece:
    """Join the pieces of two boxes that touch across an axis of the image."""
    pairing = TunnelPairing.of(options)
    components = None
    if low.components is not None and high.components is not None:
        components = pair_pieces.join_pieces(
            low.components, high.components, axis, pairing.of_components()
        )
    if pairing.filtration.cubes:  # The pieces are those of the flipped volume.
        low, high = high, low
    shape = list(low.box.shape)
    shape[axis] += high.box.shape[axis]
    box = low.box._replace(shape=tuple(shape))
    left, final = reduced(joined([low.matrix, high.matrix]))
    pairs = together([low.pairs, high.pairs, pairing.ends(final, box)])
    return TunnelPiece(box, left, pairs, components)


def pairs_of(piece: TunnelPiece, options: PairOptions) -> Pairs:
    """Return the pairs of a whole volume, by birth, then by the places of birth and death."""
    if piece.components is None:
        return in_order(piece.pairs, options)
    pairing = TunnelPairing.of(options)
    # A box that touches itself has two shares of the columns in between.
    _, final = reduced(joined([piece.matrix]))
    essential = loops_around(piece.components, pairing.of_components())
    pairs = together([piece.pairs, pairing.ends(final, piece.box), essential])
    return in_order(pairs, options)
