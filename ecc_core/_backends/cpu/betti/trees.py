"""Trees of components that know the eldest point of other images in each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind
from ecc_core._backends.cpu.betti.basins import OUTSIDE, end_of, find
from ecc_core._backends.cpu.betti.blocks import Field, Staged, grid_of
from ecc_core._backends.cpu.betti.forest import Basins, Loops, list_basins
from ecc_core._backends.cpu.betti.planar import root_of
from ecc_core._backends.cpu.betti.volume import Volume, empty_volume
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import coefficient_plan
from ecc_core._backends.cpu.llvm import ONE, bare
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.sources import Source, scratch

Array = NDArray[Any]
Points = NDArray[np.int64]

JOINED = -1
"""Stands for an age where an edge lies within a component, so that nothing ends."""


class Trees(NamedTuple):
    """The basins of an image, and the edges along which they join, in the order of joins."""

    starts: Points
    """The points at which nodes begin, oldest first, without the frame."""
    framed: bool
    """Whether what is around the image is the first node."""
    ends: Array
    """The two nodes of each edge, numbered by age, (n, 2)."""
    places: Points
    """The point with which each edge enters."""
    others: list[Array]
    """The nodes of other points that were asked for."""
    name: str
    """The name of the arrays in the thread's memory, which trees of planes use as well."""
    numbers: Array | None = None
    """The numbers of the edges in the list of all edges between basins of a volume, if they are
    taken from there."""

    def joined(self) -> Joined:
        """Join the nodes along all edges."""
        index = self.ends.dtype
        nodes = self.starts.size + self.framed
        edges = self.places.size
        others = len(self.others)
        parents = scratch.take(f"parents {self.name}", nodes, index)
        parents[:] = np.arange(nodes, dtype=index)
        eldest = scratch.take(f"eldest {self.name}", nodes * others, index).reshape(nodes, others)
        eldest[:] = nobody(index)
        for other, own in enumerate(self.others):
            write_eldest(own, self.framed, other, eldest)
        younger = scratch.take(f"younger {self.name}", edges, index)
        ended = scratch.take(f"ended {self.name}", edges * others, index).reshape(edges, others)
        join_eldest(self.ends, parents, eldest, younger, ended)
        return Joined(self, younger, ended, eldest, parents)


class Joined(NamedTuple):
    """The components that end where the components of trees meet, in the order of edges."""

    trees: Trees
    younger: Array
    """The node at which the younger one of both components begins, or `JOINED`."""
    ended: Array
    """For each of `Trees.others`, the age of the younger one of the eldest points of both
    components, counted from the frame, or :func:`nobody`; `JOINED` for edges that join nothing,
    (edges, others)."""
    eldest: Array
    """The ages of the eldest points of components, known at their roots, (nodes, others)."""
    parents: Array

    def lasting(self) -> Array:
        """Return the ages of the eldest points of the components that never end, (n, others)."""
        roots = np.flatnonzero(self.parents == np.arange(self.parents.size))
        found: Array = self.eldest[roots]
        return found


def nobody(index: np.dtype[Any]) -> Any:
    """Return the age of the eldest point of a component that has none."""
    return index.type(np.iinfo(index).max)


@kernel()
def write_eldest(nodes, framed, other, eldest):
    """Write the ages of the eldest of other points in each node, whose nodes are oldest first."""
    nodes = bare(nodes)
    for i in range(nodes.size):
        age = i + framed
        node = np.uint64(nodes[i])
        if age < eldest[node, other]:
            eldest[node, other] = age
    if framed:
        eldest[0, other] = 0


@kernel()
def join_eldest(ends, parents, eldest, younger, ended):
    """Join components along edges, and write which nodes and eldest points are younger.

    Nodes are numbered by age: the one with the smaller number goes on.
    """
    parents = bare(parents)
    ends = bare(ends)
    eldest = bare(eldest)
    younger = bare(younger)
    ended = bare(ended)
    for k in range(ends.shape[0]):
        first = root_of(parents, ends[k, 0])
        second = root_of(parents, ends[k, 1])
        # Which edges join nothing is not predictable, so there are no branches.
        joins = first != second
        root = min(first, second)
        other = max(first, second)
        parents[other] = root
        younger[k] = np.int64(other) if joins else JOINED
        for a in range(eldest.shape[1]):
            one = eldest[root, a]
            two = eldest[other, a]
            eldest[root, a] = min(one, two)
            ended[k, a] = max(one, two) if joins else JOINED


@kernel()
def basins_of(labels, ways, places, nodes):
    """Write the nodes to which steps lead from places."""
    labels = bare(labels)
    ways = bare(ways)
    for i in range(places.size):
        nodes[i] = labels[end_of(labels, ways, np.uint64(places[i]))]


