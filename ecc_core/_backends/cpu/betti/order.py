"""The order in which values enter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.cells import ordered_keys

__all__ = ["entry_values", "stable_order"]

Array = NDArray[Any]


def entry_values(image: Array, superlevel: bool) -> Array:
    """Return values that grow in the order in which points enter."""
    native = image.astype(image.dtype.newbyteorder("="), copy=False)
    if not superlevel:
        return native
    return -native if native.dtype.kind == "f" else ~native


def stable_order(values: Array) -> Array:
    """Return the order of native values; equal ones keep theirs."""
    if values.itemsize > 4 or values.size >= 1 << 32:
        return np.argsort(values, kind="stable")
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # no -0.0
    # Integers that contain the index are sorted several times as fast as an index.
    keys = ordered_keys(values).astype(np.uint64)
    keys <<= 32
    keys |= np.arange(keys.size, dtype=np.uint64)
    keys.sort()
    return keys.astype(np.uint32)
