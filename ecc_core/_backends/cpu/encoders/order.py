"""Unsigned integers in the order of values of any dtype, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import subroutine

Array = NDArray[Any]


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned integers with as many bits."""
    return np.dtype(f"u{dtype.itemsize}")


def bits_to_invert(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return what :func:`ordered_key` inverts: the sign, and all bits of a negative value.

    Both are unsigned integers, and 0 for unsigned dtypes.
    """
    of = unsigned(dtype).type
    sign = of(0 if dtype.kind in "bu" else 1 << (8 * dtype.itemsize - 1))
    return sign, of(np.iinfo(of).max) if dtype.kind == "f" else sign


@subroutine()
def ordered_key(bits, sign, negative):
    """Return the bits of a value as an integer in the order of the values; -0.0 precedes 0.0."""
    return bits ^ negative if bits & sign else bits | sign


def ordered_keys(values: Array) -> Array:
    """Return unsigned integers in the order of the values; -0.0 comes before 0.0."""
    sign, negative = bits_to_invert(values.dtype)
    keys = values.view(unsigned(values.dtype))
    if values.dtype.kind != "f":
        return np.asarray(keys ^ sign)
    return np.asarray(np.where(keys & sign, keys ^ negative, keys | sign))


def values_of(keys: Array, dtype: np.dtype[Any]) -> Array:
    """Return the values of a dtype that have the given :func:`ordered_keys`."""
    sign, negative = bits_to_invert(dtype)
    bits = keys.astype(unsigned(dtype), copy=False)
    if dtype.kind != "f":
        return np.asarray(bits ^ sign).view(dtype)
    return np.asarray(np.where(bits & sign, bits ^ sign, bits ^ negative)).view(dtype)
