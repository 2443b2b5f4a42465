"""Evenly spaced levels, whose values find their ranks by a straight line.

The place of a value is ``value * slope + offset``. Rounding keeps the order of places, so places
never decrease along the values, and two values of each level prove that a line gives every value
its exact rank: the level itself, which is the last value to enter there, and the next value of the
dtype, which enters later. Backends differ in how a place is rounded, and in what they do with lines
that are almost exact: ``cpu/encoders/loaders.py`` has places in double precision, which it compares
with the levels where they are close to a whole number, and ``cuda/rules.py`` codes in single
precision, which must be exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def next_values(values: Array, *, up: bool) -> Array:
    """Return the next value of the dtype, which for the last integer is the integer itself."""
    if values.dtype.kind == "f":
        towards = values.dtype.type(np.inf if up else -np.inf)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.nextafter(values, towards))
    info = np.iinfo(values.dtype)
    one = values.dtype.type(1)
    if up:
        return np.where(values == info.max, values, values + one)
    return np.where(values == info.min, values, values - one)


def widths(levels: Array, thresholds: Array) -> list[float]:
    """Return candidates for the distance from the first to the last level on the line.

    The first candidate is the distance between the thresholds before they were rounded to the
    dtype, if no two of them have the same level. Levels and thresholds are increasing.
    """
    of_levels = float(levels[-1]) - float(levels[0])
    if thresholds.size != levels.size:
        return [of_levels]
    return [float(thresholds[-1]) - float(thresholds[0]), of_levels]
