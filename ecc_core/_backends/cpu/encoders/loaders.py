"""Loaders of 32- and 64-bit values: scales of evenly spaced levels, and grids of cells.

See the kernels ``bin_evenly`` and ``bin_by_cells``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders import kernels
from ecc_core._backends.cpu.encoders.order import bits_to_invert, ordered_keys
from ecc_core._backends.even_lines import next_values, widths
from ecc_core._request.levels import Levels

Array = NDArray[Any]
Loader = tuple[Callable[..., tuple[bool, bool]], tuple[Any, ...]]
"""A kernel of ``encoders/kernels.py``, and its arguments after the box, the keys and the place."""

MOST_REACH = 2.0**-8  # Values within this part of a step of a level are compared with it.
PLACE_BITS = 30  # The bits of a checked place, before and behind the point.
MOST_CHECKED = 1 << 18  # With more levels, too few bits would be left behind the point.

LEAST_CELLS = 1 << 8
MOST_CELLS = 1 << 16
# Costs of a value in ns, as measured: a search, and a table that exceeds the first-level cache.
SEARCH_COST = 8.0
LARGE_COST = 0.05
LARGE_TABLE = 1 << 12
SPANNED_PART = 0.96  # The levels span this part of the cells.
MARGIN_CELLS = 3.0  # Cells before the first level in the smallest grid; larger ones have more.


class EvenScale(NamedTuple):
    """Settings of :func:`ecc_core._backends.cpu.encoders.kernels.bin_evenly`."""

    slope: float
    offset: float
    exempt: float
    """The level that values are compared with, or the next one of the dtype."""
    reach: float
    exempt_rank: int
    """The least rank of values beyond this level."""
    checked: bool
    """Whether values whose places are close to a whole number are compared with levels."""


def even_loader(levels: Levels, cubes: bool, scale: EvenScale, top: int, least: int) -> Loader:
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
    of_scale = first, direction, count, scale.exempt_rank, downwards
    bins = (*of_scale, count, unfit, digits, reach, regular)
    numbers = (scale.slope * unit, scale.offset * unit, scale.exempt, *(line or (0.0, 0.0)))
    tight = top + least < count
    ends = tight, tight or least > 0  # Whether values at either end do not fit.
    load = kernels.bin_evenly_checked if scale.checked else kernels.bin_evenly
    return load, (order, numbers, bins, ends)


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

    Places are verified at each level and at the next value that enters after it (`even_lines`).
    """
    order = levels.values[::-1] if levels.superlevel else levels.values
    if order.size == 0:
        return None
    beyond = next_values(order, up=not levels.superlevel)
    at = order.astype(np.float64)
    after = beyond.astype(np.float64)
    final = order == beyond
    best = None
    with np.errstate(all="ignore"):
        if at.size == 1:
            slopes = [1 / (after[0] - at[0])]
        else:
            steps = float(at.size - 1) * (-1 if levels.superlevel else 1)
            slopes = [steps / np.float64(width) for width in widths(levels.values, thresholds)]
        for slope in slopes:
            if not np.isfinite(slope) or slope == 0:
                continue
            offset, exempt, reach, exact = kernels.fit_scale(at, after, final, slope)
            if not (np.isfinite(offset) and reach < (best.reach if best else MOST_REACH)):
                continue
            if not exact and not (
                order.size <= MOST_CHECKED
                and np.isfinite([slope * 2.0**32, offset * 2.0**32]).all()
            ):
                continue
            # A value is past the exempt level if it is above this one, or not above it for
            # superlevel sets. Their values are below the level: at most the next lower value.
            if levels.superlevel:
                value = after[exempt] if exempt >= 0 else -np.inf
            else:
                value = at[exempt] if exempt >= 0 else np.inf
            best = EvenScale(
                slope=float(slope),
                offset=offset,
                exempt=float(value),
                reach=reach,
                exempt_rank=max(exempt, 0) + 1,
                checked=not exact,
            )
            if exact:
                break
    return best


def entry_keys(levels: Levels) -> Array:
    """Return ordered keys of levels, such that no level separates the two zeros."""
    values = levels.values
    if values.dtype.kind == "f":
        zero = values.dtype.type(-0.0 if levels.superlevel else 0)
        values = np.where(values == 0, zero, values)
    return ordered_keys(values)


