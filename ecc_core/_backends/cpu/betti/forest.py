"""Grow the forests of the blocks of an image, and join them to that of the image."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import (
    Edges,
    Nodes,
    join_basins,
    label_box,
    list_edges,
    make_trees,
    number_nodes,
    open_points,
)
from ecc_core._backends.cpu.betti.blocks import SPARE, Grid, Plane, Staged
from ecc_core._backends.cpu.betti.halo import index_type
from ecc_core._backends.cpu.betti.links import LINKS, MOST_MEMBERS
from ecc_core._backends.cpu.betti.scan import scan_links
from ecc_core._backends.cpu.betti.volume import Volume, keep_gradient, staged_stars
from ecc_core._backends.cpu.llvm import ALL
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

UINT8 = np.dtype(np.uint8)
UINT32 = np.dtype(np.uint32)
UINT64 = np.dtype(np.uint64)
INT32 = np.dtype(np.int32)
NODE_TYPES = np.dtype(np.int64), UINT64, UINT64, np.dtype(np.bool_), INT32, INT32


class Loops(NamedTuple):
    """Edges that close a loop when they enter."""

    places: Array
    """The places of their forks."""
    members: Array
    """The members of the lower link that they lead to, uint8."""
    lower_links: Array
    """The lower links of the forks, as sets of members, uint32."""


class Part(NamedTuple):
    """The part of a forest that a block finds, which is then joined with those of others."""

    first: int
    """The number of its first node, which is the frame if there is one."""
    births: Array
    """Keys at which its nodes begin."""
    places: Array
    """Places at which its nodes begin."""
    exits: list[tuple[Plane, list[Array], Array]]
    """Its nodes that are points of other blocks: a plane of the surface, where the other block has
    written their numbers, the indices of the points there, and the numbers of the nodes here."""
    edges: Edges
    pairs: Array
    """Places of birth and death of the components that end within the block, (l, 2)."""
    loops: Loops
    """The loops within the block, if they are wanted."""


class Forest:
    """The parts of all blocks of an image, to which several threads may add.

    If there is a `volume`, loops are listed, and if points are adjacent along axes only, their
    gradient is written to it. A forest of the complement is `framed`, unless said otherwise: beyond
    each side of the grid that is not open lies a frame, which comes before all points.

    The arrays of the surface have the shape of the image, but the stride along one axis is 0, since
    all of their points lie in one plane.
    """

    def __init__(
        self, grid: Grid, kind: Kind, volume: Volume | None = None, framed: bool | None = None
    ) -> None:
        self.grid = grid
        self.kind = kind
        self.framed = kind.complement if framed is None else framed
        self.volume = volume
        self.surface: dict[Plane, Array] = {}
        for axis, at in grid.planes:
            lengths = list(grid.shape)
            lengths[axis] = 1
            plane = np.empty(lengths, np.int32)
            steps = [0 if i == axis else step for i, step in enumerate(plane.strides)]
            self.surface[axis, at] = as_strided(plane, grid.shape, steps)
        self.parts: list[Part] = []
        self.nodes = 0
        self.lock = threading.Lock()

    def nodes_of(self, side: tuple[int, int]) -> Array:
        """Return the nodes of the points on an open side."""
        axis, _ = side
        surface = self.surface[self.grid.side(*side)]
        # An index is a view. `take` would copy the surface as if it had all points of the image.
        return np.ascontiguousarray(surface[(slice(None),) * axis + (0,)])

    def joined(self) -> tuple[Nodes, Edges, Array]:
        """Return the nodes, edges and pairs of all parts.

        Exits are children of the nodes that they stand for.
        """
        nodes = unjoined(self.nodes)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            nodes.births[own] = part.births
            nodes.places[own] = part.places
            for plane, index, exits in part.exits:
                nodes.tree[exits] = self.surface[plane][tuple(index)]
            if self.framed:
                nodes.tree[part.first] = 0
        edges = zip(*(part.edges for part in self.parts), strict=True)
        pairs = np.concatenate([part.pairs for part in self.parts])
        return nodes, Edges(*map(np.concatenate, edges)), pairs

    def join(self, histogram: Array) -> tuple[Array, Array, Loops]:
        """Join the parts of a whole image, and count the ends of components in the histogram.

        Returns the places of birth and death of all components that end, the places of birth of
        those that do not, and the loops, if the histogram is empty; otherwise places are not known.
        """
        nodes, edges, pairs = self.joined()
        if histogram.size:
            order = np.argsort(edges.keys, kind="stable")
        else:
            order = np.lexsort((edges.places, edges.keys))
        _, more, closed = join(nodes, edges, order, histogram)
        roots = nodes.tree == np.arange(nodes.tree.size)
        places = closed.places.astype(index_type(math.prod(self.grid.shape)))
        closed = closed._replace(places=places)
        loops = zip(*(part.loops for part in self.parts), closed, strict=True)
        return (
            np.concatenate([pairs, more]),
            nodes.places[roots],
            Loops(*map(np.concatenate, loops)),
        )


def unjoined(count: int) -> Nodes:
    """Return nodes that no other box can reach, each a tree of its own."""
    tree = np.arange(count, dtype=np.int32)
    births = np.zeros(count, np.uint64)
    opens = np.full(count, ALL, np.uint64)
    closed = np.ones(count, np.bool_)
    return Nodes(
        places=np.zeros(count, np.int64),
        births=births,
        opens=opens,
        closed=closed,
        tree=tree,
        merged=tree.copy(),
    )


def join(nodes: Nodes, edges: Edges, order: Array, histogram: Array) -> tuple[Array, Array, Loops]:
    """Join nodes along edges in the given order, as :func:`join_basins` does.

    Returns the numbers of the edges that are kept, the places of birth and death of the components
    that end, if the histogram is empty, and the loops, if the members of edges are known.
    """
    count = len(order)
    nodes.merged[:] = nodes.tree
    kept = np.empty(count, np.int32)
    pairs = np.empty((0 if histogram.size else count, 2), np.int64)
    closed = np.empty(count if edges.members.size else 0, np.int32)
    left, lives, loops = join_basins(edges, order, nodes, histogram, kept, pairs, closed)
    closed = closed[:loops]
    loops_found = (part[closed] for part in (edges.places, edges.members, edges.lower_links))
    return kept[:left], pairs[:lives], Loops(*loops_found)


class Basins(NamedTuple):
    """The basins of a staged block, and where they meet."""

    paths: tuple[Array, Array]
    """Labels of staged points, and distances: a path leads on by entry i from a label of -i."""
    starts: Array
    """Places at which nodes begin."""
    minima: int
    """Number of nodes that are minima, the frame among them if there is one."""
    total: int
    """Number of nodes."""
    edges: Edges
    loops: Loops
    """Edges within a basin, if they are of interest."""


class Ways(NamedTuple):
    """The neighbours of a staged point."""

    offsets: Array
    """Distances of the members of a link."""
    ends: tuple[int, ...]
    """Distances of the members that are adjacent to the point itself, its ends."""
    end_set: np.uint64
    """The ends as a set of members."""
    near: Any
    """`Link.near`."""
    leads: Array
    """The distance that a label -i leads on, at i."""


@lru_cache(maxsize=64)
def ways_of(ndim: int, connectivity: int, steps: tuple[int, int, int]) -> Ways:
    link = LINKS[3 if ndim == 3 else 2, connectivity]
    offsets = np.array(link.members) @ steps
    ends = tuple(offsets[link.ends].tolist())
    end_set = np.uint64(sum(1 << i for i in link.ends))
    return Ways(
        offsets=offsets,
        ends=ends,
        end_set=end_set,
        near=link.near,
        leads=np.array([0, *ends], np.int64),
    )


def list_basins(
    grid: Grid,
    kind: Kind,
    keys: Array,
    staged: Staged,
    *,
    frame: bool,
    volume: Volume | None = None,
) -> Basins:
    """Find the minima of a block, and the points where their basins meet.

    If there is a volume, loops are listed, and if points are adjacent along axes only, the gradient
    of the block is written to it.
    """
    take = scratch.take
    block = staged.block
    ways = ways_of(staged.field.ndim, kind.connectivity, staged.steps)
    points = math.prod(block.shape)
    labels = take("labels", keys.size, INT32)
    starts = take("starts", keys.size, INT32)
    forks = take("forks", points, INT32)
    links = take("links", points, UINT32)
    lower_links = take("lower links", 0 if volume is None else points, UINT32)
    borders, framed = grid.borders(block, frame)
    planes = take("planes", 2 * MOST_MEMBERS, UINT64)
    stars = None
    if volume is not None and kind.connectivity == 1:
        stars = staged_stars(staged.steps, staged.size + SPARE)
    minima, count, room = scan_links(
        keys=keys,
        labels=labels,
        layout=staged.layout,
        borders=borders,
        framed=framed,
        frame=frame,
        link=(ways.ends, ways.end_set, ways.near),
        planes=planes,
        listed=(starts, forks, links),
        lower_links=lower_links,
        stars=stars,
    )
    if volume is not None and stars is not None:
        keep_gradient(volume, block, stars.gradient, staged.shape)
    staged.mark_halo(labels, framed)
    paths = labels, ways.leads
    edges = _kept_edges(room, keys.dtype, links=volume is not None)
    total, count, looped = list_edges(
        keys=keys,
        paths=paths,
        offsets=ways.offsets,
        forks=forks[:count],
        links=links,
        lower_links=lower_links,
        places=starts,
        nodes=minima,
        edges=edges,
    )
    first = room - looped
    loops = Loops(edges.places[first:], edges.members[first:], edges.lower_links[first:])
    edges = Edges(*(part[:count] for part in edges))
    return Basins(paths=paths, starts=starts, minima=minima, total=total, edges=edges, loops=loops)


def _kept_edges(room: int, key_type: np.dtype[Any], *, links: bool) -> Edges:
    """Return room for edges in the thread's memory, with or without the links of their points."""
    take = scratch.take
    listed = room if links else 0
    return Edges(
        nodes=take("edges", 2 * room, INT32).reshape(-1, 2),
        keys=take("edge keys", room, key_type),
        places=take("edge places", room, INT32),
        members=take("members", listed, UINT8),
        lower_links=take("edge links", listed, UINT32),
    )


