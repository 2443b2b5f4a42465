"""The order in which points enter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.links import bare
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

DIGIT = 11  # bits, by which keys are sorted at once


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
        values = values + values.dtype.type(0)  # no -0.0
        values[np.isnan(values)] = np.nan  # without a sign
    return sort_keys(ordered_keys(values))


def distinct(values: Array) -> tuple[Array, Array]:
    """Return the distinct native values, increasing, and the number of each value among them.

    As ``numpy.unique``, which is slower, and in NumPy 2.4 wrong for float16 on some processors.
    """
    order = stable_order(values)
    ordered = values[order]
    first = np.ones(order.size, np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    numbers = np.empty(order.size, np.uint32)
    numbers[order] = np.cumsum(first) - 1
    return ordered[first], numbers


def sort_keys(keys: Array, bits: int | None = None) -> Array:
    """Return the order of unsigned integers of so many bits; equal ones keep theirs."""
    index: Any = np.uint32 if keys.size < 1 << 32 else np.int64
    digits = -(-(bits or 8 * keys.itemsize) // DIGIT)
    starts = np.zeros((digits, 1 << DIGIT), index)
    order, spare = np.arange(keys.size, dtype=index), scratch.take("order", keys.size, index)
    sorted_keys, spare_keys = (
        scratch.take(name, keys.size, keys.dtype) for name in ("sorted keys", "spare keys")
    )
    sorted_keys[:] = keys
    if _sort(sorted_keys, order, spare_keys, spare, starts):
        order[:] = spare
    return order


@kernel()
def _sort(keys: Any, order: Any, spare_keys: Any, spare: Any, starts: Any) -> Any:
    """Sort keys and their order by one digit after another, the last one first.

    Returns whether they end up in the spare arrays.
    """
    moved = False
    mask = np.uint64(starts.shape[1] - 1)
    for i in range(keys.size):
        key = np.uint64(keys[i])
        for digit in range(starts.shape[0]):
            starts[digit, key & mask] += 1
            key >>= np.uint64(DIGIT)
    for digit in range(starts.shape[0]):
        slots, shift = bare(starts[digit]), np.uint64(DIGIT * digit)
        first = (np.uint64(keys[0]) >> shift) & mask if keys.size else np.uint64(0)
        if slots[first] == keys.size:
            continue
        total = np.int64(0)
        for slot in range(slots.size):
            slots[slot], total = total, total + slots[slot]
        source, target = bare(keys), bare(spare_keys)
        listed, sorted_ = bare(order), bare(spare)
        for i in range(keys.size):
            own = (np.uint64(source[i]) >> shift) & mask
            at = slots[own]
            slots[own] = at + 1
            target[at], sorted_[at] = source[i], listed[i]
        keys, spare_keys, order, spare = spare_keys, keys, spare, order
        moved = not moved
    return moved
