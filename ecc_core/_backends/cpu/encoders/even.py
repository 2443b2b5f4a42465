"""Scales of evenly spaced levels, for the kernel ``bin_evenly``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders import kernels
from ecc_core._request.levels import Levels

__all__ = ["EvenScale", "even_loader", "even_scale"]

Array = NDArray[Any]

EARLY = 2.0**-10  # of a step: where a value at a level counts as beyond it, until it is compared
MOST_ROUNDED = 1 << 16  # levels that are compared with the numbers of a line


class EvenScale(NamedTuple):
    """Settings of :func:`ecc_core._backends.cpu.encoders.kernels.bin_evenly`."""

    slope: float
    offset: float
    turn: float
    start: float
    step: float
    turned: int
    rounded: bool
    single: bool


def even_loader(
    levels: Levels, cubes: bool, scale: EvenScale, top: int
) -> Callable[..., tuple[bool, bool]]:
    """Loader of the values whose levels a scale fits; keys run up to `top`."""
    token, count = np.empty(0, levels.values.dtype), np.int32(levels.values.size)
    first, direction = (top + 1, -1) if cubes else (0, 0)
    bins = (first, direction, int(count), scale.turned, int(levels.superlevel))
    numbers, kind = tuple(scale[:5]), (scale.rounded, scale.single)

    def load(address: int, *place: Any) -> tuple[bool, bool]:
        nan, beyond = kernels.bin_evenly(address, token, *place, numbers, count, bins, *kind)
        return nan, bool((nan or beyond) and top < count)

    return load


def even_scale(levels: Levels, thresholds: Array) -> EvenScale | None:
    """Settings that give the rank of every value of the dtype exactly, or None.

    Ranks never decrease along the values, so they are verified at each level and at the next value
    that enters after it.
    """
    order = levels.values[::-1] if levels.superlevel else levels.values
    if order.size == 0:
        return None
    beyond = _next(order, up=not levels.superlevel)
    places = np.stack([order.astype(np.float64), beyond.astype(np.float64)])
    with np.errstate(all="ignore"):
        for slope in _slopes(places, thresholds, levels.superlevel):
            if scale := _exact_scale(slope, places, order == beyond, levels.superlevel):
                return scale
        if order.dtype.kind == "f" and 1 < order.size <= MOST_ROUNDED:
            ends = _ends(order[0]), _ends(order[-1])
            for start, stop, single in (
                *itertools.product(*ends, [False]),
                (*places[0, [0, -1]], True),
            ):
                if scale := _rounded_scale(start, stop, single, order, beyond, levels.superlevel):
                    return scale
    return None


def _slopes(places: Array, thresholds: Array, superlevel: bool) -> Iterator[float]:
    """Of the thresholds before they were rounded to levels, then of the levels."""
    first, last, count = places[0, 0], places[0, -1], places.shape[1]
    if count > 1:
        if thresholds.size == count:
            low, high = thresholds[[0, -1]].astype(np.float64)
            yield (count - 1) / (low - high if superlevel else high - low)
        yield (count - 1) / (last - first)
    else:
        yield 1 / (places[1, 0] - first)


def _exact_scale(slope: float, places: Array, final: Array, superlevel: bool) -> EvenScale | None:
    """A scale that tells all levels from their neighbours but one, which is compared.

    `places` are the levels and the next values; where `final`, there is none.
    """
    at, after = places
    ranks = np.arange(1, at.size + 1, dtype=np.float64)
    if not np.isfinite(slope):
        return None
    lowest = ranks - after * slope
    turned = int(np.argmax(lowest))
    lowest[turned] = -np.inf
    high = np.min(ranks - at * slope)
    low = np.max(lowest) if at.size > 1 else high - 0.5
    offset = low + (high - low) / 2
    if not np.isfinite(offset) or (superlevel and final[turned]):
        return None
    ranks_at, ranks_after = _evaluate(places, slope, offset)
    exact = (ranks_at < ranks) & ((ranks_after >= ranks) | final)
    exact[turned] = ranks_at[turned] < ranks[turned]
    if not exact.all() or (at[turned] == after[turned] and not final[turned]):
        return None
    # values > turn, or for superlevels values < level, which is not (values > next lower value)
    turn = float(after[turned] if superlevel else at[turned])
    return EvenScale(float(slope), float(offset), turn, 0.0, 0.0, turned + 1, False, False)


def _ends(value: Any) -> list[float]:
    """What was rounded to a value: itself, or the number with the fewest digits."""
    short = float(str(value))
    return [float(value)] if short == float(value) else [float(value), short]


def _rounded_scale(
    start: float, stop: float, single: bool, order: Array, beyond: Array, superlevel: bool
) -> EvenScale | None:
    """A scale of levels that are ``k * step + start``, rounded, as ``numpy.linspace`` has them.

    The last of these levels is `stop` itself, so values are compared with it. With `single` all is
    computed in float32.
    """
    count = order.size
    low, high = (stop, start) if superlevel else (start, stop)
    step = (high - low) / (count - 1)
    step = float(np.float32(step)) if single else step
    if step <= 0:
        return None
    slope = (-1 if superlevel else 1) / step
    offset = 1 - start * slope + EARLY
    turned = 1 if superlevel else count
    turn = float(beyond[0] if superlevel else order[-1])
    if not (np.isfinite(slope) and np.isfinite(offset)) or turn == order[0] == beyond[0]:
        return None
    scale = EvenScale(float(slope), float(offset), turn, low, float(step), turned, True, single)
    ranks = np.arange(count)
    at, after = (_rounded_ranks(scale, values, superlevel) for values in (order, beyond))
    exact = (at == ranks) & ((after == ranks + 1) | (order == beyond))
    return scale if exact.all() else None


def _rounded_ranks(scale: EvenScale, values: Array, superlevel: bool) -> Array:
    """Ranks of floats as the loader computes them."""
    count = values.size
    wide = values.astype(np.float64)
    place = _evaluate(wide, scale.slope, scale.offset)
    guess = np.clip(np.nan_to_num(place, nan=0.0), 0, count).astype(np.int64)
    number = count - guess if superlevel else guess - 1
    if scale.single:
        level = number.astype(np.float32) * np.float32(scale.step) + np.float32(scale.start)
    else:
        level = (number * scale.step + scale.start).astype(values.dtype)
    level = level.astype(np.float64)
    rank = np.maximum(guess - (wide >= level if superlevel else wide <= level), 0)
    past = ~(wide > scale.turn) if superlevel else wide > scale.turn
    limited = np.where(past, np.maximum(rank, scale.turned), np.minimum(rank, scale.turned - 1))
    return np.asarray(limited)


def _next(values: Array, up: bool) -> Array:
    """Neighbours of values in their dtype; the last value of an integer dtype is its own."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.nextafter(values, values.dtype.type(np.inf if up else -np.inf)))
    info, one = np.iinfo(values.dtype), values.dtype.type(1)
    if up:
        return np.where(values == info.max, values, values + one)
    return np.where(values == info.min, values, values - one)


def _evaluate(values: Array, slope: float, offset: float) -> Array:
    """``values * slope + offset`` as the loader computes it."""
    places = np.empty(values.size, np.float64)
    kernels.multiply_add(values.reshape(-1), slope, offset, places)
    return places.reshape(values.shape)
