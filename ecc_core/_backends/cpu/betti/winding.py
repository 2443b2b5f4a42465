"""Sizes of components of images that are periodic along some axes, and which of them wind around.

A component winds around an axis if a closed path in it crosses the side between the last and the
first point more often in one direction than in the other. Each point of a tree knows how often the
path to its parent crosses the sides, so that every edge within a tree tells of a closed path
(Newman, Ziff, "Fast Monte Carlo algorithm for site or bond percolation", 2001).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.blocks import Staged
from ecc_core._backends.cpu.betti.ends import span, unite, write_spanning
from ecc_core._backends.cpu.betti.halo import home_of, index_type
from ecc_core._backends.cpu.betti.links import neighbours
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.order import counts_to_starts

Array = NDArray[Any]


def join_around(
    keys: Array,
    staged: Staged,
    wraps: tuple[bool, ...],
    connectivity: int,
    touched: Array,
    found: NDArray[np.int64],
    *,
    by_axis: bool,
) -> None:
    """Add points in the order of their keys, and write what there is after each to `found`.

    `wraps` tells which of slices, rows and columns are periodic. If there is a pair of ends for
    each axis (`by_axis`), a component touches both ends of a periodic one if it winds around it.
    """
    shape: tuple[int, ...] = staged.block.stop
    ndim = staged.field.ndim
    order = np.empty(staged.field.source.array.size, index_type(staged.size))
    _sort_points(keys, staged.layout, found[0], order)
    offsets, apart = neighbours(ndim, connectivity)
    if 1 in shape[3 - ndim :]:  # a point is its own neighbour, and all edges of a path must be seen
        apart = np.full_like(apart, ALL)
    axes = slice(0 if ndim == 3 else 1, 3)  # those with a halo
    home = home_of(shape[axes], wraps[axes])
    first = 3 - ndim
    winding = [3 << 2 * (axis - first) if by_axis and wraps[axis] else 0 for axis in range(3)]
    parents = np.zeros(staged.size, order.dtype)
    turns = np.zeros((staged.size, 3), np.int32)
    given = np.array(staged.shape), np.array(wraps), np.array(winding, np.uint8)
    steps = offsets @ staged.steps
    _join(order, steps, apart, home, *given, parents, turns, touched, found)


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
            counts_to_starts(ends)


@subroutine()
def _root(parents, turns, place, crossed):
    """Return the root of a point, write how often the path to it crosses sides, and halve it."""
    crossed[:] = 0
    parent = parents[place]
    while parent > 0:
        above = parents[parent]
        if above > 0:
            parents[place] = above
            for axis in range(3):
                turns[place, axis] += turns[parent, axis]
        for axis in range(3):
            crossed[axis] += turns[place, axis]
        place = np.int64(parents[place])
        parent = parents[place]
    return place


@subroutine()
def _cross(crossed, place, shape, wraps):
    """Add the sides that a step to a place in the halo crosses."""
    rest = place
    for axis in (2, 1, 0):
        index = rest % shape[axis]
        rest //= shape[axis]
        if wraps[axis]:
            crossed[axis] += np.int64(index == shape[axis] - 1) - np.int64(index == 0)


@kernel()
def _join(order, steps, apart, home, shape, wraps, winding, parents, turns, touched, found):
    """Add points in this order, and write what there is after each key to `found`.

    `parents` are 0 before points enter, and minus the number of points at roots; `turns` are how
    often the paths to parents cross each side. Of the neighbours of a point, those adjacent to one
    that has entered are joined with it already.
    """
    spanning = np.zeros(found.shape[0] - 2, np.int64)
    # How often the paths from the two points to their roots go around the torus, along each axis.
    own = np.zeros(3, np.int64)
    crossed = np.zeros(3, np.int64)
    largest = np.int64(0)
    done = np.int64(0)
    for key in range(1, found.shape[1]):
        for i in range(done, found[0, key]):
            place = root = np.int64(order[i])
            parents[root] = -1
            own[:] = 0
            if touched[root]:
                span(spanning, touched[root], 1)
            rest = (ONE << np.uint64(apart.size)) - ONE
            while rest:
                k = np.uint64(count_trailing_zeros(rest))
                rest &= rest - ONE
                there = place + steps[k]
                beside = np.int64(home[there])
                if parents[beside] == 0:
                    continue
                rest &= apart[k]
                other = _root(parents, turns, beside, crossed)
                if there != beside:
                    _cross(crossed, there, shape, wraps)
                if other == root:
                    ends = np.uint8(0)
                    for axis in range(3):
                        if crossed[axis] != own[axis]:
                            ends |= winding[axis]
                    unite(touched, spanning, root, ends)
                    continue
                elder = other
                younger = root
                sign = 1
                if parents[root] < parents[other]:  # the larger component
                    elder = root
                    younger = other
                    sign = -1
                for axis in range(3):
                    turns[younger, axis] = sign * (crossed[axis] - own[axis])
                    if elder == other:
                        own[axis] = crossed[axis]
                parents[elder] += parents[younger]
                parents[younger] = elder
                if touched[younger]:
                    span(spanning, touched[younger], -1)
                    unite(touched, spanning, elder, touched[younger])
                root = elder
            largest = max(largest, -np.int64(parents[root]))
        done = found[0, key]
        found[1, key] = largest
        write_spanning(found, key, spanning)
