"""The smallest and the largest finite value of an image, in the order of its memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import plain_row
from ecc_core._backends.cpu.encoders.order import (
    bits_to_invert,
    ordered_key,
    ordered_keys,
    unsigned,
    values_of,
)
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import cut
from ecc_core._backends.cpu.sources import Block, DirectionalSource, Source, memory_order, token_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

BYTES, NO_BOX = token_of(np.dtype(np.uint8)), (0, (0, 0), (0, 0, 0))


@kernel()
def _widen(box: Any, token: Any, shown: Any, bytes_: Any, order: Any, ends: Any) -> Any:
    """Return whether a box of values holds NaN, and its range.

    Floats are read as unsigned integers, and ranges are those of ordered keys, since loops over
    floats that may be NaN are not vectorized. `order` is that of :func:`ordered_key`, or None for
    integers. `ends` are the least and the greatest finite value, or their keys, and the keys of the
    infinities. `shown` is the box of a mask, whose address may be 0, and `bytes_` its token.
    """
    slices, rows, columns = box[2]
    least, most, lowest, highest = ends
    low, high, first, last = most, least, highest, lowest
    for z in range(slices):
        for y in range(rows):
            row, mask = plain_row(box, token, z, y), plain_row(shown, bytes_, z, y)
            if order is None:
                for x in range(columns):
                    kept = mask[x] != 0 if shown[0] else True
                    low = min(low, row[x] if kept else most)
                    high = max(high, row[x] if kept else least)
            else:
                for x in range(columns):
                    # Of the values' own size, so that as many as possible are in a register.
                    key = token.dtype.type(ordered_key(row[x], *order))
                    if shown[0]:
                        key = key if mask[x] != 0 else lowest
                    first, last = min(first, key), max(last, key)
                    low = min(low, key if key >= least else most)
                    high = max(high, key if key <= most else least)
    return first < lowest or last > highest, low, high


def value_range(
    image: Array, filtration: Filtration, *, mask: Array | None = None, workers: int | None = None
) -> tuple[Any, Any]:
    """Return the smallest and largest finite value that is not masked, or (None, None)."""
    if image.size == 0:
        return None, None
    boxes = _boxes(image, filtration, mask)
    directional = filtration.direction is not None
    dtype = np.dtype(np.float64) if directional else image.dtype.newbyteorder("=")
    order, ends = _order_of(dtype)
    token = token_of(ends[0].dtype)

    def widen(queue: Iterator[tuple[Source, Source | None, Block]]) -> tuple[Any, Any]:
        lowest, highest = ends[1], ends[0]
        for source, shown, block in queue:
            box, _values = source.box(block)  # which live until they are read
            there, _shown = (NO_BOX, None) if shown is None else shown.box(block)
            bad, low, high = _widen(box, token, there, BYTES, order, ends)
            if bad and filtration.nan == "raise":
                raise ValueError(NAN_MESSAGE)
            lowest, highest = min(low, lowest), max(high, highest)
        return lowest, highest

    found = share(boxes, widen, worker_count(workers, image.size, 1))
    low, high = min(low for low, _ in found), max(high for _, high in found)
    if low > high:
        return None, None
    if order is None:
        return (low, high) if dtype != np.bool_ else (bool(low), bool(high))
    first, last = values_of(np.array([low, high], token.dtype), dtype)
    return (first, last) if dtype != np.float16 else (np.float32(first), np.float32(last))


@lru_cache(maxsize=16)
def _order_of(dtype: np.dtype[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the `order` and the `ends` of :func:`_widen`."""
    if dtype.kind != "f":
        read = np.dtype(np.uint8 if dtype == np.bool_ else dtype)
        low, high = read.type(np.iinfo(read).min), read.type(np.iinfo(read).max)
        return None, (low, high, low, high)
    one = unsigned(dtype).type(1)
    low, high = ordered_keys(np.array([-np.inf, np.inf], dtype))
    return bits_to_invert(dtype), (low + one, high - one, low, high)


def _boxes(
    image: Array, filtration: Filtration, mask: Array | None
) -> list[tuple[Source, Source | None, Block]]:
    """Return boxes that cover all images of a batch."""
    arrays = [image] if mask is None else [image, np.broadcast_to(mask, image.shape)]
    direction = filtration.direction
    if direction is not None:
        shape = (len(image), *(1,) * (4 - image.ndim), *image.shape[1:])
    else:
        arrays = [array.squeeze() for array in arrays]  # axes of one point may have any strides
        if not arrays[0].flags.c_contiguous:
            order, flips = memory_order(arrays[0])
            arrays = [array.transpose(order)[flips] for array in arrays]
        flat = all(array.flags.c_contiguous for array in arrays)
        shape = (1, 1, image.size) if flat else (1,) * (3 - arrays[0].ndim) + arrays[0].shape
    views = [array.reshape(shape) for array in arrays]
    boxes = []
    for at in np.ndindex(shape[:-3]):
        part, *hidden = (view[at] for view in views)
        source = Source(part) if direction is None else DirectionalSource(part, direction)
        shown = Source(hidden[0], "mask") if hidden else None
        boxes += [(source, shown, block) for block in cut(source.shape, 4, 3)]
    return boxes
