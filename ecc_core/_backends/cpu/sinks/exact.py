"""Levels at which a curve changes: the points with a coefficient, sorted by their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["sum_levels"]

Array = NDArray[Any]

UNSIGNED, SIGNED, FLOAT = 0, 1, 2
SHIFT = np.uint64(8)  # of a key that leaves room for a coefficient
ZERO = 128  # the coefficient 0 there
DIGITS = 1 << 11  # of a sort


@kernel()
def _ordered_key(bits: Any, kind: Any, sign: Any) -> Any:
    """A key in the order of the values; -0.0 is 0.0."""
    if kind == UNSIGNED:
        return bits
    if kind == SIGNED:
        return bits ^ sign
    size = bits & ~sign
    return ~bits & (sign | (sign - np.uint64(1))) if size and bits & sign else size | sign


@kernel()
def _list_changes(values: Any, counts: Any, kind: Any, sign: Any, keys: Any, changes: Any) -> Any:
    """List the keys of the points whose count is not 0.

    The counts are read from memory that no one else writes to, so as many are found as were
    counted. They follow the keys in the lowest byte if `changes` is empty.
    """
    found = 0
    words = counts.view(np.uint64)
    for word in range(words.size):
        if words[word] == 0:  # eight points without a coefficient
            continue
        for i in range(8 * word, min(8 * word + 8, values.size)):
            if counts[i] != 0:
                key = _ordered_key(np.uint64(values[i]), kind, sign)
                if changes.size:
                    keys[found], changes[found] = key, counts[i]
                else:
                    keys[found] = key << SHIFT | np.uint64(counts[i] + ZERO)
                found += 1
    return found


@kernel()
def _sort_digit(source: Any, target: Any, shift: Any) -> None:
    """Sort by one digit, keeping the order of equal ones."""
    last = np.uint64(DIGITS - 1)
    ends = np.zeros(DIGITS, np.int64)
    for i in range(source.size):
        ends[(source[i] >> shift) & last] += 1
    start = 0
    for digit in range(DIGITS):
        start, ends[digit] = start + ends[digit], start
    for i in range(source.size):
        digit = (source[i] >> shift) & last
        target[np.uint64(ends[digit])] = source[i]
        ends[digit] += 1


def _sorted(packed: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Keys of so many bits, above the coefficients, in increasing order."""
    spare = np.empty_like(packed)
    for shift in range(int(SHIFT), int(SHIFT) + bits, DIGITS.bit_length() - 1):
        _sort_digit(packed, spare, np.uint64(shift))
        packed, spare = spare, packed
    return packed


def sum_levels(image: Array, counts: NDArray[np.int8]) -> tuple[Array, NDArray[np.int64]]:
    """The values of an image, increasing, whose counts do not add up to 0, and these sums."""
    dtype = image.dtype.newbyteorder("=")
    bits = np.dtype(f"u{dtype.itemsize}")
    values = np.ascontiguousarray(image, dtype).reshape(-1).view(bits)
    padded = np.zeros(-(-counts.size // 8) * 8, np.int8)
    padded[: counts.size] = counts.reshape(-1)
    found = int(np.count_nonzero(padded))
    kind = FLOAT if dtype.kind == "f" else SIGNED if dtype.kind == "i" else UNSIGNED
    sign = np.uint64(1 << (8 * dtype.itemsize - 1))
    keys = np.empty(found, np.uint64)
    wide = dtype.itemsize == 8
    changes = np.empty(found if wide else 0, np.int8)
    _list_changes(values, padded, kind, sign, keys, changes)
    if wide:
        order = np.argsort(keys)
        keys, sums = keys[order], changes[order].astype(np.int64)
    else:
        keys = _sorted(keys, 8 * dtype.itemsize)
        sums = (keys & np.uint64(255)).astype(np.int64) - ZERO
        keys >>= SHIFT
    if found == 0:
        return np.empty(0, dtype), np.empty(0, np.int64)
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sums = np.add.reduceat(sums, first)
    keys = keys[first][sums != 0].astype(bits)
    return _values(keys, dtype), sums[sums != 0]


def _values(keys: Array, dtype: np.dtype[Any]) -> Array:
    """The values of ordered keys."""
    sign = keys.dtype.type(1 << (8 * dtype.itemsize - 1))
    if dtype.kind == "f":
        return np.where(keys & sign, keys ^ sign, ~keys).view(dtype)
    return (keys ^ sign if dtype.kind == "i" else keys).view(dtype)
