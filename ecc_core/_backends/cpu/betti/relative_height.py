"""Regions that end before they reach the background, at a fraction of their persistence.

All values here grow in the order in which points enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SLAB_POINTS = 1 << 20  # Slabs of so many points keep the levels of points in little memory.


def points_within(
    values: Array,
    shown: NDArray[np.bool_],
    labels: NDArray[np.int32],
    births: Array,
    deaths: Array,
    merged_into: NDArray[np.int32],
    rel_height: float,
) -> NDArray[np.bool_]:
    """Return whether points enter up to the level at which the region of their label is cut.

    `labels` are 1 to k, or 0 where `shown` is False. `births` and `deaths` are indices of points,
    -1 for components that never die; these have `merged_into` 0, the others the label of an older
    component, which is smaller.
    """
    values = values.view(np.uint8) if values.dtype.kind == "b" else values
    flat = values.reshape(-1)
    last = _last_values(values, shown, labels, births.size)
    # Components that never die end at the last value of their connected part of the image.
    for label in range(births.size, 0, -1):
        elder = merged_into[label - 1]
        if elder:
            last[elder] = max(last[elder], last[label])
    ends = np.where(deaths < 0, last[1:], flat[deaths])
    levels = cut_levels(flat[births], ends, rel_height, _finite_range(values, shown))
    # Points without a label are not shown, so that their level, the first one, is of no interest.
    of_labels = np.concatenate([levels[:1], levels])
    if not births.size:
        return np.zeros_like(shown)
    inside = shown.copy()
    for slab in _slabs(values.shape):
        inside[slab] &= values[slab] <= of_labels[labels[slab]]
    return inside


def cut_levels(
    births: Array, ends: Array, rel_height: float, finite: tuple[float, float] | None
) -> Array:
    """Return the levels at a fraction of the way from births to ends, which are not before them.

    Levels of integers are rounded down to their dtype, those of floats to float64. Infinite floats
    are taken for the ends of the `finite` values, if there are any, but a level is never before the
    birth.
    """
    if births.dtype.kind != "f":
        numerator, denominator = float(rel_height).as_integer_ratio()
        first = births.astype(object)
        gaps = ends.astype(object) - births.astype(object)
        exact: Array = (first + gaps * numerator // denominator).astype(births.dtype)
        return exact
    first = births.astype(np.float64)
    last = ends.astype(np.float64)
    if finite is None:
        return first
    low = np.clip(first, *finite)
    high = np.clip(last, *finite)
    # The difference of both could overflow.
    levels = (1 - rel_height) * low + rel_height * high
    not_before: Array = np.maximum(np.clip(levels, low, high), first)
    return not_before


def _last_values(
    values: Array, shown: NDArray[np.bool_], labels: NDArray[np.int32], count: int
) -> Array:
    """Return the last value of each label, (count + 1,)."""
    lowest = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    last = np.full(count + 1, lowest, values.dtype)
    for slab in _slabs(values.shape):
        own = shown[slab]  # Other points may be NaN.
        np.maximum.at(last, labels[slab][own], values[slab][own])
    return last


def _finite_range(values: Array, shown: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return the least and the largest finite float of the points shown, or None."""
    if values.dtype.kind != "f":
        return None
    low = np.inf
    high = -np.inf
    for slab in _slabs(values.shape):
        known = shown[slab] & np.isfinite(values[slab])
        low = min(low, float(values[slab].min(where=known, initial=np.inf)))
        high = max(high, float(values[slab].max(where=known, initial=-np.inf)))
    return (low, high) if low <= high else None


def _slabs(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield ranges of slices with at most `SLAB_POINTS` points, or of a single slice."""
    step = max(1, SLAB_POINTS // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield slice(start, start + step)
