"""Forests of blocks, and how they are glued along the cuts between them."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import join_basins
from ecc_core._backends.cpu.betti.scan import ALL
from ecc_core._backends.cpu.sources import Block

__all__ = ["Forest", "Grid", "Nodes", "Part"]

Array = NDArray[Any]


class Grid:
    """Blocks of an image, and the *surface*: the points on both sides of each cut between them.

    The image may be a box of a larger one. Its *open* sides, pairs of axis and side (0: low,
    1: high), are those where this goes on; they belong to the surface.

    Attributes
    ----------
    blocks : list of Block
    size : int
        Points of the surface.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        step: tuple[int, int, int],
        open_sides: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.shape = shape
        counts = [max(1, round(n / s)) for n, s in zip(shape, step, strict=True)]
        steps = [-(-n // c) for n, c in zip(shape, counts, strict=True)]
        self._edges = [[*range(0, n, s), n] for n, s in zip(shape, steps, strict=True)]
        spans = [list(itertools.pairwise(e)) for e in self._edges]
        self.blocks = [
            Block((z[0], y[0], x[0]), (z[1], y[1], x[1]))
            for z in spans[0]
            for y in spans[1]
            for x in spans[2]
        ]
        self._areas = [math.prod(shape) // n for n in shape]
        sizes = [2 * (len(e) - 2) * area for e, area in zip(self._edges, self._areas, strict=True)]
        self._bases = [0, sizes[0], sizes[0] + sizes[1]]
        self.size = sum(sizes)
        self._open = {}
        for axis, side in open_sides:
            self._open[axis, side] = self.size
            self.size += self._areas[axis]

    def face(self, axis: int, side: int, surface: Array) -> Array:
        """What the surface holds of an open side."""
        first = self._open[axis, side]
        extents = [n for other, n in enumerate(self.shape) if other != axis]
        return surface[first : first + self._areas[axis]].reshape(extents)

    def ends(self, block: Block, *, framed: bool = False) -> tuple[tuple[bool, ...], ...]:
        """Along which axes a block begins and ends at the border, or where the image ends."""
        low = [a == 0 for a in block.start]
        high = [b == n for b, n in zip(block.stop, self.shape, strict=True)]
        if framed:
            low = [at and (axis, 0) not in self._open for axis, at in enumerate(low)]
            high = [at and (axis, 1) not in self._open for axis, at in enumerate(high)]
        return tuple(low), tuple(high)

    def sides(self, block: Block) -> Array:
        """Where the points of each face of a block and its neighbour's begin; -1 if there is none.

        The axes are (axis, low or high face, own or neighbour's).
        """
        sides = np.full((3, 2, 2), -1, np.int64)
        for axis, (base, area, edges) in enumerate(
            zip(self._bases, self._areas, self._edges, strict=True)
        ):
            for side, edge in enumerate((block.start[axis], block.stop[axis])):
                cut = edges.index(edge) - 1
                if 0 <= cut < len(edges) - 2:
                    before, after = base + 2 * cut * area, base + (2 * cut + 1) * area
                    sides[axis, side] = (before, after) if side else (after, before)
                elif (axis, side) in self._open:
                    sides[axis, side, 0] = self._open[axis, side]
        return sides

    def faces(self, block: Block, steps: tuple[int, int, int]) -> Array:
        """The faces of a block that touch others.

        A row is (place of the first point in the block, steps, extents, and on the surface: place,
        steps). `steps` are those of the staged block, whose first own point is at their sum.
        """
        sides, rows = self.sides(block), []
        extents = [b - a for a, b in zip(block.start, block.stop, strict=True)]
        for axis, side in zip(*np.nonzero(sides[:, :, 0] >= 0), strict=True):
            u, v = (other for other in range(3) if other != axis)
            place = sum(steps) + side * (extents[axis] - 1) * steps[axis]
            at = sides[axis, side, 0] + block.start[u] * self.shape[v] + block.start[v]
            rows.append((place, steps[u], steps[v], extents[u], extents[v], at, self.shape[v], 1))
        return np.array(rows, np.int64).reshape(-1, 8)


class Part(NamedTuple):
    """What a block leaves to be joined with others.

    Attributes
    ----------
    first : int
        The number of its first node; that of the frame if there is one.
    births, places : (n,) arrays
        Keys at which its nodes begin, and where.
    exits : (m, 2) array
        Nodes that lie in other blocks, and where on the surface their numbers are found.
    edges, keys, at : (k, 2), (k,), (k,) arrays
        Pairs of nodes, the key at which they are joined, and where.
    pairs : (l, 2) array
        Places of birth and death of the components that end within the block.
    """

    first: int
    births: Array
    places: Array
    exits: Array
    edges: Array
    keys: Array
    at: Array
    pairs: Array


class Forest:
    """The parts of all blocks of an image. Several threads add to them."""

    def __init__(self, grid: Grid, kind: Kind) -> None:
        self.grid, self.kind = grid, kind
        self.surface = np.empty(grid.size, np.int32)
        self.parts: list[Part] = []
        self._nodes = 0
        self._lock = threading.Lock()

    def reserve(self, count: int) -> int:
        """The first of so many new numbers of nodes."""
        with self._lock:
            self._nodes += count
            return self._nodes - count

    def nodes(self) -> Nodes:
        """The nodes of all parts, those that are the same joined."""
        nodes = Nodes(self._nodes)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            nodes.births[own], nodes.places[own] = part.births, part.places
            nodes.tree[part.exits[:, 0]] = self.surface[part.exits[:, 1]]
            if self.kind.complement:
                nodes.tree[part.first] = 0
        return nodes

    def join(self, histogram: Array) -> tuple[Array, Array]:
        """Join the parts of a whole image: count deaths in the histogram.

        Returns the places of birth and death of all components that end, and the places of birth
        of those that do not. Places are only known where there is no histogram.
        """
        edges, keys, at, pairs = (
            np.concatenate([getattr(part, name) for part in self.parts])
            for name in ("edges", "keys", "at", "pairs")
        )
        nodes = self.nodes()
        order = np.argsort(keys, kind="stable") if histogram.size else np.lexsort((at, keys))
        _, more = nodes.join(edges, keys, order, histogram)
        more[:, 1] = at[more[:, 1]]
        return np.concatenate([pairs, more]), nodes.places[nodes.roots()]


class Nodes:
    """Nodes that are joined along edges.

    Attributes
    ----------
    births, places : (n,) arrays
        As of :class:`Part`.
    opens : (n,) array
        The keys at which other images can reach the trees with these roots.
    tree, merged : (n,) int32 arrays
        Parents: by all edges, and by those that nothing can interfere with.
    """

    def __init__(self, count: int) -> None:
        self.births, self.places = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self.opens = np.full(count, ALL, np.uint64)
        self.tree = np.arange(count, dtype=np.int32)
        self.merged = self.tree

    def join(
        self, edges: Array, keys: Array, order: Array, histogram: Array
    ) -> tuple[Array, Array]:
        """Join nodes along edges in their order, as :func:`join_basins` does.

        Returns the numbers of the edges that are kept, and places of birth and edges of death of
        components that end, where there is no histogram.
        """
        count = len(edges)
        self.merged = self.tree.copy()
        rows = np.column_stack([np.arange(count, dtype=np.int32), edges.astype(np.int32)])
        kept = np.empty(count, np.int32)
        pairs = np.empty((0 if histogram.size else count, 2), np.int64)
        left, lives = join_basins(
            keys,
            rows,
            order,
            count,
            self.places,
            self.births,
            self.opens,
            self.tree,
            self.merged,
            histogram,
            kept,
            pairs,
        )
        return kept[:left], pairs[:lives]

    def roots(self) -> Array:
        """The nodes that are roots of trees."""
        return np.flatnonzero(self.tree == np.arange(self.tree.size))
