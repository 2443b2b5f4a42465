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
from ecc_core._backends.cpu.encoders.kernels import part_of
from ecc_core._backends.cpu.sources import Block


@kernel()
def clear_halo(keys: Any, geometry: Any, low: Any, high: Any, halo: Any) -> None:
    """Write the least key behind borders; `halo` slices of keys lie around a volume."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    for z in range(1 - halo, slices + 1 + halo):
        start = z * slice_stride
        for y in range(rows + 2):
            row = part_of(keys, start + y * pitch + 64 * lead - 1, columns + 2)
            if low[2]:
                row[0] = 0
            if high[2]:
                row[columns + 1] = 0
        if low[1]:
            keys[start : start + pitch] = 0
        if high[1]:
            end = start + (rows + 1) * pitch
            keys[end : end + pitch] = 0
    if halo and low[0]:
        keys[:slice_stride] = 0
    if halo and high[0]:
        keys[(slices + 1) * slice_stride : (slices + 2) * slice_stride] = 0


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
    x, x_stop = box.start[2], box.stop[2]
    across = [(x, x_stop, 0)]
    if block.start[2] > 0 and block.stop[2] == shape[2]:  # else rows are wrapped in place
        across.append((0, 1, shape[2] - x))
    boxes = [
        (Block((z, y, x), (z_stop, y_stop, x_stop)), at + far + near + beside)
        for (z, z_stop, far), (y, y_stop, near), (x, x_stop, beside) in itertools.product(
            *pieces, across
        )
    ]
    return tuple(boxes[1:])
