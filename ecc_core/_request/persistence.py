"""Persistence of classes, and the arguments that select classes by it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import overflows_float

Array = NDArray[Any]

MOST_GAP = 2**64 - 1
"""The largest difference of two integers of 64 bits."""


def real_number(number: Any, name: str) -> float | int:
    """Return an integer of any type as an int, and a float of any type as a float."""
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
    """Return the dimension of classes, which must be known; a message says what is `wanted`."""
    if isinstance(dimension, bool) or np.ndim(dimension) or dimension not in known:
        raise ValueError(f"`dimension` must be {wanted}, got {dimension!r}")
    return int(dimension)


def lasting(births: Array, deaths: Array, least: float | int) -> NDArray[np.bool_]:
    """Whether the values at birth and death, of one native dtype, differ by at least `least`."""
    gaps = _gaps(births, deaths)
    if gaps.dtype.kind == "f":
        return gaps >= least
    if least > MOST_GAP:
        return np.zeros(births.shape, np.bool_)
    return gaps >= np.uint64(math.ceil(least))


def persistences(births: Array, deaths: Array, essential: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the persistence of classes, which is infinite for those that never die."""
    return np.where(essential, np.inf, _gaps(births, deaths).astype(np.float64))


def _gaps(births: Array, deaths: Array) -> Array:
    """Return the differences of two values of one native dtype, none of which overflows.

    They are exact and uint64 for integers and booleans, and float64 for floats.
    """
    if births.dtype.kind == "f":
        # The death of a class that never dies is infinity, at which the class may also be born.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.abs(np.subtract(deaths, births, dtype=np.float64))
    if births.dtype.kind == "b":
        births = births.view(np.uint8)
        deaths = deaths.view(np.uint8)
    low = np.minimum(births, deaths)
    high = np.maximum(births, deaths)
    # Modulo 2**64 the difference of signed integers is that of unsigned ones.
    return high.astype(np.uint64) - low.astype(np.uint64)
