"""Grow the forests of the blocks of an image, and join them to that of the image."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import (
    OUTSIDE,
    Edges,
    Nodes,
    join_basins,
    label_box,
    list_edges,
    make_trees,
    number_nodes,
    open_points,
)
from ecc_core._backends.cpu.betti.halo import index_type
from ecc_core._backends.cpu.betti.links import LINKS, MOST
from ecc_core._backends.cpu.betti.scan import scan_links
from ecc_core._backends.cpu.betti.volume import Volume, keep_gradient, staged_stars
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import ALL, NONE
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Plane = tuple[int, int]
Words = tuple[np.uint64, ...]
Index = tuple[slice | int, ...]

SPARE = 64  # keys behind a block that vectors read but do not use
UINT8 = np.dtype(np.uint8)
UINT32 = np.dtype(np.uint32)
UINT64 = np.dtype(np.uint64)
INT32 = np.dtype(np.int32)
NODE_TYPES = np.dtype(np.int64), UINT64, UINT64, np.dtype(np.bool_), INT32, INT32


class Field(NamedTuple):
    """An image as (slices, rows, columns), its mask, and its number of axes."""

    source: Source
    mask: Source | None
    ndim: int


class Staged:
    """The layout of a staged block: contiguous, with one point of halo on each side.

    The `layout` is (slices, rows, columns, step of slices, step of rows), and `steps` are (step of
    slices, of rows, 1). In 2-D there is no halo of slices, and their step is 0. The `shape` is that
    with the halo, `first` the first staged point (z, y, x) in the image, and `size` the number of
    staged points. The `halo` is what is read of the image, the block and the halo within it, and
    `at` is where its first point is staged.
    """

    def __init__(self, block: Block, field: Field) -> None:
        self.block = block
        self.field = field
        lead = int(field.ndim == 3)
        slices, rows, columns = block.shape
        self.shape = slices + 2 * lead, rows + 2, columns + 2
        self.size = math.prod(self.shape)
        self.steps = lead * (rows + 2) * (columns + 2), columns + 2, 1
        self.layout = (*block.shape, *self.steps[:2])
        self.first = tuple(a - n for a, n in zip(block.start, (lead, 1, 1), strict=True))
        start = tuple(max(a, 0) for a in self.first)
        ends = zip(self.first, self.shape, field.source.shape, strict=True)
        stop = tuple(min(a + n, end) for a, n, end in ends)
        self.halo = Block(start, stop)  # type: ignore[arg-type]
        self.at = self.place(start)

    def load(self, plan: Plan, nan: str) -> tuple[Array, bool, bool]:
        """Load the keys; return them, whether there was a NaN, and whether a key did not fit."""
        keys = scratch.take("keys", self.size + SPARE, plan.key_dtype)
        place = self.halo, keys, self.at, self.steps[:2]
        has_nan, unfit = load_box(plan, self.field.source, self.field.mask, *place)
        if has_nan and nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return keys, has_nan, unfit

    def place(self, point: Sequence[int]) -> int:
        """Return where a point is staged."""
        gaps = zip(point, self.first, self.steps, strict=True)
        return sum((a - first) * step for a, first, step in gaps)

    def part(self, staged: Array, box: Block) -> Array:
        """Return what is staged for the points of a box."""
        spans = zip(*box, self.first, strict=True)
        index = tuple(slice(a - first, b - first) for a, b, first in spans)
        return staged[: self.size].reshape(self.shape)[index]

    def points(self, places: Array) -> list[Array]:
        """Return the indices (z, y, x) in the image of staged points."""
        found = np.unravel_index(places, self.shape)
        return [index + first for index, first in zip(found, self.first, strict=True)]

    def in_image(self, places: Array) -> Array:
        """Convert staged places to places in the image in C order; the frame is at -1."""
        _, rows, columns = self.field.source.shape
        z, y, x = self.points(np.maximum(places, 0))
        return np.where(places < 0, -1, (z * rows + y) * columns + x)

    def mark_halo(self, labels: Array, framed: Words) -> None:
        """Label the points around the block, after its own points have been scanned.

        The frame, which begins on these sides, is node 0. The points beyond belong to it, and so do
        the points at the border: the frame is their lowest neighbour.
        """
        around = labels[: self.size].reshape(self.shape)
        for low, high, _ in self._sides:
            around[low] = around[high] = OUTSIDE
        for i, (_, _, borders) in enumerate(self._sides, 3 - len(self._sides)):
            for side, within in enumerate(borders):
                if framed[2 * i + side]:
                    around[within] = 0

    @cached_property
    def _sides(self) -> list[tuple[Index, Index, tuple[Index, Index]]]:
        """For each axis with a halo: the points of the halo, and with those beside them."""
        sides: list[tuple[Index, Index, tuple[Index, Index]]] = []
        for axis in range(3):
            if self.steps[axis]:
                before: Index = (slice(None),) * axis
                borders: tuple[Index, Index] = ((*before, slice(2)), (*before, slice(-2, None)))
                sides.append(((*before, 0), (*before, -1), borders))
        return sides


class Grid:
    """The blocks of an image, and the *surface*: the planes on both sides of all cuts between them.

    The image may be a box of a larger one. The planes on its *open* sides, beyond which the larger
    image goes on, belong to the surface too. Sides are pairs of axis and side (0: low, 1: high),
    `planes` pairs of axis and index along it.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        step: tuple[int, int, int],
        open_sides: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.shape = shape
        self._open = open_sides
        counts = [max(1, round(n / s)) for n, s in zip(shape, step, strict=True)]
        steps = [ceil_div(n, c) for n, c in zip(shape, counts, strict=True)]
        edges = [[*range(0, n, s), n] for n, s in zip(shape, steps, strict=True)]
        self.blocks = [
            Block(*zip(*sides, strict=True))
            for sides in itertools.product(*map(itertools.pairwise, edges))
        ]
        cuts = [(axis, cut) for axis, along in enumerate(edges) for cut in along[1:-1]]
        planes = {(axis, at) for axis, cut in cuts for at in (cut - 1, cut)}
        self.planes = sorted(planes | {self.side(*side) for side in open_sides})
        self._borders: dict[tuple[Block, bool], tuple[Words, Words]] = {}  # that were asked for

    def side(self, axis: int, side: int) -> Plane:
        """Return the plane on one side of the image."""
        return axis, side * (self.shape[axis] - 1)

    def borders(self, block: Block, frame: bool) -> tuple[Words, Words]:
        """Return on which sides of a block the image ends, and on which a frame begins.

        Words are all ones there, and 0 elsewhere. There is no frame on open sides.
        """
        known = self._borders.get((block, frame))
        if known is not None:
            return known
        ends = [end for axis in zip(block.start, block.stop, strict=True) for end in axis]
        border = [a == (i % 2) * self.shape[i // 2] for i, a in enumerate(ends)]
        framed = [frame and at and divmod(i, 2) not in self._open for i, at in enumerate(border)]
        found = _as_words(border), _as_words(framed)
        self._borders[block, frame] = found
        return found

    def faces(self, block: Block) -> dict[Plane, Block]:
        """Return the faces of a block that are part of the surface."""
        return {
            (axis, at): section(block, axis, at)
            for axis, at in self.planes
            if at in (block.start[axis], block.stop[axis] - 1)
        }


def _as_words(flags: list[bool]) -> Words:
    return tuple(ALL if flag else NONE for flag in flags)


grid_of = lru_cache(maxsize=16)(Grid)
"""The grid of an image; images of one shape share it."""


def section(block: Block, axis: int, at: int) -> Block:
    """Return the points of a block in a plane."""
    start = list(block.start)
    stop = list(block.stop)
    start[axis] = at
    stop[axis] = at + 1
    return Block(tuple(start), tuple(stop))  # type: ignore[arg-type]


class Loops(NamedTuple):
    """Edges that close a loop when they enter."""

    places: Array
    """The places of their forks."""
    members: Array
    """The members of the lower link that they lead to, uint8."""
    lower_links: Array
    """These links as sets of members, uint32."""


class Part(NamedTuple):
    """What a block leaves to be joined with others."""

    first: int
    """The number of its first node, which is the frame if there is one."""
    births: Array
    """Keys at which its nodes begin."""
    places: Array
    """Places at which its nodes begin."""
    exits: list[tuple[Plane, list[Array], Array]]
    """Its nodes that lie in other blocks, whose numbers there are on the surface: at these indices
    of a plane."""
    edges: Edges
    pairs: Array
    """Places of birth and death of the components that end within the block, (l, 2)."""
    loops: Loops
    """Those within the block, if they are of interest."""


class Forest:
    """The parts of all blocks of an image, to which several threads may add.

    If there is a `volume`, loops are listed, and if points are adjacent along axes only, their
    gradient is written to it.

    The arrays of the surface have the shape of the image: along one axis, all their points lie in
    the same plane.
    """

    def __init__(self, grid: Grid, kind: Kind, volume: Volume | None = None) -> None:
        self.grid = grid
        self.kind = kind
        self.volume = volume
        self.surface: dict[Plane, Array] = {}
        for axis, at in grid.planes:
            plane = np.empty([1 if i == axis else n for i, n in enumerate(grid.shape)], np.int32)
            steps = [0 if i == axis else step for i, step in enumerate(plane.strides)]
            self.surface[axis, at] = as_strided(plane, grid.shape, steps)
        self.parts: list[Part] = []
        self.nodes = 0
        self.lock = threading.Lock()

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
            if self.kind.complement:
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
    return Nodes(np.zeros(count, np.int64), births, opens, closed, tree, tree.copy())


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
    """Labels of staged points, and the distances that negative ones lead on."""
    starts: Array
    """Places at which nodes begin."""
    minima: int
    """Number of nodes that are minima, the frame among them if there is one."""
    total: int
    """Number of nodes."""
    edges: Edges
    loops: Loops
    """Edges within a basin, if they are of interest."""


class _Ways(NamedTuple):
    """The neighbours of a staged point."""

    offsets: Array
    """Distances of the members of a link."""
    ends: tuple[int, ...]
    """Distances of those at its ends."""
    end_set: np.uint64
    near: Any
    leads: Array
    """The distance that a label -i leads on, at i."""


@lru_cache(maxsize=64)
def _ways(ndim: int, connectivity: int, steps: tuple[int, int, int]) -> _Ways:
    link = LINKS[3 if ndim == 3 else 2, connectivity]
    offsets = np.array(link.members) @ steps
    ends = tuple(offsets[link.ends].tolist())
    end_set = np.uint64(sum(1 << i for i in link.ends))
    return _Ways(offsets, ends, end_set, link.near, np.array([0, *ends], np.int64))


def list_basins(
    grid: Grid, kind: Kind, keys: Array, staged: Staged, volume: Volume | None = None
) -> Basins:
    """Find the minima of a block, and the points where their basins meet.

    If there is a volume, loops are listed, and if points are adjacent along axes only, the gradient
    of the block is written to it.
    """
    take = scratch.take
    frame = kind.complement
    block = staged.block
    ways = _ways(staged.field.ndim, kind.connectivity, staged.steps)
    points = math.prod(block.shape)
    labels = take("labels", keys.size, INT32)
    starts = take("starts", keys.size, INT32)
    forks = take("forks", points, INT32)
    links = take("links", points, UINT32)
    lower_links = take("lower links", 0 if volume is None else points, UINT32)
    borders, framed = grid.borders(block, frame)
    planes = take("planes", 2 * MOST, UINT64)
    stars = None
    if volume is not None and kind.connectivity == 1:
        stars = staged_stars(staged.steps, staged.size + SPARE)
    minima, count, room = scan_links(
        keys,
        labels,
        staged.layout,
        borders,
        framed,
        frame,
        (ways.ends, ways.end_set, ways.near),
        planes,
        (starts, forks, links),
        lower_links,
        stars,
    )
    if volume is not None and stars is not None:
        keep_gradient(volume, block, stars.gradient, staged.shape)
    staged.mark_halo(labels, framed)
    paths = labels, ways.leads
    joined = take("edges", 2 * room, INT32)
    edge_keys = take("edge keys", room, keys.dtype)
    listed = 0 if volume is None else room
    members = take("members", listed, UINT8)
    links_of_edges = take("edge links", listed, UINT32)
    places = take("edge places", room, INT32)
    edges = Edges(joined.reshape(-1, 2), edge_keys, places, members, links_of_edges)
    found = forks[:count], links, lower_links, starts, minima, edges
    total, count, looped = list_edges(keys, paths, ways.offsets, *found)
    first = room - looped
    loops = Loops(places[first:], members[first:], links_of_edges[first:])
    edges = Edges(*(part[:count] for part in edges))
    return Basins(paths, starts, minima, total, edges, loops)


def _kept_nodes(count: int) -> Nodes:
    """Return room for nodes in the thread's memory."""
    named = zip(Nodes._fields, NODE_TYPES, strict=True)
    return Nodes(*(scratch.take(name, count, kind) for name, kind in named))


def count_block(grid: Grid, kind: Kind, histogram: Array, keys: Array, staged: Staged) -> None:
    """Count the components of a block that is the whole image in a histogram of its keys."""
    basins = list_basins(grid, kind, keys, staged)
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
    frame = forest.kind.complement
    block = staged.block
    grid = forest.grid
    basins = list_basins(grid, forest.kind, keys, staged, forest.volume)
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
    with forest.lock:  # the numbers of its nodes are reserved
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
    return Part(
        first,
        nodes.births[kept] + np.uint64(shift),
        in_image(nodes.places[kept]),
        exits,
        Edges(
            numbers[edges.nodes[left]],
            edge_keys,
            in_image(edges.places[left]),
            *(part if forest.volume is None else part[left] for part in edges[3:]),
        ),
        in_image(pairs),
        loops._replace(places=in_image(loops.places).astype(index_type(math.prod(grid.shape)))),
    )
