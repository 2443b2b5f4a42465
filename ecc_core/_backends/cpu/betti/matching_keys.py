"""The values of two images as unsigned integers, and keys in which both are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import bits_to_invert, ordered_key, unsigned
from ecc_core._backends.cpu.llvm import bare
from ecc_core._backends.cpu.order import distinct, entry_values, narrowed
from ecc_core._backends.cpu.sources import scratch

Array = NDArray[Any]

HALF_KEY = 32
"""Bits of a level; two levels make a key."""
NARROW_HALF = 8
"""Bits of a level if all levels are small."""
LEVELS_AT_ONCE = 4096
"""Levels that are compared before a loop may end."""
INFINITY = np.float64(np.inf).view(np.uint64)
"""The bits of finite numbers without a sign are smaller, and in the order of the numbers."""


def ordering_keys(own: Array, other: Array, narrow: bool) -> tuple[Array, Array]:
    """Return the levels of the union, and keys of two levels for both images and the union, (3, n).

    Keys are as short as the levels allow if they may be `narrow`, since it takes as long to compare
    two keys of 64 bits as eight of 16. Both arrays lie in the thread's memory.
    """
    most = max(own.max(), other.max())
    bits = int(most).bit_length()
    half = NARROW_HALF if narrow and bits <= NARROW_HALF else HALF_KEY
    dtype = np.uint16 if half == NARROW_HALF else np.uint64
    keys = scratch.take("keys of both images", 3 * own.size, dtype).reshape(3, -1)
    union = scratch.take("levels of the union", own.size, own.dtype)
    write_keys(own, other, np.uint64(half), union, keys)
    return union, keys


@kernel()
def write_keys(own, other, half, union, keys):
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
        first[i] = one << half | two
        second[i] = two << half | one
        third[i] = low << half | high
        union[i] = low


def levels_of(prediction: Array, target: Array, superlevel: bool) -> tuple[Array, Array]:
    """Return the values of two images as unsigned integers of 32 bits."""
    dtype = prediction.dtype
    if 8 * dtype.itemsize > HALF_KEY:
        values = np.concatenate([prediction.reshape(-1), target.reshape(-1)])
        entering = entry_values(values, superlevel)
        if dtype.kind == "f":
            entering = entering + dtype.type(0)  # -0.0 becomes 0.0.
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


def from_zero(own: Array, other: Array) -> tuple[Array, Array]:
    """Return levels of the same order that begin with 0; of masks of any dtype they are 0 and 1.

    Those of masks are changed in place.
    """
    least = min(own.min(), other.min())
    most = max(own.max(), other.max())
    if has_two_values(own, least, most) and has_two_values(other, least, most):
        for levels in (own, other):
            number_two_values(levels, least)
        return own, other
    return own - least, other - least


@kernel()
def has_two_values(levels, least, most):
    """Return whether all levels are one of two."""
    levels = bare(levels)
    for first in range(0, levels.size, LEVELS_AT_ONCE):
        others = np.uint32(0)  # It is as wide as levels, so that LLVM compares them by vectors.
        for level in levels[first : first + LEVELS_AT_ONCE]:
            others |= np.uint32((level != least) & (level != most))
        if others:
            return False
    return True


@kernel()
def number_two_values(levels, least):
    """Replace the least level by 0 and others by 1."""
    levels = bare(levels)
    for i in range(levels.size):
        levels[i] = levels[i] != least


def values_below_none(keys: Array) -> Array:
    """Return values in the order of keys of 64 bits, whose dtype has a value beyond them.

    Points that never enter need that value. Keys that are read as floats keep their order, and come
    before NaN.
    """
    if keys.max(initial=0) < INFINITY:
        return keys.view(np.float64)
    return narrowed(keys, True)


@kernel()
def write_levels(bits, sign, negative, floating, flip, levels):
    """Write integers in the order of values; `flip`, all bits of the dtype or 0, reverses it."""
    bits = bare(bits)
    levels = bare(levels)
    for i in range(bits.size):
        own = np.uint32(bits[i])
        if floating and own == sign:  # These are the bits of -0.0.
            own = np.uint32(0)
        levels[i] = ordered_key(own, sign, negative) ^ flip
