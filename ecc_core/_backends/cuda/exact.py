"""Curves at every value where they change, from sorted lists of coefficients (exact.cu)."""

import itertools
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import on_host
from ecc_core._backends.cuda.calls import Call, is_set, plan_call
from ecc_core._request.levels import changes

# Types of which a curve at every value is faster than a list of events.
EVERY_VALUE = ("bool", "uint8", "int8", "uint16", "int16")
# The constants of exact.cu.
EVENT_THREADS = 256
SAMPLES_A_THREAD = 16
BUCKETS = 16
PIECE_BYTES = 20


def every_value(element: str) -> NDArray[Any]:
    """Return all values of a type of at most 16 bits."""
    if element == "bool":
        return np.array([False, True])
    info = np.iinfo(element)
    return np.arange(info.min, info.max + 1).astype(element)


def sum_events(
    coefficients: Any, values: Any, superlevel: bool, flag: Any
) -> tuple[Any, Any, bool]:
    """Return the levels at which the sum of coefficients by value changes, and the sums.

    Values are float32, float64, or integers of 32 or 64 bits. Waits for the device, and also
    returns whether `flag` is set.
    """
    coefficients = coefficients.ravel()
    values = cupy.ascontiguousarray(values).ravel()
    if values.itemsize == 8:
        where = cupy.flatnonzero(coefficients)
        found = values[where]
        order = cupy.argsort(found)
        found = found[order]
        amounts = coefficients[where][order]
        flagged = is_set(flag)
        if not found.size:
            return found, cupy.zeros(0, np.int64), flagged
        last = cupy.ones(found.size, np.bool_)
        cupy.not_equal(found[1:], found[:-1], out=last[:-1])
        sums = cupy.cumsum(amounts, dtype=np.int64)[last]
        if superlevel:
            sums = sums[-1] - cupy.concatenate([cupy.zeros(1, np.int64), sums[:-1]])
        return *changes(found[last], sums, superlevel), flagged
    events, starts, flagged = _list_events(coefficients, values, flag)
    if not events.size:
        return values[:0], cupy.zeros(0, np.int64), flagged
    return *_list_levels(events, starts, values.dtype, superlevel), flagged


def _launch_exact(name: str, dtype: np.dtype[Any], blocks: int, *arguments: Any) -> None:
    """Launch a kernel of exact.cu for values of a type."""
    given: list[list[int]] = []  # The words of each argument.
    for argument in arguments:
        if isinstance(argument, cupy.ndarray):
            given.append([argument.data.ptr])
        else:  # A structure is an array of its words.
            given.append(np.atleast_1d(argument).tolist())
    sizes = tuple(len(words) for words in given)
    call = _exact_call(name, dtype.kind == "f", sizes, cupy.cuda.runtime.getDevice())
    placed: list[tuple[int, int]] = []
    for place, words in zip(call.places, given, strict=True):
        placed += enumerate(words, place)
    call.launch(placed, blocks=blocks)


@programs.plan
def _exact_call(name: str, is_float: bool, sizes: tuple[int, ...], _device: int) -> Call:
    """Return a launch whose arguments have `sizes` words, all of which are to be set."""
    arguments = [np.zeros(size, np.int64) for size in sizes]
    return plan_call(
        "exact",
        name,
        macros={"FLOAT": int(is_float)},
        grid=(1,),
        threads=EVENT_THREADS,
        arguments=arguments,
    )


def _flip(dtype: np.dtype[Any]) -> np.uint32:
    return np.uint32(1 << 31 if dtype.kind == "i" else 0)


def _tiles(size: int) -> int:
    return ceil_div(size, EVENT_THREADS * SAMPLES_A_THREAD)


def _list_events(coefficients: Any, values: Any, flag: Any) -> tuple[Any, NDArray[Any], bool]:
    """Return sorted events, where each bucket starts and the last one ends, and the flag."""
    size = values.size
    dtype = values.dtype
    found = cupy.zeros(BUCKETS + 2, np.int64)
    taken = cupy.zeros(BUCKETS, np.int64)
    places = cupy.empty(size, np.uint32)
    amounts = cupy.empty(size, np.int8)
    given = coefficients, values, size, _flip(dtype), np.int32(values.data.ptr % 16 == 0)
    flag = 0 if flag is None else flag
    if size:
        _launch_exact("find_events", dtype, _tiles(size), *given, flag, found, places, amounts)
    *counts, count, flagged = on_host(found).tolist()
    starts = np.concatenate([[0], np.cumsum(counts)])
    events = cupy.empty(count, np.uint32)
    if count:
        _launch_exact(
            "sort_into_buckets", dtype, _tiles(count), places, amounts, starts, taken, events
        )
    for first, last in itertools.pairwise(starts.tolist()):
        if last > first + 1:
            events[first:last].sort()
    return events, starts, bool(flagged)


def _list_levels(
    events: Any, starts: NDArray[Any], dtype: np.dtype[Any], superlevel: bool
) -> tuple[Any, Any]:
    """Return the levels at which the sums of sorted events change, and the sums."""
    size = events.size
    tiles = _tiles(events.size)
    pieces = cupy.empty(tiles * PIECE_BYTES, np.uint8)
    before = cupy.empty((tiles + 1, 3), np.int64)
    given = events, starts
    _launch_exact("sum_tiles", dtype, tiles, *given, pieces)
    _launch_exact("add_tiles", dtype, 1, pieces, np.int32(tiles), before)
    levels = cupy.empty(size, dtype)
    values = cupy.empty(size, np.int64)
    results = before, _flip(dtype), levels, values, np.int32(superlevel)
    _launch_exact("list_levels", dtype, tiles, *given, *results)
    count = int(on_host(before[-1])[2])
    levels = levels[:count]
    values = values[:count]
    return (levels, values) if 2 * count > size else (levels.copy(), values.copy())
