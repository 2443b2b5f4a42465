"""Axes of plots: round numbers for ticks, and how they are written."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["nice_ticks", "tick_label"]

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def nice_ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Round numbers between two bounds: steps of 1, 2 or 5 times a power of ten.

    Parameters
    ----------
    low, high : float
    most : int
        The number of ticks that there is room for.
    whole : bool, default False
        Integers only.

    Returns
    -------
    list of float
        Increasing; empty for bounds that are not finite.

    Examples
    --------
    >>> from napari_ecc._qt.axes import nice_ticks
    >>> nice_ticks(-3, 11, 4)
    [0.0, 5.0, 10.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0 or most < 1:
        return [low] if math.isfinite(low) and span == 0 else []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * power for m in (1, 2, 5, 10, 20) if span / (m * power) <= most)
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(float(k * step), 12) for k in np.arange(first, last + 1).tolist()]


def tick_label(value: float, span: float) -> str:
    """A tick's number, short: 250k, 1.5.

    Parameters
    ----------
    value : float
    span : float
        Length of the axis, which decides on the digits.

    Examples
    --------
    >>> from napari_ecc._qt.axes import tick_label
    >>> tick_label(250_000, 1e6), tick_label(0.5, 1)
    ('250k', '0.5')
    """
    suffix = ""
    for size, prefix in PREFIXES:
        if span >= 10 * size:
            value, suffix = value / size, prefix
            break
    text = f"{value:.4g}" if value else "0"
    return text.replace("-", "\N{MINUS SIGN}") + (suffix if value else "")
