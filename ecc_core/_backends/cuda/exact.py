"""Curves at every level at which they change."""

from __future__ import annotations

import itertools
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import Reply, plan_call

Array = NDArray[Any]

# Types of which a curve at every value is faster than a list of events.
EVERY_VALUE = ("bool", "uint8", "int8", "uint16", "int16")
THREADS, EACH, BUCKETS = 256, 16, 16  # as in exact.cu: samples of a thread
PIECE = 20  # bytes


def sum_events(
    coefficients: Any, values: Any, superlevel: bool, flag: Any
) -> tuple[Any, Any, bool]:
    """Return the levels at which the sum of coefficients by value changes, and the sums.

    Values are float32, float64, or integers of 32 or 64 bits. Waits for the device, and also
    returns whether `flag` is set.
    """
    coefficients, values = coefficients.ravel(), cupy.ascontiguousarray(values).ravel()
    if values.itemsize == 8:
        where = cupy.flatnonzero(coefficients)
        found = values[where]
        order = cupy.argsort(found)
        return *_sum_sorted(found[order], coefficients[where][order], superlevel), is_set(flag)
    events, starts, flagged = _list_events(coefficients, values, flag)
    if not events.size:
        return values[:0], cupy.zeros(0, np.int64), flagged
    return *_list_levels(events, starts, values.dtype, superlevel), flagged


def is_set(flag: Any) -> bool:
    """Return whether a flag is set: a Reply, an array on the device, or None. Waits for both."""
    if not isinstance(flag, Reply):
        return flag is not None and bool(on_host(flag).any())
    (found,) = flag.wait(1)
    flag.release()
    return bool(found)


def _launch(name: str, dtype: np.dtype[Any], blocks: int, *arguments: Any) -> None:
    """Launch a kernel of exact.cu for values of a type."""
    macros = {"FLOAT": int(dtype.kind == "f")}
    plan_call("exact", name, macros, (blocks,), THREADS, arguments).launch()


def _flip(dtype: np.dtype[Any]) -> np.uint32:
    return np.uint32(1 << 31 if dtype.kind == "i" else 0)


def _tiles(size: int) -> int:
    return -(-size // (THREADS * EACH))


def _list_events(coefficients: Any, values: Any, flag: Any) -> tuple[Any, Array, bool]:
    """Return sorted events, where each bucket starts and the last one ends, and the flag."""
    size, dtype = values.size, values.dtype
    found, taken = cupy.zeros(BUCKETS + 2, np.int64), cupy.zeros(BUCKETS, np.int64)
    places, amounts = cupy.empty(size, np.uint32), cupy.empty(size, np.int8)
    given = coefficients, values, size, _flip(dtype), np.int32(values.data.ptr % 16 == 0)
    flag = 0 if flag is None else flag
    if size:
        _launch("find_events", dtype, _tiles(size), *given, flag, found, places, amounts)
    *counts, count, flagged = found.get().tolist()
    starts = np.concatenate([[0], np.cumsum(counts)])
    events = cupy.empty(count, np.uint32)
    if count:
        listed = places, amounts, starts, taken, events
        _launch("sort_into_buckets", dtype, _tiles(count), *listed)
    for first, last in itertools.pairwise(starts.tolist()):
        if last > first + 1:
            events[first:last].sort()
    return events, starts, bool(flagged)


def _list_levels(
    events: Any, starts: Array, dtype: np.dtype[Any], superlevel: bool
) -> tuple[Any, Any]:
    """Return the levels at which the sums of sorted events change, and the sums."""
    size, tiles = events.size, _tiles(events.size)
    pieces, before = cupy.empty(tiles * PIECE, np.uint8), cupy.empty((tiles + 1, 3), np.int64)
    given = events, starts
    _launch("sum_tiles", dtype, tiles, *given, pieces)
    _launch("add_tiles", dtype, 1, pieces, np.int32(tiles), before)
    levels, values = cupy.empty(size, dtype), cupy.empty(size, np.int64)
    results = before, _flip(dtype), levels, values, np.int32(superlevel)
    _launch("list_levels", dtype, tiles, *given, *results)
    count = int(before[-1].get()[2])
    levels, values = levels[:count], values[:count]
    return (levels, values) if 2 * count > size else (levels.copy(), values.copy())


def _sum_sorted(values: Any, amounts: Any, superlevel: bool) -> tuple[Any, Any]:
    """The sums of the amounts of values up to each at which they change, or from it on."""
    if values.size == 0:
        return values, cupy.zeros(0, np.int64)
    last = cupy.ones(values.size, np.bool_)
    cupy.not_equal(values[1:], values[:-1], out=last[:-1])
    sums = cupy.cumsum(amounts, dtype=np.int64)[last]
    if superlevel:
        sums = sums[-1] - cupy.concatenate([cupy.zeros(1, np.int64), sums[:-1]])
    return changes(values[last], sums, superlevel)


def changes(levels: Any, sums: Any, superlevel: bool) -> tuple[Any, Any]:
    """The levels at which sums up to them, or from them on for superlevels, change, and these."""
    zero = cupy.zeros(1, np.int64)
    before = cupy.concatenate([sums[1:], zero] if superlevel else [zero, sums[:-1]])
    kept = sums != before
    return levels[kept], sums[kept]
