"""The forests of blocks, and how they are joined to the forest of an image."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import join_basins
from ecc_core._backends.cpu.betti.glue import follow_exits
from ecc_core._backends.cpu.betti.scan import ALL
from ecc_core._backends.cpu.sources import Block

Array = NDArray[Any]


class Grid:
    """The blocks of an image, and the *surface*: the points on both sides of all cuts between them.

    The image may be a box of a larger one. Its *open* sides, beyond which the larger image goes on,
    are pairs of axis and side (0: low, 1: high); they belong to the surface too.

    Attributes
    ----------
    blocks : list of Block
    size : int
        Number of points of the surface.
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
        self._sides = {block: self._sides_of(block) for block in self.blocks}
        self._faces: dict[tuple[Block, tuple[int, int, int]], Array] = {}

    def face(self, axis: int, side: int, surface: Array) -> Array:
        """Return the part of an array over the surface that belongs to an open side."""
        first = self._open[axis, side]
        extents = [n for other, n in enumerate(self.shape) if other != axis]
        return surface[first : first + self._areas[axis]].reshape(extents)

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

    def sides(self, block: Block) -> Array:
        """Return where on the surface the faces of a block and of its neighbours begin.

        The axes are (axis, low or high face, own or neighbour's); -1 where there is none.
        """
        return self._sides[block]

    def _sides_of(self, block: Block) -> Array:
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
        """Return the faces of a block that are part of the surface, one a row.

        Columns are the place of the first point in the staged block, its two steps, the two
        extents, and the place and steps on the surface. `steps` are those of the staged block,
        whose first own point is at their sum.
        """
        key = block, steps
        if key not in self._faces:
            self._faces[key] = self._faces_of(block, steps)
        return self._faces[key]

    def _faces_of(self, block: Block, steps: tuple[int, int, int]) -> Array:
        sides, rows = self.sides(block), []
        extents = [b - a for a, b in zip(block.start, block.stop, strict=True)]
        for axis, side in zip(*np.nonzero(sides[:, :, 0] >= 0), strict=True):
            u, v = (other for other in range(3) if other != axis)
            place = sum(steps) + side * (extents[axis] - 1) * steps[axis]
            at = sides[axis, side, 0] + block.start[u] * self.shape[v] + block.start[v]
            rows.append((place, steps[u], steps[v], extents[u], extents[v], at, self.shape[v], 1))
        return np.array(rows, np.int64).reshape(-1, 8)


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
    exits : (m, 2) array
        Its nodes that lie in other blocks, and where the surface holds their numbers there.
    edges, keys, at : (k, 2), (k,), (k,) arrays
        Pairs of nodes, and the keys and places at which they are joined.
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
    """The parts of all blocks of an image, to which several threads may add."""

    def __init__(self, grid: Grid, kind: Kind) -> None:
        self.grid, self.kind = grid, kind
        self.surface = np.empty(grid.size, np.int32)
        self.parts: list[Part] = []
        self._nodes = 0
        self._lock = threading.Lock()

    def reserve(self, count: int) -> int:
        """Reserve numbers for `count` nodes, and return the first."""
        with self._lock:
            self._nodes += count
            return self._nodes - count

    def nodes(self) -> Nodes:
        """Return the nodes of all parts; exits are children of the nodes that they stand for."""
        nodes = Nodes(self._nodes)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            nodes.births[own], nodes.places[own] = part.births, part.places
            follow_exits(part.exits, self.surface, nodes.tree)
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
        The keys at which the components with these roots can be reached from outside.
    closed : (n,) bool array
        Whether they never can.
    tree, merged : (n,) int32 arrays
        Parents by all edges, and by those whose effect is final.
    """

    def __init__(self, count: int) -> None:
        self.births, self.places = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        self.opens, self.closed = np.full(count, ALL, np.uint64), np.ones(count, np.bool_)
        self.tree = np.arange(count, dtype=np.int32)
        self.merged = self.tree

    def join(
        self, edges: Array, keys: Array, order: Array, histogram: Array
    ) -> tuple[Array, Array]:
        """Join nodes along edges in the given order, as :func:`join_basins` does.

        Returns the numbers of the edges that are kept and, if the histogram is empty, the places
        of birth and the edges of death of the components that end.
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
            self.closed,
            self.tree,
            self.merged,
            histogram,
            kept,
            pairs,
        )
        return kept[:left], pairs[:lives]

    def roots(self) -> Array:
        """Return the nodes that are roots."""
        return np.flatnonzero(self.tree == np.arange(self.tree.size))
