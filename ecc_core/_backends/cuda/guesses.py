"""Guesses of bins and codes by straight lines, rounded as the device rounds them.

With these the host proves that a rule by which kernels find bins is exact. As guesses are
monotonic, it is enough to examine the thresholds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AFFINE",
    "CELLS",
    "COMPLEMENT",
    "CONSECUTIVE",
    "PIECES",
    "SEARCH",
    "TABLE",
    "UNIFORM",
    "Line",
    "guesses",
    "guesses_by_lines",
    "is_near",
    "line_through",
]

Array = NDArray[Any]
Line = tuple[np.float32, np.float32, np.float32]

# Rules, as in options.cuh.
UNIFORM, SEARCH, CONSECUTIVE, TABLE, AFFINE, CELLS, COMPLEMENT, PIECES = range(8)
MAGIC = np.float32(1 << 23)  # added to a guess, to round it


def line_through(first: float, final: float, from_guess: int, to_guess: int, last: int) -> Line:
    """Return the line by which two keys have two guesses, of which `last` is the greatest.

    If there is none, all keys have the guess 0. Other flat lines would not be monotonic: zero times
    an infinite key is NaN, whose guess is 0.
    """
    with np.errstate(all="ignore"):
        low, span = np.float64(first), np.float64(final) - np.float64(first)
        scale = np.float32(np.float64(to_guess - from_guess) / last / span)
        offset = np.float32(np.float64(from_guess) / last - low * np.float64(scale))
    if not (np.isfinite(scale) and np.isfinite(offset) and scale):
        offset = scale = np.float32(0)
    return offset, scale, np.float32(last)


def _limited(unit: Array) -> NDArray[np.float32]:
    """Return guesses limited to [0, 1]; NaN becomes 0."""
    return np.where(unit > 0, np.minimum(unit, np.float32(1)), np.float32(0))


def _units(keys: Array, line: Line) -> NDArray[np.float32]:
    """Return guesses between 0 and 1, as the device computes them."""
    offset, scale, _ = line
    return _limited(multiply_add(keys, scale, offset))


def guesses(keys: Array, *lines: Line) -> NDArray[np.int64]:
    """Return the guesses of keys, which are the sums of those by each line."""
    total = np.full(keys.size, MAGIC)
    for line in lines:
        total = multiply_add(_units(keys, line), line[2], total)
    return (total - MAGIC).astype(np.int64)


def guesses_by_lines(
    keys: Array, lines: NDArray[np.float32], last: np.float32
) -> NDArray[np.int64]:
    """Return the guesses of keys, each by its own line ``low, scale``."""
    units = _limited(multiply_add(keys, lines[:, 1], lines[:, 0]))
    return (multiply_add(units, last, MAGIC) - MAGIC).astype(np.int64)


def is_near(keys: Array, line: Line, first: int = 0) -> bool:
    """Return whether the guesses of keys are `first` and so on, by a good margin."""
    places = _units(keys, line).astype(np.float64) * line[2]
    return bool(np.abs(places - first - np.arange(keys.size)).max() < 0.25)


def multiply_add(a: Array, b: np.float32 | Array, c: np.float32 | Array) -> NDArray[np.float32]:
    """Return a * b + c, rounded once, as the device does it."""
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * np.asarray(b, np.float64)  # exact
        term = np.asarray(c, np.float64)
        total = product + term
        back = total - product
        error = (product - (total - back)) + (term - back)
        # Rounded to odd, 53 bits round on to 24 as the exact sum would.
        inexact = (error != 0) & np.isfinite(error) & (total.view(np.int64) & 1 == 0)
        away = np.where(error > 0, np.inf, -np.inf)
        return np.where(inexact, np.nextafter(total, away), total).astype(np.float32)
