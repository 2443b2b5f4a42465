"""Levels at which a curve changes, and the smallest and the largest finite value of an image.

Levels are the values of the points with a coefficient, sorted. The range is found in the order of
the memory.
"""

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
    values_of,
)
from ecc_core._backends.cpu.order import sort_words
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import cut
from ecc_core._backends.cpu.scans.stacks import parts_of
from ecc_core._backends.cpu.sources import Box, memory_order, token_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]

# A word holds a coefficient, plus an offset that makes it positive, in its lowest bits, and a key
# in the others.
COEFFICIENT_BITS = 8
COEFFICIENT_OFFSET = 128
SHIFT = np.uint64(COEFFICIENT_BITS)
KEY_SIZE = 4  # Blocks are cut as for keys of so many bytes.


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
BYTES = token_of(np.dtype(np.uint8))
NO_BOX = (0, (0, 0), (0, 0, 0))


@kernel()
def _list_changes(values, counts, sign, negative, words, changes):
    """List the keys of the points whose count is not 0.

    Words hold keys and counts; if `changes` is not empty, words hold keys alone, and counts go to
    `changes`. Both lists need room for one entry more, which is written but not kept. No other
    thread writes to `counts`, so that as many are listed as the caller has counted.
    """
    found = np.uint64(0)
    eights = counts[: counts.size // 8 * 8].view(np.uint64)
    for start in range(0, counts.size, 8):
        if start + 8 <= counts.size and eights[start // 8] == 0:
            continue
        for i in range(np.uint64(start), np.uint64(min(start + 8, counts.size))):
            key = ordered_key(np.uint64(values[i]), sign, negative)
            count = counts[i]
            if changes.size:
                words[found] = key
                changes[found] = count
            else:
                words[found] = key << SHIFT | np.uint64(count + COEFFICIENT_OFFSET)
            found += np.uint64(count != 0)  # A branch would often be predicted wrongly.


@kernel()
def _sum_runs(words, sums):
    """Replace sorted words by the keys whose coefficients do not add up to 0.

    Writes the sums of these keys to `sums`, and returns their number.
    """
    count = 0
    total = np.int64(0)
    for i in range(words.size):
        key = words[i] >> SHIFT
        total += np.int64(words[i] & np.uint64(255)) - COEFFICIENT_OFFSET
        last = i + 1 == words.size or words[i + 1] >> SHIFT != key
        # Every entry is written, without a branch, and kept only if `count` grows.
        words[count] = key
        sums[count] = total
        count += last and total != 0
        total = np.int64(0) if last else total
    return count


@kernel()
def _add_to_bins(words, base, sums):
    """Add the coefficients of words to a bin for each key, from `base` on."""
    for i in range(words.size):
        coefficient = np.int64(words[i] & np.uint64(255)) - COEFFICIENT_OFFSET
        sums[(words[i] >> SHIFT) - base] += coefficient


def _sum_words(
    words: NDArray[np.uint64], low: int, high: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the keys of words whose coefficients do not add up to 0, increasing, and the sums.

    The keys are between `low` and `high`.
    """
    if high - low < words.size:
        sums = np.zeros(high - low + 1, np.int64)
        _add_to_bins(words, np.uint64(low), sums)
        found = np.flatnonzero(sums)
        return found.astype(np.uint64) + np.uint64(low), sums[found]
    spare = np.empty_like(words)
    base = np.uint64(low << COEFFICIENT_BITS)
    last = COEFFICIENT_BITS + (high - low).bit_length()
    words, spare = sort_words(words, spare, base, COEFFICIENT_BITS, last)
    sums = spare.view(np.int64)
    count = _sum_runs(words, sums)
    return words[:count], sums[:count]


def sum_levels(image: Array, counts: NDArray[np.int8]) -> tuple[Array, NDArray[np.int64]]:
    """Return the values of an image whose counts do not add up to 0, increasing, and the sums."""
    dtype = image.dtype.newbyteorder("=")
    values = np.ascontiguousarray(image, dtype).reshape(-1).view(unsigned(dtype))
    found = int(np.count_nonzero(counts))
    if found == 0:
        return np.empty(0, dtype), np.empty(0, np.int64)
    sign, negative = (np.uint64(bits) for bits in bits_to_invert(dtype))
    words = np.empty(found + 1, np.uint64)
    wide = dtype.itemsize == 8
    changes = np.empty(found + 1 if wide else 0, np.int8)
    flat = np.ascontiguousarray(counts).reshape(-1)
    _list_changes(values, flat, sign, negative, words, changes)
    words = words[:found]
    changes = changes[:found]
    shift = 0 if wide else COEFFICIENT_BITS
    low, high = (int(end) >> shift for end in (words.min(), words.max()))
    if not wide:
        keys, sums = _sum_words(words, low, high)
    elif (high - low).bit_length() <= 64 - COEFFICIENT_BITS:
        words -= np.uint64(low)
        words <<= SHIFT
        words += (changes + np.int16(COEFFICIENT_OFFSET)).astype(np.uint64)
        keys, sums = _sum_words(words, 0, high - low)
        keys += np.uint64(low)
    else:
        order = np.argsort(words)
        keys = words[order]
        sums = changes[order].astype(np.int64)
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        sums = np.add.reduceat(sums, first)
        keys = keys[first][sums != 0]
        sums = sums[sums != 0]
    levels = values_of(keys, dtype)
    if dtype.kind == "f":
        zeros = np.flatnonzero(levels == 0)
        levels[zeros] = 0
        if zeros.size == 2:  # -0.0 and 0.0 are one level.
            sums[zeros] = 0, sums[zeros].sum()
            levels = levels[sums != 0]
            sums = sums[sums != 0]
    return levels, sums


@kernel()
def _widen(box, token, shown, bytes_, order, ends):
    """Return whether a box of values holds NaN, and its range.

    Floats are read as unsigned integers, and ranges are those of ordered keys, since loops over
    floats that may be NaN are not vectorized. `order` is that of :func:`ordered_key`, or None for
    integers. `ends` are the least and the greatest finite value, or their keys, and the keys of the
    infinities. `shown` is the box of a mask, whose address may be 0, and `bytes_` its token.
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
            mask = plain_row(shown, bytes_, z, y)
            if order is None:
                for x in range(columns):
                    kept = mask[x] != 0 if shown[0] else True
                    low = min(low, row[x] if kept else most)
                    high = max(high, row[x] if kept else least)
            else:
                for x in range(columns):
                    # Keys are as short as the values, so that a register holds as many as possible.
                    key = token.dtype.type(ordered_key(row[x], *order))
                    if shown[0]:
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
            there, _hidden = (NO_BOX, None) if hidden is None else hidden.box(block)
            bad, low, high = _widen(box, token, there, BYTES, order, ends)
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
    bad, low, high = _widen(box, token_of(ends[0].dtype), NO_BOX, BYTES, order, ends)
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
