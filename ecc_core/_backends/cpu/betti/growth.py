"""Sizes of components, and which of them span the image, at all thresholds at once.

Points are added to a union-find in the order of their keys. A root knows the number of points of
its component, and which sides of the image they touch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.blocks import SPARE, Field, Staged
from ecc_core._backends.cpu.betti.launch import laid_out, rank_plans
from ecc_core._backends.cpu.betti.links import neighbours
from ecc_core._backends.cpu.betti.scan import ONE, bare
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import count_trailing_zeros
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

MOST_NARROW = 2**31 - 1  # staged points whose numbers fit in 32 bits


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
            field = laid_out(image[i], None if mask is None else mask[i])
            result[i] = _numbers(field, plan, filtration)[:, plan.entered]

    share(range(count), each, worker_count(workers, image.size, plan.top + 1))
    return result


def _numbers(field: Field, plan: Plan, filtration: Filtration) -> Values:
    """Return the numbers after so many keys have entered, (d + 2, keys + 1)."""
    staged = Staged(Block((0, 0, 0), field.source.shape), field)
    keys = np.empty(staged.size + SPARE, plan.key_dtype)
    place = staged.halo, keys, staged.at, staged.steps[:2]
    has_nan, _ = load_box(plan, field.source, field.mask, *place)
    if has_nan and filtration.nan == "raise":
        raise ValueError(NAN_MESSAGE)
    index = np.int32 if staged.size <= MOST_NARROW else np.int64
    found = np.zeros((field.ndim + 2, int(plan.entered.max()) + 1), np.int64)
    order = np.empty(field.source.array.size, index)
    _sort_points(keys, staged.layout, found[0], order)
    near = neighbours(field.ndim, kind_of(filtration, complement=False).connectivity)
    offsets = near[0] @ staged.steps
    _join(order, offsets, near[1], np.zeros(staged.size, index), _sides(field, staged), found)
    return found


def _sides(field: Field, staged: Staged) -> NDArray[np.uint8]:
    """Return which sides of the image each staged point touches: two bits for each axis."""
    touched = np.zeros(staged.size, np.uint8)
    inner = as_strided(touched[staged.at :], field.source.shape, staged.steps)
    for axis in range(field.ndim):
        for side in (0, -1):
            inner[(..., side, *(slice(None),) * (field.ndim - 1 - axis))] |= 1 << (2 * axis - side)
    return touched


@kernel()
def _sort_points(keys: Any, layout: Any, ends: Any, order: Any) -> None:
    """Sort the places of points by key; ``ends[k]`` of them have the first k keys.

    Keys from ``ends.size - 1`` on are left out.
    """
    slices, rows, columns, slice_step, row_step = layout
    keys, ends, order = bare(keys), bare(ends), bare(order)
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


@kernel()
def _root(parents: Any, place: Any) -> Any:
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


@kernel()
def _span(spanning: Any, sides: Any, change: Any) -> None:
    """Count a component along the axes of which it touches both sides."""
    for axis in range(spanning.size):
        if sides >> (2 * axis) & 3 == 3:
            spanning[axis] += change


@kernel()
def _join(order: Any, offsets: Any, apart: Any, parents: Any, touched: Any, found: Any) -> None:
    """Add points in this order, and write what there is after each key to `found`.

    `parents` are 0 before points enter, and minus the number of points at roots: one array, since
    most of the time is spent waiting for memory. Of the neighbours of a point, those adjacent to
    one that has entered are in its component.
    """
    order, offsets, apart = bare(order), bare(offsets), bare(apart)
    parents, touched = bare(parents), bare(touched)
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    largest, done = np.int64(0), np.int64(0)
    for key in range(1, found.shape[1]):
        for i in range(done, found[0, key]):
            place = root = np.uint64(order[i])
            parents[root] = -1
            if touched[root]:
                _span(spanning, touched[root], 1)
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
                if parents[root] < parents[other]:  # the larger component
                    root, other = other, root
                parents[other] += parents[root]
                parents[root] = other
                if touched[root]:
                    both = touched[root] | touched[other]
                    _span(spanning, touched[root], -1)
                    _span(spanning, touched[other], -1)
                    _span(spanning, both, 1)
                    touched[other] = both
                root = other
            largest = max(largest, -np.int64(parents[root]))
        done = found[0, key]
        found[1, key] = largest
        found[2:, key] = spanning
