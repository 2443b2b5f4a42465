"""Thresholds of a curve."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MOST_EXACT = 2.0**32
"""Up to here, float64 has 20 bits behind the point, more than steps of many thresholds need."""
SUBNORMAL_SPAN = 2.0**-900
"""The span of levels below which the step between them may be subnormal and lose bits."""
SCALE = 2.0**200
"""The factor by which such levels are scaled up while they are computed."""


def even_levels(low: float, high: float, bins: int, *, whole: bool) -> Floats:
    """Thresholds from `low` to `high`.

    Images of integers (`whole`) get integers, all of them where they are fewer than `bins`. A
    ValueError says if they are so large that there are not as many numbers of float64.

    Examples
    --------
    >>> from napari_ecc._model.levels import even_levels
    >>> even_levels(0, 3, 256, whole=True)
    array([0., 1., 2., 3.])
    """
    if not whole:
        return np.array([float(low)]) if low == high else evenly(low, high, bins)
    first = np.floor(low)
    last = np.ceil(high)
    count = int(min(last - first + 1, bins))
    levels = np.unique(_rounded(first, last, count))
    if levels.size < count:
        raise ValueError(
            f"Thresholds are float64, which cannot tell integers from {first:,.0f} to {last:,.0f} "
            "apart: subtract the least value from the data."
        )
    return levels


def _rounded(first: float, last: float, count: int) -> Floats:
    """Return evenly spaced numbers between two integers, rounded to integers."""
    are_small = max(-first, last) < MOST_EXACT
    are_far_apart = last - first >= MOST_EXACT
    if are_small or are_far_apart:
        return np.round(evenly(first, last, count))
    # Neighbours, which float64 rounds to halves, could become the same integer; their distances
    # from the first one are smaller and are not rounded to halves.
    return np.asarray(first + np.round(np.linspace(0, last - first, count)))


def evenly(low: float, high: float, count: int) -> Floats:
    """Evenly spaced numbers between two, also where their difference is no normal float."""
    if not math.isfinite(high - low):
        return 4 * np.linspace(low / 4, high / 4, count)
    if 0 < high - low < SUBNORMAL_SPAN:
        return np.linspace(low * SCALE, high * SCALE, count) / SCALE
    return np.linspace(low, high, count)


def distance_of(levels: Floats) -> float:
    """The mean distance of neighbouring levels, also where their range is no float; 1 of one."""
    steps = max(1, levels.size - 1)
    first, last = (levels[[0, -1]] / steps).tolist()
    return float(last - first) or 1.0


def nearest(levels: Floats, value: float) -> int:
    """The place of the level nearest to a value."""
    with np.errstate(over="ignore"):  # The distance of a far one may be no float.
        return int(np.abs(levels - value).argmin())


def stepped(levels: Floats, now: float, count: int = 0) -> float:
    """The level some steps from the one nearest to `now`, within all levels."""
    place = nearest(levels, now) + count
    return float(levels[min(max(place, 0), levels.size - 1)])


def decimals(low: float, high: float) -> int:
    """Decimals of real numbers between two, so that a thousandth of their distance is seen.

    Examples
    --------
    >>> from napari_ecc._model.levels import decimals
    >>> decimals(0, 255), decimals(-1, 1), decimals(0, 1e-6)
    (1, 3, 9)
    """
    distance = high - low or 1
    magnitude = math.floor(math.log10(distance))
    return max(0, 3 - magnitude)


def formatted(value: float) -> str:
    """A value of an image, as all docks write it.

    Examples
    --------
    >>> from napari_ecc._model.levels import formatted
    >>> formatted(127.0), formatted(12345.5), formatted(0.1234567)
    ('127', '12,345.5', '0.123457')
    """
    whole = abs(value) < 1e15 and value == round(value)
    value += 0.0  # Minus zero is written as zero.
    text = f"{value:,.0f}" if whole else f"{value:,.6g}"
    return text.replace("-", "\N{MINUS SIGN}")
