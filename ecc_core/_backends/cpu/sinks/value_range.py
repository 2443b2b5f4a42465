"""The smallest and the largest finite value of an image, in the order of its memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import carray
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import pointer
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.sinks.vector_range import RANGE_LANES, widen_range
from ecc_core._backends.cpu.sources import Block, DirectionalSource, Source, memory_order
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
    lows: Any,
    highs: Any,
) -> Any:
    """Widen the range by the values of a box; whether one was NaN."""
    slices, rows, columns = extents
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
    return bad != 0


def value_range(
    image: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> tuple[Any, Any]:
    """Smallest and largest finite value that is not masked; (None, None) where there is none."""
    if image.size == 0:
        return None, None
    boxes = list(_boxes(image, filtration, mask))
    directional = filtration.direction is not None
    dtype = np.dtype(np.float64) if directional else image.dtype.newbyteorder("=")
    read = np.dtype(np.uint8 if dtype == np.bool_ else dtype)
    read = np.dtype(np.float32) if dtype == np.float16 else read
    if read.kind == "f":
        least, most = read.type(np.inf), read.type(-np.inf)
    else:
        least, most = np.iinfo(read).max, np.iinfo(read).min
    token, masked = np.empty(0, read), mask is not None

    def widen(queue: Iterator[tuple[Source, Source | None, Block]]) -> tuple[Any, Any]:
        lows, highs = np.full(RANGE_LANES, least, read), np.full(RANGE_LANES, most, read)
        for source, shown, block in queue:
            address, strides, values = source.box(block)
            if values.dtype == np.float16:
                values = values.astype(np.float32)
                address = values.ctypes.data
                strides = values.strides[0] // 4, values.strides[1] // 4
            there, steps = address, (0, 0)
            if shown is not None:
                there, steps, _kept = shown.box(block)
            bad = _widen(address, token, strides, values.shape, there, steps, masked, lows, highs)
            if bad and filtration.nan == "raise":
                raise ValueError(NAN_MESSAGE)
        return lows.min(), highs.max()

    found = share(boxes, widen, worker_count(workers, image.size, 1))
    low, high = min(low for low, _ in found), max(high for _, high in found)
    if low > high or (read.kind == "f" and not np.isfinite(low)):
        return None, None
    return (low, high) if dtype != np.bool_ else (bool(low), bool(high))


def _boxes(
    image: Array, filtration: Filtration, mask: Array | None
) -> Iterator[tuple[Source, Source | None, Block]]:
    """Boxes that cover all images of a batch."""
    if filtration.direction is not None:
        view = image.reshape(image.shape[0], *(1,) * (4 - image.ndim), *image.shape[1:])
        for i in range(image.shape[0]):
            source: Source = DirectionalSource(view[i], filtration.direction)
            shown = None if mask is None else Source(mask.reshape(view.shape)[i], "mask")
            yield from ((source, shown, block) for block in _cut(source.shape))
        return
    order, flips = memory_order(image)
    laid = image.transpose(order)[flips]
    kept = None if mask is None else np.broadcast_to(mask, image.shape).transpose(order)[flips]
    if laid.flags.c_contiguous and (kept is None or kept.flags.c_contiguous):
        laid = laid.reshape(1, 1, -1)
        kept = None if kept is None else kept.reshape(laid.shape)
    lead = laid.shape[:-3]
    laid = laid.reshape((1,) * (3 - laid.ndim) + laid.shape) if laid.ndim < 3 else laid
    if kept is not None and kept.ndim < 3:
        kept = kept.reshape(laid.shape)
    for at in itertools.product(*map(range, lead)):
        source = Source(laid[at])
        shown = None if kept is None else Source(kept[at], "mask")
        yield from ((source, shown, block) for block in _cut(source.shape))


def _cut(shape: tuple[int, int, int]) -> Iterator[Block]:
    """Boxes of about as many points as stay in the cache."""
    size = [1, 1, 1]
    for axis in (2, 1, 0):
        size[axis] = max(1, min(shape[axis], POINTS // math.prod(size)))
    for start in itertools.product(*(range(0, n, s) for n, s in zip(shape, size, strict=True))):
        stop = tuple(min(a + s, n) for a, s, n in zip(start, size, shape, strict=True))
        yield Block(start, stop)  # type: ignore[arg-type]
