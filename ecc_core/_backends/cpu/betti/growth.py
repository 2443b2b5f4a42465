"""Sizes of components, and which of them span the image, at all thresholds at once.

Points are added to a union-find in the order of their keys. A root knows the number of points of
its component, and which *ends* they touch: an inlet and an outlet, or the first and the last slice
along each axis that have points which are neither masked nor NaN.

Where the image goes on beyond a box, a component that touches an open side is counted when the
boxes are joined, as a *node* whose *changes* are listed: the points that it gains, the ends that it
reaches, and the nodes that it meets, all by key. What it was before is final, but for the ends: a
box takes its own first and last slices for those of the image, and what they were counted for is
taken back when it is joined to a box that has points beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.blocks import Field, Staged, section
from ecc_core._backends.cpu.betti.ends import OPEN, span, unite, write_spanning
from ecc_core._backends.cpu.betti.launch import laid_out, rank_plans
from ecc_core._backends.cpu.betti.links import neighbours
from ecc_core._backends.cpu.betti.winding import join_around
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Values = NDArray[np.int64]

Side = tuple[int, int]
Ends = tuple[Array | None, Array | None]
"""Masks of the inlet and the outlet; None for the first or the last slices along the axes."""

SLICES: Ends = (None, None)
NOWHERE = np.array([2**62, -(2**62)])  # in place of first and last slices that are no ends
MOST_NARROW = 2**31 - 1  # staged points whose numbers fit in 32 bits
# The most changes of a node at one key: it can reach six ends, meet another node, and leave.
EACH = 8
# Kinds of changes of a node. From the key of LEAVE on it is a node of the joined box as well.
GAIN, MEET, REACH, LEAVE = range(4)


class Growth(NamedTuple):
    """What is known of the components of a box."""

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


def component_curves(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
    ends: Ends = SLICES,
) -> Values:
    """Points, those of the largest component, and components that touch both ends of each pair.

    Of each image of a batch at sorted thresholds: (batch, pairs + 2, n) int64.
    """
    count = image.shape[0]
    result = np.zeros((count, count_pairs(filtration.ndim, ends) + 2, thresholds.size), np.int64)
    if result.size == 0 or image.size == 0:
        return result
    masked = mask is not None
    plan = rank_plans(image.dtype, thresholds, filtration, masked=masked, points=image[0].size)[-1]

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            field = laid_out(image[i], None if mask is None else mask[i])
            inlet, outlet = (None if end is None else end[i] for end in ends)
            growth = grown(field, plan, filtration, ends=(inlet, outlet))
            result[i] = growth.found[:, plan.entered]

    share(range(count), each, worker_count(workers, image.size, plan.top + 1))
    return result


def count_pairs(ndim: int, ends: Sequence[Any]) -> int:
    """Return for how many pairs of ends components are counted."""
    return ndim if any(end is None for end in ends) else 1


def grown(
    field: Field,
    plan: Plan,
    filtration: Filtration,
    open_sides: Sequence[Side] = (),
    ends: Ends = SLICES,
) -> Growth:
    """Return the growth of a box."""
    staged = Staged(Block((0, 0, 0), field.source.shape), field)
    keys, _, _ = staged.load(plan, filtration.nan)
    index = np.int32 if staged.size <= MOST_NARROW else np.int64
    pairs = count_pairs(field.ndim, ends)
    found = np.zeros((pairs + 2, int(plan.entered.max()) + 1), np.int64)
    order = np.empty(field.source.array.size, index)
    _sort_points(keys, staged.layout, found[0], order)
    near = neighbours(field.ndim, kind_of(filtration, complement=False).connectivity)
    offsets = near[0] @ staged.steps
    shown = _kept_points(field, filtration.nan)
    extent = _extent_of(shown, staged)
    # Without a mask there are points beyond an open side, whose slice is no end.
    inner = [] if shown is not None else list(open_sides)
    wraps = (False,) * (3 - field.ndim) + filtration.boundary.wraps
    inner += [(axis, end) for axis in range(3) if wraps[axis] for end in (0, 1)]
    touched = np.zeros(staged.size, np.uint8)
    for side in open_sides:
        _side(touched, staged, side)[...] |= OPEN
    for number, end in enumerate(ends):
        if end is None:
            _mark_slices(touched, staged, number, extent, inner)
        else:
            extent[:, number] = NOWHERE[number]
            bits = sum(1 << (2 * pair + number) for pair in range(pairs))
            inside = staged.part(touched, staged.block)
            inside |= np.where(end.reshape(inside.shape), np.uint8(bits), np.uint8(0))
    if any(wraps):
        by_axis = all(end is None for end in ends)
        join_around(order, near, staged, wraps, touched, found, by_axis=by_axis)
        return Growth(found, 0, np.empty((0, 3), np.int64), extent, {}, {})
    parents = np.zeros(staged.size, index)
    owners = np.full(staged.size if open_sides else 0, -1, index)
    most = sum(_side(keys, staged, side).size for side in open_sides)
    join = _join_open if open_sides else _join_closed
    nodes, changes = join(order, offsets, near[1], parents, touched, found, owners, most)
    at_sides = (
        {side: _side(array, staged, side).copy() for side in open_sides} for array in (keys, owners)
    )
    return Growth(found, nodes, changes, extent, *at_sides)


def _kept_points(field: Field, nan: str) -> Array | None:
    """Return where points of a box are neither masked nor NaN, None if all may be."""
    values = field.source.array
    shown = None if field.mask is None else field.mask.array
    if values.dtype.kind == "f" and nan == "omit":
        known = ~np.isnan(values)
        shown = known if shown is None else known & (shown != 0)
    return shown


def _extent_of(shown: Array | None, staged: Staged) -> Values:
    """Return the extent of the points of a box that are shown."""
    extent = []
    for axis in range(3 - staged.field.ndim, 3):
        length = staged.block.stop[axis]
        first = 0
        last = length - 1
        if shown is not None:
            others = tuple(other for other in range(3) if other != axis)
            (there,) = np.nonzero(shown.any(axis=others))
            first, last = (there[0], there[-1]) if there.size else NOWHERE
        extent.append([first, last, length])
    return np.array(extent, np.int64)


def _mark_slices(
    touched: Array, staged: Staged, number: int, extent: Values, inner: Sequence[Side]
) -> None:
    """Mark the first slices (`number` 0) or the last (1) as ends, but those on inner sides."""
    for place, axis in enumerate(range(3 - staged.field.ndim, 3)):
        at = int(extent[place, number])
        if at == NOWHERE[number] or (axis, number) in inner:
            continue
        points = staged.part(touched, section(staged.block, axis, at))
        points |= 1 << (2 * place + number)


def _side(staged_points: Array, staged: Staged, side: Side) -> Array:
    """Return a view of what is staged for the points of a side of the box."""
    axis, end = side
    plane = section(staged.block, axis, end * (staged.block.stop[axis] - 1))
    return staged.part(staged_points, plane).squeeze(axis)


@kernel()
def _sort_points(keys, layout, ends, order):
    """Sort the places of points by key; ``ends[k]`` of them have the first k keys.

    Keys from ``ends.size - 1`` on are left out.
    """
    slices, rows, columns, slice_step, row_step = layout
    keys = bare(keys)
    ends = bare(ends)
    order = bare(order)
    for listing in (False, True):
        for z in range(slices):
            for y in range(rows):
                here = (z + 1) * slice_step + (y + 1) * row_step + 1
                for place in range(np.uint64(here), np.uint64(here + columns)):
                    slot = np.int64(keys[place]) + 1
                    if slot < ends.size:
                        if listing:
                            order[np.uint64(ends[slot])] = place
                        ends[slot] += 1
        if not listing:
            total = 0
            for i in range(ends.size):
                total, ends[i] = total + ends[i], total


@subroutine()
def _root(parents, place):
    """Return the root of a point, and halve the path to it."""
    parent = parents[place]
    while parent > 0:
        above = parents[np.uint64(parent)]
        if above < 0:
            return np.uint64(parent)
        parents[place] = above
        place = np.uint64(above)
        parent = parents[place]
    return place


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
    if last >= 0 and changes[last, 0] == 4 * key + GAIN:
        changes[last, 2] += size
        return count
    recent[node] = count
    return list_change(changes, count, 4 * key + GAIN, node, size)


@subroutine()
def reach(changes, count, key, node, sides, reached):
    """List the ends that a node reaches for the first time."""
    new = sides & ~reached[node] & (OPEN - 1)
    if not new:
        return count
    reached[node] |= new
    return list_change(changes, count, 4 * key + REACH, node, new)


def _joining(opened: bool) -> Any:
    """Return the kernel that adds points; without open sides, one that is twice as fast."""

    @kernel()
    def join(order, offsets, apart, parents, touched, found, owners, most):
        """Add points in this order, and write what there is after each key to `found`.

        `parents` are 0 before points enter, and minus the number of points at roots: one array,
        since most of the time is spent waiting for memory. Of the neighbours of a point, those
        adjacent to one that has entered are in its component. `owners` are the nodes of roots and
        of points on open sides, if there are any; their number is returned, which is at most
        `most`, and their changes.
        """
        order = bare(order)
        offsets = bare(offsets)
        apart = bare(apart)
        parents = bare(parents)
        touched = bare(touched)
        owners = bare(owners)
        spanning = np.zeros(found.shape[0] - 2, np.int64)
        changes = np.empty((0, 3), np.int64)
        count = np.int64(0)
        nodes = np.int64(0)
        recent = np.full(most, -1, np.int64)
        reached = np.zeros(most, np.uint8)
        largest = np.int64(0)
        done = np.int64(0)
        for key in range(1, found.shape[1]):
            if opened:  # a node gains points once, and meets and reaches few others
                changes = with_room(changes, count, EACH * most)
            listed = bare(changes)
            for i in range(done, found[0, key]):
                place = root = np.uint64(order[i])
                parents[root] = -1
                if touched[root]:
                    span(spanning, touched[root], 1)
                node, held = np.int64(-1), np.int64(0)  # of the point, and the points that it had
                rest = (ONE << np.uint64(apart.size)) - ONE
                while rest:
                    k = np.uint64(count_trailing_zeros(rest))
                    rest &= rest - ONE
                    beside = np.uint64(np.int64(place) + offsets[k])
                    if parents[beside] == 0:
                        continue
                    rest &= apart[k]
                    other = _root(parents, beside)
                    if other == root:
                        continue
                    if opened and touched[other] & OPEN:
                        held -= np.int64(parents[other])
                        if node >= 0:
                            code = 4 * key + MEET
                            count = list_change(listed, count, code, node, owners[other])
                        node = np.int64(owners[other])
                    if parents[root] < parents[other]:  # the larger component
                        root, other = other, root
                    parents[other] += parents[root]
                    parents[root] = other
                    if touched[root]:
                        span(spanning, touched[root], -1)
                        unite(touched, spanning, other, touched[root])
                    root = other
                size = -np.int64(parents[root])
                if opened and touched[root] & OPEN:
                    if owners[root] >= 0:  # which may be that of a point on an open side
                        node = np.int64(owners[root])
                    elif node < 0:
                        node = nodes
                        nodes += 1
                    owners[root] = owners[place] = node
                    count = gain(listed, count, key, node, size - held, recent)
                    count = reach(listed, count, key, node, touched[root], reached)
                else:
                    largest = max(largest, size)
            done = found[0, key]
            found[1, key] = largest
            write_spanning(found, key, spanning)
        return nodes, changes[:count].copy()

    return join


_join_open = _joining(True)
_join_closed = _joining(False)