@kernel()
def list_stars(keys, paths, offsets, joins, forks, ends, places):
    """List edges between nodes; points with several edges get those of their stars instead.

    The edges of a star are the pairs of the first lower neighbour and each of the others. Returns
    how many edges there are.
    """
    keys = bare(keys)
    labels = bare(paths[0])
    ways = bare(paths[1])
    joins = bare(joins)
    forks = bare(forks)
    ends = bare(ends)
    places = bare(places)
    count = np.uint64(0)
    edge = np.int64(0)
    while edge < forks.size:
        place = forks[edge]
        if edge + 1 == forks.size or forks[edge + 1] != place:
            ends[count, 0] = joins[edge, 0]
            ends[count, 1] = joins[edge, 1]
            places[count] = place
            count += ONE
            edge += 1
            continue
        while edge < forks.size and forks[edge] == place:
            edge += 1
        first = np.int64(-1)
        own = keys[np.uint64(place)]
        for k in range(offsets.size):
            beside = np.uint64(place + offsets[k])
            other = keys[beside]
            if labels[beside] == OUTSIDE or not (other < own or (other == own and offsets[k] < 0)):
                continue
            node = labels[end_of(labels, ways, beside)]
            if first >= 0:
                ends[count, 0] = first
                ends[count, 1] = node
                places[count] = place
                count += ONE
            else:
                first = np.int64(node)
    return count


def in_star_order(keys: Array, basins: Basins, steps: tuple[int, int, int]) -> tuple[Array, Array]:
    """Return the edges of a volume whose points are adjacent along axes, and the places of forks.

    Where more than two components meet, they are joined in the order of the edges to neighbours:
    by their lowest corner, then by axis.
    """
    offsets = np.array([-steps[0], -steps[1], -steps[2], *steps])
    joins = basins.edges.nodes
    forks = basins.edges.places
    room = (offsets.size - 1) * forks.size
    ends = scratch.take("edges of stars", 2 * room, joins.dtype).reshape(-1, 2)
    places = scratch.take("places of stars", room, forks.dtype)
    count = list_stars(keys, basins.paths, offsets, joins, forks, ends, places)
    return ends[:count], places[:count]


class EntryOrder(NamedTuple):
    """The points of a volume in the order in which they enter, staged with a layer around.

    Those of complements enter in the opposite order, and their volume is flipped.
    """

    staged: Staged
    kind: Kind
    keys: Array

    @property
    def size(self) -> int:
        return math.prod(self.staged.field.source.shape)

    def points(self, places: Array) -> Points:
        """Convert places to points of the volume as it was."""
        points = in_volume(self.staged, places)
        return self.size - 1 - points if self.kind.complement else points

    def places(self, points: Points) -> Points:
        """Convert points of the volume as it was to places."""
        return self.places_of_vertices(self.size - 1 - points if self.kind.complement else points)

    def places_of_vertices(self, vertices: Points) -> Points:
        """Convert points of the volume, which is flipped for complements, to places."""
        found = np.empty(vertices.size, np.int64)
        given = np.ascontiguousarray(vertices, np.int64)
        write_staged(given, self.staged.field.source.shape, self.staged.steps[:2], found)
        return found


def in_volume(staged: Staged, places: Array) -> Points:
    """Convert places of a volume with a layer around to points in C order."""
    found = np.empty(places.size, np.int64)
    given = np.ascontiguousarray(places, np.int64)
    write_unstaged(given, staged.field.source.shape, staged.steps[:2], found)
    return found


@kernel()
def write_unstaged(places, shape, steps, points):
    """Write places of a volume with a layer around as points; NumPy's take twice as many passes."""
    places = bare(places)
    points = bare(points)
    slice_step = np.uint64(steps[0])
    row_step = np.uint64(steps[1])
    for i in range(places.size):
        place = np.uint64(places[i])
        z = place // slice_step
        within = place - z * slice_step
        y = within // row_step
        x = within - y * row_step
        row = (z - ONE) * np.uint64(shape[1]) + y - ONE
        points[i] = row * np.uint64(shape[2]) + x - ONE


@kernel()
def write_staged(points, shape, steps, places):
    """Write points of a volume as places of it with a layer around."""
    points = bare(points)
    places = bare(places)
    slice_size = np.uint64(shape[1] * shape[2])
    columns = np.uint64(shape[2])
    for i in range(points.size):
        point = np.uint64(points[i])
        z = point // slice_size
        within = point - z * slice_size
        y = within // columns
        x = within - y * columns
        places[i] = (z + ONE) * np.uint64(steps[0]) + (y + ONE) * np.uint64(steps[1]) + x + ONE


class VolumeBasins(NamedTuple):
    """The basins of a volume, searched as one block."""

    order: EntryOrder
    basins: Basins
    volume: Volume
    """The volume; it has the gradient if points are adjacent along axes."""


