"""Trees of the components of a plane, and of those of its complement.

Around a fork, components of the lower side alternate with equally many of the upper side. Edges at
the fork that close loops in the trees of one side join components of the other side: only forks
with such edges have edges in the trees of the complement that join anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.planar import Scan, point_at, write_keys
from ecc_core._backends.cpu.betti.rings import node_of, nodes_at, star_of
from ecc_core._backends.cpu.betti.trees import JOINED, Joined, Trees
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import ONE, bare
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]
Points = NDArray[np.int64]


class Forks(NamedTuple):
    """The forks of a plane, in the order in which they enter."""

    order: Array
    kept: Array
    """1 at those whose edges are listed, in the order of places."""
    firsts: Array
    """The numbers of their first edges in the trees that were made last, in the order of places."""


def forks_of(scan: Scan) -> Forks:
    """Return all forks of a plane."""
    keys = scratch.take("keys of forks", scan.forks.size, scan.keys.dtype)
    write_keys(scan.keys, scan.forks, keys)
    kept = np.ones(scan.forks.size, np.uint8)
    firsts = np.empty(scan.forks.size + 1, scan.forks.dtype)
    return Forks(sort_keys(keys), kept, firsts)


def trees_below(
    scan: Scan, forks: Forks, others: Sequence[Points], *, name: str, by_age: bool = True
) -> Trees:
    """Return the trees of components, which know the nodes of other points.

    Where more than two components meet along axes, they are joined in the order of the edges to
    neighbours: by their lowest corner, then by axis. If they are not wanted `by_age`, the first
    nodes are those at the first places, which need not be sorted.
    """
    counts, members, ways = scan.tables[0]
    if not scan.wide_below:
        counts, members = star_of(scan.step)
    tables = counts, members, ways
    return _trees(scan, 0, forks, tables, others, name=name, by_age=by_age)


def trees_above(
    scan: Scan, forks: Forks, below: Joined, others: Sequence[Points], *, name: str
) -> Trees:
    """Return the trees of the complement, without edges at forks that join components only."""
    kept = np.zeros_like(forks.kept)
    keep_closing(forks.order, forks.firsts, below.younger, kept)
    return _trees(scan, 1, forks._replace(kept=kept), scan.tables[1], others, name=name)


def extrema(scan: Scan, side: int) -> Points:
    """Return the points of the minima, or of the maxima, oldest first."""
    places = scan.oldest(side)[0][side:]
    points = np.empty(places.size, np.int64)
    write_points(places, scan.step, points)
    return points


def _trees(
    scan: Scan,
    side: int,
    forks: Forks,
    tables: tuple[Array, Array, Array],
    others: Sequence[Points],
    *,
    name: str,
    by_age: bool = True,
) -> Trees:
    """Return the trees of a side, and the nodes to which steps lead from other points.

    They lie in the thread's memory.
    """
    places, _, labels = scan.numbered(side, by_age)
    index = labels.dtype
    listed = scratch.take("edge ends", 6 * scan.forks.size, index).reshape(-1, 2)
    count = list_joins(
        rings=scan.rings,
        forks=scan.forks,
        kept=forks.kept,
        tables=tables,
        chained=side == 0,
        labels=labels,
        firsts=forks.firsts,
        chosen=scratch.take("chosen forks", scan.forks.size, index),
        ends=listed,
    )
    nodes = []
    for i, points in enumerate(others):
        found = scratch.take(f"others {i} {name}", points.size, index)
        nodes_at(scan.rings, tables[2], labels, scan.step, points, found)
        nodes.append(found)
    # The kernel writes one entry behind the last, which is not kept.
    ends = scratch.take(f"ends {name}", 2 * (count + 1), index).reshape(-1, 2)
    at = scratch.take(f"places {name}", count + 1, np.int64)
    write_in_order(forks.order, bool(side), scan.forks, scan.step, forks.firsts, listed, ends, at)
    starts = scratch.take(f"starts {name}", places.size - side, np.int64)
    write_points(places[side:], scan.step, starts)
    return Trees(starts, bool(side), ends[:count], at[:count], nodes, name)


@kernel()
def write_points(places, step, points):
    """Write places of an image, whose rows have two more, as points in C order."""
    places = bare(places)
    points = bare(points)
    rows = 1 / np.float64(step)
    for i in range(places.size):
        points[i] = point_at(np.int64(places[i]), step, rows)


@kernel()
def list_joins(rings, forks, kept, tables, chained, labels, firsts, chosen, ends):
    """List the edges at forks that are kept, and the number of the first one of each fork.

    They form a chain through all components of a side around a fork, or a star from the first.
    `chosen` has room for all forks. Returns the number of edges.
    """
    counts = bare(tables[0])
    members = bare(tables[1])
    ways = bare(tables[2])
    rings = bare(rings)
    forks = bare(forks)
    kept = bare(kept)
    labels = bare(labels)
    firsts = bare(firsts)
    chosen = bare(chosen)
    ends = bare(ends)
    edges = np.int64(0)
    count = np.uint64(0)
    # No processor could predict which forks are kept, so there is no branch.
    for f in range(forks.size):
        firsts[f] = edges
        chosen[count] = f
        count += np.uint64(kept[f])
        ring = np.uint64(rings[np.uint64(forks[f])])
        components = np.int64(counts[ring])
        edges += (components - 1) * np.int64(kept[f])
    firsts[forks.size] = edges
    for k in range(count):
        fork = np.uint64(chosen[k])
        place = np.int64(forks[fork])
        ring = np.uint64(rings[np.uint64(place)])
        edge = np.uint64(firsts[fork])
        first = node_of(rings, ways, labels, place + members[ring, 0])
        for i in range(1, counts[ring]):
            node = node_of(rings, ways, labels, place + members[ring, np.uint64(i)])
            ends[edge, 0] = first
            ends[edge, 1] = node
            first = node if chained else first
            edge += ONE
    return edges


@kernel()
def write_in_order(order, backwards, forks, step, firsts, listed, ends, points):
    """Write the ends of edges in the order of forks, and the points with which they enter."""
    order = bare(order)
    forks = bare(forks)
    firsts = bare(firsts)
    listed = bare(listed)
    ends = bare(ends)
    points = bare(points)
    rows = 1 / np.float64(step)
    count = np.uint64(0)
    for k in range(order.size):
        at = np.uint64(order.size - 1 - k if backwards else k)
        fork = np.uint64(order[at])
        first = np.int64(firsts[fork])
        beyond = np.int64(firsts[fork + ONE])
        point = point_at(np.int64(forks[fork]), step, rows)
        # Most forks have one edge or none, unpredictably: one is written without a branch.
        last = beyond - np.int64(beyond > first)
        edge = np.uint64(last if backwards else first)
        ends[count, 0] = listed[edge, 0]
        ends[count, 1] = listed[edge, 1]
        points[count] = point
        count += np.uint64(beyond > first)
        for i in range(1, beyond - first):
            edge = np.uint64(beyond - 1 - i if backwards else first + i)
            ends[count, 0] = listed[edge, 0]
            ends[count, 1] = listed[edge, 1]
            points[count] = point
            count += ONE


@kernel()
def keep_closing(order, firsts, younger, kept):
    """Keep forks with an edge that joins nothing, of all edges in the order of forks."""
    order = bare(order)
    firsts = bare(firsts)
    younger = bare(younger)
    kept = bare(kept)
    edge = np.uint64(0)
    for k in range(order.size):
        fork = np.uint64(order[k])
        for _ in range(firsts[fork], firsts[fork + ONE]):
            kept[fork] |= younger[edge] == JOINED
            edge += ONE
