"""Forests of blocks, and how they are glued along the cuts between them."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.glue import glue
from ecc_core._backends.cpu.sources import Block

__all__ = ["Forest", "Grid", "Kind", "Part"]

Array = NDArray[Any]


class Kind(NamedTuple):
    """Which components to follow.

    Attributes
    ----------
    connectivity : int
        1: along axes; the number of axes: also along diagonals. Rows count as planes.
    complement : bool
        Those of the complement, in a frame around the image, from the last point that enters to the
        first: keys are reversed.
    """

    connectivity: int
    complement: bool


class Grid:
    """Blocks of an image, and the *surface*: the points on both sides of each cut between them.

    Attributes
    ----------
    blocks : list of Block
    size : int
        Points of the surface.
    """

    def __init__(self, shape: tuple[int, int, int], step: tuple[int, int, int]) -> None:
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

    def join(self, histogram: Array) -> tuple[Array, Array]:
        """Join the parts: count deaths in the histogram.

        Returns the places of birth and death of all components that end, and the places of birth
        of those that do not. Places are only known where there is no histogram.
        """
        parents = np.arange(self._nodes, dtype=np.int32)
        births, places = np.empty(self._nodes, np.uint64), np.empty(self._nodes, np.int64)
        for part in self.parts:
            own = slice(part.first, part.first + part.births.size)
            births[own], places[own] = part.births, part.places
            parents[part.exits[:, 0]] = self.surface[part.exits[:, 1]]
            if self.kind.complement:
                parents[part.first] = self.parts[0].first
        edges, keys, at, pairs = (
            np.concatenate([getattr(part, name) for part in self.parts])
            for name in ("edges", "keys", "at", "pairs")
        )
        paired = histogram.size == 0
        order = np.lexsort((at, keys)) if paired else np.argsort(keys, kind="stable")
        more = np.empty((len(edges) if paired else 0, 2), np.int64)
        count = glue(parents, births, places, keys, at, edges, order, histogram, more)
        roots = parents == np.arange(self._nodes)
        return np.concatenate([pairs, more[:count]]), places[roots]
