"""Curves at every level at which they change."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.recipe import by_value

__all__ = ["EVERY_VALUE", "changes", "sum_events"]

Array = NDArray[Any]

# Types of which a curve at every value is faster than a list of events.
EVERY_VALUE = ("bool", "uint8", "int8", "uint16", "int16")
THREADS, EACH, BUCKETS = 256, 16, 16  # as in exact.cu: samples of a thread


def sum_events(coefficients: Any, values: Any, superlevel: bool) -> tuple[Any, Any]:
    """The levels at which the sum of coefficients by value changes, and the sums.

    Values are float32, float64, or integers of 32 or 64 bits. Waits for the device.
    """
    coefficients, values = coefficients.ravel(), cupy.ascontiguousarray(values).ravel()
    if values.itemsize == 8:
        where = cupy.flatnonzero(coefficients)
        found = values[where]
        order = cupy.argsort(found)
        return _sum_sorted(found[order], coefficients[where][order], superlevel)
    kernels = _Kernels(values.dtype.kind, superlevel, values.device.id)
    events, starts = _list_events(coefficients, values, kernels)
    if not events.size:
        return values[:0], cupy.zeros(0, np.int64)
    return _list_levels(events, starts, values.dtype, kernels)


class _Kernels(NamedTuple):
    """The kernels of exact.cu for a kind of values."""

    kind: str
    superlevel: bool
    device: int

    def launch(self, name: str, blocks: int, *arguments: Any) -> None:
        macros = ("FLOAT", int(self.kind == "f")), ("THREADS", THREADS)
        function("exact", name, self.device, macros)((blocks,), (THREADS,), arguments)

    @property
    def flip(self) -> np.uint32:
        return np.uint32(1 << 31 if self.kind == "i" else 0)


def _list_events(coefficients: Any, values: Any, kernels: _Kernels) -> tuple[Any, Array]:
    """Sorted events, and where each bucket of them starts and the last one ends."""
    counts = cupy.zeros((2, BUCKETS), np.int64)
    events = cupy.empty(0, np.uint32)
    starts = np.zeros(BUCKETS + 1, np.int64)
    blocks = max(1, -(-values.size // (THREADS * EACH)))
    for write in (False, True):
        arguments = (coefficients, values, np.int64(values.size), kernels.flip)
        rest = counts[int(write)], by_value(starts), events, np.int32(write)
        kernels.launch("list_events", blocks, *arguments, *rest)
        if not write:
            np.cumsum(counts[0].get(), out=starts[1:])
            events = cupy.empty(int(starts[-1]), np.uint32)
    for first, last in itertools.pairwise(starts.tolist()):
        if last > first + 1:
            events[first:last].sort()
    return events, starts


def _list_levels(
    events: Any, starts: Array, dtype: np.dtype[Any], kernels: _Kernels
) -> tuple[Any, Any]:
    """The levels at which the sums of sorted events change, and the sums."""
    tiles = -(-events.size // (THREADS * EACH))
    sums, places = cupy.empty(tiles, np.int64), cupy.empty(tiles, np.int64)
    tails, ends = cupy.empty(tiles, np.int32), cupy.empty(tiles, np.int32)
    given = events, by_value(starts)
    kernels.launch("sum_tiles", tiles, *given, sums, tails, ends)
    sums = cupy.cumsum(sums)
    levels, values = cupy.empty(0, dtype), cupy.empty(0, np.int64)
    for write in (False, True):
        results = places, kernels.flip, levels, values
        flags = np.int32(kernels.superlevel), np.int32(write)
        kernels.launch("list_levels", tiles, *given, sums, tails, ends, *results, *flags)
        if not write:
            places = cupy.cumsum(places)
            count = int(places[-1])
            levels, values = cupy.empty(count, dtype), cupy.empty(count, np.int64)
    return levels, values


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
