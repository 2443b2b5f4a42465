"""The order in which points enter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.order import ordered_keys

__all__ = ["entry_order", "entry_values", "stable_order"]

Array = NDArray[Any]


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
