"""Persistence pairs of images in the plane: components and holes from one list of forks.

Around a fork, components of the lower side alternate with equally many of the upper side. An edge
between two of the former crosses one between two of the latter. Edges join components of the set in
the order in which points enter. Those that join none join components of the complement in the
opposite order, which are born as holes there. The surroundings of the image are on the upper side.

Every other point is in the component of any of its neighbours on either side, so that steps from
one to the next lead to a minimum, or to a maximum or around the image.

``rings.py`` finds the forks, and the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import Edges
from ecc_core._backends.cpu.betti.blocks import SPARE, Field, Staged
from ecc_core._backends.cpu.betti.rings import list_edges, scan_rings, tables_of
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import coefficient_plan
from ecc_core._backends.cpu.llvm import (
    ALL,
    NONE,
    ONE,
    bare,
)
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.sources import Block, scratch
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]


@subroutine()
def root_of(parents, node):
    """Return the root of a node, most of which are near, and halve the path to it."""
    node = np.uint64(node)
    above = np.uint64(parents[np.uint64(parents[node])])
    root = np.uint64(parents[above])
    parents[node] = above
    while above != root:
        node = above
        above = np.uint64(parents[root])
        root = np.uint64(parents[above])
        parents[node] = above
    return root


@kernel()
def number_nodes(keys, extrema, order, backwards, places, node_keys):
    """Write the places and keys of nodes: of extrema in an order, behind the border if backwards.

    NumPy's index by numbers of 32 bits takes twice as long for each of them.
    """
    keys = bare(keys)
    extrema = bare(extrema)
    order = bare(order)
    places = bare(places)
    node_keys = bare(node_keys)
    if backwards:
        places[0] = 0
        node_keys[0] = 0
    for i in range(order.size):
        at = np.uint64(order.size - 1 - i if backwards else i)
        place = np.uint64(extrema[np.uint64(order[at])])
        node = np.uint64(i + backwards)
        places[node] = place
        node_keys[node] = keys[place]


@kernel()
def label_nodes(places, first, labels):
    """Label nodes with their numbers, from `first` on."""
    places = bare(places)
    labels = bare(labels)
    for node in range(first, places.size):
        labels[np.uint64(places[np.uint64(node)])] = node


@kernel()
def write_keys(keys, places, found):
    """Write the keys of places."""
    keys = bare(keys)
    places = bare(places)
    found = bare(found)
    for i in range(places.size):
        found[i] = keys[np.uint64(places[i])]


@kernel()
def join_edges(order, backwards, ends, parents, sorted_ends, ended, elders):
    """Join nodes along edges, and write to `ended` which node ends at each of them, or -1.

    Nodes are numbered by age: the one with the smaller number goes on, and is written to `elders`,
    unless that is empty. Ends are brought into order first, as reading them waits for memory, and
    much of it at once if nothing else is to be done.
    """
    elders = bare(elders)
    order = bare(order)
    ends = bare(ends)
    parents = bare(parents)
    sorted_ends = bare(sorted_ends)
    ended = bare(ended)
    for k in range(order.size):
        edge = np.uint64(order[k])
        sorted_ends[k, 0] = ends[edge, 0]
        sorted_ends[k, 1] = ends[edge, 1]
    for k in range(order.size):
        at = np.uint64(order.size - 1 - k if backwards else k)
        first = root_of(parents, sorted_ends[at, 0])
        second = root_of(parents, sorted_ends[at, 1])
        elder = first if first < second else second
        younger = second if first < second else first
        parents[younger] = elder
        ended[at] = np.int64(younger) if first != second else -1
        if elders.size and first != second:
            elders[younger] = elder


@kernel()
def end_minima(order, ended, deaths, left):
    """Write the edges at which minima end, and list those at which none does.

    Returns the number of the latter.
    """
    order = bare(order)
    ended = bare(ended)
    deaths = bare(deaths)
    left = bare(left)
    count = np.uint64(0)
    for k in range(order.size):
        edge = order[k]
        node = np.int64(ended[k])
        deaths[node] = edge  # For -1 this is the last element, which belongs to no minimum.
        left[count] = edge
        count += np.uint64(node < 0)
    return count


@subroutine()
def point_at(place, step, rows):
    """Return the number in C order of the point at a place; `rows` is 1 / `step`."""
    return place - step + 1 - 2 * np.int64(place * rows)


@kernel()
def list_pairs(step, short, hides, never, births, deaths, found):
    """List births and deaths, of equal keys only if `short`, as points in C order; count them.

    `births` and `deaths` are indices of points, or -1 for a class that does not die, and the places
    and keys of these. If it `hides`, points of the key `never` do not enter. Pairs of one birth are
    sorted by death.
    """
    first = bare(births[0])
    birth_places = bare(births[1])
    birth_keys = bare(births[2])
    second = bare(deaths[0])
    death_places = bare(deaths[1])
    death_keys = bare(deaths[2])
    born = bare(found[0])
    died = bare(found[1])
    rows = 1 / np.float64(step)
    count = np.uint64(0)
    for i in range(first.size):
        birth = np.uint64(first[i])
        place = np.int64(birth_places[birth])
        key = np.uint64(birth_keys[birth])
        known = np.int64(second[i]) >= 0
        death = np.uint64(second[i]) if known else np.uint64(0)
        end = np.int64(death_places[death])
        last = np.uint64(death_keys[death])
        ends = known and not (hides and last == never)
        born[count] = point_at(place, step, rows)
        died[count] = point_at(end, step, rows) if ends else -1
        at = count
        count += np.uint64(not (hides and key == never) and (short or not ends or key != last))
        while at > 0 and count > at and born[at] == born[at - ONE] and died[at] < died[at - ONE]:
            died[at], died[at - ONE] = died[at - ONE], died[at]
            at -= ONE
    return count


class Scan:
    """An image whose rings, minima, maxima and forks are found.

    The array of `keys` has a border, and `step` is the distance between its rows. There is one of
    the `rings` for each key; `minima`, `maxima` and `forks` are places. `hides` tells whether there
    are points that never enter, and `never` is their key.
    """

    def __init__(self, field: Field, filtration: Filtration) -> None:
        staged = Staged(Block((0, 0, 0), field.source.shape), field)
        _, rows, columns, _, self.step = staged.layout
        dtype = field.source.array.dtype.newbyteorder("=")
        masked = field.mask is not None
        plan = coefficient_plan(dtype, filtration.superlevel, False, masked)
        self.keys, has_nan, _ = staged.load(plan, filtration.nan)
        self.hides = masked or has_nan
        self.never = np.uint64(plan.never)
        self.rings = scratch.take("rings", self.keys.size, np.uint8)
        index = np.int32 if self.keys.size < 1 << 31 else np.int64
        names = "minima", "maxima", "forks"
        listed = [scratch.take(name, rows * columns, index) for name in names]
        wide_below = self.wide_below = field.ndim == 1 or filtration.cubes
        flip = ALL if wide_below else NONE
        counts = scan_rings(self.keys, (rows, columns), flip, self.rings, *listed)
        self.minima, self.maxima, self.forks = (
            places[:count] for places, count in zip(listed, counts, strict=True)
        )
        self.tables = tables_of(self.step, wide_below)

    def keep(self) -> None:
        """Copy the arrays to memory that only the next scan of the thread to be kept overwrites."""
        for name in ("keys", "rings", "minima", "maxima", "forks"):
            found = getattr(self, name)
            kept = scratch.take(f"kept {name}", found.size, found.dtype)
            kept[:] = found
            setattr(self, name, kept)

    def edges(self, side: int) -> tuple[Edges, Array, Array]:
        """Return edges at forks, and the places and keys of the nodes that they join, oldest first.

        Nodes of the upper side are the border of the array and all maxima, numbered from the last.
        """
        places, keys, labels = self.numbered(side)
        room = 3 * self.forks.size
        index = labels.dtype
        edges = Edges(
            scratch.take("edge ends", 2 * room, index).reshape(-1, 2),
            scratch.take("edge keys", room, keys.dtype),
            scratch.take("edge places", room, index),
        )
        table = self.tables[side]
        count = list_edges(self.keys, self.rings, self.forks, table, side == 0, labels, edges)
        return Edges(*(part[:count] for part in edges)), places, keys

    def numbered(self, side: int, by_age: bool = True) -> tuple[Array, Array, Array]:
        """Return the places and keys of the nodes of a side, and the labels of their points."""
        places, keys = self.oldest(side, by_age)
        labels = scratch.take("labels", self.rings.size, places.dtype)
        labels[:] = -1
        border = labels[:-SPARE].reshape(-1, self.step)
        border[[0, -1]] = border[:, [0, -1]] = 0
        label_nodes(places, side, labels)
        return places, keys, labels

    def oldest(self, side: int, by_age: bool = True) -> tuple[Array, Array]:
        """Return the places and keys of the nodes of a side, oldest first, or by place."""
        extrema = self.maxima if side else self.minima
        count = extrema.size
        own = scratch.take("keys of extrema", count, self.keys.dtype)
        write_keys(self.keys, extrema, own)
        places = scratch.take(f"nodes {side}", count + side, extrema.dtype)
        keys = scratch.take(f"node keys {side}", count + side, own.dtype)
        order = sort_keys(own) if by_age else np.arange(count, dtype=np.uint32)
        number_nodes(self.keys, extrema, order, bool(side), places, keys)
        return places, keys

    def pairs(self, short: bool, births: tuple[Array, ...], deaths: tuple[Array, ...]) -> Any:
        """Return pairs as points in C order."""
        found = np.empty((2, births[0].size + 1), self.forks.dtype)
        if not deaths[1].size:  # Without edges there is one component, which does not die.
            deaths = deaths[0], *births[1:]
        count = list_pairs(self.step, short, self.hides, self.never, births, deaths, found)
        return found[0, :count], found[1, :count]


def planar_pairs(
    field: Field, dimensions: Sequence[int], filtration: Filtration, *, short: bool = False
) -> list[tuple[Array, Array]]:
    """Return the points at which classes of these dimensions are born and die, by birth.

    Those that die at the value at which they are born are among them only if `short`.
    """
    scan = Scan(field, filtration)
    order = None
    found = {}
    if 0 in dimensions:
        found[0], order = _components(scan, short, np.empty(0, scan.minima.dtype))
    if 1 in dimensions:
        edges, places, keys = scan.edges(1)
        order = sort_keys(edges.keys) if order is None else order
        none = np.empty(0, places.dtype)
        ended = _joined(order, True, edges.nodes, places.size, none)
        if 0 not in dimensions:
            order = order[ended >= 0]
            ended = ended[ended >= 0]
        found[1] = scan.pairs(short, (order, edges.places, edges.keys), (ended, places, keys))
    return [found[dimension] for dimension in dimensions]


def planar_components(field: Field, filtration: Filtration) -> tuple[Array, Array, Array]:
    """Return the points at which components are born and die, by birth, and which one each joins.

    The last array has the number of an older component for each one that dies.
    """
    scan = Scan(field, filtration)
    elders = np.zeros(scan.minima.size, scan.minima.dtype)
    (births, deaths), _ = _components(scan, True, elders)
    elders = elders[: births.size]  # Components that never enter come last, and are left out.
    while True:  # All components that die at one point join the oldest one there.
        together = (deaths >= 0) & (deaths[elders] == deaths)
        if not together.any():
            return births, deaths, elders
        elders[together] = elders[elders[together]]


def _components(scan: Scan, short: bool, elders: Array) -> tuple[tuple[Array, Array], Array]:
    """Return where components are born and die, and the edges at which none does.

    What each of them joins is written to `elders`, unless that is empty.
    """
    edges, places, keys = scan.edges(0)
    order = sort_keys(edges.keys)
    ended = _joined(order, False, edges.nodes, places.size, elders)
    deaths = np.full(places.size + 1, -1, places.dtype)
    left = np.empty_like(order)
    left = left[: end_minima(order, ended, deaths, left)]
    minima = np.arange(places.size, dtype=places.dtype), places, keys
    return scan.pairs(short, minima, (deaths, edges.places, edges.keys)), left


def _joined(order: Array, backwards: bool, ends: Array, nodes: int, elders: Array) -> Array:
    """Return which node ends at each edge of an order, or -1."""
    ended = scratch.take("ended", order.size, ends.dtype)
    parents = np.arange(nodes, dtype=ends.dtype)
    sorted_ends = scratch.take("sorted ends", 2 * order.size, ends.dtype).reshape(-1, 2)
    join_edges(order, backwards, ends, parents, sorted_ends, ended, elders)
    return ended
