"""Levels at which a curve changes: the values of the points with a coefficient, sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import (
    bits_to_invert,
    ordered_key,
    unsigned,
    values_of,
)
from ecc_core._backends.cpu.order import sort_words

Array = NDArray[Any]

# A word holds a coefficient, plus an offset that makes it positive, in its lowest bits, and a key
# in the others.
COEFFICIENT_BITS = 8
COEFFICIENT_OFFSET = 128
SHIFT = np.uint64(COEFFICIENT_BITS)


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
