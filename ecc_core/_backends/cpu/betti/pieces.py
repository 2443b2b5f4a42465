"""Pieces: boxes of an image, reduced to what is final and what other boxes can still change.

What is final within a box is counted in histograms. Components that other boxes can reach are kept
as nodes and edges, with the node and the key of each point on the open sides of the box. Two pieces
that touch are joined to one in the same way. So the size of a piece is that of its surface, and the
numbers do not depend on how an image is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kinds_of
from ecc_core._backends.cpu import launch
from ecc_core._backends.cpu.betti.basins import Edges, Nodes, number_nodes, open_points
from ecc_core._backends.cpu.betti.blocks import SPARE, Field
from ecc_core._backends.cpu.betti.forest import Forest, hold_frame, join, section, unjoined
from ecc_core._backends.cpu.betti.glue import edges_across
from ecc_core._backends.cpu.betti.lasting import Lasting
from ecc_core._backends.cpu.betti.launch import cumulate, grow, laid_out, rank_plans
from ecc_core._backends.cpu.betti.packing import pack, pack_sides, unpack, unpack_sides
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Values = NDArray[np.int64]
Side = tuple[int, int]

GRAPH = 4  # arrays of a graph besides its faces


Ended = Callable[[Array, Array], Values]
"""What to add to a histogram, from the keys of birth and death of components that end."""


class Graph(NamedTuple):
    """The part of a forest that is not final, and counts of the rest.

    Attributes
    ----------
    histogram : (bins,) int64 array
        Number of components that begin at each key, minus those that end there. Of classes that
        last: number of those that are final, at each threshold.
    births : (k,) uint64 array
        Keys at which the nodes begin. If there is a frame, it is node 0.
    edges, keys : (m, 2) int32 and (m,) uint64 arrays
        Pairs of nodes, and the keys at which they are joined.
    faces : dict
        For each open side, (axis, 0: low or 1: high), the nodes of its points.
    """

    histogram: Values
    births: Array
    edges: Array
    keys: Array
    faces: dict[Side, Array]


class Piece(NamedTuple):
    """What is known of a box of an image.

    Attributes
    ----------
    euler : (n,) int64 array
        The Euler characteristic of the box at each threshold.
    faces : dict
        For each open side the keys of its points.
    graphs : list of Graph
        One for each kind of forest.
    """

    euler: Values
    faces: dict[Side, Array]
    graphs: list[Graph]


def plans_of(dtype: Any, thresholds: Array, filtration: Filtration, masked: bool) -> list[Plan]:
    """Return the plans of keys, which are the same for all pieces of an image."""
    return rank_plans(dtype, thresholds, filtration, masked=masked, points=0)


class _Counted(NamedTuple):
    """What is counted of pieces: plans of keys, and kinds of components.

    Of classes that last, also those that count, and what each kind adds to a histogram.
    """

    plans: list[Plan]
    kinds: list[Kind]
    rule: Lasting | None
    ended: list[Ended | None]


def _counted(
    dtype: Any, thresholds: Array, filtration: Filtration, masked: bool, least: float
) -> _Counted:
    if least == 0:
        kinds = kinds_of(filtration)
        plans = plans_of(dtype, thresholds, filtration, masked)
        return _Counted(plans, kinds, None, [None] * len(kinds))
    rule = Lasting.of(dtype, thresholds, filtration, masked, least)
    return _Counted([rule.keyed], rule.kinds, rule, [partial(rule.ended, k) for k in rule.kinds])


def piece_of(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    open_sides: tuple[Side, ...],
    *,
    mask: Array | None = None,
    workers: int | None = None,
    least: float = 0,
) -> Piece:
    """Return the piece of a box. Beyond its `open_sides`, (axis, side), the image goes on.

    Counts only classes that last for at least `least`.
    """
    plans, kinds, rule, ended = _counted(
        image.dtype, thresholds, filtration, mask is not None, least
    )
    sides = [(axis + 3 - image.ndim, side) for axis, side in open_sides]
    field, top = laid_out(image, mask), plans[-1].top
    bins = 0 if rule else top + 1
    forests, histograms = grow(field, kinds, plans, bins, filtration.nan, workers, sides)
    euler = np.empty(0, np.int64)
    if rule:
        histograms = [rule.ended_within(forest, image, mask) for forest in forests]
    else:
        batch = None if mask is None else mask[None]
        euler = launch.curve(image[None], thresholds, filtration, mask=batch, workers=workers)[0]
    faces = {side: _face_keys(field, plans[-1], *side) for side in sides}
    graphs = [
        _graph_of(forest, histogram, faces, top, end)
        for forest, histogram, end in zip(forests, histograms, ended, strict=True)
    ]
    return Piece(euler, faces, graphs)


def _face_keys(field: Field, plan: Plan, axis: int, side: int) -> Array:
    """Return the keys of the points on one side."""
    shape = field.source.shape
    box = section(Block((0, 0, 0), shape), axis, side * (shape[axis] - 1))
    _, rows, columns = box.shape
    keys = np.empty(math.prod(box.shape) + SPARE, plan.key_dtype)
    load_box(plan, field.source, field.mask, box, keys, 0, (rows * columns, columns))
    return keys[:-SPARE].reshape(box.shape).squeeze(axis)


def _ordered(keys: Array, kind: Kind, top: int) -> Array:
    """Return keys in the order in which points enter a forest."""
    return keys.dtype.type(top) - keys if kind.complement else keys


def _graph_of(
    forest: Forest,
    histogram: Values,
    faces: dict[Side, Array],
    top: int,
    ended: Ended | None,
) -> Graph:
    """Join the blocks of a forest, and return what is not final."""
    ends = {side: forest.surface[forest.grid.side(*side)].take(0, side[0]) for side in faces}
    ordered = {side: _ordered(face, forest.kind, top) for side, face in faces.items()}
    nodes, (edges, keys, _), _ = forest.joined()
    return _reduced(nodes, edges, keys, histogram, ordered, ends, forest.kind.complement, ended)


def _reduced(
    nodes: Nodes,
    edges: Array,
    keys: Array,
    histogram: Values,
    faces: dict[Side, Array],
    ends: dict[Side, Array],
    frame: bool,
    ended: Ended | None,
) -> Graph:
    """Join nodes along edges, and return what other boxes can still change."""
    nodes.places[:] = np.arange(nodes.places.size)
    if frame:
        hold_frame(nodes)
    for side, own in faces.items():
        open_points(ends[side], own, nodes)
    counted = histogram if ended is None else histogram[:0]
    order = np.argsort(keys, kind="stable")
    kept, pairs = join(nodes, Edges(edges, keys, np.arange(keys.size)), order, counted)
    if ended is not None:
        histogram = histogram + ended(nodes.births[pairs[:, 0]], keys[pairs[:, 1]])
    count = nodes.births.size
    numbers, roots = np.empty(count, np.int32), np.empty(count, np.int32)
    roots = roots[: number_nodes(nodes.merged, numbers, roots)]
    left = {side: numbers[end] for side, end in ends.items()}
    return Graph(histogram, nodes.births[roots], numbers[edges[kept]], keys[kept], left)


def join_pieces(
    low: Piece,
    high: Piece,
    axis: int,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
    least: float = 0,
) -> Piece:
    """Join two pieces that touch across an axis; `dtype` is that of the image."""
    axis += 3 - filtration.ndim
    plans, kinds, rule, ended = _counted(dtype, thresholds, filtration, masked, least)
    touching = low.faces[axis, 1], high.faces[axis, 0]
    faces = joined_faces(low.faces, high.faces, axis)
    given = touching, faces, axis, plans[-1].top
    graphs = [
        _joined_graphs(first, second, kind, *given, end)
        for first, second, kind, end in zip(low.graphs, high.graphs, kinds, ended, strict=True)
    ]
    if rule:
        return Piece(low.euler, faces, graphs)
    crossing = _crossing(touching, plans[-1], filtration)
    return Piece(low.euler + high.euler + crossing, faces, graphs)


def joined_faces(low: dict[Side, Array], high: dict[Side, Array], axis: int) -> dict[Side, Array]:
    """Return the arrays over the open sides of the union of two boxes."""
    faces = {side: face for side, face in low.items() if side == (axis, 0)}
    faces |= {side: face for side, face in high.items() if side == (axis, 1)}
    for (other, side), face in low.items():
        if other != axis:
            along = axis - (axis > other)  # of the two axes of a face
            faces[other, side] = np.concatenate([face, high[other, side]], axis=along)
    return faces


def _joined_graphs(
    low: Graph,
    high: Graph,
    kind: Kind,
    touching: tuple[Array, Array],
    faces: dict[Side, Array],
    axis: int,
    top: int,
    ended: Ended | None,
) -> Graph:
    """Join the graphs of two boxes that touch, whose faces are those of the union."""
    count = low.births.size
    nodes = unjoined(count + high.births.size)
    nodes.births[:] = np.concatenate([low.births, high.births])
    moved = {side: face + np.int32(count) for side, face in high.faces.items()}
    own, far = (_ordered(face, kind, top) for face in touching)
    touch = low.faces[axis, 1], own, moved[axis, 0], far
    edges, keys = edges_across(*touch, wide=kind.connectivity > 1)
    if kind.complement:
        nodes.tree[count] = 0
    return _reduced(
        nodes,
        np.concatenate([low.edges, high.edges + np.int32(count), edges]),
        np.concatenate([low.keys, high.keys, keys]),
        low.histogram + high.histogram,
        {side: _ordered(face, kind, top) for side, face in faces.items()},
        joined_faces(low.faces, moved, axis),
        kind.complement,
        ended,
    )


def _crossing(touching: tuple[Array, Array], plan: Plan, filtration: Filtration) -> Values:
    """Return the Euler characteristic of the union of two boxes minus those of both.

    It is the same for the two faces that touch.
    """
    slab = np.stack(touching)
    slab = slab.reshape((2, *slab.shape[4 - filtration.ndim :]))
    # Keys are in the order in which points enter.
    order = slice(None, None, -1 if filtration.superlevel else 1)
    ranks, keyed = plan.entered[order] - 1, replace(filtration, superlevel=False)
    together = launch.curve(slab[None], ranks, keyed, workers=1)[0]
    alone = launch.curve(slab[:, None], ranks, keyed, workers=1).sum(axis=0)
    crossing: Values = (together - alone)[order]
    return crossing


def numbers_of(
    piece: Piece,
    dtype: np.dtype[Any],
    thresholds: Array,
    filtration: Filtration,
    *,
    masked: bool,
    least: float = 0,
) -> Values:
    """Return the Betti numbers of a piece without open sides, (d, n)."""
    plans, kinds, rule, _ = _counted(dtype, thresholds, filtration, masked, least)
    if rule:
        lasting = np.stack([graph.histogram for graph in piece.graphs])
        lasting[0] += rule.counted(rule.of_keys(piece.graphs[0].births, kinds[0]))  # for ever
        return lasting
    counted = zip(piece.graphs, kinds, strict=True)
    ends = [cumulate(graph.histogram, kind, plans[-1]) for graph, kind in counted]
    values: Values = complete(ends, kinds, piece.euler, filtration.ndim)
    return values


def pack_piece(piece: Piece) -> Values:
    """Return a piece as one array."""
    sides = sorted(piece.faces)
    arrays = [piece.euler, pack_sides(sides), *(piece.faces[side] for side in sides)]
    for graph in piece.graphs:
        arrays += [graph.histogram, graph.births, graph.edges, graph.keys]
        arrays += [graph.faces[side] for side in sides]
    return pack(arrays)


def unpack_piece(values: Values) -> Piece:
    """Return the piece that was packed into an array."""
    euler, listed, *arrays = unpack(values)
    sides = unpack_sides(listed)
    own, graphs = len(sides), []
    for at in range(own, len(arrays), GRAPH + own):
        histogram, births, edges, keys = arrays[at : at + GRAPH]
        faces = dict(zip(sides, arrays[at + GRAPH :], strict=False))
        graphs.append(Graph(histogram, births, edges, keys, faces))
    return Piece(euler, dict(zip(sides, arrays[:own], strict=True)), graphs)
