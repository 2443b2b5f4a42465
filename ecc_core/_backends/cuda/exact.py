"""Curves at every level at which they change."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.compile import function

__all__ = ["EVERY_VALUE", "changes", "sum_events"]

# Types of which a curve at every value is faster than a list of events.
EVERY_VALUE = ("bool", "uint8", "int8", "uint16", "int16")
THREADS, EACH = 256, 16  # as in events.cu: samples of a thread


def sum_events(coefficients: Any, values: Any, nonzero: int, superlevel: bool) -> tuple[Any, Any]:
    """The levels at which the sum of coefficients by value changes, and the sums.

    `nonzero` coefficients are not zero. Values are float32, float64, or integers of 32 or 64 bits.
    """
    coefficients, values = coefficients.ravel(), cupy.ascontiguousarray(values).ravel()
    if values.itemsize == 8:
        where = cupy.flatnonzero(coefficients)
        found = values[where]
        order = cupy.argsort(found)
        return _sum_sorted(found[order], coefficients[where][order], superlevel)
    events = cupy.empty(nonzero, np.uint64)
    if nonzero:
        count = cupy.zeros(1, np.uint64)
        flip = np.uint32(1 << 31 if values.dtype.kind == "i" else 0)
        macros = (("FLOAT", int(values.dtype.kind == "f")), ("THREADS", THREADS))
        kernel = function("events", "list_events", values.device.id, macros)
        blocks = -(-values.size // (THREADS * EACH))
        room = np.uint64(nonzero)
        size = np.int64(values.size)
        kernel((blocks,), (THREADS,), (coefficients, values, size, flip, count, room, events))
        events.sort()
    amounts = (events & np.uint64(0xFF)).astype(np.int8) - np.int8(8)
    levels, sums = _sum_sorted(events >> np.uint64(8), amounts, superlevel)
    return _values(levels.astype(np.uint32), values.dtype), sums


def _sum_sorted(values: Any, amounts: Any, superlevel: bool) -> tuple[Any, Any]:
    """The sums of the amounts of values up to each at which they change, or from it on."""
    if values.size == 0:
        return values, cupy.zeros(0, np.int64)
    last = cupy.ones(values.size, np.bool_)
    cupy.not_equal(values[1:], values[:-1], out=last[:-1])
    sums = cupy.cumsum(amounts, dtype=np.int64)[last]
    return changes(values[last], sums, superlevel)


def changes(levels: Any, sums: Any, superlevel: bool) -> tuple[Any, Any]:
    """The levels at which sums up to them change; for superlevels with the sums from them on."""
    before = cupy.concatenate([cupy.zeros(1, np.int64), sums[:-1]])
    kept = sums != before
    if superlevel:
        return levels[kept], sums[-1] - before[kept]
    return levels[kept], sums[kept]


def _values(places: Any, dtype: np.dtype[Any]) -> Any:
    """The values at places among all of their type."""
    if dtype.kind == "u":
        return places
    top = np.uint32(1 << 31)
    if dtype.kind == "i":
        return (places ^ top).view(np.int32)
    return cupy.where(places & top, places ^ top, ~places).view(np.float32)
