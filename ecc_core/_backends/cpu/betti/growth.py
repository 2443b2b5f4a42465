"""Sizes of components, and which of them span the image, at all thresholds at once.

As in :mod:`basins`, every point leads to a minimum, to whose basin it belongs, and basins join at
forks. Here all points are given the number of their basin. Points, edges between basins and points
on the sides of the image are then added in the order of their keys, while each tree of basins knows
the number of its points and which sides it touches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.basins import end_of, find, list_edges, relabel, sort_edges
from ecc_core._backends.cpu.betti.blocks import Field, Staged, Worker
from ecc_core._backends.cpu.betti.glue import coordinates
from ecc_core._backends.cpu.betti.launch import empty_forests, field_of, rank_plans
from ecc_core._backends.cpu.betti.scan import bare
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Filtration

__all__ = ["component_curves"]

Array = NDArray[Any]
Values = NDArray[np.int64]

MOST_NARROW = 2**31 - 1  # points whose numbers fit in 32 bits


def component_curves(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Points, those of the largest component, and components that span each axis.

    Of each image of a batch at sorted thresholds: (batch, d + 2, n) int64.
    """
    count, ndim = image.shape[0], filtration.ndim
    result = np.zeros((count, ndim + 2, thresholds.size), np.int64)
    if result.size == 0 or image.size == 0:
        return result
    masked = mask is not None
    plan = rank_plans(image.dtype, thresholds, filtration, masked=masked, points=image[0].size)[-1]

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            field, order = field_of(image[i], None if mask is None else mask[i])
            grown = _Growth(field, plan, filtration).run(order, filtration.nan, alone)
            result[i] = grown[:, plan.entered]

    together = 1 if count == 1 else worker_count(workers, image.size, plan.top + 1)
    alone = workers if together == 1 else 1
    share(range(count), each, together)
    return result


class _Growth:
    """The basins of an image, and how they grow."""

    def __init__(self, field: Field, plan: Plan, filtration: Filtration) -> None:
        self.field, self.plan, self.shape = field, plan, field.source.shape
        (self.forest,) = empty_forests(field, [kind_of(filtration, complement=False)])
        points = math.prod(self.shape)
        self.keys = np.empty(points, plan.key_dtype)
        self.basins = np.empty(points, np.int32)
        self.index = np.int32 if points <= MOST_NARROW else np.int64

    def run(self, order: list[int], nan: str, workers: int | None) -> Values:
        """Return the numbers when so many keys have entered, (d + 2, keys + 1).

        `order` tells which axis of the image each axis of the field is.
        """
        forks, links, room = self._scan(nan, workers)
        link = self.field.link(self.forest.kind)
        steps = self.shape[1] * self.shape[2], self.shape[2], 1
        ways = link.ways(steps)
        _follow(self.basins, ways)
        edges, nodes = np.empty((room, 3), self.index), self.forest.reserve(0)
        none = np.empty(0, np.int32)  # no path leaves the image
        listed = link.offsets(steps), forks, links, len(forks)
        _, count = list_edges(self.basins, ways, *listed, none, nodes, edges)
        edge_ends = np.empty(self.plan.top + 1, np.int64)
        edge_order = np.empty(count, self.index)
        sort_edges(self.keys, edges, count, edge_ends, edge_order)
        limit = int(self.plan.entered.max())
        ends, points = np.zeros(limit, np.int64), np.empty(self.keys.size, np.int32)
        _sort_points(self.keys, self.basins, ends, points)
        found = np.zeros((len(order) + 2, limit + 1), np.int64)
        found[0, 1:] = ends
        sides = self._sides(order)
        tree = np.arange(nodes, dtype=np.int32)
        trees = tree, np.zeros(nodes, np.int64), np.zeros(nodes, np.uint8)
        _join(ends, points, edge_ends, edge_order, edges, *sides, *trees, found)
        return found

    def _scan(self, nan: str, workers: int | None) -> tuple[Array, Array, int]:
        """Scan all blocks; return where the forks are, their links, and most edges at them."""
        grid = self.forest.grid

        def work(queue: Iterator[Block]) -> list[tuple[Array, Array, int]]:
            worker = Worker(self.field, [], 1)
            return [self._add(worker, block, nan) for block in queue]

        shared = share(grid.blocks, work, worker_count(workers, self.keys.size, 1))
        forks, links, rooms = zip(*itertools.chain(*shared), strict=True)
        return np.concatenate(forks), np.concatenate(links), sum(rooms)

    def _add(self, worker: Worker, block: Block, nan: str) -> tuple[Array, Array, int]:
        staged = Staged(block, self.field)
        keys, _ = worker.load(staged, [self.plan], nan)
        scan = worker.scan(self.forest, keys, staged)
        forks = scan.forks.astype(self.index)
        first = self.forest.reserve(scan.minima)
        place = staged.layout, block.start, self.shape
        ways = self.field.link(self.forest.kind).ways(staged.steps)
        _keep(keys, scan.labels, ways, forks, *place, first, self.keys, self.basins)
        return forks, scan.links.copy(), scan.room

    def _sides(self, order: list[int]) -> tuple[Array, Array, Array]:
        """Return keys, basins and sides of the points on the sides of the image, sorted by key."""
        keys, basins, sides = [], [], []
        for axis, own in enumerate(order, 3 - len(order)):
            for side in (0, -1):
                face = (slice(None),) * axis + (side,)
                keys.append(self.keys.reshape(self.shape)[face].ravel())
                basins.append(self.basins.reshape(self.shape)[face].ravel())
                sides.append(np.full(keys[-1].size, 1 << (2 * own - side), np.uint8))
        found = [np.concatenate(parts) for parts in (keys, basins, sides)]
        sorting = np.argsort(found[0], kind="stable")
        return found[0][sorting], found[1][sorting], found[2][sorting]


