"""Halos of blocks at borders that are not closed, so that scans need no corrections there.

Scans take the points of a halo for points of the image. Of a periodic image these are the points on
the opposite side. A half-open window has the cells of the closed one but those of the last points
along each axis: behind these the halo has the least key of all. The cells between a last point and
its halo then enter with the last point, and cancel its own.

Along rows a periodic image has a halo on the high side only: another word of bits before every row
would take too long. Scans begin with the last word of a row for what passes on to the first.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Any

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.scans.kernels import fill
from ecc_core._backends.cpu.sources import Block
from ecc_core._request.filtration import Boundary

__all__ = ["Sides", "clear_high", "sides_of", "wrap_rows", "wrapped_boxes"]

Sides = tuple[tuple[bool, bool, bool], tuple[bool, bool, bool]]


def sides_of(low: Any, high: Any, boundary: Boundary) -> Sides:
    """Return at which low and high sides of a block a scan meets a closed border."""
    if boundary.is_window:
        return low, (False, False, False)
    if boundary.wraps:
        return (False, False, False), (False, False, False)
    return low, high


@kernel()
def clear_high(keys: Any, geometry: Any, high: Any, halo: Any) -> None:
    """Write the least key behind the high borders; `halo` slices of keys lie around a volume."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    for z in range(1 - halo, slices + 1 + halo):
        start = z * slice_stride
        if high[2]:
            for y in range(rows + 2):
                keys[start + y * pitch + 64 * lead + columns] = 0
        if high[1]:
            fill(keys, start + (rows + 1) * pitch, pitch, 0)
    if high[0] and halo:
        fill(keys, (slices + 1) * slice_stride, slice_stride, 0)


@kernel()
def wrap_rows(keys: Any, geometry: Any, halo: Any) -> None:
    """Write the first key of each row behind its last one."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    for z in range(1 - halo, slices + 1 + halo):
        for y in range(rows + 2):
            start = z * slice_stride + y * pitch + 64 * lead
            keys[start + columns] = keys[start]


@lru_cache(maxsize=64)
def wrapped_boxes(
    block: Block,
    box: Block,
    shape: tuple[int, int, int],
    ndim: int,
    steps: tuple[int, int],
    at: int,
) -> tuple[tuple[Block, int], ...]:
    """Return boxes on the opposite sides of a periodic image, and where their first keys go.

    `box` is what there is to read of a block and its halo, `at` where its first key goes.
    """
    pieces = []
    for axis, step in enumerate(steps):
        start, stop, length = block.start[axis], block.stop[axis], shape[axis]
        found = [(box.start[axis], box.stop[axis], 0)]
        if axis or ndim == 3:
            first = box.start[axis]
            if start == 0:
                found.append((length - 1, length, -step))
            if stop == length:
                found.append((0, 1, (stop - first) * step))
        pieces.append(found)
    (x, x_stop) = box.start[2], box.stop[2]
    boxes = [
        (Block((z, y, x), (z_stop, y_stop, x_stop)), at + across + along)
        for (z, z_stop, across), (y, y_stop, along) in itertools.product(*pieces)
    ]
    return tuple(boxes[1:])
