"""Pairs of birth and death, of boxes of an image that are joined where they touch.

Components of a box that no other box can reach before they die are final: their pairs are listed.
The rest is kept as nodes and edges, with the node and the key of each point on the open sides of
the box, so that a piece is as large as its surface, besides the pairs that it lists. Points enter
in the order of their keys, and of equal keys in that of their places in the whole image, so that
the pairs do not depend on how it is cut.

Holes in 2-D and cavities are components of the complement, for which points enter in the opposite
order, equal ones too: pieces are those of the flipped image then. Along axes that are periodic,
sides stay open until the whole image has been joined; then they are joined to each other. If there
is one, all sides of the complement stay open: what is beyond the other ones is a layer, as in
`torus.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import Edges, number_nodes, open_points
from ecc_core._backends.cpu.betti.blocks import Field
from ecc_core._backends.cpu.betti.forest import join, unjoined
from ecc_core._backends.cpu.betti.launch import grow, laid_out
from ecc_core._backends.cpu.betti.pair_around import joined_around
from ecc_core._backends.cpu.betti.pair_boxes import (
    FRAME,
    Box,
    Events,
    Graph,
    Pairing,
    PairPiece,
    face_of,
    layout_of,
    together,
)
from ecc_core._backends.cpu.betti.pair_choice import absent
from ecc_core._backends.cpu.betti.pair_joins import edges_between
from ecc_core._backends.cpu.betti.pieces import face_keys, joined_faces, pack, unpack
from ecc_core._backends.cpu.order import entry_values, stable_order
from ecc_core._backends.pair_options import PairOptions, Pairs, Places
from ecc_core._request.levels import last_value

Array = NDArray[Any]


def piece_of(
    image: Array,
    options: PairOptions,
    start: Sequence[int],
    whole: Sequence[int],
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> PairPiece:
    """Return the piece of a box of an image, which begins at `start` of the `whole`."""
    pairing = Pairing.of(options)
    lead = 3 - image.ndim
    box = Box((0,) * lead + tuple(start), (1,) * lead + image.shape, (1,) * lead + tuple(whole))
    joined = box.flipped() if pairing.kind.complement else box
    field = _field(image, mask, pairing)
    sides = pairing.open_sides(joined)
    (forest,), _ = grow(
        field,
        [pairing.kind],
        plans=[pairing.plan],
        bins=0,
        nan=pairing.filtration.nan,
        workers=workers,
        open_sides=sides,
    )
    nodes, edges, found = forest.joined()
    faces = {side: pairing.ordered(face_keys(field, pairing.plan, *side)) for side in sides}
    graph = Graph(
        births=nodes.births,
        places=joined.in_image(nodes.places),
        edges=edges.nodes,
        keys=edges.keys,
        edge_places=joined.in_image(edges.places),
        faces={side: forest.nodes_of(side) for side in sides},
    )
    if pairing.kind.complement:
        found = np.where(found < 0, FRAME, image.size - 1 - found)
    begins, ends = (_events_at(image, mask, places, box) for places in found.T)
    pairs = pairing.listed(begins, ends)
    return _reduced(PairPiece(joined, faces, graph, pairs), nodes.tree, pairing)


def _field(image: Array, mask: Array | None, pairing: Pairing) -> Field:
    if not pairing.kind.complement:
        return laid_out(image, mask)
    return laid_out(np.flip(image), None if mask is None else np.flip(mask))


def _events_at(image: Array, mask: Array | None, places: Places, box: Box) -> Events:
    """Return what is known of points of a box, from its values."""
    index = np.unravel_index(places, image.shape)
    values = image[index].astype(image.dtype.newbyteorder("="), copy=False)
    shown = None if mask is None else mask[index]
    return Events(values, ~absent(values, shown), box.in_image(places))


def _reduced(piece: PairPiece, tree: Array, pairing: Pairing) -> PairPiece:
    """Join the nodes of a graph along its edges; keep what other boxes can still change.

    `tree` has the parent of each node: itself, or a node that is the same one in another box.
    """
    graph = piece.graph
    nodes = unjoined(graph.births.size)
    nodes.tree[:] = tree
    nodes.births[:] = graph.births
    by_age = np.lexsort((graph.places, graph.births))
    nodes.places[by_age] = np.arange(by_age.size)
    if pairing.kind.complement:  # The frame is never final.
        nodes.opens[0] = 0
        nodes.closed[0] = False
    for side, face in piece.faces.items():
        open_points(graph.faces[side], face, nodes)
    order = np.lexsort((graph.edge_places, graph.keys))
    edges = Edges(graph.edges, graph.keys, np.arange(graph.keys.size))
    kept, ended, _ = join(nodes, edges, order, np.empty(0, np.int64))
    young = by_age[ended[:, 0]]
    at = ended[:, 1]
    whole = piece.box.whole
    begins = pairing.events(graph.births[young], graph.places[young], whole)
    ends = pairing.events(graph.keys[at], graph.edge_places[at], whole)
    pairs = together([piece.pairs, pairing.listed(begins, ends)])
    numbers, roots = (np.empty(nodes.tree.size, np.int32) for _ in range(2))
    roots = roots[: number_nodes(nodes.merged, numbers, roots)]
    left = Graph(
        births=graph.births[roots],
        places=graph.places[roots],
        edges=numbers[graph.edges[kept]],
        keys=graph.keys[kept],
        edge_places=graph.edge_places[kept],
        faces={side: numbers[face] for side, face in graph.faces.items()},
    )
    return piece._replace(graph=left, pairs=pairs)


def join_pieces(low: PairPiece, high: PairPiece, axis: int, options: PairOptions) -> PairPiece:
    """Join the pieces of two boxes that touch across an axis of the image."""
    pairing = Pairing.of(options)
    axis += 3 - pairing.filtration.ndim
    if pairing.kind.complement:  # Pieces of the complement are those of the flipped image.
        low, high = high, low
    count = low.graph.births.size
    more = high.graph
    moved = {side: face + np.int32(count) for side, face in more.faces.items()}
    edges, keys, places, _ = edges_between(
        face_of(low.graph.faces, low, (axis, 1)),
        face_of(moved, high, (axis, 0)),
        *layout_of(low.box, axis, (False, False, False)),
        pairing.kind.connectivity > 1,
    )
    graph = Graph(
        births=np.concatenate([low.graph.births, more.births]),
        places=np.concatenate([low.graph.places, more.places]),
        edges=np.concatenate([low.graph.edges, more.edges + np.int32(count), edges]),
        keys=np.concatenate([low.graph.keys, more.keys, keys]),
        edge_places=np.concatenate([low.graph.edge_places, more.edge_places, places]),
        faces=joined_faces(low.graph.faces, moved, axis),
    )
    tree = np.arange(graph.births.size)
    if pairing.kind.complement:
        tree[count] = 0
    shape = list(low.box.shape)
    shape[axis] += high.box.shape[axis]
    box = low.box._replace(shape=tuple(shape))
    faces = joined_faces(low.faces, high.faces, axis)
    pairs = together([low.pairs, high.pairs])
    return _reduced(PairPiece(box, faces, graph, pairs), tree, pairing)


def take_pairs(piece: PairPiece) -> tuple[PairPiece, Pairs]:
    """Return a piece without the pairs that it lists, and these."""
    none = Pairs(*(part[:0] for part in piece.pairs))
    return piece._replace(pairs=none), piece.pairs


def with_pairs(piece: PairPiece, pairs: Pairs) -> PairPiece:
    """Return a piece that lists given pairs."""
    return piece._replace(pairs=pairs)


def pairs_of(piece: PairPiece, options: PairOptions) -> Pairs:
    """Return the pairs of a whole image, by birth, then by the places of birth and death."""
    pairing = Pairing.of(options)
    if any(pairing.wraps):
        return in_order(joined_around(piece, pairing), options)
    pairs = piece.pairs
    if not pairing.kind.complement:
        graph = piece.graph
        last = pairing.events(graph.births, graph.places, piece.box.whole)
        pairs = together([pairs, pairing.listed(last)])
    return in_order(pairs, options)


def in_order(pairs: Pairs, options: PairOptions) -> Pairs:
    """Return all pairs of an image by birth, then by the places of birth and death."""
    superlevel = options.filtration.superlevel
    order = np.lexsort((pairs.death_places, pairs.birth_places))
    order = order[stable_order(entry_values(pairs.births[order], superlevel))]
    found = Pairs(*(part[order] for part in pairs))
    found.deaths[found.death_places < 0] = last_value(found.deaths.dtype, superlevel)
    return found


def pack_piece(piece: PairPiece) -> NDArray[np.int64]:
    """Return a piece as one array."""
    sides = sorted(piece.faces)
    *graph, nodes = piece.graph
    arrays = [np.array(piece.box, np.int64), *graph, *piece.pairs]
    for of_sides in (piece.faces, nodes):
        arrays += [of_sides[side] for side in sides]
    return pack(sides, arrays)


def unpack_piece(values: NDArray[np.int64]) -> PairPiece:
    """Return the piece that was packed into an array."""
    sides, (box, *arrays) = unpack(values)
    births, places, edges, keys, edge_places, *arrays = arrays
    pairs = Pairs(*arrays[: len(Pairs._fields)])
    planes = arrays[len(pairs) :]
    faces = dict(zip(sides, planes[: len(sides)], strict=True))
    nodes = dict(zip(sides, planes[len(sides) :], strict=True))
    graph = Graph(
        births=births, places=places, edges=edges, keys=keys, edge_places=edge_places, faces=nodes
    )
    corners = map(tuple, box.tolist())
    return PairPiece(Box(*corners), faces, graph, pairs)
