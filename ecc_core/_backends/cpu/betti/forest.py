"""The forests of blocks, and how they are joined to the forest of an image."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import Nodes, join_basins
from ecc_core._backends.cpu.betti.scan import ALL
from ecc_core._backends.cpu.sources import Block

Array = NDArray[Any]
Plane = tuple[int, int]
Exits = tuple[Plane, tuple[Array, ...], Array]
"""A plane of the surface, the indices of points in it, and their nodes in another block."""


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

    def surface(self) -> dict[Plane, Array]:
        """Return an array over each plane of the surface."""
        return {
            (axis, at): np.empty(self.shape[:axis] + self.shape[axis + 1 :], np.int32)
            for axis, at in self.planes
        }

    def ends(self, block: Block, *, framed: bool = False) -> tuple[tuple[bool, ...], ...]:
        """Return along which axes a block begins and ends at the border of the image.

        If `framed`, open sides are no border.
        """
        low = [a == 0 for a in block.start]
        high = [b == n for b, n in zip(block.stop, self.shape, strict=True)]
        if framed:
            low = [at and (axis, 0) not in self._open for axis, at in enumerate(low)]
            high = [at and (axis, 1) not in self._open for axis, at in enumerate(high)]
        return tuple(low), tuple(high)

    def faces(self, block: Block) -> dict[Plane, Block]:
        """Return the faces of a block that are part of the surface."""
        return {
            (axis, at): section(block, axis, at)
            for axis, at in self.planes
            if at in (block.start[axis], block.stop[axis] - 1)
        }


def section(block: Block, axis: int, at: int) -> Block:
    """Return the points of a block in a plane."""
    start, stop = list(block.start), list(block.stop)
    start[axis], stop[axis] = at, at + 1
    return Block(tuple(start), tuple(stop))  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def grid_of(
    shape: tuple[int, int, int], step: tuple[int, int, int], open_sides: tuple[tuple[int, int], ...]
) -> Grid:
    """The grid of an image; images of one shape share it."""
    return Grid(shape, step, open_sides)


class Part(NamedTuple):
    """What a block leaves to be joined with others.

    Attributes
    ----------
    first : int
        The number of its first node, which is the frame if there is one.
    births, places : (n,) arrays
        Keys and places at which its nodes begin.
    exits : list of Exits
        Its nodes that lie in other blocks, whose numbers there are on the surface.
    edges, keys, at : (k, 2), (k,), (k,) arrays
        Pairs of nodes, and the keys and places at which they are joined.
    pairs : (l, 2) array
        Places of birth and death of the components that end within the block.
    """

    first: int
    births: Array
    places: Array
    exits: list[Exits]
    edges: Array
    keys: Array
    at: Array
    pairs: Array


class Forest:
    """The parts of all blocks of an image, to which several threads may add."""

    def __init__(self, grid: Grid, kind: Kind) -> None:
        self.grid, self.kind = grid, kind
        self.surface = grid.surface()
        self.parts: list[Part] = []
        self._nodes = 0
        self._lock = threading.Lock()

    def reserve(self, count: int) -> int:
        """Reserve numbers for `count` nodes, and return the first."""
        with self._lock:
            self._nodes += count
            return self._nodes - count

    def on_face(self, plane: Plane, face: Block) -> Array:
        """Return the part of the surface that is a face of a block."""
        index = list(map(slice, *face))
        del index[plane[0]]
        return self.surface[plane][tuple(index)]

    def nodes(self) -> Nodes:
        """Return the nodes of all parts; exits are children of the nodes that they stand for."""
        nodes = unjoined(self._nodes)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            nodes.births[own], nodes.places[own] = part.births, part.places
            for plane, index, exits in part.exits:
                nodes.tree[exits] = self.surface[plane][index]
            if self.kind.complement:
                nodes.tree[part.first] = 0
        return nodes

    def join(self, histogram: Array) -> tuple[Array, Array]:
        """Join the parts of a whole image, and count the ends of components in the histogram.

        Returns the places of birth and death of all components that end, and the places of birth
        of those that do not, if the histogram is empty; otherwise places are not known.
        """
        edges, keys, at, pairs = (
            np.concatenate([getattr(part, name) for part in self.parts])
            for name in ("edges", "keys", "at", "pairs")
        )
        nodes = self.nodes()
        order = np.argsort(keys, kind="stable") if histogram.size else np.lexsort((at, keys))
        _, more = join(nodes, edges, keys, at, order, histogram)
        roots = nodes.tree == np.arange(nodes.tree.size)
        return np.concatenate([pairs, more]), nodes.places[roots]


def unjoined(count: int) -> Nodes:
    """Return nodes that no other box can reach, each a tree of its own."""
    tree = np.arange(count, dtype=np.int32)
    births, opens = np.zeros(count, np.uint64), np.full(count, ALL, np.uint64)
    return Nodes(
        np.zeros(count, np.int64), births, opens, np.ones(count, np.bool_), tree, tree.copy()
    )


def join(
    nodes: Nodes, edges: Array, keys: Array, at: Array, order: Array, histogram: Array
) -> tuple[Array, Array]:
    """Join nodes along edges in the given order, as :func:`join_basins` does.

    Returns the numbers of the edges that are kept and, if the histogram is empty, the places of
    birth and death of the components that end.
    """
    count = len(edges)
    nodes.merged[:] = nodes.tree
    kept = np.empty(count, np.int32)
    pairs = np.empty((0 if histogram.size else count, 2), np.int64)
    left, lives = join_basins(edges, keys, at, order, nodes, histogram, kept, pairs)
    return kept[:left], pairs[:lives]