def _kept_nodes(count: int) -> Nodes:
    """Return room for nodes in the thread's memory."""
    named = zip(Nodes._fields, NODE_TYPES, strict=True)
    return Nodes(*(scratch.take(name, count, kind) for name, kind in named))


def count_block(grid: Grid, kind: Kind, histogram: Array, keys: Array, staged: Staged) -> None:
    """Count the components of a block that is the whole image in a histogram of its keys."""
    basins = list_basins(grid, kind, keys, staged, frame=kind.complement)
    nodes = _kept_nodes(basins.total)
    make_trees(keys, basins.starts, basins.minima, kind.complement, nodes, histogram)
    bits = min(histogram.size.bit_length(), 8 * keys.itemsize)
    join(nodes, basins.edges, sort_keys(basins.edges.keys, bits), histogram)


def grow_block(forest: Forest, histogram: Array, shift: int, keys: Array, staged: Staged) -> Part:
    """Return what a block leaves to be joined, and count what is final in a histogram.

    If this is empty, the places of births and deaths are kept instead. `shift` is added to the
    block's keys.
    """
    take = scratch.take
    frame = forest.framed
    block = staged.block
    grid = forest.grid
    basins = list_basins(
        grid, forest.kind, keys=keys, staged=staged, frame=frame, volume=forest.volume
    )
    paths, starts, minima, total, edges, at_once = basins
    faces = grid.faces(block)
    on_faces = [np.empty(face.shape, np.int32) for face in faces.values()]
    for face, own in zip(faces.values(), on_faces, strict=True):
        first = staged.place(face.start)
        total = label_box(paths, first, staged.steps, starts, total, own)
    nodes = _kept_nodes(total)
    make_trees(keys, starts, minima, frame, nodes, histogram)
    for face, own in zip(faces.values(), on_faces, strict=True):
        open_points(own, staged.part(keys, face), nodes)
    order = sort_keys(edges.keys, histogram.size.bit_length())
    left, pairs, closed = join(nodes, edges, order, histogram)
    loops = Loops(*map(np.concatenate, zip(at_once, closed, strict=True)))
    numbers = take("numbers", total, np.int32)
    roots = take("roots", total, np.int32)
    kept = roots[: number_nodes(nodes.merged, numbers, roots)]
    with forest.lock:  # It reserves numbers for the nodes of this block.
        first = forest.nodes
        forest.nodes += kept.size
    numbers += first
    for (plane, face), own in zip(faces.items(), on_faces, strict=True):
        forest.surface[plane][tuple(map(slice, *face))] = numbers[own]
    exits = []
    outside = staged.points(starts[minima:total])
    for axis, at in grid.planes:
        if at in (block.start[axis] - 1, block.stop[axis]):
            there = np.flatnonzero(outside[axis] == at)
            index = [along[there] for along in outside]
            exits.append(((axis, at), index, numbers[minima:][there]))

    def in_image(places: Array) -> Array:
        """Convert places to those in the image; only pairs need them."""
        return np.zeros(places.shape, np.int64) if histogram.size else staged.in_image(places)

    edge_keys = edges.keys[left].astype(np.uint64) + np.uint64(shift)
    chains = [part if forest.volume is None else part[left] for part in edges[3:]]
    loop_places = in_image(loops.places).astype(index_type(math.prod(grid.shape)))
    return Part(
        first=first,
        births=nodes.births[kept] + np.uint64(shift),
        places=in_image(nodes.places[kept]),
        exits=exits,
        edges=Edges(
            numbers[edges.nodes[left]],
            edge_keys,
            in_image(edges.places[left]),
            *chains,
        ),
        pairs=in_image(pairs),
        loops=loops._replace(places=loop_places),
    )
