"""The smallest and the largest finite value of an image, in the order of its memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import pointer
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.sinks.vector_range import RANGE_LANES, widen_range
from ecc_core._backends.cpu.sources import Block, DirectionalSource, Source, memory_order, token_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["value_range"]

Array = NDArray[Any]

POINTS = 1 << 17  # of a box


@kernel()
def _widen(
    address: Any,
    token: Any,
    strides: Any,
    extents: Any,
    shown: Any,
    shown_strides: Any,
    masked: Any,
    least: Any,
    most: Any,
) -> Any:
    """Return whether a box holds NaN, and its range; no value is above `least` or below `most`."""
    slices, rows, columns = extents
    lows, highs = np.empty(RANGE_LANES, token.dtype), np.empty(RANGE_LANES, token.dtype)
    for i in range(RANGE_LANES):
        lows[i], highs[i] = least, most
    rest, rest_shown = np.empty(RANGE_LANES, token.dtype), np.empty(RANGE_LANES, np.uint8)
    bad = np.uint64(0)
    for z in range(slices):
        for y in range(rows):
            here = address + (z * strides[0] + y * strides[1]) * token.itemsize
            row = carray(pointer(here), columns, token.dtype)
            mask = carray(
                pointer(shown + z * shown_strides[0] + y * shown_strides[1]), columns, np.uint8
            )
            turns = columns // RANGE_LANES
            bad |= widen_range(row, mask, 0, turns, masked, lows, highs)
            done = turns * RANGE_LANES
            if done < columns:
                for i in range(RANGE_LANES):  # the last value fills the lanes
                    at = min(done + i, columns - 1)
                    rest[i] = row[at]
                    rest_shown[i] = mask[at] if masked else 1
                bad |= widen_range(rest, rest_shown, 0, 1, True, lows, highs)
    low, high = lows[0], highs[0]
    for i in range(1, RANGE_LANES):
        low, high = min(low, lows[i]), max(high, highs[i])
    return bad != 0, low, high


def value_range(
    image: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> tuple[Any, Any]:
    """Return the smallest and largest finite value that is not masked, or (None, None)."""
    if image.size == 0:
        return None, None
    boxes = _boxes(image, filtration, mask)
    directional = filtration.direction is not None
    dtype = np.dtype(np.float64) if directional else image.dtype.newbyteorder("=")
    read = np.dtype(np.uint8 if dtype == np.bool_ else dtype)
    read = np.dtype(np.float32) if dtype == np.float16 else read
    least, most = _ends(read)
    token, masked = token_of(read), mask is not None

    def widen(queue: Iterator[tuple[Source, Source | None, Block]]) -> tuple[Any, Any]:
        lowest, highest = least, most
        for source, shown, block in queue:
            address, strides, values = source.box(block)
            if values.dtype == np.float16:
                values = values.astype(np.float32)
                address = values.ctypes.data
                strides = values.strides[0] // 4, values.strides[1] // 4
            there, steps = address, (0, 0)
            if shown is not None:
                there, steps, _kept = shown.box(block)
            bad, low, high = _widen(
                address, token, strides, values.shape, there, steps, masked, least, most
            )
            if bad and filtration.nan == "raise":
                raise ValueError(NAN_MESSAGE)
            lowest, highest = min(low, lowest), max(high, highest)
        return lowest, highest

    found = share(boxes, widen, worker_count(workers, image.size, 1))
    low, high = min(low for low, _ in found), max(high for _, high in found)
    if low > high or (read.kind == "f" and not math.isfinite(low)):
        return None, None
    return (low, high) if dtype != np.bool_ else (bool(low), bool(high))


@lru_cache(maxsize=16)
def _ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return a value that none is above, and one that none is below."""
    if dtype.kind == "f":
        return dtype.type(np.inf), dtype.type(-np.inf)
    return dtype.type(np.iinfo(dtype).max), dtype.type(np.iinfo(dtype).min)


def _boxes(
    image: Array, filtration: Filtration, mask: Array | None
) -> list[tuple[Source, Source | None, Block]]:
    """Return boxes that cover all images of a batch."""
    if filtration.direction is not None:
        added: list[tuple[Source, Source | None, Block]] = []
        view = image.reshape(image.shape[0], *(1,) * (4 - image.ndim), *image.shape[1:])
        for i in range(image.shape[0]):
            directional = DirectionalSource(view[i], filtration.direction)
            shown = None if mask is None else Source(mask.reshape(view.shape)[i], "mask")
            added += [(directional, shown, block) for block in _cut(directional.shape)]
        return added
    mask = None if mask is None else np.broadcast_to(mask, image.shape)
    if not image.flags.c_contiguous:
        order, flips = memory_order(image)
        image = image.transpose(order)[flips]
        mask = None if mask is None else mask.transpose(order)[flips]
    if image.flags.c_contiguous and (mask is None or mask.flags.c_contiguous):
        image = image.reshape(1, 1, -1)
        mask = None if mask is None else mask.reshape(1, 1, -1)
    if image.ndim < 3:
        shape = (1,) * (3 - image.ndim) + image.shape
        image, mask = image.reshape(shape), None if mask is None else mask.reshape(shape)
    boxes = []
    for at in np.ndindex(image.shape[:-3]):
        source = Source(image[at])
        shown = None if mask is None else Source(mask[at], "mask")
        boxes += [(source, shown, block) for block in _cut(source.shape)]
    return boxes


@lru_cache(maxsize=32)
def _cut(shape: tuple[int, int, int]) -> tuple[Block, ...]:
    """Return boxes of about as many points as the cache holds."""
    size = [1, 1, 1]
    for axis in (2, 1, 0):
        size[axis] = max(1, min(shape[axis], POINTS // math.prod(size)))
    depth, height, width = size
    return tuple(
        Block(
            (z, y, x),
            (min(z + depth, shape[0]), min(y + height, shape[1]), min(x + width, shape[2])),
        )
        for z in range(0, shape[0], depth)
        for y in range(0, shape[1], height)
        for x in range(0, shape[2], width)
    )
