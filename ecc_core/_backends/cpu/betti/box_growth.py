"""The growth of the components of one box, from its basins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.basins import end_of
from ecc_core._backends.cpu.betti.blocks import Field, Staged, grid_of, section
from ecc_core._backends.cpu.betti.forest import INT32, list_basins
from ecc_core._backends.cpu.betti.growth import (
    LEAVE,
    NONE_LISTED,
    REACH,
    Growth,
    Side,
    Values,
    first_changes,
    in_order,
    join_nodes,
)
from ecc_core._backends.cpu.betti.meetings import meetings_of
from ecc_core._backends.cpu.betti.winding import wrapping_sides
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import counts_to_starts
from ecc_core._backends.cpu.sources import Block, scratch
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Ends = tuple[Array | None, Array | None]
"""Masks of the inlet and the outlet; None for the first or the last slices along the axes."""

SLICES: Ends = (None, None)
NOWHERE = np.array([2**62, -(2**62)])
"""The first and the last slice if an inlet and an outlet take their place."""


def count_pairs(ndim: int, ends: Sequence[Any]) -> int:
    """Return for how many pairs of ends components are counted."""
    is_missing = [end is None for end in ends]
    return ndim if any(is_missing) else 1


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
    pairs = count_pairs(field.ndim, ends)
    found = np.zeros((pairs + 2, int(plan.entered.max(initial=0)) + 1), np.int64)
    shown = _kept_points(field, filtration.nan)
    extent = _extent_of(shown, staged)
    for number, end in enumerate(ends):
        if end is not None:
            extent[:, number] = NOWHERE[number]
    # Without a mask there are points beyond an open side, so that its slice is no end.
    inner = [] if shown is not None else list(open_sides)
    inner += wrapping_sides(filtration)
    marks = list(_marks(staged, extent, inner, ends))
    return _joined_basins(keys, staged, filtration, open_sides, marks, found, extent)


Mark = tuple[Block, Any, int]
"""A box, an index of some of its points, and the bits of the ends that these belong to."""


def _joined_basins(
    keys: Array,
    staged: Staged,
    filtration: Filtration,
    open_sides: Sequence[Side],
    marks: Sequence[Mark],
    found: Values,
    extent: Values,
) -> Growth:
    """Return the growth of a box from its basins."""
    shape = staged.block.shape
    grid = grid_of(shape, shape)
    basins = list_basins(grid, kind_of(filtration, complement=False), keys, staged, frame=False)
    members = scratch.take("basins", math.prod(shape), INT32)
    sort_members(keys, staged.layout, basins.paths, found[0], members)
    labels = basins.paths[0]
    changes = []
    for box, within, bits in marks:
        changes.append(
            first_changes(
                REACH,
                bits,
                staged.part(labels, box)[within],
                staged.part(keys, box)[within],
                basins.total,
            )
        )
    faces = {side: _side(keys, staged, side).copy() for side in open_sides}
    own = {side: _side(labels, staged, side).copy() for side in open_sides}
    changes += [first_changes(LEAVE, 0, own[at], faces[at], basins.total) for at in open_sides]
    last = found.shape[1] - 1
    meetings = meetings_of(basins.edges.keys, basins.edges.nodes, last)
    lists = in_order(changes, last), NONE_LISTED, NONE_LISTED
    nodes, listed, numbers = join_nodes(basins.total, members, meetings, lists, found)
    at_sides = {side: numbers[nodes_here] for side, nodes_here in own.items()}
    return Growth(found, nodes, listed, extent, faces, at_sides)


def _kept_points(field: Field, nan: str) -> Array | None:
    """Return where points of a box are neither masked nor NaN; None if that is so everywhere."""
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


def _marks(staged: Staged, extent: Values, inner: Sequence[Side], ends: Ends) -> Iterator[Mark]:
    """Yield the points that belong to ends, without slices on the inner sides."""
    pairs = count_pairs(staged.field.ndim, ends)
    for number, end in enumerate(ends):
        if end is not None:
            bits = sum(1 << (2 * pair + number) for pair in range(pairs))
            yield staged.block, end.reshape(staged.block.shape), bits
            continue
        for place, axis in enumerate(range(3 - staged.field.ndim, 3)):
            at = int(extent[place, number])
            if at != NOWHERE[number] and (axis, number) not in inner:
                yield section(staged.block, axis, at), ..., 1 << (2 * place + number)


def _side(staged_points: Array, staged: Staged, side: Side) -> Array:
    """Return a view of what is staged for the points of a side of the box."""
    axis, end = side
    plane = section(staged.block, axis, end * (staged.block.stop[axis] - 1))
    return staged.part(staged_points, plane).squeeze(axis)


@kernel()
def sort_members(keys, layout, paths, ends, members):
    """Label all points with their basins, and list the basins of points in the order of keys.

    ``ends[k]`` of the points have the first k keys. Keys from ``ends.size - 1`` on are left out.
    """
    slices, rows, columns, slice_step, row_step = layout
    keys = bare(keys)
    labels = bare(paths[0])
    ways = bare(paths[1])
    ends = bare(ends)
    members = bare(members)
    for listing in (False, True):
        for z in range(slices):
            for y in range(rows):
                here = (z + 1) * slice_step + (y + 1) * row_step + 1
                for place in range(np.uint64(here), np.uint64(here + columns)):
                    slot = np.int64(keys[place]) + 1
                    if listing:
                        label = labels[end_of(labels, ways, place)]
                        passed = np.uint64(place)
                        step = labels[passed]
                        while step < 0:  # Points on the path get labels: it is followed once.
                            labels[passed] = label
                            passed += np.uint64(ways[np.uint64(-step)])
                            step = labels[passed]
                        if slot < ends.size:
                            members[np.uint64(ends[slot])] = label
                    if slot < ends.size:
                        ends[slot] += 1
        if not listing:
            counts_to_starts(ends)