@kernel()
def _keep(
    keys: Any,
    labels: Any,
    ways: Any,
    forks: Any,
    layout: Any,
    start: Any,
    shape: Any,
    first: Any,
    all_keys: Any,
    all_labels: Any,
) -> None:
    """Copy the keys and labels of a block to those of the image; its nodes count from `first`.

    Places of forks become places in the image.
    """
    slices, rows, columns, slice_step, row_step = layout
    labels, ways = bare(labels), bare(ways)
    for z in range(slices):
        for y in range(rows):
            here = np.uint64((z + 1) * slice_step + (y + 1) * row_step + 1)
            there = ((z + start[0]) * shape[1] + y + start[1]) * shape[2] + start[2]
            for x in range(np.uint64(columns)):
                if labels[here + x] < 0:
                    relabel(labels, ways, here + x, end_of(labels, ways, here + x))
                label = labels[here + x]
                all_labels[there + x] = label if label < 0 else label + first
                all_keys[there + x] = keys[here + x]
    for i in range(forks.size):
        z, y, x = coordinates(forks[i], layout)
        forks[i] = ((z + start[0]) * shape[1] + y + start[1]) * shape[2] + x + start[2]


@kernel()
def _follow(labels: Any, ways: Any) -> None:
    """Give all points the label of the minimum that they lead to."""
    labels, ways = bare(labels), bare(ways)
    for place in range(np.uint64(labels.size)):
        if labels[place] < 0:
            relabel(labels, ways, place, end_of(labels, ways, place))


@kernel()
def _sort_points(keys: Any, basins: Any, ends: Any, points: Any) -> None:
    """Write the basins of the points that enter, sorted by key, and where those of a key end."""
    keys, basins, ends, points = bare(keys), bare(basins), bare(ends), bare(points)
    for key in keys:
        if key < ends.size:
            ends[np.uint64(key)] += 1
    total = 0
    for i in range(ends.size):
        total, ends[i] = total + ends[i], total
    for i in range(keys.size):
        if keys[i] < ends.size:
            slot = np.uint64(keys[i])
            points[np.uint64(ends[slot])] = basins[i]
            ends[slot] += 1


@kernel()
def _span(spanning: Any, sides: Any, change: Any) -> None:
    """Count a component along the axes that it spans: a bit for each side."""
    for axis in range(spanning.size):
        if sides >> (2 * axis) & 3 == 3:
            spanning[axis] += change


@kernel()
def _join(
    point_ends: Any,
    points: Any,
    edge_ends: Any,
    edge_order: Any,
    edges: Any,
    side_keys: Any,
    side_basins: Any,
    sides: Any,
    tree: Any,
    sizes: Any,
    touched: Any,
    found: Any,
) -> None:
    """Add edges, points and sides key by key, and write what there is after each to `found`."""
    tree, sizes, points = bare(tree), bare(sizes), bare(points)
    largest, edge, point, side = 0, 0, 0, 0
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    for key in range(point_ends.size):
        while edge < edge_ends[key]:
            row = edge_order[edge]
            edge += 1
            first, second = find(tree, edges[row, 1]), find(tree, edges[row, 2])
            if first == second:
                continue
            if sizes[first] < sizes[second]:
                first, second = second, first
            tree[second] = first
            sizes[first] += sizes[second]  # the point where they meet is yet to come
            both = touched[first] | touched[second]
            _span(spanning, touched[first], -1)
            _span(spanning, touched[second], -1)
            _span(spanning, both, 1)
            touched[first] = both
        while point < point_ends[key]:
            root = find(tree, points[point])
            point += 1
            sizes[root] += 1
            largest = max(largest, sizes[root])
        while side < side_keys.size and side_keys[side] == key:
            root = find(tree, side_basins[side])
            _span(spanning, touched[root], -1)
            touched[root] |= sides[side]
            _span(spanning, touched[root], 1)
            side += 1
        found[1, key + 1] = largest
        found[2:, key + 1] = spanning