def volume_basins(values: Array, shown: Array | None, kind: Kind) -> VolumeBasins:
    """Return the basins of a volume, or of its complement in a frame, and loops within them.

    Points enter in the order of unsigned values, of the complement in the opposite one. It is
    searched as one block, since what ends within a part of it depends on points elsewhere. Keys and
    basins lie in the thread's memory.
    """
    shape = values.shape
    if kind.complement:
        values = np.flip(values)
        shown = None if shown is None else np.flip(shown)
    field = Field(Source(values), None if shown is None else Source(shown, "mask"), 3)
    grid = grid_of(shape, shape)
    staged = Staged(grid.blocks[0], field)
    plan = coefficient_plan(values.dtype, False, False, shown is not None)
    keys, _, _ = staged.load(plan, "raise")
    if kind.complement:
        np.subtract(plan.key_dtype.type(plan.top), keys, out=keys)
    volume = empty_volume(shape)
    basins = list_basins(grid, kind, keys, staged, frame=kind.complement, volume=volume)
    return VolumeBasins(EntryOrder(staged, kind, keys), basins, volume)


def trees_of(found: VolumeBasins, others: Sequence[Points], name: str) -> Trees:
    """Return the trees of the components of a volume, which know those of other points."""
    order, basins, _ = found
    kind = order.kind
    framed = int(kind.complement)
    begin = basins.starts[framed : basins.minima].copy()
    by_age = sort_keys(order.keys[begin])
    ages = np.arange(basins.minima, dtype=np.int32 if order.size < 1 << 31 else np.int64)
    ages[framed + by_age] = np.arange(framed, basins.minima)
    joins = basins.edges.nodes
    forks = basins.edges.places
    by_star = not kind.complement and kind.connectivity == 1
    if by_star:
        joins, forks = in_star_order(order.keys, basins, order.staged.steps)
    by_entry = order_of_places(order.keys, forks)
    nodes = []
    for points in others:
        node = np.empty(points.size, np.int64)
        basins_of(*basins.paths, order.places(points), node)
        nodes.append(ages[node])
    return Trees(
        order.points(begin[by_age]),
        kind.complement,
        ends_by_age(ages, joins, by_entry),
        order.points(forks[by_entry]),
        nodes,
        name,
        None if by_star else by_entry,
    )


def ends_by_age(ages: Array, joins: Array, order: Array) -> Array:
    """Return the nodes of edges in an order, by age."""
    found = np.empty((order.size, 2), ages.dtype)
    write_ends(ages, joins, order, found)
    return found


@kernel()
def write_ends(ages, joins, order, found):
    """Write the ages of the nodes of edges in an order, in half the time of indices of NumPy."""
    ages = bare(ages)
    joins = bare(joins)
    order = bare(order)
    found = bare(found)
    for k in range(order.size):
        edge = np.uint64(order[k])
        found[k, 0] = ages[np.uint64(joins[edge, 0])]
        found[k, 1] = ages[np.uint64(joins[edge, 1])]


def order_of_places(keys: Array, places: Array) -> Array:
    """Return the order in which what enters with points at places does so; ties keep theirs."""
    by_place = sort_keys(places.astype(np.uint32), max(keys.size.bit_length(), 1))
    order: Array = by_place[sort_keys(keys[places[by_place]])]
    return order


def loops_of(found: VolumeBasins, joined: Joined | None = None) -> Loops:
    """Return all loops of a volume, whose places are points of it, flipped for complements.

    If its trees are `joined`, the same edges need not be joined again.
    """
    basins = found.basins
    if joined is not None and joined.trees.numbers is not None:
        closes = np.empty(basins.edges.places.size, np.bool_)
        closes[joined.trees.numbers] = joined.younger == JOINED
    else:
        closes = loops_among(found, basins.edges.nodes, basins.edges.places)
    closed = Loops(*(part[closes] for part in basins.edges[2:]))
    places, members, links = map(np.concatenate, zip(basins.loops, closed, strict=True))
    return Loops(in_volume(found.order.staged, places), members, links)


def loops_among(found: VolumeBasins, nodes: Array, places: Array) -> Array:
    """Return which edges between nodes, which enter with points at places, close a loop."""
    closes = np.empty(places.size, np.bool_)
    in_order = order_of_places(found.order.keys, places)
    join_nodes(nodes, in_order, np.arange(found.basins.total), closes)
    return closes


@kernel()
def join_nodes(nodes, order, parents, closes):
    """Join nodes along edges in the given order, and write which edges close a loop."""
    parents = bare(parents)
    for k in range(order.size):
        one = find(parents, nodes[order[k], 0])
        other = find(parents, nodes[order[k], 1])
        closes[order[k]] = one == other
        parents[other] = one
