"""How the values of an image become keys, and how the histogram of the keys becomes a curve.

A point's *rank* counts the levels that it enters after: 0 enters first, ``levels`` never. The key
of the V-construction is the rank, that of the T-construction ``top - rank``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu import loaders
from ecc_core._thresholds import Levels, round_to_levels

__all__ = ["Plan", "coefficient_plan", "cumulate", "curve_plans"]

Array = NDArray[Any]
Construction = Literal["V", "T"]
Loader = Callable[..., Any]

MAX_CELLS = 1 << 16
KEPT_BYTES = 1 << 15  # of thresholds, up to which plans are kept
DIRECT_16_BIT = 1 << 17  # points from which a histogram of all 16-bit values pays


class Plan(NamedTuple):
    """One way to stage an image as keys.

    Attributes
    ----------
    load : callable
        ``load(address, strides, extents, keys, at, steps) -> (has NaN, key did not fit)``.
    key_dtype : dtype
        Unsigned integers.
    top : int
        Largest key; the histogram has ``top + 1`` bins.
    entered : int64 array
        For each threshold, the number of ranks that have entered.
    never : int
        Key of a point that never enters.
    """

    load: Loader
    key_dtype: np.dtype[Any]
    top: int
    entered: NDArray[np.int64]
    never: int


class EvenScale(NamedTuple):
    """Settings of :func:`ecc_core._backends.cpu.loaders.bin_evenly`."""

    slope: float
    offset: float
    turn: float
    turned: int


class Cells(NamedTuple):
    """Settings of :func:`ecc_core._backends.cpu.loaders.bin_by_search`."""

    origin: float
    slope: float
    starts: NDArray[np.int32]
    depth: np.int32


def curve_plans(
    dtype: np.dtype[Any],
    thresholds: Array,
    superlevel: bool,
    construction: Construction,
    *,
    masked: bool,
    points: int,
) -> list[Plan]:
    """Plans for a curve at sorted thresholds, to be tried in turn until one's keys fit."""
    options = (dtype, superlevel, construction, masked, points >= DIRECT_16_BIT)
    if thresholds.nbytes > KEPT_BYTES:
        return _plans(thresholds, *options)
    return _kept_plans(thresholds.dtype, thresholds.tobytes(), *options)


@lru_cache(maxsize=16)
def _kept_plans(kind: np.dtype[Any], data: bytes, *options: Any) -> list[Plan]:
    """Small images that come one by one would wait for plans of the same thresholds again."""
    return _plans(np.frombuffer(data, kind), *options)


def _plans(
    thresholds: Array,
    dtype: np.dtype[Any],
    superlevel: bool,
    construction: Construction,
    masked: bool,
    large: bool,
) -> list[Plan]:
    levels = round_to_levels(thresholds, dtype, superlevel)
    if dtype.itemsize <= 2:
        direct = dtype.kind in "biu" and not masked
        if direct and (dtype.itemsize == 1 or large):
            return [_direct(dtype, levels, construction)]
        return [_table(dtype, levels, construction)]
    count = levels.values.size
    scale = _even_scale(levels)
    plans = []
    # As many levels as keys leave none for points that never enter; often there are none.
    if count == 256 and not masked and not (scale is None and levels.superlevel):
        plans.append(_binned(levels, construction, scale, top=count - 1))
    plans.append(_binned(levels, construction, scale, top=count))
    return plans


def cumulate(plan: Plan, histograms: Array, construction: Construction, out: Array) -> None:
    """Add the curves of histograms of keys, one a row, to `out`: sums in the order of entry."""
    ranks = histograms if construction == "V" else histograms[:, ::-1]
    # Row by row: a temporary of all rows would be as large as the result.
    reached = np.zeros(ranks.shape[1] + 1, np.int64)
    for row, curve in zip(ranks, out, strict=True):
        np.cumsum(row, out=reached[1:])
        curve += reached[plan.entered]


def _key_dtype(top: int) -> np.dtype[Any]:
    return np.dtype(np.uint8 if top < 1 << 8 else np.uint16 if top < 1 << 16 else np.uint32)


def _never(construction: Construction, top: int) -> int:
    return top if construction == "V" else 0


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")


def _token(dtype: np.dtype[Any]) -> Array:
    """An empty array that tells a loader the dtype to read."""
    return np.empty(0, dtype)


def _bias(dtype: np.dtype[Any]) -> int:
    """What turns the bits of an integer into its ordinal, by exclusive or."""
    return 1 << (8 * dtype.itemsize - 1) if dtype.kind == "i" else 0


