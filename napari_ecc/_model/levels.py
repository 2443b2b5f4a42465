"""Thresholds of a curve, and its landmarks: extrema and zero crossings."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["even_levels", "extrema", "following", "stepped", "zero_crossings"]

Floats = NDArray[np.float64]

PROMINENCE = 0.03
"""Least prominence of an extremum, as a share of the curve's range."""


def even_levels(low: float, high: float, bins: int, *, whole: bool) -> Floats:
    """Thresholds from `low` to `high`.

    Images of integers (`whole`) get integers, all of them where they are fewer than `bins`.

    Examples
    --------
    >>> from napari_ecc._model.levels import even_levels
    >>> even_levels(0, 3, 256, whole=True)
    array([0., 1., 2., 3.])
    """
    if whole and high - low < bins:
        return np.arange(math.floor(low), math.ceil(high) + 1, dtype=np.float64)
    if low == high:
        return np.array([low], dtype=np.float64)
    if whole:
        return np.round(np.linspace(math.floor(low), math.ceil(high), bins))
    return np.linspace(low, high, bins)


def extrema(values: ArrayLike) -> NDArray[np.int64]:
    """Indices, increasing, of the extrema of a curve that stand out from it.

    Examples
    --------
    >>> from napari_ecc._model.levels import extrema
    >>> extrema([0, 40, 41, 40, -20, 1])
    array([2, 4])
    """
    from scipy.signal import find_peaks

    curve = np.asarray(values, dtype=np.float64)
    if curve.size < 3 or np.ptp(curve) == 0:
        return np.zeros(0, np.int64)
    least = PROMINENCE * float(np.ptp(curve))
    both = [find_peaks(sign * curve, prominence=least)[0] for sign in (1, -1)]
    return np.sort(np.concatenate(both)).astype(np.int64)


def zero_crossings(values: ArrayLike) -> NDArray[np.int64]:
    """Indices, increasing, at which a curve has just changed its sign or become zero.

    Examples
    --------
    >>> from napari_ecc._model.levels import zero_crossings
    >>> zero_crossings([3, 1, -2, -1, 0, 0, 4])
    array([2, 4, 6])
    """
    signs = np.sign(np.asarray(values))
    return (np.flatnonzero(signs[1:] != signs[:-1]) + 1).astype(np.int64)


def following(marks: NDArray[np.int64], thresholds: Floats, now: float, step: int) -> float | None:
    """The next of some thresholds above `now` (`step` 1) or below (-1), starting again at the end.

    `marks` are their indices; None if there are none.
    """
    if marks.size == 0:
        return None
    places = thresholds[marks]
    beyond = places[places > now] if step > 0 else places[places < now]
    if beyond.size == 0:
        beyond = places
    return float(beyond[0] if step > 0 else beyond[-1])


def stepped(levels: Floats, now: float, count: int = 0) -> float:
    """The level some steps from the one nearest to `now`, within all levels."""
    place = int(np.argmin(np.abs(levels - now))) + count
    return float(levels[min(max(place, 0), levels.size - 1)])
