"""Sizes of components, and which of them span the image, at all thresholds at once.

A point is in the component of the minimum to whose basin it belongs from its own key on, as
`basins` explains. So basins gain points and meet at forks, and a union-find of basins, in the order
of keys, knows the number of points of each component, and which *ends* they touch: an inlet and an
outlet, or the first and the last slice along each axis that have points which are neither masked
nor NaN.

Where the image continues beyond a box, a component that touches an open side is counted when the
boxes are joined, as a *node* whose *changes* are listed: the points that it gains, the ends that it
reaches, and the nodes that it meets, all by key. Basins are the nodes of a box of their own, so
that the same kernel joins basins and boxes. What was counted of a component before it touched the
side is final, except for the ends: a box takes its own first and last slices for those of the
image, and what they were counted for is taken back when it is joined to a box with points beyond.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.ends import OPEN, span, unite, write_spanning
from ecc_core._backends.cpu.betti.meetings import Meetings
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import NONE, ONE, bare
from ecc_core._backends.cpu.order import sort_keys

Array = NDArray[Any]
Values = NDArray[np.int64]

Side = tuple[int, int]

# One change leads to fewer changes of the larger box: its nodes gain points, reach ends, or meet.
CHANGES_AT_ONCE = 8
# Kinds of changes of a node. From the key of LEAVE on it is a node of the joined box as well.
GAIN, MEET, REACH, LEAVE = range(4)
KINDS = 4
NONE_LISTED: Values = np.empty((0, 3), np.int64)


class Growth(NamedTuple):
    """How the components of a box grow."""

    found: Values
    """(pairs + 2, keys + 1). After so many keys: points; the size of the largest component, and
    components that touch both ends of each pair, of those that are no nodes."""
    nodes: int
    """Number of nodes."""
    changes: Values
    """(m, 3). Four times the key plus the change, the node, and how many points it gains, the node
    that it meets, or the bits of the ends that it reaches."""
    extent: Values
    """(d, 3). Along each axis the first and the last slice with points that are neither masked nor
    NaN, and the number of slices. The slices are `NOWHERE` if there are none, or other ends."""
    faces: dict[Side, Array]
    """For each open side, (axis, 0: low or 1: high), the keys of its points."""
    ends: dict[Side, Array]
    """For each open side, the nodes of its points."""


def codes_of(keys: Array, change: int) -> Values:
    """Return the codes of changes at keys, which count from 1 in them."""
    codes: Values = KINDS * (keys.astype(np.int64) + 1) + change
    return codes


def first_changes(change: int, value: int, nodes: Array, keys: Array, count: int) -> Values:
    """Return a change for each of `count` nodes that has points here, at the first of their keys.

    Points without a node have -1.
    """
    first = np.full(count, np.iinfo(np.int64).max)
    write_first_keys(nodes.reshape(-1), keys.reshape(-1), first)
    there = np.flatnonzero(first < np.iinfo(np.int64).max)
    return np.column_stack([codes_of(first[there], change), there, np.full(there.size, value)])


@kernel()
def write_first_keys(nodes, keys, first):
    """Write the least key of the points of each node."""
    first = bare(first)
    for i in range(nodes.size):
        node = nodes[i]
        if node >= 0:
            first[node] = min(first[node], np.int64(keys[i]))


def in_order(changes: list[Values], keys: int) -> Values:
    """Return all changes at the first `keys` keys, in their order."""
    every = np.concatenate([NONE_LISTED, *changes])
    end = KINDS * (keys + 1)
    every = every[every[:, 0] < end]
    return every[sort_keys(every[:, 0].astype(np.uint64), end.bit_length())]


@subroutine()
def with_room(changes, count, more):
    """Return an array of changes that has room for more of them."""
    if len(changes) >= count + more:
        return changes
    longer = np.empty((2 * (count + more), 3), np.int64)
    # An assignment to a slice would take seconds to compile, as in `paths.longer`.
    for i in range(count):
        for column in range(3):
            longer[i, column] = changes[i, column]
    return longer


@subroutine()
def list_change(changes, count, code, node, value):
    """Write a change behind the others, and return their number."""
    changes[count, 0] = code
    changes[count, 1] = node
    changes[count, 2] = value
    return count + 1


@subroutine()
def gain(changes, count, key, node, size, recent):
    """List points that a node gains, or add them to those that it has gained at the same key."""
    last = recent[node]
    if last >= 0 and changes[last, 0] == KINDS * key + GAIN:
        changes[last, 2] += size
        return count
    recent[node] = count
    return list_change(changes, count, KINDS * key + GAIN, node, size)


@subroutine()
def reach(changes, count, key, node, sides, reached):
    """List the ends that a node reaches for the first time."""
    new = sides & ~reached[node] & (OPEN - 1)
    if not new:
        return count
    reached[node] |= new
    return list_change(changes, count, KINDS * key + REACH, node, new)


class _Joined(NamedTuple):
    """Nodes while they are joined.

    The kernel does not make these arrays itself, since numba counts references to its own ones.
    """

    tree: NDArray[np.int32]
    """Parents of nodes."""
    sizes: Values
    """The number of points of the component of each root."""
    touched: NDArray[np.uint8]
    """The ends and open sides that the component of each root touches, a bit each."""
    owners: NDArray[np.int32]
    """The node of the larger box that the component of each root is, or -1."""
    numbers: NDArray[np.int32]
    """The node of the larger box that each node leaves in, or -1."""
    recent: NDArray[np.int32]
    """The index of the last gain of each node of the larger box among the changes, or -1. There
    is room for as many nodes as both boxes have."""
    reached: NDArray[np.uint8]
    """The ends that each node of the larger box is known to reach."""
    gained: NDArray[np.int32]
    """The number of points that each node gains at a key, for which its root is found once."""
    gaining: NDArray[np.int32]
    """The nodes that gain points at a key."""


def join_nodes(
    count: int,
    members: Array,
    meetings: Meetings,
    changes: tuple[Values, Values, Values],
    found: Values,
    shift: int = 0,
) -> tuple[int, Values, NDArray[np.int32]]:
    """Join `count` nodes, and write what there is after each key to `found`.

    There are three lists of `changes`, each in the order of keys: merging them first would take
    as long as joining the nodes. To the nodes of the second list `shift` is added.

    The first row of `found` says how many of the `members`, which are nodes that gain a point each,
    have a key less than each one. Returns the number of nodes of the larger box, their changes, and
    the node of the larger box that each node belongs to when it leaves, or -1.
    """
    joined = _Joined(
        tree=np.arange(count, dtype=np.int32),
        sizes=np.zeros(count, np.int64),
        touched=np.zeros(count, np.uint8),
        owners=np.full(count, -1, np.int32),
        numbers=np.full(count + 1, -1, np.int32),  # The last entry is for points without a node.
        recent=np.full(count, -1, np.int32),
        reached=np.zeros(count, np.uint8),
        gained=np.zeros(count, np.int32),
        gaining=np.empty(count + 1, np.int32),
    )
    nodes, listed = _join(members, meetings, changes, shift, joined, found)
    return nodes, listed, joined.numbers


@subroutine()
def list_gaining(members, first, last, gained, gaining):
    """Count how many points each of some members gains, and list these; return their number."""
    some = np.uint64(0)
    for i in range(first, last):
        member = members[np.uint64(i)]
        gaining[some] = member
        some += ONE if gained[member] == 0 else NONE
        gained[member] += 1
    return some


@subroutine(forceinline=True)  # A call would copy the tuple of arrays.
def meet(one, two, key, changes, count, joined, spanning):
    """Join two components; return the root of both, and the number of changes that are listed."""
    ordered = joined.sizes[one] >= joined.sizes[two]
    root = one if ordered else two
    other = two if ordered else one
    own = np.int64(joined.owners[root])
    its = np.int64(joined.owners[other])
    if own >= 0 and its >= 0:
        listed = list_change(changes, count, KINDS * key + MEET, own, its)
    elif own >= 0:
        listed = gain(changes, count, key, own, joined.sizes[other], joined.recent)
    elif its >= 0:
        listed = gain(changes, count, key, its, joined.sizes[root], joined.recent)
    else:
        listed = count
    joined.tree[other] = root
    joined.sizes[root] += joined.sizes[other]
    joined.owners[root] = max(own, its)
    span(spanning, joined.touched[other], -1)
    unite(joined.touched, spanning, root, joined.touched[other])
    return root, listed


@subroutine()
def leave(node, root, nodes, key, changes, count, joined, spanning):
    """Let the component of a node be a node of the larger box.

    Returns how many of these there are, and the number of changes that are listed.
    """
    if joined.owners[root] < 0:
        joined.owners[root] = nodes
        unite(joined.touched, spanning, root, np.uint8(OPEN))
        count = gain(changes, count, key, nodes, joined.sizes[root], joined.recent)
        nodes += 1
    if joined.numbers[node] < 0:  # A node that touches several sides leaves once.
        joined.numbers[node] = joined.owners[root]
    return nodes, count


@subroutine(forceinline=True)
def gain_points(node, size, key, changes, count, joined, largest):
    """Let a node gain points; return what :func:`note_growth` does."""
    root = find(joined.tree, node)
    joined.sizes[root] += size
    owner = np.int64(joined.owners[root])
    if owner >= 0:
        return gain(changes, count, key, owner, size, joined.recent), largest
    return count, max(largest, joined.sizes[root])


@subroutine(forceinline=True)
def note_growth(root, key, changes, count, joined, largest):
    """Note the ends that a node of the larger box reaches, or the size of another component.

    Returns the number of changes that are listed, and the size of the largest component.
    """
    if joined.owners[root] >= 0:
        owner = np.int64(joined.owners[root])
        return reach(changes, count, key, owner, joined.touched[root], joined.reached), largest
    return count, max(largest, joined.sizes[root])


@subroutine(forceinline=True)
def gain_members(members, first, last, key, changes, count, joined, largest):
    """Let nodes gain the members from `first` to `last`; return what :func:`note_growth` does."""
    if last - first < joined.tree.size:  # Most nodes gain one point or none.
        for i in range(np.uint64(first), np.uint64(last)):
            member = members[i]
            count, largest = gain_points(member, 1, key, changes, count, joined, largest)
    else:
        for i in range(list_gaining(members, first, last, joined.gained, joined.gaining)):
            member = joined.gaining[np.uint64(i)]
            size = np.int64(joined.gained[member])
            joined.gained[member] = 0
            count, largest = gain_points(member, size, key, changes, count, joined, largest)
    return count, largest


@subroutine(forceinline=True)
def apply_change(given, nodes, key, changes, count, joined, largest, spanning):
    """Apply a change of one of the boxes that are joined: its kind, node and value.

    Returns the number of nodes of the larger box, and what :func:`note_growth` does.
    """
    change, node, value = given
    root = find(joined.tree, node)
    if change == GAIN:
        joined.sizes[root] += value
        if joined.owners[root] >= 0:
            owner = np.int64(joined.owners[root])
            count = gain(changes, count, key, owner, value, joined.recent)
    elif change == MEET:
        other = find(joined.tree, value)
        if other == root:
            return nodes, count, largest
        root, count = meet(root, other, key, changes, count, joined, spanning)
    elif change == REACH:
        unite(joined.touched, spanning, root, np.uint8(value))
    else:
        nodes, count = leave(node, root, nodes, key, changes, count, joined, spanning)
    count, largest = note_growth(root, key, changes, count, joined, largest)
    return nodes, count, largest


@kernel()
def _join(members, meetings, changes, shift, joined, found):
    """Join nodes as :func:`join_nodes` does; return the number of new ones, and their changes."""
    members = bare(members)
    meetings = Meetings(bare(meetings.ends), bare(meetings.nodes))
    lists = bare(changes[0]), bare(changes[1]), bare(changes[2])
    done = np.zeros(3, np.int64)
    found = bare(found)
    joined = _Joined(
        bare(joined.tree),
        bare(joined.sizes),
        bare(joined.touched),
        bare(joined.owners),
        bare(joined.numbers),
        bare(joined.recent),
        bare(joined.reached),
        bare(joined.gained),
        bare(joined.gaining),
    )
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    grown = np.empty((0, 3), np.int64)
    count = np.int64(0)
    nodes = np.int64(0)
    largest = np.int64(0)
    for key in range(1, found.shape[1]):
        first = found[0, key - 1]
        last = found[0, key]
        grown = with_room(grown, count, min(last - first, nodes))
        listed = bare(grown)
        count, largest = gain_members(members, first, last, key, listed, count, joined, largest)
        for at in range(np.uint64(meetings.ends[key - 1]), np.uint64(meetings.ends[key])):
            root = find(joined.tree, meetings.nodes[at, 0])
            other = find(joined.tree, meetings.nodes[at, 1])
            if other == root:
                continue
            if grown.shape[0] < count + CHANGES_AT_ONCE:
                grown = with_room(grown, count, CHANGES_AT_ONCE)
                listed = bare(grown)
            root, count = meet(root, other, key, listed, count, joined, spanning)
            count, largest = note_growth(root, key, listed, count, joined, largest)
        for turn in range(3):
            own_list = lists[turn]
            at_key = done[turn]
            while at_key < own_list.shape[0] and own_list[at_key, 0] < KINDS * (key + 1):
                change = own_list[at_key, 0] % KINDS
                node = own_list[at_key, 1]
                value = own_list[at_key, 2]
                at_key += 1
                if turn == 1:
                    node += shift
                    if change == MEET:
                        value += shift
                grown = with_room(grown, count, CHANGES_AT_ONCE)
                listed = bare(grown)
                nodes, count, largest = apply_change(
                    (change, node, value), nodes, key, listed, count, joined, largest, spanning
                )
            done[turn] = at_key
        found[1, key] = largest
        write_spanning(found, key, spanning)
    return nodes, grown[:count].copy()