def _direct(dtype: np.dtype[Any], levels: Levels, construction: Construction) -> Plan:
    """Small integers as they are: every value is a level."""
    unsigned = _unsigned(dtype)
    top = int(np.iinfo(unsigned).max)
    ordinals = levels.values.view(unsigned).astype(np.int64) ^ _bias(dtype)
    # reached[k]: values that have entered once k levels are reached
    if levels.superlevel:
        reached = np.concatenate([[0], top + 1 - ordinals[::-1]])
    else:
        reached = np.concatenate([[0], ordinals + 1])
    descending = levels.superlevel != (construction == "T")
    flip = unsigned.type(_bias(dtype) ^ (top if descending else 0))
    token, zero = _token(unsigned), unsigned.type(0)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        loaders.copy_keys(address, token, *place, flip, zero)
        return False, False

    return Plan(load, unsigned, top, reached[levels.entered], _never(construction, top))


def _table(dtype: np.dtype[Any], levels: Levels, construction: Construction) -> Plan:
    """8- and 16-bit values through a table of the keys of all of them."""
    unsigned = _unsigned(dtype)
    top = levels.values.size
    every = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32).astype(unsigned)
    values = every.astype(np.bool_) if dtype.kind == "b" else every.view(dtype)
    if levels.superlevel:
        ranks = top - np.searchsorted(levels.values, values, side="right")
    else:
        ranks = np.searchsorted(levels.values, values, side="left")
    infinity = unsigned.type(np.iinfo(unsigned).max)
    if dtype.kind == "f":
        ranks[np.isnan(values)] = top
        infinity = np.float16(np.inf).view(unsigned)
    keys = (ranks if construction == "V" else top - ranks).astype(_key_dtype(top))
    token = _token(unsigned)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        return loaders.look_up_keys(address, token, *place, keys, infinity), False

    return Plan(load, keys.dtype, top, levels.entered, _never(construction, top))


def _binned(
    levels: Levels,
    construction: Construction,
    scale: EvenScale | None,
    top: int,
) -> Plan:
    """32- and 64-bit values by the number of levels before them."""
    if scale is not None:
        load = _even_loader(levels, construction, scale, top)
    else:
        load = _search_loader(levels, construction, top)
    return Plan(load, _key_dtype(top), top, levels.entered, _never(construction, top))


def _even_loader(levels: Levels, construction: Construction, scale: EvenScale, top: int) -> Loader:
    token, count = _token(levels.values.dtype), np.int32(levels.values.size)
    first, direction = (0, 0) if construction == "V" else (top + 1, -1)
    bins = (first, direction, int(count), scale.turned, int(levels.superlevel))
    numbers = (scale.slope, scale.offset, scale.turn)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        nan, beyond = loaders.bin_evenly(address, token, *place, numbers, count, bins)
        return nan, bool((nan or beyond) and top < count)

    return load


