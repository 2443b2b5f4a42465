"""Pieces: boxes of an image, reduced to what is final and what other boxes can still change.

What is final within a box is counted in histograms. Components that other boxes can reach are kept
as nodes and edges, with the node and the key of each point on the open sides of the box. Two pieces
that touch are joined to one in the same way. So the size of a piece is that of its surface, and the
numbers do not depend on how an image is cut.

If only classes that last are counted, in 1-D and 2-D, each is counted once it is final. Keys are
then in the order of values, so that the value of each key is known.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.components import Kind, complete, kind_of, kinds_of
from ecc_core._backends.cpu import curves
from ecc_core._backends.cpu.betti.basins import Edges, Nodes, number_nodes, open_points
from ecc_core._backends.cpu.betti.blocks import SPARE, Field, section
from ecc_core._backends.cpu.betti.forest import join, unjoined
from ecc_core._backends.cpu.betti.launch import cumulate, grow, laid_out, rank_plans
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import unsigned, values_of
from ecc_core._backends.cpu.encoders.plans import Plan, coefficient_plan
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.scans.values import entered
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Filtration
from ecc_core._request.persistence import lasting

Array = NDArray[Any]
Values = NDArray[np.int64]
Side = tuple[int, int]
Points = tuple[Array, NDArray[np.bool_]]
"""Values, and which of them enter."""

GRAPH = 4
"""The number of arrays of a graph besides its faces."""
WORD = 8
"""Bytes of an element of a packed array."""


class Graph(NamedTuple):
    """The part of a forest that is not final, and counts of the rest."""

    histogram: Values
    """Number of components that begin at each key, minus those that end there. Of classes that
    last: number of those that are final, at each threshold."""
    births: Array
    """Keys at which the k nodes begin, uint64. If there is a frame, it is node 0."""
    edges: Array
    """Pairs of nodes, (m, 2) int32."""
    keys: Array
    """The keys at which these are joined, (m,) uint64."""
    faces: dict[Side, Array]
    """For each open side, (axis, 0: low or 1: high), the nodes of its points."""


class Piece(NamedTuple):
    """The counts of a box of an image, and what is needed to join it with others."""

    euler: Values
    """The Euler characteristic of the box at each threshold."""
    faces: dict[Side, Array]
    """For each open side the keys of its points."""
    graphs: list[Graph]
    """The graphs of all kinds of forests."""


class _Counting:
    """How the pieces of an image are counted.

    The `plans` are those of the keys, which are the same for all pieces. The keys of classes that
    last are in the order of the values. The `kinds` are those of the components that begin and end,
    and `ranked` is the plan of values among the thresholds.
    """

    def __init__(
        self, dtype: Any, thresholds: Array, filtration: Filtration, masked: bool, least: float
    ) -> None:
        self.dtype = dtype.newbyteorder("=")
        self.filtration = filtration
        self.masked = masked
        self.least = least
        self.plans = rank_plans(dtype, thresholds, filtration, masked=masked and least == 0)
        self.kinds = kinds_of(filtration)
        self.ranked = self.plans[-1]
        if least > 0:
            self.plans = [coefficient_plan(self.dtype, filtration.superlevel, False, masked)]
            self.kinds = [kind_of(filtration, complement=k > 0) for k in range(filtration.ndim)]

    def ordered(self, keys: Array, kind: Kind) -> Array:
        """Convert keys to the order in which points enter a forest of a kind, or back."""
        return keys.dtype.type(self.plans[-1].top) - keys if kind.complement else keys

    def count(self, births: Points, deaths: Points | None = None) -> Values:
        """Count classes that last at the thresholds; those without deaths never die."""
        born, begins = births
        died, ends = deaths or (births[0], np.zeros_like(births[1]))
        lasts = begins & (lasting(born, died, self.least) | ~ends)
        found: Values = entered(born[lasts], self.ranked)
        return found - entered(died[lasts & ends], self.ranked)

    def ended(self, kind: Kind, births: Points, deaths: Points) -> Values:
        """Count components that begin and end; those of the complement the other way round."""
        return self.count(deaths, births) if kind.complement else self.count(births, deaths)

    def of_keys(self, keys: Array, kind: Kind) -> Points:
        """Return the values of keys in the order of a kind, and which of them enter."""
        plan = self.plans[-1]
        keys = self.ordered(keys.astype(plan.key_dtype), kind)
        enter = np.ones(keys.size, np.bool_)
        if self.masked or self.dtype.kind == "f":
            enter = keys != plan.never
        bits = keys.astype(unsigned(self.dtype))
        if self.filtration.superlevel:
            bits = ~bits
        return values_of(bits, self.dtype), enter

    def at_places(self, image: Array, mask: Array | None, places: Array) -> Points:
        """Return the values at places in C order, and which of them enter."""
        values = image.reshape(-1)[places].astype(self.dtype, copy=False)
        enter = np.ones(places.size, np.bool_) if mask is None else mask.reshape(-1)[places]
        return values, enter & ~np.isnan(values) if values.dtype.kind == "f" else enter


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
    """Return the piece of a box, beyond whose `open_sides`, (axis, side), the image continues.

    Counts only classes that last for at least `least`.
    """
    counting = _Counting(image.dtype, thresholds, filtration, mask is not None, least)
    sides = [(axis + 3 - image.ndim, side) for axis, side in open_sides]
    field = laid_out(image, mask)
    plans = counting.plans
    bins = plans[-1].top + 1 if least == 0 else 0
    forests, histograms = grow(field, counting.kinds, plans, bins, filtration.nan, workers, sides)
    faces = {side: face_keys(field, plans[-1], *side) for side in sides}
    graphs = []
    for forest, histogram in zip(forests, histograms, strict=True):
        nodes, (edges, keys, *_), pairs = forest.joined()
        if least > 0:
            points = [counting.at_places(image, mask, places) for places in pairs.T]
            histogram = counting.ended(forest.kind, *points)
        ends = {side: forest.nodes_of(side) for side in sides}
        graph = Graph(histogram, nodes.births, edges, keys, ends)
        graphs.append(_reduced(graph, nodes, faces, forest.kind, counting))
    euler = np.empty(0, np.int64)
    if least == 0:
        batch = None if mask is None else mask[None]
        euler = curves.curve(image[None], thresholds, filtration, mask=batch, workers=workers)[0]
    return Piece(euler, faces, graphs)


def face_keys(field: Field, plan: Plan, axis: int, side: int) -> Array:
    """Return the keys of the points on one side."""
    shape = field.source.shape
    box = section(Block((0, 0, 0), shape), axis, side * (shape[axis] - 1))
    _, rows, columns = box.shape
    keys = np.empty(math.prod(box.shape) + SPARE, plan.key_dtype)
    load_box(plan, field.source, field.mask, box, keys, 0, (rows * columns, columns))
    return keys[:-SPARE].reshape(box.shape).squeeze(axis)


def _reduced(
    graph: Graph, nodes: Nodes, faces: dict[Side, Array], kind: Kind, counting: _Counting
) -> Graph:
    """Join the nodes of a graph along its edges, and return what other boxes can still change."""
    histogram, _, edges, keys, ends = graph
    nodes.places[:] = np.arange(nodes.places.size)
    if kind.complement:  # The frame begins before all other nodes, and is never final.
        nodes.places[0] = -1
        nodes.births[0] = 0
        nodes.opens[0] = 0
        nodes.closed[0] = False
    for side, face in faces.items():
        open_points(ends[side], counting.ordered(face, kind), nodes)
    joined = Edges(edges, keys, np.arange(keys.size))
    counted = histogram if counting.least == 0 else histogram[:0]
    kept, pairs, _ = join(nodes, joined, np.argsort(keys, kind="stable"), counted)
    if counting.least > 0:
        lives = nodes.births[pairs[:, 0]], keys[pairs[:, 1]]
        born, dead = (counting.of_keys(ends, kind) for ends in lives)
        histogram = histogram + counting.ended(kind, born, dead)
    numbers, roots = (np.empty(nodes.tree.size, np.int32) for _ in range(2))
    roots = roots[: number_nodes(nodes.merged, numbers, roots)]
    left = {side: numbers[end] for side, end in ends.items()}
    return Graph(histogram, nodes.births[roots], numbers[edges[kept]], keys[kept], left)


def joined_faces(low: dict[Side, Array], high: dict[Side, Array], axis: int) -> dict[Side, Array]:
    """Return the arrays over the open sides of the union of two boxes."""
    faces = {side: face for side, face in low.items() if side == (axis, 0)}
    faces |= {side: face for side, face in high.items() if side == (axis, 1)}
    for (other, side), face in low.items():
        if other != axis:
            along = axis - (axis > other)  # A face has the two other axes.
            faces[other, side] = np.concatenate([face, high[other, side]], axis=along)
    return faces


@kernel()
def edges_across(nodes, keys, far_nodes, far_keys, wide):
    """Return the edges between two faces that touch, as pairs of nodes, and their keys.

    If `wide`, points are neighbours along diagonals too. A diagonal is left out where a point
    opposite to one of its ends has entered before: the edges within the faces and the straight ones
    join its ends. Of successive edges between the same nodes the first to enter is listed.
    """
    rows, columns = nodes.shape
    reach = 1 if wide else 0
    count = 0
    more = columns * (9 if wide else 1)  # A row adds at most so many edges.
    edges = np.empty((more, 2), nodes.dtype)
    edge_keys = np.empty(more, np.uint64)
    last_near = np.int64(-1)
    last_far = np.int64(-1)
    last_key = np.uint64(0)
    for y in range(rows):
        if count + more > edge_keys.size:
            edges = np.concatenate((edges[:count], np.empty((count + more, 2), edges.dtype)))
            edge_keys = np.concatenate((edge_keys[:count], np.empty(count + more, np.uint64)))
        for x in range(columns):
            own = np.uint64(keys[y, x])
            straight = np.uint64(far_keys[y, x])
            for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
                for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                    key = max(own, np.uint64(far_keys[v, u]))
                    beside = v != y or u != x
                    if beside and (straight <= key or np.uint64(keys[v, u]) <= key):
                        continue
                    near = np.int64(nodes[y, x])
                    far = np.int64(far_nodes[v, u])
                    if near == last_near and far == last_far:
                        if key >= last_key:
                            continue
                        count -= 1
                    last_near = near
                    last_far = far
                    last_key = key
                    edges[count, 0] = near
                    edges[count, 1] = far
                    edge_keys[count] = key
                    count += 1
    return edges[:count], edge_keys[:count]


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
    counting = _Counting(dtype, thresholds, filtration, masked, least)
    touching = low.faces[axis, 1], high.faces[axis, 0]
    faces = joined_faces(low.faces, high.faces, axis)
    graphs = []
    for first, second, kind in zip(low.graphs, high.graphs, counting.kinds, strict=True):
        count = np.int32(first.births.size)
        moved = {side: face + count for side, face in second.faces.items()}
        own, far = (counting.ordered(face, kind) for face in touching)
        edges, keys = edges_across(
            first.faces[axis, 1], own, moved[axis, 0], far, kind.connectivity > 1
        )
        graph = Graph(
            first.histogram + second.histogram,
            np.concatenate([first.births, second.births]),
            np.concatenate([first.edges, second.edges + count, edges]),
            np.concatenate([first.keys, second.keys, keys]),
            joined_faces(first.faces, moved, axis),
        )
        nodes = unjoined(graph.births.size)
        nodes.births[:] = graph.births
        if kind.complement:
            nodes.tree[count] = 0
        graphs.append(_reduced(graph, nodes, faces, kind, counting))
    if least > 0:
        return Piece(low.euler, faces, graphs)
    crossing = _crossing(touching, counting.ranked, filtration)
    return Piece(low.euler + high.euler + crossing, faces, graphs)


def _crossing(touching: tuple[Array, Array], plan: Plan, filtration: Filtration) -> Values:
    """Return the Euler characteristic of the union of two boxes minus those of both.

    The faces that touch have the same difference, and are all that is needed.
    """
    slab = np.stack(touching)
    slab = slab.reshape((2, *slab.shape[4 - filtration.ndim :]))
    # Keys are in the order in which points enter.
    order = slice(None, None, -1 if filtration.superlevel else 1)
    ranks = plan.entered[order] - 1
    keyed = replace(filtration, superlevel=False)
    together = curves.curve(slab[None], ranks, keyed, workers=1)[0]
    alone = curves.curve(slab[:, None], ranks, keyed, workers=1).sum(axis=0)
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
    counting = _Counting(dtype, thresholds, filtration, masked, least)
    kinds = counting.kinds
    graphs = piece.graphs
    if least > 0:
        values: Values = np.stack([graph.histogram for graph in graphs])
        # The components that are left never die.
        values[0] += counting.count(counting.of_keys(graphs[0].births, kinds[0]))
        return values
    counted = zip(graphs, kinds, strict=True)
    ends = [cumulate(graph.histogram, counting.ranked, kind) for graph, kind in counted]
    numbers: Values = complete(ends, kinds, piece.euler, filtration.ndim)
    return numbers


def pack(sides: list[Side], arrays: list[Array]) -> NDArray[np.int64]:
    """Return sides and arrays as words.

    Of each array these are the dtype, the number of axes, the shape and the elements; the sides
    come first, as an array.
    """
    words: list[Any] = []
    for array in (np.array(sides, np.int64).reshape(-1, 2), *arrays):
        data = np.zeros(ceil_div(array.nbytes, WORD) * WORD, np.uint8)
        data[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        kind = np.frombuffer(array.dtype.str.encode().ljust(WORD), np.int64)
        words += [kind, [array.ndim], array.shape, data.view(np.int64)]
    return np.concatenate(words)


def unpack(values: NDArray[np.int64]) -> tuple[list[Side], list[Array]]:
    """Return the sides and the arrays that were packed into one."""
    at = 0
    arrays = []
    while at < values.size:
        word = values[at : at + 1].tobytes()
        dtype = np.dtype(word.decode().strip())
        ndim = int(values[at + 1])
        at += 2 + ndim
        shape = values[at - ndim : at].tolist()
        count = int(np.prod(shape, dtype=np.int64))
        words = ceil_div(count * dtype.itemsize, WORD)
        flat = values[at : at + words].view(dtype)
        arrays.append(flat[:count].reshape(shape))
        at += words
    return [(axis, side) for axis, side in arrays[0].tolist()], arrays[1:]


def pack_piece(piece: Piece) -> Values:
    """Return a piece as one array."""
    sides = sorted(piece.faces)
    arrays = [piece.euler, *(piece.faces[side] for side in sides)]
    for graph in piece.graphs:
        arrays += [graph.histogram, graph.births, graph.edges, graph.keys]
        arrays += [graph.faces[side] for side in sides]
    return pack(sides, arrays)


def unpack_piece(values: Values) -> Piece:
    """Return the piece that was packed into an array."""
    sides, (euler, *arrays) = unpack(values)
    own = len(sides)
    graphs = []
    for at in range(own, len(arrays), GRAPH + own):
        histogram, births, edges, keys = arrays[at : at + GRAPH]
        faces = dict(zip(sides, arrays[at + GRAPH :], strict=False))
        graphs.append(Graph(histogram, births, edges, keys, faces))
    return Piece(euler, dict(zip(sides, arrays[:own], strict=True)), graphs)
