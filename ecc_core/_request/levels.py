"""Levels: thresholds rounded to the dtype of the image, so that no comparison is inexact."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(slots=True, eq=False)
class Levels:
    """Distinct values of a dtype that represent thresholds."""

    values: Array
    """(m,), increasing. Point p has entered at ``values[j]`` if ``X(p) <= values[j]`` (superlevel
    ``>=``)."""
    entered: NDArray[np.int64]
    """(n,), for each threshold the number of levels that have entered."""
    superlevel: bool


def sortable(values: Array) -> Array:
    """Return values in a dtype that NumPy sorts; 2.4 cannot sort float16 on all processors."""
    return values.astype(np.float32) if values.dtype == np.float16 else values


def distinct_values(values: Array) -> Array:
    """Return the distinct values, increasing."""
    return np.unique(sortable(values)).astype(values.dtype)


def changes(levels: Any, values: Any, superlevel: bool) -> tuple[Any, Any]:
    """Return the levels at which values, (n,) or (k, n), change as points enter, and the values."""
    nothing = np.zeros_like(values[..., :1])
    before = [values[..., 1:], nothing] if superlevel else [nothing, values[..., :-1]]
    changed = values != np.concatenate(before, axis=-1)
    kept = changed.any(axis=0) if changed.ndim > 1 else changed
    return levels[kept], values[..., kept]


def round_to_levels(thresholds: Array, dtype: np.dtype[Any], superlevel: bool) -> Levels:
    """Round sorted thresholds down (superlevel: up) to values that `dtype` can hold.

    ``X <= t`` is ``X <= v`` for the largest v of the dtype that is at most t. A threshold beyond
    all values of the dtype has no level if nothing has entered there, and otherwise the last level.
    Booleans are stored as bytes, every one of which but 0 is True. So their levels are 0 and the
    largest byte, 255, or for superlevel sets the smallest True, 1.
    """
    if thresholds.dtype == np.bool_:
        thresholds = (thresholds.view(np.uint8) != 0).astype(np.uint8)
    if dtype == np.bool_:
        reaches, rounded = _round_to_integers(thresholds, np.dtype(np.uint8), superlevel)
        if superlevel:
            reaches &= rounded <= 1
        else:
            rounded = np.where(rounded > 0, np.uint8(255), rounded)
    elif dtype.kind in "iu":
        reaches, rounded = _round_to_integers(thresholds, dtype, superlevel)
    else:
        rounded = _round_to_floats(thresholds, dtype, superlevel)
        reaches = np.ones(thresholds.size, dtype=np.bool_)
    if thresholds.size == 0 or (reaches.all() and (rounded[1:] != rounded[:-1]).all()):
        entered = np.arange(1, rounded.size + 1)
        return Levels(rounded, entered[::-1].copy() if superlevel else entered, superlevel)
    rounded = rounded[reaches]
    first = np.ones(rounded.size, dtype=np.bool_)
    first[1:] = rounded[1:] != rounded[:-1]
    values = rounded[first]
    index = np.cumsum(first) - 1
    entered = np.zeros(thresholds.size, dtype=np.int64)
    entered[reaches] = values.size - index if superlevel else index + 1
    return Levels(values, entered, superlevel)


def _round_to_integers(
    thresholds: Array, dtype: np.dtype[Any], superlevel: bool
) -> tuple[NDArray[np.bool_], Array]:
    info = np.iinfo(dtype)
    low = int(info.min)
    high = int(info.max)
    if thresholds.dtype.kind == "f":
        wide = thresholds.astype(np.float64)
        whole = np.ceil(wide) if superlevel else np.floor(wide)
        # float(high) may be rounded up to high + 1, which is no value of the dtype.
        above = whole >= float(high)
        below = whole < float(low)
        inside = np.where(above | below, 0, whole).astype(dtype)
        beyond = whole > float(high) if float(high) == high else above
    else:
        above = thresholds > high
        below = thresholds < low
        inside = np.where(above | below, 0, thresholds).astype(dtype)
        beyond = above
    rounded = np.where(above, dtype.type(high), np.where(below, dtype.type(low), inside))
    return ~(beyond if superlevel else below), rounded.astype(dtype)


def _round_to_floats(thresholds: Array, dtype: np.dtype[Any], superlevel: bool) -> Array:
    native = dtype.newbyteorder("=")
    if thresholds.dtype == native:
        return thresholds.copy()
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(native)
    if thresholds.dtype.kind == "f":
        wrong = rounded < thresholds if superlevel else rounded > thresholds
    else:
        # Python compares an int with a float exactly.
        is_beyond = operator.lt if superlevel else operator.gt
        beyond = map(is_beyond, rounded.tolist(), thresholds.tolist())
        wrong = np.array(list(beyond), dtype=np.bool_)
    away = native.type(np.inf if superlevel else -np.inf)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(wrong, np.nextafter(rounded, away), rounded)


def excluding(levels: Any, values: Any, superlevel: bool, search: Callable[..., Any]) -> Any:
    """Return for each value the number of increasing levels at which it has not entered.

    `search` is the function `searchsorted` of the library of both arrays.
    """
    if superlevel:
        return levels.shape[0] - search(levels, values, side="right")
    return search(levels, values, side="left")


def reached_at(sums: Any, entered: NDArray[np.int64], library: Any = np) -> Any:
    """Return sums at thresholds, (..., n), given those up to each level, in the order of entry.

    `entered` are the numbers of levels that have entered at each threshold.
    """
    nothing = library.zeros((*sums.shape[:-1], 1), np.int64)
    known = library.concatenate([nothing, sums], axis=-1)
    return library.take(known, library.asarray(entered), axis=-1)


def count_entered(values: Array, levels: Levels) -> NDArray[np.int64]:
    """Count the values, of the levels' dtype, that have entered at each threshold.

    The values are sorted, which takes 3 to 7 ns a value; a search for each value among the levels
    takes 60 ns.
    """
    ordered = np.sort(sortable(values))
    if levels.superlevel:
        reached = values.size - np.searchsorted(ordered, levels.values[::-1], side="left")
    else:
        reached = np.searchsorted(ordered, levels.values, side="right")
    return np.append(0, reached)[levels.entered]


def count_alive(births: Array, deaths: Array, levels: Levels) -> NDArray[np.int64]:
    """Count the classes that have been born and have not died at each threshold.

    `births` are of all classes, and `deaths` of those that die.
    """
    return count_entered(births, levels) - count_entered(deaths, levels)


def last_value(dtype: np.dtype[Any], superlevel: bool) -> Any:
    """Return the last value of a dtype in the order in which values enter."""
    if dtype.kind == "f":
        return -np.inf if superlevel else np.inf
    if dtype.kind == "b":
        return not superlevel
    return np.iinfo(dtype).min if superlevel else np.iinfo(dtype).max