def _next(values: Array, up: bool) -> Array:
    """Neighbours of values in their dtype; the last value of an integer dtype is its own."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.nextafter(values, values.dtype.type(np.inf if up else -np.inf)))
    info, one = np.iinfo(values.dtype), values.dtype.type(1)
    if up:
        return np.where(values == info.max, values, values + one)
    return np.where(values == info.min, values, values - one)


def _even_scale(levels: Levels) -> EvenScale | None:
    """Settings that give the rank of every value of the dtype exactly, or None.

    Verified at each level and at the next value that enters after it. The level that is hardest to
    tell from its neighbour is compared with the value itself.
    """
    order = levels.values[::-1] if levels.superlevel else levels.values
    if order.size == 0:
        return None
    beyond = _next(order, up=not levels.superlevel)
    at, after = order.astype(np.float64), beyond.astype(np.float64)
    ranks = np.arange(1, order.size + 1, dtype=np.float64)
    with np.errstate(all="ignore"):
        slope = max(order.size - 1, 1) / (at[-1] - at[0] if order.size > 1 else after[0] - at[0])
        lowest = ranks - after * slope
        turned = int(np.argmax(lowest)) if np.isfinite(slope) else 0
        lowest[turned] = -np.inf
        high = np.min(ranks - at * slope)
        low = np.max(lowest) if order.size > 1 else high - 0.5
        offset = low + (high - low) / 2
        if not (np.isfinite(slope) and np.isfinite(offset)):
            return None
        ranks_at, ranks_after = _evaluate(np.stack([at, after]), slope, offset)
    exact = (ranks_at < ranks) & ((ranks_after >= ranks) | (order == beyond))
    exact[turned] = ranks_at[turned] < ranks[turned]
    # values > turn, or for superlevels values < level, which is not (values > next lower value)
    turn = after[turned] if levels.superlevel else at[turned]
    distinct = at[turned] != after[turned] or order[turned] == beyond[turned]
    if levels.superlevel and order[turned] == beyond[turned]:
        return None
    if not (bool(np.all(exact)) and distinct):
        return None
    return EvenScale(float(slope), float(offset), float(turn), turned + 1)


def _evaluate(values: Array, slope: float, offset: float) -> Array:
    """``values * slope + offset`` as the loader computes it."""
    keys = np.empty(values.size, np.float64)
    loaders.multiply_add(values.reshape(-1), slope, offset, keys)
    return keys.reshape(values.shape)


def _search_loader(levels: Levels, construction: Construction, top: int) -> Loader:
    values, count = levels.values, levels.values.size
    before = 0
    if levels.superlevel:  # count the levels <= value as those < value of their predecessors
        before = int(count > 0 and _next(values[:1], up=False)[0] == values[0])
        values = _next(values[before:], up=False)
    cells = _cells(values)
    last = np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    padded = np.concatenate([values, np.full(2 << cells.depth, last, values.dtype)])
    # rank = below (sublevel), or count - before - below (superlevel)
    if levels.superlevel:
        first, direction = (count - before + 1, -1) if construction == "V" else (top - count, 0)
        first += 0 if construction == "V" else before
        of_nan = -before
    else:
        first, direction = (0, 0) if construction == "V" else (top + 1, -1)
        of_nan = count
    bins, scale = (first, direction, of_nan), (cells.origin, cells.slope, cells.starts.size - 1.0)
    token, number = _token(values.dtype), np.int32(values.size)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        nan, beyond = loaders.bin_by_search(
            address, token, *place, padded, number, scale, cells.starts, cells.depth, bins
        )
        return nan, (nan or beyond) and top < count

    return load


def _cells(values: Array) -> Cells:
    """Even cells, fine enough to part all levels if there is room for as many."""
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    origin = finite[0] if finite.size else 0.0
    with np.errstate(all="ignore"):
        span = finite[-1] - origin if finite.size else 0.0
        parted = span / np.diff(finite).min() if finite.size > 1 else 1.0
    wanted = max(64, 4 * values.size, int(min(np.nan_to_num(parted), MAX_CELLS)))
    count = min(MAX_CELLS, 1 << wanted.bit_length())
    with np.errstate(all="ignore"):
        slope = (count - 1) / span if 0 < span < np.inf else 0.0
        slope = float(slope) if np.isfinite(slope) else 0.0
        place = np.clip((wide - origin) * slope, 0.0, count - 1)
    held = np.bincount(np.nan_to_num(place, nan=0.0).astype(np.int64), minlength=count)
    starts = (np.cumsum(held) - held).astype(np.int32)
    np.invert(starts, out=starts, where=held > 1)
    depth = np.int32(max(int(held.max()).bit_length() - 1, 0))
    return Cells(float(origin), slope, starts, depth)


def coefficient_plan(
    dtype: np.dtype[Any], superlevel: bool, construction: Construction, masked: bool
) -> Plan:
    """The plan that keeps the order of all values, for coefficients (no curve follows)."""
    unsigned = _unsigned(dtype)
    full = int(np.iinfo(unsigned).max)
    descending = superlevel != (construction == "T")
    nothing = np.empty(0, np.int64)
    token = _token(unsigned)
    if dtype.kind == "f":
        sign, infinity = 1 << (8 * dtype.itemsize - 1), np.array(np.inf, dtype).view(unsigned)
        # NaN must never enter, whichever end of the order that is.
        words = tuple(
            np.uint64(word)
            for word in (full if descending else 0, sign, int(infinity), _never(construction, full))
        )

        def load_floats(address: int, *place: Any) -> tuple[bool, bool]:
            return loaders.order_floats(address, token, *place, *words), False

        return Plan(load_floats, unsigned, full, nothing, _never(construction, full))
    wide = np.dtype(f"u{2 * dtype.itemsize}") if masked else unsigned
    flip = unsigned.type(_bias(dtype) ^ (full if descending else 0))
    shift = wide.type(1 if masked and construction == "T" else 0)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        loaders.copy_keys(address, token, *place, flip, shift)
        return False, False

    top = int(np.iinfo(wide).max)
    return Plan(load, wide, top, nothing, _never(construction, top))
