"""Persistence: how long a class lasts, and from which persistence on it counts."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST_GAP = 2**64 - 1  # between two integers


def real_number(number: Any, name: str) -> float | int:
    """Return a number as an int if it is whole, else as a float."""
    if isinstance(number, bool) or np.ndim(number) or np.asarray(number).dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must be a real number, got {number!r}")
    return np.asarray(number).item()


def check_persistence(number: Any) -> float | int:
    least = number if type(number) is int else real_number(number, "min_persistence")
    if not least >= 0:
        raise ValueError(f"`min_persistence` must not be negative or NaN, got {number!r}")
    return least


def lasting(births: Array, deaths: Array, least: float | int) -> NDArray[np.bool_]:
    """Whether the values at birth and death, of one native dtype, differ by at least so much."""
    if births.dtype.kind == "f":
        # A class that never dies may be born at the infinity that stands for its death.
        with np.errstate(over="ignore", invalid="ignore"):
            gaps = np.abs(np.subtract(deaths, births, dtype=np.float64))
        return gaps >= least
    if least > MOST_GAP:
        return np.zeros(births.shape, np.bool_)
    if births.dtype.kind == "b":
        births, deaths = births.view(np.uint8), deaths.view(np.uint8)
    low, high = np.minimum(births, deaths), np.maximum(births, deaths)
    # Modulo 2**64 the difference of signed integers is that of unsigned ones.
    return high.astype(np.uint64) - low.astype(np.uint64) >= np.uint64(math.ceil(least))
