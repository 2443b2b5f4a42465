"""Levels at which a curve changes: the points with a coefficient, sorted by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import bits_to_invert, ordered_key, unsigned, values_of

Array = NDArray[Any]

COEFFICIENT_BITS = 8  # of a word, below the bits of a key
SHIFT = np.uint64(COEFFICIENT_BITS)
ZERO = 128  # the coefficient 0 there
DIGIT_BITS = 11  # of a sort


@kernel()
def _list_changes(
    values: Any, counts: Any, sign: Any, negative: Any, words: Any, changes: Any
) -> None:
    """List the keys of the points whose count is not 0.

    The counts follow the keys in the lowest byte of `words`; if `changes` is not empty, they go
    there. Both lists need room for one entry more. Counts are read from memory that no one else
    writes to, so as many are found as were counted.
    """
    found = np.uint64(0)
    eights = counts[: counts.size // 8 * 8].view(np.uint64)
    for start in range(0, counts.size, 8):
        if start + 8 <= counts.size and eights[start // 8] == 0:
            continue
        for i in range(np.uint64(start), np.uint64(min(start + 8, counts.size))):
            key, count = ordered_key(np.uint64(values[i]), sign, negative), counts[i]
            if changes.size:
                words[found], changes[found] = key, count
            else:
                words[found] = key << SHIFT | np.uint64(count + ZERO)
            found += np.uint64(count != 0)  # no branch, which would often be mispredicted


@kernel()
def _sort_digit(source: Any, target: Any, base: Any, shift: Any) -> None:
    """Sort words by one digit of their distance from `base`, keeping the order of equal ones."""
    last = np.uint64((1 << DIGIT_BITS) - 1)
    ends = np.zeros(1 << DIGIT_BITS, np.int64)
    for i in range(source.size):
        ends[((source[i] - base) >> shift) & last] += 1
    start = 0
    for digit in range(ends.size):
        start, ends[digit] = start + ends[digit], start
    for i in range(source.size):
        digit = ((source[i] - base) >> shift) & last
        target[np.uint64(ends[digit])] = source[i]
        ends[digit] += 1


@kernel()
def _sum_runs(words: Any, sums: Any) -> Any:
    """Replace sorted words by the keys whose coefficients do not add up to 0; their number."""
    count, total = 0, np.int64(0)
    for i in range(words.size):
        key = words[i] >> SHIFT
        total += np.int64(words[i] & np.uint64(255)) - ZERO
        last = i + 1 == words.size or words[i + 1] >> SHIFT != key
        words[count], sums[count] = key, total  # without branches
        count += last and total != 0
        total = np.int64(0) if last else total
    return count


@kernel()
def _add_to_bins(words: Any, base: Any, sums: Any) -> None:
    """Add the coefficients of words to a bin for each key, from `base` on."""
    for i in range(words.size):
        sums[(words[i] >> SHIFT) - base] += np.int64(words[i] & np.uint64(255)) - ZERO


def _sum_words(
    words: NDArray[np.uint64], low: int, high: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys of words, increasing, and the sums of their coefficients that are not 0.

    The keys are between `low` and `high`.
    """
    if high - low < words.size:
        sums = np.zeros(high - low + 1, np.int64)
        _add_to_bins(words, np.uint64(low), sums)
        found = np.flatnonzero(sums)
        return found.astype(np.uint64) + np.uint64(low), sums[found]
    spare, base = np.empty_like(words), np.uint64(low << COEFFICIENT_BITS)
    bits = (high - low).bit_length()
    for shift in range(COEFFICIENT_BITS, COEFFICIENT_BITS + bits, DIGIT_BITS):
        _sort_digit(words, spare, base, np.uint64(shift))
        words, spare = spare, words
    sums = spare.view(np.int64)
    count = _sum_runs(words, sums)
    return words[:count], sums[:count]


def sum_levels(image: Array, counts: NDArray[np.int8]) -> tuple[Array, NDArray[np.int64]]:
    """The values of an image, increasing, whose counts do not add up to 0, and these sums."""
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
    words, changes = words[:found], changes[:found]
    shift = 0 if wide else COEFFICIENT_BITS
    low, high = (int(end) >> shift for end in (words.min(), words.max()))
    if not wide:
        keys, sums = _sum_words(words, low, high)
    elif (high - low).bit_length() <= 64 - COEFFICIENT_BITS:
        words -= np.uint64(low)
        words <<= SHIFT
        words += (changes + np.int16(ZERO)).astype(np.uint64)
        keys, sums = _sum_words(words, 0, high - low)
        keys += np.uint64(low)
    else:
        order = np.argsort(words)
        keys, sums = words[order], changes[order].astype(np.int64)
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        sums = np.add.reduceat(sums, first)
        keys, sums = keys[first][sums != 0], sums[sums != 0]
    levels = values_of(keys, dtype)
    if dtype.kind == "f":
        zeros = np.flatnonzero(levels == 0)
        levels[zeros] = 0
        if zeros.size == 2:  # -0.0 and 0.0 are one level
            sums[zeros] = 0, sums[zeros].sum()
            levels, sums = levels[sums != 0], sums[sums != 0]
    return levels, sums
