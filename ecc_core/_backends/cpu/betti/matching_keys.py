"""The values of two images as unsigned integers, and keys in which both are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import bits_to_invert, ordered_key, unsigned
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import distinct, entry_values, narrowed

Array = NDArray[Any]

HALF_KEY = 32
"""Bits of a level, so that two of them are one key."""
INFINITY = np.float64(np.inf).view(np.uint64)
"""The bits of non-negative numbers are below, and in their order."""


@kernel()
def write_keys(own, other, union, keys):
    """Write the levels of the union, and keys of two levels for both images and the union."""
    own = bare(own)
    other = bare(other)
    union = bare(union)
    first = keys[0]
    second = keys[1]
    third = keys[2]
    for i in range(own.size):
        one = np.uint64(own[i])
        two = np.uint64(other[i])
        # Branches on levels in no order would be mispredicted.
        swapped = (one ^ two) * np.uint64(two < one)
        low = one ^ swapped
        high = two ^ swapped
        first[i] = one << np.uint64(HALF_KEY) | two
        second[i] = two << np.uint64(HALF_KEY) | one
        third[i] = low << np.uint64(HALF_KEY) | high
        union[i] = low


def levels_of(prediction: Array, target: Array, superlevel: bool) -> tuple[Array, Array]:
    """Return the values of two images as unsigned integers of 32 bits."""
    dtype = prediction.dtype
    if 8 * dtype.itemsize > HALF_KEY:
        values = np.concatenate([prediction.reshape(-1), target.reshape(-1)])
        entering = entry_values(values, superlevel)
        if dtype.kind == "f":
            entering = entering + dtype.type(0)  # no -0.0
        levels = distinct(entering)[1]
        return levels[: prediction.size], levels[prediction.size :]
    flip = np.uint32((1 << 8 * dtype.itemsize) - 1 if superlevel else 0)
    if dtype.kind == "b":
        flip = np.uint32(superlevel)
    sign, negative = map(np.uint32, bits_to_invert(dtype))
    found = []
    for image in (prediction, target):
        bits = np.ascontiguousarray(image).reshape(-1).view(unsigned(dtype))
        levels = np.empty(image.size, np.uint32)
        write_levels(bits, sign, negative, dtype.kind == "f", flip, levels)
        found.append(levels)
    return found[0], found[1]


def values_below_none(keys: Array) -> Array:
    """Return values in the order of keys of 64 bits, and of a type that has one beyond them.

    Points that never enter need it. Floats are in the order of their bits, and come before NaN.
    """
    if keys.max(initial=0) < INFINITY:
        return keys.view(np.float64)
    return narrowed(keys, True)


@kernel()
def write_levels(bits, sign, negative, floating, flip, levels):
    """Write the order of values, which is opposite with `flip`, the bits of the dtype."""
    bits = bare(bits)
    levels = bare(levels)
    for i in range(bits.size):
        own = np.uint32(bits[i])
        if floating and own == sign:  # -0.0
            own = np.uint32(0)
        levels[i] = ordered_key(own, sign, negative) ^ flip
