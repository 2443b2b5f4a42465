"""The smallest and the largest finite value of an image, found in the order of the memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import plain_row
from ecc_core._backends.cpu.encoders.order import (
    bits_to_invert,
    ordered_key,
    ordered_keys,
    unsigned,
)
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.layouts import cut
from ecc_core._backends.cpu.scans.stacks import parts_of
from ecc_core._backends.cpu.sources import Box, memory_order, token_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

KEY_SIZE = 4  # Blocks are cut as for keys of so many bytes.
BYTES = token_of(np.dtype(np.uint8))


class _Pair(NamedTuple):
    """Two floats of one size, as integers of their bits and as floats."""

    bits: Struct
    floats: Struct
    sign: int
    """The bit of the sign."""
    every: int
    """All bits."""


_PAIRS = {
    2: _Pair(Struct("=2H"), Struct("=2e"), 1 << 15, (1 << 16) - 1),
    4: _Pair(Struct("=2I"), Struct("=2f"), 1 << 31, (1 << 32) - 1),
    8: _Pair(Struct("=2Q"), Struct("=2d"), 1 << 63, (1 << 64) - 1),
}


@kernel()
def _widen(box, token, shown, bytes_, order, ends):
    """Return whether a box of values holds NaN, and its range.

    Floats are read as unsigned integers, and ranges are those of ordered keys, since loops over
    floats that may be NaN are not vectorized. `order` is that of :func:`ordered_key`, or None for
    integers. `ends` are the least and the greatest finite value, or their keys, and the keys of the
    infinities. `shown` is the box of a mask, and `bytes_` its token; without a mask both are None.
    """
    slices, rows, columns = box[2]
    least, most, lowest, highest = ends
    low = most
    high = least
    first = highest
    last = lowest
    for z in range(slices):
        for y in range(rows):
            row = plain_row(box, token, z, y)
            mask = None if shown is None else plain_row(shown, bytes_, z, y)
            if order is None:
                for x in range(columns):
                    kept = True if mask is None else mask[x] != 0
                    low = min(low, row[x] if kept else most)
                    high = max(high, row[x] if kept else least)
            else:
                for x in range(columns):
                    # Keys are as short as the values, so that a register holds as many as possible.
                    key = token.dtype.type(ordered_key(row[x], *order))
                    if mask is not None:
                        key = key if mask[x] != 0 else lowest
                    first = min(first, key)
                    last = max(last, key)
                    low = min(low, key if key >= least else most)
                    high = max(high, key if key <= most else least)
    return first < lowest or last > highest, low, high


def value_range(
    image: Array, filtration: Filtration, *, mask: Array | None = None, workers: int | None = None
) -> tuple[Any, Any]:
    """Return the smallest and largest finite value that is not masked, or (None, None)."""
    if image.size == 0:
        return None, None
    direction = filtration.direction
    dtype = np.dtype(np.float64) if direction else image.dtype.newbyteorder("=")
    given = [image] if mask is None else [image, np.broadcast_to(mask, image.shape)]
    if direction is None and not image.flags.c_contiguous:
        # Axes of one point are left out, because their strides tell nothing.
        given = [array.squeeze() for array in given]
        axes, flips = memory_order(given[0])
        given = [array.transpose(axes)[flips] for array in given]
        given = [array if array.ndim == 4 else array[None] for array in given]
    if direction is None and all(array.flags.c_contiguous for array in given):
        given = [array.reshape(1, -1) for array in given]
    shown = None if mask is None else given[1]
    boxes = [
        (source, hidden, block)
        for _, source, hidden in parts_of(
            given[0], shown, order=[], flips=[], key_size=KEY_SIZE, direction=direction
        )
        for block in cut(source.shape, KEY_SIZE, 3)
    ]
    order, ends = _order_of(dtype)
    token = token_of(ends[0].dtype)

    def widen(queue: Iterator[Any]) -> tuple[Any, Any]:
        lowest = ends[1]
        highest = ends[0]
        for source, hidden, block in queue:
            # The arrays must live as long as their addresses are used.
            box, _values = source.box(block)
            there, _hidden = (None, None) if hidden is None else hidden.box(block)
            bytes_ = None if hidden is None else BYTES
            bad, low, high = _widen(box, token, there, bytes_, order, ends)
            if bad and filtration.nan == "raise":
                raise ValueError(NAN_MESSAGE)
            lowest = min(low, lowest)
            highest = max(high, highest)
        return lowest, highest

    found = share(boxes, widen, worker_count(workers, image.size, 1))
    low = min(low for low, _ in found)
    high = max(high for _, high in found)
    first, last = _finite_range(low, high, dtype)
    if dtype.kind != "f" or first is None:
        return first, last
    number = np.float32 if dtype == np.float16 else dtype.type
    return number(first), number(last)


def range_at(box: Box, dtype: np.dtype[Any], nan: str) -> tuple[Any, Any]:
    """Return the `value_range` of a box of native values in memory, as Python's numbers."""
    order, ends = _order_of(dtype)
    bad, low, high = _widen(box, token_of(ends[0].dtype), None, None, order, ends)
    if bad and nan == "raise":
        raise ValueError(NAN_MESSAGE)
    return _finite_range(low, high, dtype)


def _finite_range(low: Any, high: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the values, as Python's numbers, of the keys of a range; (None, None) if it is empty.

    Keys of integers are their values.
    """
    if low > high:
        return None, None
    if dtype.kind != "f":
        return (bool(low), bool(high)) if dtype == np.bool_ else (low, high)
    # `values_of` does the same for arrays, but takes longer for two keys.
    pair = _PAIRS[dtype.itemsize]
    first = low ^ (pair.sign if low & pair.sign else pair.every)
    last = high ^ (pair.sign if high & pair.sign else pair.every)
    return pair.floats.unpack(pair.bits.pack(first, last))


@lru_cache(maxsize=16)
def _order_of(dtype: np.dtype[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the `order` and the `ends` of :func:`_widen`."""
    if dtype.kind != "f":
        read = np.dtype(np.uint8 if dtype == np.bool_ else dtype)
        low = read.type(np.iinfo(read).min)
        high = read.type(np.iinfo(read).max)
        return None, (low, high, low, high)
    one = unsigned(dtype).type(1)
    low, high = ordered_keys(np.array([-np.inf, np.inf], dtype))
    return bits_to_invert(dtype), (low + one, high - one, low, high)
