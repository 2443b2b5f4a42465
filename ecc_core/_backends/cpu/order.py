"""The order in which points enter, and sorting by digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

DIGIT_BITS = 11  # Words are sorted by so many bits at once.
# A word holds a key in its upper bits, and the place of its point in its lower bits.
KEY_BITS = 32
PLACE_BITS = 32
MOST_TIES = 32  # Up to so many keys with equal upper bits are sorted one by one.
SAMPLES = 64  # So many keys are compared with each other to guess whether there are many ties.


def entry_values(image: Array, superlevel: bool) -> Array:
    """Return values that grow in the order in which points enter."""
    native = image.astype(image.dtype.newbyteorder("="), copy=False)
    if not superlevel:
        return native
    return -native if native.dtype.kind == "f" else ~native


def entry_order(image: Array, never: Array, superlevel: bool) -> Array:
    """Return the points, in C order, in the order in which they enter; those that never do last."""
    order = stable_order(entry_values(image.reshape(-1), superlevel))
    if not never.any():
        return order
    last = never[order]
    return np.concatenate([order[~last], order[last]])


def stable_order(values: Array) -> Array:
    """Return the order of native values; equal ones keep theirs, and NaN come last."""
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # -0.0 becomes 0.0.
        values[np.isnan(values)] = np.nan  # NaN with a sign would come first.
    return sort_keys(ordered_keys(values))


def distinct(values: Array) -> tuple[Array, Array]:
    """Return the distinct native values, increasing, and the number of each value among them.

    ``numpy.unique`` is slower, and in NumPy 2.4 wrong for float16 on some processors.
    """
    order = stable_order(values)
    ordered = values[order]
    first = np.ones(order.size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(order.size, np.uint32)
    numbers[order] = np.cumsum(first) - 1
    return ordered[first], numbers


def narrowed(values: Array, masked: bool) -> Array:
    """Return values in the same order whose dtype has a wider one, if points are masked.

    Masked points need a value beyond all others, which integers of 64 bits may not leave.
    """
    if masked and values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        native = values.reshape(-1).astype(values.dtype.newbyteorder("="), copy=False)
        values = distinct(native)[1].reshape(values.shape)
    return values


def sort_keys(keys: Array, bits: int | None = None) -> Array:
    """Return the order of unsigned integers of so many bits; equal ones keep theirs."""
    bits = bits or 8 * keys.itemsize
    count = keys.size
    if count > 1 << PLACE_BITS:
        return np.argsort(keys, kind="stable")
    if are_sorted(keys):
        return np.arange(count, dtype=np.uint32)
    order = np.empty(count, np.uint32)
    words, spare = (scratch.take(name, count, np.uint64) for name in ("words", "spare words"))
    if bits > KEY_BITS and few_ties(keys):
        _write_high_words(keys, words)
        last = PLACE_BITS + bits - KEY_BITS
        found, _ = sort_words(words, spare, np.uint64(0), PLACE_BITS, last)
        order[:] = found
        if order_ties(keys, order):
            return order
    for first in range(0, bits, KEY_BITS):  # Keys of 64 bits are sorted by each half.
        if not _write_words(keys, order, first, words):
            break
        last = PLACE_BITS + min(KEY_BITS, bits - first)
        found, _ = sort_words(words, spare, np.uint64(0), PLACE_BITS, last)
        order = found.astype(np.uint32) if first == 0 else order[found.astype(np.uint32)]
    return order


@kernel()
def are_sorted(keys):
    """Return whether keys are sorted already, as places often are."""
    i = 1
    while i < keys.size and keys[i] >= keys[i - 1]:
        i += 1
    return i >= keys.size


@kernel()
def few_ties(keys):
    """Return whether a sample of keys of 64 bits has few pairs with equal higher halves."""
    half = np.uint64(KEY_BITS)
    step = max(keys.size // SAMPLES, 1)
    ties = 0
    for i in range(step, min(step * SAMPLES, keys.size), step):
        for k in range(0, i, step):
            ties += np.uint64(keys[i]) >> half == np.uint64(keys[k]) >> half
    return ties < SAMPLES


@kernel()
def _write_high_words(keys, words):
    """Write the higher half of each key of 64 bits, and its place."""
    for i in range(keys.size):
        high = np.uint64(keys[i]) >> np.uint64(KEY_BITS)
        words[i] = high << np.uint64(PLACE_BITS) | np.uint64(i)


@kernel()
def order_ties(keys, order):
    """Order keys by their lower halves where the higher ones, by which they are sorted, are equal.

    Returns False, with some ties unordered, if there is a long run of them, for which sorting by
    digits is faster. Floats that are no integers have few ties, so that half of the digits suffice.
    """
    half = np.uint64(KEY_BITS)
    first = 0
    before = np.uint64(0)
    for k in range(order.size):
        key = np.uint64(keys[np.uint64(order[k])])
        if key >> half != before >> half:
            first = k
        elif k - first >= MOST_TIES:
            return False
        before = key
        i = k
        while i > first:
            earlier = order[i - 1]
            if np.uint64(keys[np.uint64(earlier)]) <= key:
                break
            order[i - 1] = order[i]
            order[i] = earlier
            i -= 1
    return True


@kernel()
def _write_words(keys, order, first, words):
    """Write the half of each key from bit `first` on, and its place in the order so far.

    Returns whether there is anything to sort by.
    """
    if first == 0:
        for i in range(keys.size):
            words[i] = np.uint64(keys[i]) << np.uint64(PLACE_BITS) | np.uint64(i)
        return True
    some = np.uint64(0)
    for i in range(keys.size):
        half = np.uint64(keys[np.uint64(order[i])]) >> np.uint64(first)
        words[i] = half << np.uint64(PLACE_BITS) | np.uint64(i)
        some |= half
    return some != 0


@subroutine()
def counts_to_starts(counts):
    """Replace numbers of entries by the places at which they begin, one list after another."""
    start = 0
    for i in range(counts.size):
        count = counts[i]
        counts[i] = start
        start += count


@kernel()
def sort_words(words, spare, base, first, last):
    """Sort words by bits `first` to `last` of their distance from `base`; equal ones keep theirs.

    Returns the array in which they end up, and the other one. The words are sorted by one digit
    after another, starting with the last. With places in an array of their own, keys of 16 and 32
    bits took 1.2 to 1.7 times as long, and those of 64 bits about as long.
    """
    mask = np.uint64((1 << DIGIT_BITS) - 1)
    slots = np.empty(1 << DIGIT_BITS, np.int64)
    for shift in range(np.uint64(first), np.uint64(last), np.uint64(DIGIT_BITS)):
        slots[:] = 0
        for i in range(words.size):
            slots[((words[i] - base) >> shift) & mask] += 1
        if words.size and slots[((words[0] - base) >> shift) & mask] == words.size:
            continue
        counts_to_starts(slots)
        for i in range(words.size):
            slot = ((words[i] - base) >> shift) & mask
            spare[np.uint64(slots[slot])] = words[i]
            slots[slot] += 1
        words, spare = spare, words
    return words, spare
