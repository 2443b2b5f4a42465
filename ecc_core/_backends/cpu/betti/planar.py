"""Persistence pairs of images in the plane: components and holes from one list of forks.

Around a fork, as many components of the lower side alternate with those of the upper one. An edge
between two of the former crosses one between two of the latter. Edges that join components of the
set in the order in which points enter leave those that join components of the complement in the
opposite order: these are born as holes. What is around the image is on the upper side.

Every other point is in the component of any of its neighbours on either side, so that steps from
one to the next lead to a minimum, or to a maximum or around the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.blocks import SPARE, Field, Staged
from ecc_core._backends.cpu.betti.links import ALL, ONE, bare
from ecc_core._backends.cpu.betti.order import sort_keys
from ecc_core._backends.cpu.betti.rings import Tables, scan_rings, tables_of
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import coefficient_plan
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, scratch
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

FEW = 6  # steps, of which most paths have no more
LONG = 8  # times as many


@subroutine()
def node_of(rings: Any, ways: Any, labels: Any, start: Any) -> Any:
    """Return the label to which steps lead from a point; other points have the label -1.

    The points of long paths are labelled.
    """
    place, step, rounds = np.int64(start), np.int64(1), 0
    while step:
        for _ in range(FEW):  # without branches, which nobody can predict: at the end, steps are 0
            place += ways[rings[np.uint64(place)]]
        step = ways[rings[np.uint64(place)]]
        rounds += 1
        if rounds > LONG and labels[np.uint64(place)] >= 0:
            break
    label = labels[np.uint64(place)]
    if rounds > LONG:
        place = np.int64(start)
        while labels[np.uint64(place)] < 0:
            labels[np.uint64(place)] = label
            place += ways[rings[np.uint64(place)]]
    return label


@kernel()
def number_nodes(
    keys: Any, places: Any, order: Any, backwards: Any, labels: Any, aged: Any, aged_keys: Any
) -> None:
    """Number nodes in an order, the last ones of `aged`, and label their places."""
    keys, places, order, labels = bare(keys), bare(places), bare(order), bare(labels)
    aged, aged_keys = bare(aged), bare(aged_keys)
    first = aged.size - order.size
    for k in range(order.size):
        place = places[np.uint64(order[order.size - 1 - k if backwards else k])]
        aged[first + k], aged_keys[first + k] = place, keys[np.uint64(place)]
        labels[np.uint64(place)] = first + k


@kernel()
def list_edges(
    keys: Any,
    rings: Any,
    forks: Any,
    counts: Any,
    members: Any,
    ways: Any,
    chained: Any,
    labels: Any,
    places: Any,
    edge_keys: Any,
    ends: Any,
) -> Any:
    """List the edges at forks: their places and keys, and the nodes of one side that they join.

    They form a chain through all components of that side around a fork, or a star from the first.
    Returns their number.
    """
    keys, rings, forks, labels = bare(keys), bare(rings), bare(forks), bare(labels)
    counts, members, ways = bare(counts), bare(members), bare(ways)
    places, edge_keys, ends = bare(places), bare(edge_keys), bare(ends)
    edge = np.uint64(0)
    for f in range(forks.size):
        place = np.int64(forks[f])
        ring = np.uint64(rings[np.uint64(place)])
        first = node_of(rings, ways, labels, place + members[ring, 0])
        for i in range(1, counts[ring]):
            node = node_of(rings, ways, labels, place + members[ring, np.uint64(i)])
            places[edge], edge_keys[edge] = place, keys[np.uint64(place)]
            ends[edge, 0], ends[edge, 1] = first, node
            first = node if chained else first
            edge += ONE
    return edge


@subroutine()
def root_of(parents: Any, node: Any) -> Any:
    """Return the root of a node, most of which are near, and halve the path to it."""
    node = np.uint64(node)
    above = np.uint64(parents[np.uint64(parents[node])])
    root = np.uint64(parents[above])
    parents[node] = above
    while above != root:
        node, above = above, np.uint64(parents[root])
        root = np.uint64(parents[above])
        parents[node] = above
    return root


@kernel()
def join_edges(
    order: Any, backwards: Any, ends: Any, parents: Any, sorted_ends: Any, ended: Any
) -> None:
    """Join nodes along edges, and write to `ended` which node ends at each of them, or -1.

    Nodes are numbered by age: the one with the smaller number goes on. Ends are brought into order
    first, as reading them waits for memory, and much of it at once if nothing else is to be done.
    """
    order, ends, parents = bare(order), bare(ends), bare(parents)
    sorted_ends, ended = bare(sorted_ends), bare(ended)
    for k in range(order.size):
        edge = np.uint64(order[k])
        sorted_ends[k, 0], sorted_ends[k, 1] = ends[edge, 0], ends[edge, 1]
    for k in range(order.size):
        at = np.uint64(order.size - 1 - k if backwards else k)
        first = root_of(parents, sorted_ends[at, 0])
        second = root_of(parents, sorted_ends[at, 1])
        elder = first if first < second else second
        younger = second if first < second else first
        parents[younger] = elder
        ended[at] = np.int64(younger) if first != second else -1


@kernel()
def end_minima(order: Any, ended: Any, deaths: Any, left: Any) -> Any:
    """Write the edges at which minima end, and list those at which none does.

    Returns the number of the latter.
    """
    order, ended, deaths, left = bare(order), bare(ended), bare(deaths), bare(left)
    count = np.uint64(0)
    for k in range(order.size):
        edge, node = order[k], np.int64(ended[k])
        deaths[node] = edge  # of -1 the last one, which is no minimum
        left[count] = edge
        count += np.uint64(node < 0)
    return count


@kernel()
def list_pairs(
    step: Any,
    short: Any,
    hides: Any,
    never: Any,
    births: Any,
    birth_places: Any,
    birth_keys: Any,
    deaths: Any,
    death_places: Any,
    death_keys: Any,
    found: Any,
) -> Any:
    """List births and deaths, of equal keys only if `short`, as points in C order; count them.

    `births` and `deaths` are numbers of places and keys, or -1 for a class that does not die. If it
    `hides`, points of the key `never` do not enter. Pairs of one birth are sorted by death.
    """
    births, birth_places, birth_keys = bare(births), bare(birth_places), bare(birth_keys)
    deaths, death_places, death_keys = bare(deaths), bare(death_places), bare(death_keys)
    born, died = bare(found[0]), bare(found[1])
    rows, count = 1 / np.float64(step), np.uint64(0)
    for i in range(births.size):
        birth = np.uint64(births[i])
        place, key = np.int64(birth_places[birth]), np.uint64(birth_keys[birth])
        known = np.int64(deaths[i]) >= 0
        death = np.uint64(deaths[i]) if known else np.uint64(0)
        end, last = np.int64(death_places[death]), np.uint64(death_keys[death])
        ends = known and not (hides and last == never)
        born[count] = place - step + 1 - 2 * np.int64(place * rows)
        died[count] = end - step + 1 - 2 * np.int64(end * rows) if ends else -1
        at = count
        count += np.uint64(not (hides and key == never) and (short or not ends or key != last))
        while at > 0 and count > at and born[at] == born[at - ONE] and died[at] < died[at - ONE]:
            died[at], died[at - ONE] = died[at - ONE], died[at]
            at -= ONE
    return count


class _Cells(NamedTuple):
    """Minima, maxima or edges: their places and keys."""

    places: Array
    keys: Array


class _Scan(NamedTuple):
    """The keys of an image in an array with a border, its rings, minima, maxima and forks.

    If it `hides` some points, they have the key `never`.
    """

    keys: Array
    hides: bool
    never: np.uint64
    step: int
    rings: Array
    minima: Array
    maxima: Array
    forks: Array
    tables: Tables


def planar_pairs(
    field: Field, dimensions: Sequence[int], filtration: Filtration, *, short: bool = False
) -> list[tuple[Array, Array]]:
    """Return the points at which classes of these dimensions are born and die, by birth.

    Those that die at the value at which they are born are among them only if `short`.
    """
    scan, order, found = _scanned(field, filtration), None, {}
    if 0 in dimensions:
        minima, edges, ends = _edges(scan, 0)
        order = sort_keys(edges.keys)
        ended = _joined(order, False, ends, minima)
        deaths, left = np.full(minima.places.size + 1, -1, ends.dtype), np.empty_like(order)
        order = left[: end_minima(order, ended, deaths, left)]
        every = np.arange(minima.places.size, dtype=ends.dtype)
        found[0] = _pairs(scan, short, every, minima, deaths, edges)
    if 1 in dimensions:
        maxima, edges, ends = _edges(scan, 1)
        order = sort_keys(edges.keys) if order is None else order
        ended = _joined(order, True, ends, maxima)
        if 0 not in dimensions:
            order, ended = order[ended >= 0], ended[ended >= 0]
        found[1] = _pairs(scan, short, order, edges, ended, maxima)
    return [found[dimension] for dimension in dimensions]


def _scanned(field: Field, filtration: Filtration) -> _Scan:
    """Find the minima, maxima and forks of an image."""
    staged = Staged(Block((0, 0, 0), field.source.shape), field)
    _, rows, columns, _, step = staged.layout
    size, masked = staged.size + SPARE, field.mask is not None
    dtype = field.source.array.dtype.newbyteorder("=")
    plan = coefficient_plan(dtype, filtration.superlevel, False, masked)
    keys = scratch.take("keys", size, plan.key_dtype)
    place = staged.halo, keys, staged.at, staged.steps[:2]
    has_nan, _ = load_box(plan, field.source, field.mask, *place)
    if has_nan and filtration.nan == "raise":
        raise ValueError(NAN_MESSAGE)
    wide_below = field.ndim == 1 or filtration.cubes
    rings = scratch.take("rings", size, np.uint8)
    index = np.int32 if size < 1 << 31 else np.int64
    listed = [scratch.take(name, rows * columns, index) for name in ("minima", "maxima", "forks")]
    flip = ALL if wide_below else np.uint64(0)
    counts = scan_rings(keys, (rows, columns), flip, rings, *listed)
    minima, maxima, forks = (p[:count] for p, count in zip(listed, counts, strict=True))
    hides, never = masked or has_nan, np.uint64(plan.never)
    tables = tables_of(step, wide_below)
    return _Scan(keys, hides, never, step, rings, minima, maxima, forks, tables)


def _edges(scan: _Scan, side: int) -> tuple[_Cells, _Cells, Array]:
    """Return the nodes of one side, oldest first, edges at forks, and the nodes that they join.

    Those of the upper side are the border of the array and all maxima.
    """
    keys, tables, extrema = scan.keys, scan.tables, scan.maxima if side else scan.minima
    room, index = 3 * scan.forks.size, extrema.dtype
    labels = scratch.take("labels", scan.rings.size, index)
    labels[:] = -1
    border = labels[:-SPARE].reshape(-1, scan.step)
    border[[0, -1]] = border[:, [0, -1]] = 0
    order, count = sort_keys(keys[extrema]), extrema.size + side
    nodes = _Cells(np.zeros(count, index), np.zeros(count, keys.dtype))
    number_nodes(keys, extrema, order, side == 1, labels, *nodes)
    edges = _Cells(
        scratch.take("edge places", room, index), scratch.take("edge keys", room, keys.dtype)
    )
    ends = scratch.take("edge ends", 2 * room, index).reshape(-1, 2)
    lists = tables.counts, tables.members[side], tables.ways[side]
    count = list_edges(keys, scan.rings, scan.forks, *lists, side == 0, labels, *edges, ends)
    return nodes, _Cells(edges.places[:count], edges.keys[:count]), ends[:count]


def _joined(order: Array, backwards: bool, ends: Array, nodes: _Cells) -> Array:
    """Return which node ends at each edge of an order, or -1."""
    ended = scratch.take("ended", order.size, ends.dtype)
    parents = np.arange(nodes.places.size, dtype=ends.dtype)
    sorted_ends = scratch.take("sorted ends", 2 * order.size, ends.dtype).reshape(-1, 2)
    join_edges(order, backwards, ends, parents, sorted_ends, ended)
    return ended


def _pairs(
    scan: _Scan, short: bool, births: Array, born: _Cells, deaths: Array, died: _Cells
) -> tuple[Array, Array]:
    """Return pairs as points in C order."""
    found = np.empty((2, births.size + 1), scan.forks.dtype)
    if not died.places.size:  # one component that does not die
        died = born
    chosen = short, scan.hides, scan.never
    count = list_pairs(scan.step, *chosen, births, *born, deaths, *died, found)
    return found[0, :count], found[1, :count]
