"""Scales of evenly spaced levels, for the kernel ``bin_evenly``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders import kernels
from ecc_core._request.levels import Levels

Array = NDArray[Any]

MOST_REACH = 2.0**-8  # of a step: around levels, where values are compared with them
PLACE_BITS = 30  # of a checked place, before and behind the point
MOST_CHECKED = 1 << 18  # levels, for which enough bits are left behind the point


class EvenScale(NamedTuple):
    """Settings of :func:`ecc_core._backends.cpu.encoders.kernels.bin_evenly`."""

    slope: float
    offset: float
    turn: float
    reach: float
    turned: int
    checked: bool


def even_loader(
    levels: Levels, cubes: bool, scale: EvenScale, top: int, least: int
) -> Callable[..., tuple[bool, bool]]:
    """Return a loader for evenly spaced levels.

    Ranks from `least` on become keys up to `top`.
    """
    order = np.ascontiguousarray(levels.values[::-1]) if levels.superlevel else levels.values
    count = order.size
    first, direction = (top + least + 1, -1) if cubes else (-least, 0)
    unfit = 0 if least else count
    digits = PLACE_BITS - count.bit_length() if scale.checked else 0
    unit = 2.0**digits
    reach = math.ceil(scale.reach * unit) if scale.checked else 0
    downwards = int(levels.superlevel)
    line = _line(order) if scale.checked else None
    regular = int(line is not None)
    bins = (first, direction, count, scale.turned, downwards, count, unfit, digits, reach, regular)
    numbers = (scale.slope * unit, scale.offset * unit, scale.turn, *(line or (0.0, 0.0)))
    checked = scale.checked
    tight = top + least < count
    ends = tight, tight or least > 0  # what does not fit

    def load(box: Any, *target: Any) -> tuple[bool, bool]:
        nan, seen = kernels.bin_evenly(box, order, *target, numbers, bins, checked, ends)
        return nan, (nan and ends[0]) or (seen and ends[1])

    return load


def _line(order: Array) -> tuple[float, float] | None:
    """Return start and step of the line on which the levels lie, up to rounding, or None.

    The ends of the line are the first and last number, or these as they are printed: 0.1 is not a
    float32, but what ``linspace(0.1, 0.9, dtype=float32)`` begins with.
    """
    if order.dtype.kind != "f" or order.size < 2:
        return None
    number = np.arange(order.size, dtype=np.float64)
    with np.errstate(all="ignore"):
        for first, last in ((order[0], order[-1]), (str(order[0]), str(order[-1]))):
            start = float(first)
            step = (float(last) - start) / (order.size - 1)
            if np.array_equal((number * step + start).astype(order.dtype), order):
                return start, step
    return None


def even_scale(levels: Levels, thresholds: Array) -> EvenScale | None:
    """Return settings that give every value of the dtype its exact rank, or None.

    Places never decrease along the values, so they are verified at each level and at the next value
    that enters after it.
    """
    order = levels.values[::-1] if levels.superlevel else levels.values
    if order.size == 0:
        return None
    beyond = _next(order, up=not levels.superlevel)
    at, after, final = order.astype(np.float64), beyond.astype(np.float64), order == beyond
    best = None
    with np.errstate(all="ignore"):
        for slope in _slopes(at, after, thresholds, levels.superlevel):
            if not np.isfinite(slope) or slope == 0:
                continue
            offset, turn, reach, exact = kernels.fit_scale(at, after, final, slope)
            if not (np.isfinite(offset) and reach < (best.reach if best else MOST_REACH)):
                continue
            if not exact and not (
                order.size <= MOST_CHECKED
                and np.isfinite([slope * 2.0**32, offset * 2.0**32]).all()
            ):
                continue
            # values > turn, or for superlevels values < level: not (values > next lower value)
            value = (after if levels.superlevel else at)[turn] if turn >= 0 else np.inf
            if turn < 0 and levels.superlevel:
                value = -np.inf
            best = EvenScale(float(slope), offset, float(value), reach, max(turn, 0) + 1, not exact)
            if exact:
                break
    return best


def _slopes(at: Array, after: Array, thresholds: Array, superlevel: bool) -> Iterator[float]:
    """Yield the slope of the thresholds before rounding, then that of the levels."""
    count = at.size
    if count == 1:
        yield 1 / (after[0] - at[0])
        return
    if thresholds.size == count:
        low, high = thresholds[[0, -1]].astype(np.float64)
        yield (count - 1) / (low - high if superlevel else high - low)
    yield (count - 1) / (at[-1] - at[0])


def _next(values: Array, up: bool) -> Array:
    """Return the next value of the dtype, which for the last integer is the integer itself."""
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.nextafter(values, values.dtype.type(np.inf if up else -np.inf)))
    info, one = np.iinfo(values.dtype), values.dtype.type(1)
    if up:
        return np.where(values == info.max, values, values + one)
    return np.where(values == info.min, values, values - one)
