"""Persistence pairs of images in the plane: components and holes from one list of forks.

Around a fork, as many components of the lower side alternate with those of the upper one. An edge
between two of the former crosses one between two of the latter. Edges that join components of the
set in the order in which points enter leave those that join components of the complement in the
opposite order: these are born as holes. What is around the image is on the upper side.

Every other point is in the component of any of its neighbours on either side, so that steps from
one to the next lead to a minimum, or to a maximum or around the image.

The *ring* of a point has its 8 neighbours in clockwise order, one bit each. On one side, that of
those before or of those behind, neighbours are connected along diagonals too (*wide*), on the other
one along axes only (*narrow*). The ring of a fork falls apart.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import Edges
from ecc_core._backends.cpu.betti.forest import SPARE, Field, Staged
from ecc_core._backends.cpu.betti.links import neighbour_keys
from ecc_core._backends.cpu.betti.trees import Trees
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import coefficient_plan
from ecc_core._backends.cpu.llvm import (
    ALL,
    I8,
    I64,
    LANES,
    NONE,
    ONE,
    bare,
    count_trailing_zeros,
    lanes_of,
    operation,
    splat,
)
from ecc_core._backends.cpu.order import sort_keys
from ecc_core._backends.cpu.sources import Block, scratch
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]

RING = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
SIDES = range(1, 8, 2)
STAR = (1, 7, 5, 3)  # sides in the order of the edges to them: by lowest corner, then by axis
FEW = 6  # steps, of which most paths have no more
LONG = 8  # times as many


@operation(types.UniTuple(types.uint64, 3))
def compare_ring(builder, keys, at, step, rows, sides, flip, rings):
    """Compare the 64 points from ``keys[at]`` on with their rings.

    `rows` are two words, all ones if there is a row before and a row behind, `sides` those of the
    points that have neighbours on their left and right. Writes to ``rings[at:]`` the neighbours on
    the narrow side of each point, one bit each: those that come before it, or after it if `flip` is
    all ones. Returns the forks, the points without neighbours on the wide side, and those without
    on the narrow side.
    """
    own = keys.load(at, LANES)
    narrow = []
    ring = splat(I8, LANES, 0)
    for i, (y, x) in enumerate(RING):
        key = neighbour_keys(builder, keys, at, [step, step], (0, y, x))
        before = "<=" if (y, x) < (0, 0) else "<"
        word = builder.bitcast(builder.icmp_unsigned(before, key, own), I64)
        for number, exists in ((y, rows), (x, sides)):
            if number:
                word = builder.and_(word, exists[(number + 1) // 2])
        narrow.append(builder.xor(word, flip))
        lanes = lanes_of(builder, narrow[-1])
        bit, none = (splat(I8, LANES, value) for value in (1 << i, 0))
        ring = builder.or_(ring, builder.select(lanes, bit, none))
    rings.store(ring, at)
    ends = []  # of runs along the ring, whose corners count only between two sides
    for i in SIDES:
        following = builder.and_(narrow[(i + 1) % 8], narrow[(i + 2) % 8])
        ends.append(builder.and_(narrow[i], builder.not_(following)))
    either = [builder.or_(*ends[:2]), builder.or_(*ends[2:])]
    several = [builder.and_(*ends[:2]), builder.and_(*ends[2:]), builder.and_(*either)]
    all_narrow = functools.reduce(builder.and_, narrow)
    some_narrow = functools.reduce(builder.or_, [narrow[i] for i in SIDES])
    return [functools.reduce(builder.or_, several), all_narrow, builder.not_(some_narrow)]


@functools.lru_cache(maxsize=8)
def tables_of(step: int, wide_below: bool) -> list[tuple[Array, Array, Array]]:
    """Return what to do at a point on the lower and on the upper side, by its narrow neighbours.

    For each of the 256 sets of neighbours on the narrow side these are the number of components on
    either side; steps to a member of each, which are L1, ..., Lk along the ring on the lower side,
    and Uk, U1, ... on the upper one, where Ui lies between Li and the next one; and a step to a
    neighbour on the side, 0 if there is none. `step` is the distance between rows.
    """
    offsets = np.array([y * step + x for y, x in RING])
    counts = np.zeros(256, np.uint8)
    members = np.zeros((2, 256, 4), np.int64)
    ways = np.zeros((2, 256), np.int64)
    narrow, wide = members[::-1] if wide_below else members
    for ring in range(256):
        inside = [bool(ring >> i & 1) for i in range(8)]
        ends = [i for i in SIDES if inside[i] and not (inside[i - 7] and inside[i - 6])]
        after = [i - 6 if inside[i - 7] else i - 7 for i in ends]
        count = counts[ring] = len(ends)
        narrow[ring, :count] = offsets[ends]
        wide[ring, :count] = offsets[after]
        for side, own in ((int(wide_below), inside), (int(not wide_below), np.invert(inside))):
            deepest = (-1, 0)
            choices = [i for i in range(8) if own[i] and (i % 2 or side != int(wide_below))]
            for i in choices:  # the one furthest from those of the other side lies most up or down
                gaps = [min((i - j) % 8, (j - i) % 8) for j in range(8) if not own[j]]
                depth = min(gaps, default=8), i % 2
                if depth > deepest:
                    deepest = depth
                    ways[side, ring] = offsets[i]
        if wide_below:  # narrow, wide: U1 L2 U2 L3 ... Uk L1
            wide[ring, :count] = np.roll(wide[ring, :count], 1)
        members[1, ring, :count] = np.roll(members[1, ring, :count], 1)
    return [(counts, members[side], ways[side]) for side in (0, 1)]


@functools.lru_cache(maxsize=8)
def star_of(step: int) -> tuple[Array, Array]:
    """Return the lower neighbours of a fork on the narrow side, in the order of :data:`STAR`.

    These are their number and steps to them, for each of the 256 sets of neighbours.
    """
    counts = np.zeros(256, np.uint8)
    members = np.zeros((256, 4), np.int64)
    for ring in range(256):
        steps = [RING[i][0] * step + RING[i][1] for i in STAR if ring >> i & 1]
        counts[ring] = len(steps)
        members[ring, : len(steps)] = steps
    return counts, members


@subroutine()
def list_places(word, start, places, count):
    """List the places of bits behind the first `count` places; return how many there are then."""
    while word:
        places[count] = start + count_trailing_zeros(word)
        word &= word - ONE
        count += ONE
    return count


@kernel()
def scan_rings(keys, shape, flip, rings, minima, maxima, forks):
    """Find the rings, and list the minima, maxima and forks of an image; return their numbers."""
    rows, columns = shape
    step = columns + 2
    keys = bare(keys)
    rings = bare(rings)
    forks = bare(forks)
    minima = bare(minima)
    maxima = bare(maxima)
    beyond = np.uint8(0 if flip else 255)  # nothing to go on to
    lows = np.uint64(0)
    highs = np.uint64(0)
    count = np.uint64(0)
    for y in range(rows):
        row = (y + 1) * step + 1
        around = ALL if y > 0 else NONE, ALL if y < rows - 1 else NONE
        for x in range(0, columns, LANES):
            size = min(columns - x, LANES)
            own = ALL >> np.uint64(LANES - size)
            left = ~ONE if x == 0 else ALL
            right = own >> ONE if x + size == columns else ALL
            start = row + x
            apart, wide, narrow = compare_ring(
                keys, start, step, around, (left, right), flip, rings
            )
            low, high = (wide, narrow) if flip else (narrow, wide)
            lows = list_places(low & own, start, minima, lows)
            highs = list_places(high & own, start, maxima, highs)
            count = list_places(apart & own, start, forks, count)
        rings[row - 1] = rings[row + columns] = beyond
    for place in range(step):
        rings[place] = rings[place + (rows + 1) * step] = beyond
    return lows, highs, count


@subroutine()
def node_of(rings, ways, labels, start):
    """Return the label to which steps lead from a point; other points have the label -1.

    The points of long paths are labelled.
    """
    place = np.int64(start)
    step = np.int64(1)
    rounds = 0
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
def list_edges(keys, rings, forks, tables, chained, labels, edges):
    """List the edges at forks, which join nodes of one side; `tables` are those of this side.

    They form a chain through all components of that side around a fork, or a star from the first.
    Returns their number.
    """
    counts = bare(tables[0])
    members = bare(tables[1])
    ways = bare(tables[2])
    keys = bare(keys)
    rings = bare(rings)
    forks = bare(forks)
    labels = bare(labels)
    ends = bare(edges.nodes)
    edge_keys = bare(edges.keys)
    places = bare(edges.places)
    edge = np.uint64(0)
    for f in range(forks.size):
        place = np.int64(forks[f])
        ring = np.uint64(rings[np.uint64(place)])
        first = node_of(rings, ways, labels, place + members[ring, 0])
        for i in range(1, counts[ring]):
            node = node_of(rings, ways, labels, place + members[ring, np.uint64(i)])
            places[edge] = place
            edge_keys[edge] = keys[np.uint64(place)]
            ends[edge, 0] = first
            ends[edge, 1] = node
            first = node if chained else first
            edge += ONE
    return edge


@kernel()
def nodes_at(rings, ways, labels, starts, nodes):
    """Write the nodes to which steps lead from points."""
    rings = bare(rings)
    ways = bare(ways)
    labels = bare(labels)
    for i in range(starts.size):
        nodes[i] = node_of(rings, ways, labels, starts[i])


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
def join_edges(order, backwards, ends, parents, sorted_ends, ended):
    """Join nodes along edges, and write to `ended` which node ends at each of them, or -1.

    Nodes are numbered by age: the one with the smaller number goes on. Ends are brought into order
    first, as reading them waits for memory, and much of it at once if nothing else is to be done.
    """
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
        deaths[node] = edge  # of -1 the last one, which is no minimum
        left[count] = edge
        count += np.uint64(node < 0)
    return count


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
        born[count] = place - step + 1 - 2 * np.int64(place * rows)
        died[count] = end - step + 1 - 2 * np.int64(end * rows) if ends else -1
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
        """Take arrays of its own, which other scans of the thread do not overwrite."""
        for name in ("keys", "rings", "minima", "maxima", "forks"):
            setattr(self, name, getattr(self, name).copy())

    def edges(self, side: int) -> tuple[Edges, Array, Array]:
        """Return edges at forks, and the places and keys of the nodes that they join, oldest first.

        Nodes of the upper side are the border of the array and all maxima, numbered from the last.
        """
        places, keys, labels = self._numbered(side)
        return self._edges(side, keys, labels, self.tables[side]), places, keys

    def _edges(self, side: int, keys: Array, labels: Array, table: Any) -> Edges:
        """Return the edges between nodes with these keys, whose points are labelled."""
        room = 3 * self.forks.size
        index = labels.dtype
        edges = Edges(
            scratch.take("edge ends", 2 * room, index).reshape(-1, 2),
            scratch.take("edge keys", room, keys.dtype),
            scratch.take("edge places", room, index),
        )
        given = self.keys, self.rings, self.forks, table, side == 0, labels, edges
        count = list_edges(*given)
        return Edges(*(part[:count] for part in edges))

    def _numbered(self, side: int) -> tuple[Array, Array, Array]:
        """Return the places and keys of the nodes of a side, and the labels of their points."""
        places, keys = self._oldest(side)
        labels = scratch.take("labels", self.rings.size, places.dtype)
        labels[:] = -1
        border = labels[:-SPARE].reshape(-1, self.step)
        border[[0, -1]] = border[:, [0, -1]] = 0
        labels[places[side:]] = np.arange(side, places.size)
        return places, keys, labels

    def _oldest(self, side: int) -> tuple[Array, Array]:
        """Return the places and keys of the nodes of a side, oldest first."""
        extrema = self.maxima if side else self.minima
        own = self.keys[extrema]
        order = sort_keys(own)[:: -1 if side else 1]
        places = np.zeros(order.size + side, extrema.dtype)
        keys = np.zeros(order.size + side, own.dtype)
        places[side:] = extrema[order]
        keys[side:] = own[order]
        return places, keys

    def trees(self, side: int, others: Sequence[Array]) -> Trees:
        """Return the trees of a side, and the nodes to which steps lead from other points."""
        places, keys, labels = self._numbered(side)
        table = self.tables[side]
        if not side and not self.wide_below:
            table = *star_of(self.step), table[2]
        edges = self._edges(side, keys, labels, table)
        nodes = []
        for points in others:
            found = np.empty(points.size, np.int64)
            nodes_at(self.rings, self.tables[side][2], labels, self._places(points), found)
            nodes.append(found)
        order = sort_keys(edges.keys)[:: -1 if side else 1]
        at = self._points(edges.places[order])
        return Trees(self._points(places[side:]), bool(side), edges.nodes[order], at, nodes)

    def extrema(self, side: int) -> Array:
        """Return the points of the minima, or of the maxima, oldest first."""
        return self._points(self._oldest(side)[0][side:])

    def _points(self, places: Array) -> Array:
        """Return places as points in C order: there are two more in each row."""
        rows = (places / self.step).astype(np.int64)
        found: Array = places - self.step + 1 - 2 * rows
        return found

    def _places(self, points: Array) -> Array:
        """Return the places of points."""
        rows = (points / (self.step - 2)).astype(np.int64)
        found: Array = points + self.step + 1 + 2 * rows
        return found

    def pairs(self, short: bool, births: tuple[Array, ...], deaths: tuple[Array, ...]) -> Any:
        """Return pairs as points in C order."""
        found = np.empty((2, births[0].size + 1), self.forks.dtype)
        if not deaths[1].size:  # one component that does not die
            deaths = deaths[0], *births[1:]
        chosen = short, self.hides, self.never
        count = list_pairs(self.step, *chosen, births, deaths, found)
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
        edges, places, keys = scan.edges(0)
        order = sort_keys(edges.keys)
        ended = _joined(order, False, edges.nodes, places.size)
        deaths = np.full(places.size + 1, -1, places.dtype)
        left = np.empty_like(order)
        order = left[: end_minima(order, ended, deaths, left)]
        minima = np.arange(places.size, dtype=places.dtype), places, keys
        found[0] = scan.pairs(short, minima, (deaths, edges.places, edges.keys))
    if 1 in dimensions:
        edges, places, keys = scan.edges(1)
        order = sort_keys(edges.keys) if order is None else order
        ended = _joined(order, True, edges.nodes, places.size)
        if 0 not in dimensions:
            order = order[ended >= 0]
            ended = ended[ended >= 0]
        found[1] = scan.pairs(short, (order, edges.places, edges.keys), (ended, places, keys))
    return [found[dimension] for dimension in dimensions]


def _joined(order: Array, backwards: bool, ends: Array, nodes: int) -> Array:
    """Return which node ends at each edge of an order, or -1."""
    ended = scratch.take("ended", order.size, ends.dtype)
    parents = np.arange(nodes, dtype=ends.dtype)
    sorted_ends = scratch.take("sorted ends", 2 * order.size, ends.dtype).reshape(-1, 2)
    join_edges(order, backwards, ends, parents, sorted_ends, ended)
    return ended