def cell_loader(levels: Levels, cubes: bool, top: int, least: int) -> Loader:
    """Return a loader that finds the ranks of 32- and 64-bit values by cells.

    Ranks from `least` on become keys up to `top`.

    In the order in which values enter, a rank grows just behind a level. Keys are ranks, or if
    `cubes` complements of ranks, which grow at the level itself in the reversed order. Either way
    a key is `base` plus the number of bounds that the value has reached.
    """
    values = levels.values
    entering = entry_keys(levels)
    one = entering.dtype.type(1)
    full = entering.dtype.type(np.iinfo(entering.dtype).max)
    nothing = entering.dtype.type(0)
    flip = full if levels.superlevel else nothing
    entering = entering ^ flip
    # The loader reports whether there are values beyond all levels, or up to the first one.
    if least:
        limit_flip, limit = full, ~entering.min() - one
    else:
        limit_flip, limit = nothing, entering.max(initial=0)
    stored = full if cubes else nothing
    count = values.size
    if cubes:
        bounds = entering ^ full
        base = top + least - count
        never = max(top + least - count, 0)
    else:
        behind = entering != full  # No value enters after the last one of the dtype.
        values = values[behind]
        bounds = entering[behind] + one
        base = -least
        never = count - least
    order = np.argsort(bounds)
    ascending = levels.superlevel == cubes
    grid, *arrays = _table(
        values[order], bounds[order], ascending=ascending, base=base, never=never
    )
    table = (*arrays, base)
    token = np.empty(0, values.dtype)
    keys = (*bits_to_invert(values.dtype), flip, stored, limit_flip, limit)
    tight = top + least < count
    ends = tight, tight or least > 0  # Whether values at either end do not fit.
    return kernels.bin_by_cells, (token, grid, keys, table, ends)


def _table(values: Array, bounds: Array, ascending: bool, base: int, never: int) -> Any:
    """Return the grid; the entry, only bound and number of bounds of each cell; and all bounds."""
    number = np.dtype(np.float32 if values.dtype.itemsize == 4 else np.float64).type
    wide = values.astype(number)
    finite = wide[np.isfinite(wide)]
    lowest = finite.min() if finite.size else number(0)
    with np.errstate(all="ignore"):
        span = finite.max() - lowest if finite.size else number(0)
        # Values below and above all levels have a cell of their own.
        origin = lowest - number(MARGIN_CELLS) * span / number(LEAST_CELLS)
        origin = origin if np.isfinite(origin) else lowest
        least = min(max(LEAST_CELLS, 2 << values.size.bit_length()), MOST_CELLS)
        counts = (1 << k for k in range(least.bit_length() - 1, MOST_CELLS.bit_length()))
        choices = [_place(wide, origin, span, count) for count in counts]
    _, slope, cell, count = min(choices, key=lambda choice: choice[0])
    held = np.bincount(cell, minlength=count + 1)
    before = np.cumsum(held) - held if ascending else values.size - np.cumsum(held)
    # The highest bit marks crowded cells. A key of -1 is that of a value beyond all levels.
    first = (base + before).astype(np.uint64) & ~kernels.CROWDED
    # Cells behind the last bound have nothing to compare with, and get 0.
    only = np.append(bounds, bounds.dtype.type(0))[np.minimum(before, bounds.size)]
    crowded = held > 1
    if values.dtype.itemsize == 4:
        entries = (first << np.uint64(32)) & ~kernels.CROWDED
        one = held == 1
        entries[one] += np.uint64(1 << 32) - only[one].astype(np.uint64)
    else:
        entries = first
        crowded |= before >= bounds.size
    shift = np.uint64(32 if values.dtype.itemsize == 4 else 0)
    entries = np.where(crowded, (before.astype(np.uint64) << shift) | kernels.CROWDED, entries)
    entries[-1] = np.uint64(never) << shift
    if values.dtype.itemsize == 8:
        only[-1:] = np.iinfo(only.dtype).max
    grid = np.array([origin, slope, count - 1], number)
    return grid, entries, only, held.astype(np.int32), bounds


def _place(
    wide: Array, origin: Any, span: Any, count: int
) -> tuple[float, Any, NDArray[np.int64], int]:
    """Return the cost and slope of a grid, the cell of each level, and the given number of cells.

    The cost is the expected time for a value, in ns, if values are distributed as the levels are.
    """
    number = wide.dtype.type
    slope = number(count * SPANNED_PART) / span if 0 < span < np.inf else number(0)
    slope = slope if np.isfinite(slope) else number(0)
    place = (wide - origin) * slope
    place = np.where(place > 0, place, number(0))
    place = np.where(place < count - 1, place, number(count - 1))
    cell = place.astype(np.int64)
    held = np.bincount(cell, minlength=count)
    crowded = float(held[held > 1].sum() / max(cell.size, 1))
    cost = SEARCH_COST * crowded + LARGE_COST * max(0, (count // LARGE_TABLE).bit_length())
    return cost, slope, cell, count
