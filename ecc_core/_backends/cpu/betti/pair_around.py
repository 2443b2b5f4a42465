"""Pairs of an image that is periodic along some axes, from the piece of the whole of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.pair_boxes import (
    Array,
    Pairing,
    PairPiece,
    Side,
    face_of,
    layout_of,
    together,
)
from ecc_core._backends.cpu.betti.pair_joins import (
    COLUMNS_WRAP,
    ROWS_WRAP,
    edges_between,
    join_around,
)
from ecc_core._backends.pair_options import Pairs, Places


class _Around(NamedTuple):
    """Edges that lead around an image, and the sides that they cross."""

    edges: Array
    keys: Array
    places: Places
    crossed: NDArray[np.uint8]
    """A bit for each axis."""


def joined_around(piece: PairPiece, pairing: Pairing) -> Pairs:
    """Join opposite sides of an image; return all of its pairs."""
    lives, last, lost = _ends_around(piece, pairing)
    # A class of loops that the complement loses begins in the image, and never dies there.
    essential = lost if pairing.kind.complement else last
    return together([piece.pairs, lives, essential])


def loops_around(piece: PairPiece, pairing: Pairing) -> Pairs:
    """Return the tunnels of an image that never end: its first loops around the torus."""
    _, _, loops = _ends_around(piece, pairing)
    return loops


def _ends_around(piece: PairPiece, pairing: Pairing) -> tuple[Pairs, Pairs, Pairs]:
    """Join opposite sides of an image.

    Returns the components that end then, those that do not, and for each class of loops that is not
    a sum of earlier ones the point at which it is closed.
    """
    graph = piece.graph
    inner = np.zeros(graph.keys.size, np.uint8)
    found = [_Around(graph.edges, graph.keys, graph.edge_places, inner)]
    for axis in range(3):
        if pairing.wraps[axis]:
            found.append(_across(piece, axis, pairing))
        elif pairing.has_layer and pairing.stays_open(axis):
            found += [_to_layer(piece, (axis, side)) for side in (0, 1)]
    edges, keys, places, crossed = map(np.concatenate, zip(*found, strict=True))
    order = np.lexsort((places, keys))
    ages = np.empty(graph.births.size, np.int64)
    ages[np.lexsort((graph.places, graph.births))] = np.arange(ages.size)
    ended = np.empty((ages.size, 2), np.int64)
    loops = np.empty(3, np.int64)
    count, closed = join_around(
        edges[order], crossed[order], ages, _loops_of_layers(pairing), ended, loops
    )
    young, at = ended[:count].T
    at = order[at]
    whole = piece.box.whole
    begins = pairing.events(graph.births[young], graph.places[young], whole)
    ends = pairing.events(keys[at], places[at], whole)
    lost = order[loops[:closed]]
    last = np.setdiff1d(np.arange(ages.size), young)
    return (
        pairing.listed(begins, ends),
        pairing.listed(pairing.events(graph.births[last], graph.places[last], whole)),
        pairing.listed(pairing.events(keys[lost], places[lost], whole)),
    )


def _across(piece: PairPiece, axis: int, pairing: Pairing) -> _Around:
    """Return the edges across an axis; those across axes before it are known already."""
    wraps = [touch and other < axis for other, touch in enumerate(pairing.wraps)]
    edges, keys, places, sides = edges_between(
        face_of(piece.graph.faces, piece, (axis, 1)),
        face_of(piece.graph.faces, piece, (axis, 0)),
        *layout_of(piece.box, axis, wraps),
        pairing.kind.connectivity > 1,
    )
    along = [other for other in range(3) if other != axis]
    crossed = np.full(sides.size, 1 << axis, np.uint8)
    crossed[sides & ROWS_WRAP > 0] |= np.uint8(1 << along[0])
    crossed[sides & COLUMNS_WRAP > 0] |= np.uint8(1 << along[1])
    return _Around(edges, keys, places, crossed)


def _to_layer(piece: PairPiece, side: Side) -> _Around:
    """Return the edges between a side and the layer beyond it, which is node 0.

    Each node is joined to it with its first point on this side.
    """
    nodes, keys, first = face_of(piece.graph.faces, piece, side)
    steps, _ = layout_of(piece.box, side[0], (False, False, False))
    rows = steps[0] * np.arange(nodes.shape[0])
    columns = steps[1] * np.arange(nodes.shape[1])
    places = (first + rows[:, None] + columns).reshape(-1)
    own = nodes.reshape(-1)
    order = np.lexsort((places, keys.reshape(-1), own))
    order = order[np.flatnonzero(np.diff(own[order], prepend=-1))]
    edges = np.zeros((order.size, 2), np.int32)
    edges[:, 1] = own[order]
    crossed = np.full(order.size, side[1] << side[0], np.uint8)
    return _Around(edges, keys.reshape(-1)[order], places[order], crossed)


def _loops_of_layers(pairing: Pairing) -> int:
    """Return the classes of loops within layers, a bit for each; bit 0 is that of trivial loops.

    A layer across an axis has the loops along all others.
    """
    lead = 3 - pairing.filtration.ndim
    layers = [axis for axis in range(lead, 3) if pairing.has_layer and not pairing.wraps[axis]]
    if not layers:
        return 1
    if len(layers) > 1:
        return 0xFF
    return sum(1 << loop for loop in range(8) if not loop >> layers[0] & 1)
