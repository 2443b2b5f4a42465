"""Persistence: how long a class lasts, and from which persistence on it counts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import overflows_float

Array = NDArray[Any]

MOST_GAP = 2**64 - 1  # between two integers


def real_number(number: Any, name: str) -> float | int:
    """Return a number as an int if it is whole, else as a float."""
    if isinstance(number, bool) or np.ndim(number) or np.asarray(number).dtype.kind not in "iuf":
        raise TypeError(f"`{name}` must be a real number, got {number!r}")
    found: float | int = np.asarray(number).item()
    return found


def check_persistence(number: Any) -> float | int:
    least = number if type(number) is int else real_number(number, "min_persistence")
    if not least >= 0:
        raise ValueError(f"`min_persistence` must not be negative or NaN, got {number!r}")
    if overflows_float(least):
        raise ValueError(
            "`min_persistence` must be within the range of floats, got an int of "
            f"{int(least).bit_length()} bits"
        )
    return least


def check_dimension(dimension: Any, known: Sequence[int], wanted: str) -> int:
    """Return the dimension of classes, one of those known; `wanted` says which and of what."""
    if isinstance(dimension, bool) or np.ndim(dimension) or dimension not in known:
        raise ValueError(f"`dimension` must be {wanted}, got {dimension!r}")
    return int(dimension)


def lasting(births: Array, deaths: Array, least: float | int) -> NDArray[np.bool_]:
    """Whether the values at birth and death, of one native dtype, differ by at least so much."""
    gaps = _gaps(births, deaths)
    if gaps.dtype.kind == "f":
        return gaps >= least
    if least > MOST_GAP:
        return np.zeros(births.shape, np.bool_)
    return gaps >= np.uint64(math.ceil(least))


def persistences(births: Array, deaths: Array, essential: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the differences of values at birth and death, infinity for classes that never die."""
    return np.where(essential, np.inf, _gaps(births, deaths).astype(np.float64))


def _gaps(births: Array, deaths: Array) -> Array:
    """Return the differences of two values of one native dtype, none of which wraps around.

    They are exact uint64 for integers and booleans, and for floats float64.
    """
    if births.dtype.kind == "f":
        # A class that never dies may be born at the infinity that stands for its death.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.abs(np.subtract(deaths, births, dtype=np.float64))
    if births.dtype.kind == "b":
        births = births.view(np.uint8)
        deaths = deaths.view(np.uint8)
    low = np.minimum(births, deaths)
    high = np.maximum(births, deaths)
    # Modulo 2**64 the difference of signed integers is that of unsigned ones.
    return high.astype(np.uint64) - low.astype(np.uint64)
