"""The forests of blocks, and how they are joined to the forest of an image."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import Edges, Nodes, join_basins
from ecc_core._backends.cpu.llvm import ALL, NONE
from ecc_core._backends.cpu.sources import Block

Array = NDArray[Any]
Plane = tuple[int, int]
Words = tuple[np.uint64, ...]


class Grid:
    """The blocks of an image, and the *surface*: the planes on both sides of all cuts between them.

    The image may be a box of a larger one. The planes on its *open* sides, beyond which the larger
    image goes on, belong to the surface too. Sides are pairs of axis and side (0: low, 1: high),
    planes pairs of axis and index along it.

    Attributes
    ----------
    blocks : list of Block
    planes : list of Plane
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        step: tuple[int, int, int],
        open_sides: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.shape, self._open = shape, open_sides
        counts = [max(1, round(n / s)) for n, s in zip(shape, step, strict=True)]
        steps = [-(-n // c) for n, c in zip(shape, counts, strict=True)]
        edges = [[*range(0, n, s), n] for n, s in zip(shape, steps, strict=True)]
        self.blocks = [
            Block(*zip(*sides, strict=True))
            for sides in itertools.product(*map(itertools.pairwise, edges))
        ]
        cuts = [(axis, cut) for axis, along in enumerate(edges) for cut in along[1:-1]]
        planes = {(axis, at) for axis, cut in cuts for at in (cut - 1, cut)}
        self.planes = sorted(planes | {self.side(*side) for side in open_sides})

    def side(self, axis: int, side: int) -> Plane:
        """Return the plane on one side of the image."""
        return axis, side * (self.shape[axis] - 1)

    def borders(self, block: Block, frame: bool) -> tuple[Words, Words]:
        """Return on which sides of a block the image ends, and on which a frame begins.

        Words are all ones there, and 0 elsewhere. There is no frame on open sides.
        """
        ends = [end for axis in zip(block.start, block.stop, strict=True) for end in axis]
        border = [a == (i % 2) * self.shape[i // 2] for i, a in enumerate(ends)]
        framed = [frame and at and divmod(i, 2) not in self._open for i, at in enumerate(border)]
        words: Any = (tuple(ALL if at else NONE for at in sides) for sides in (border, framed))
        return tuple(words)

    def faces(self, block: Block) -> dict[Plane, Block]:
        """Return the faces of a block that are part of the surface."""
        return {
            (axis, at): section(block, axis, at)
            for axis, at in self.planes
            if at in (block.start[axis], block.stop[axis] - 1)
        }


grid_of = lru_cache(maxsize=16)(Grid)
"""The grid of an image; images of one shape share it."""


def section(block: Block, axis: int, at: int) -> Block:
    """Return the points of a block in a plane."""
    start, stop = list(block.start), list(block.stop)
    start[axis], stop[axis] = at, at + 1
    return Block(tuple(start), tuple(stop))  # type: ignore[arg-type]


class Part(NamedTuple):
    """What a block leaves to be joined with others.

    Attributes
    ----------
    first : int
        The number of its first node, which is the frame if there is one.
    births, places : (n,) arrays
        Keys and places at which its nodes begin.
    exits : list of (Plane, indices, array)
        Its nodes that lie in other blocks, whose numbers there are on the surface: at these
        indices of a plane.
    edges : Edges
    pairs : (l, 2) array
        Places of birth and death of the components that end within the block.
    """

    first: int
    births: Array
    places: Array
    exits: list[tuple[Plane, list[Array], Array]]
    edges: Edges
    pairs: Array


class Forest:
    """The parts of all blocks of an image, to which several threads may add.

    The arrays of the surface have the shape of the image: along one axis, all their points lie in
    the same plane.
    """

    def __init__(self, grid: Grid, kind: Kind) -> None:
        self.grid, self.kind = grid, kind
        self.surface: dict[Plane, Array] = {}
        for axis, at in grid.planes:
            plane = np.empty([1 if i == axis else n for i, n in enumerate(grid.shape)], np.int32)
            steps = [0 if i == axis else step for i, step in enumerate(plane.strides)]
            self.surface[axis, at] = as_strided(plane, grid.shape, steps)
        self.parts: list[Part] = []
        self._nodes = 0
        self._lock = threading.Lock()

    def reserve(self, count: int) -> int:
        """Reserve numbers for `count` nodes, and return the first."""
        with self._lock:
            self._nodes += count
            return self._nodes - count

    def joined(self) -> tuple[Nodes, Edges, Array]:
        """Return the nodes, edges and pairs of all parts.

        Exits are children of the nodes that they stand for.
        """
        nodes = unjoined(self._nodes)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            nodes.births[own], nodes.places[own] = part.births, part.places
            for plane, index, exits in part.exits:
                nodes.tree[exits] = self.surface[plane][tuple(index)]
            if self.kind.complement:
                nodes.tree[part.first] = 0
        edges = zip(*(part.edges for part in self.parts), strict=True)
        pairs = np.concatenate([part.pairs for part in self.parts])
        return nodes, Edges(*map(np.concatenate, edges)), pairs

    def join(self, histogram: Array) -> tuple[Array, Array]:
        """Join the parts of a whole image, and count the ends of components in the histogram.

        Returns the places of birth and death of all components that end, and the places of birth
        of those that do not, if the histogram is empty; otherwise places are not known.
        """
        nodes, edges, pairs = self.joined()
        if histogram.size:
            order = np.argsort(edges.keys, kind="stable")
        else:
            order = np.lexsort((edges.places, edges.keys))
        _, more = join(nodes, edges, order, histogram)
        roots = nodes.tree == np.arange(nodes.tree.size)
        return np.concatenate([pairs, more]), nodes.places[roots]


def unjoined(count: int) -> Nodes:
    """Return nodes that no other box can reach, each a tree of its own."""
    tree = np.arange(count, dtype=np.int32)
    births, opens = np.zeros(count, np.uint64), np.full(count, ALL, np.uint64)
    closed = np.ones(count, np.bool_)
    return Nodes(np.zeros(count, np.int64), births, opens, closed, tree, tree.copy())


def join(nodes: Nodes, edges: Edges, order: Array, histogram: Array) -> tuple[Array, Array]:
    """Join nodes along edges in the given order, as :func:`join_basins` does.

    Returns the numbers of the edges that are kept and, if the histogram is empty, the places of
    birth and death of the components that end.
    """
    count = len(order)
    nodes.merged[:] = nodes.tree
    kept = np.empty(count, np.int32)
    pairs = np.empty((0 if histogram.size else count, 2), np.int64)
    left, lives = join_basins(edges, order, nodes, histogram, kept, pairs)
    return kept[:left], pairs[:lives]
