"""Kernels that find the minima of a block, and the points where components can meet.

A block is staged with one point of halo on each side. `layout` is (slices, rows, columns, step of
slices, step of rows): the numbers of own points, and the distances of neighbours in the staged
arrays. The first own point lies one step along each axis from the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from ecc_core._backends.cpu.betti.links import MOST, compare_links, link_of
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.kernels import pointer
from ecc_core._backends.cpu.llvm import count_trailing_zeros

OUTSIDE = np.iinfo(np.int32).max  # the label of points outside of the block
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ONE = np.uint64(1)


@subroutine()
def bare(array: Any) -> Any:
    """Return an array without an owner: numba counts references to other arrays at every call."""
    return carray(pointer(array.ctypes.data), array.shape, array.dtype)


@subroutine()
def representatives(link: Any, known: Any, ends: Any, near: Any) -> Any:
    """Return one end of each component of a lower link; `known` is part of the first one."""
    found = known & ends
    found &= ~found + ONE
    rest = link & ~known
    while rest & ends:
        seed = rest & ends
        seed &= ~seed + ONE
        rest ^= seed
        front, touched = seed, np.uint64(0)
        while front:
            around = np.uint64(near[np.uint64(count_trailing_zeros(front))])
            front &= front - ONE
            touched |= around
            front |= around & rest
            rest &= ~around
        if not touched & known:
            found |= seed
    return found


@kernel()
def scan_links(
    keys: Any,
    labels: Any,
    layout: Any,
    low: Any,
    high: Any,
    frame: Any,
    frame_low: Any,
    frame_high: Any,
    ends: Any,
    end_set: Any,
    near: Any,
    rows_around: Any,
    planes: Any,
    minima: Any,
    forks: Any,
    links: Any,
) -> Any:
    """Find minima, forks, and the lowest neighbour of each point, see :func:`compare_links`.

    `low` and `high` tell along which axes the block begins and ends at the border of the image, and
    `frame_low` and `frame_high` along which axes the frame lies beyond. Minima are numbered
    in raster order (from 1 with a frame), written to `labels` and listed in `minima`; `forks` lists
    the points whose lower link falls apart, `links` one end of each of its components. Returns the
    number of nodes, the number of forks, and the sum over them of the number of components less 1.
    """
    slices, rows, columns, slice_step, row_step = layout
    at = slice_step + row_step + 1
    labels, planes, near = bare(labels), bare(planes), bare(near)
    minima, forks, links, keys = bare(minima), bare(forks), bare(links), bare(keys)
    inside, framed = bare(rows_around[0]), bare(rows_around[1])
    nodes, count, room = np.int64(1 if frame else 0), np.int64(0), np.int64(0)
    for z in range(slices):
        for y in range(rows):
            for k in range(9):
                dz, dy = k // 3 - 1, k % 3 - 1
                before = (dz < 0 and z == 0), (dy < 0 and y == 0)
                behind = (dz > 0 and z == slices - 1), (dy > 0 and y == rows - 1)
                out, beyond = False, False
                for axis in range(2):
                    out |= (before[axis] and low[axis]) or (behind[axis] and high[axis])
                    beyond |= before[axis] and frame_low[axis]
                    beyond |= behind[axis] and frame_high[axis]
                inside[k] = np.uint64(0) if out else ALL
                framed[k] = ALL if beyond else np.uint64(0)
            row = at + z * slice_step + y * row_step
            for x in range(0, columns, 64):
                size = min(columns - x, 64)
                own = ALL >> np.uint64(64 - size)
                first = ONE if x == 0 else np.uint64(0)
                last = own & ~(own >> ONE) if x + size == columns else np.uint64(0)
                left, right = ~first if low[2] else ALL, ~last if high[2] else ALL
                framed_left = first if frame_low[2] else np.uint64(0)
                framed_right = last if frame_high[2] else np.uint64(0)
                start = row + x
                lowest, apart = compare_links(
                    keys,
                    start,
                    (slice_step, row_step),
                    ends,
                    inside,
                    (left, right),
                    framed,
                    (framed_left, framed_right),
                    labels,
                    planes,
                )
                lowest &= own
                while lowest:
                    place = start + count_trailing_zeros(lowest)
                    lowest &= lowest - ONE
                    minima[nodes] = place
                    labels[place] = nodes
                    nodes += 1
                apart &= own
                while apart:
                    bit = np.uint64(count_trailing_zeros(apart))
                    apart &= apart - ONE
                    link, known = link_of(planes, 0, bit), link_of(planes, MOST, bit)
                    found = representatives(link, known, end_set, near)
                    if found & (found - ONE):
                        forks[count] = start + np.int64(bit)
                        links[count] = found
                        count += 1
                        while found & (found - ONE):
                            found &= found - ONE
                            room += 1
    return nodes, count, room
