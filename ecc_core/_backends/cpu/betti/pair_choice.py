"""Which of the pairs that were found are returned, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.order import entry_values, sort_keys, stable_order
from ecc_core._backends.cpu.pool import ranges, share
from ecc_core._request.persistence import lasting

Array = NDArray[Any]
Values = NDArray[np.int64]


def pairs_of_interest(
    flat: Array,
    known: Array | None,
    pairs: tuple[Values, Values],
    workers: int,
    *,
    short: bool,
    least: float,
) -> tuple[Values, Values]:
    """Return the pairs of classes that are born, and die later unless they may be `short`."""
    births, deaths = pairs
    parts = {}

    def choose(queue: Iterator[tuple[int, int]]) -> None:
        for first, last in queue:
            part = births[first:last], deaths[first:last]
            parts[first] = _living_pairs(flat, known, part, short=short, least=least)

    share(ranges(births.size, workers), choose, workers)
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    chosen = [(none, none), *(parts[first] for first in sorted(parts))]
    all_births, all_deaths = (np.concatenate(ends) for ends in zip(*chosen, strict=True))
    return all_births, all_deaths


def _living_pairs(
    flat: Array,
    known: Array | None,
    pairs: tuple[Values, Values],
    *,
    short: bool,
    least: float,
) -> tuple[Values, Values]:
    """Return these pairs without classes that are never born, or are short."""
    births, deaths = pairs
    begin, end = (_absent_at(points, flat, known) for points in pairs)
    deaths = np.where((deaths >= 0) & end, -1, deaths)
    lives = ~begin & (short | (deaths < 0) | (flat[births] != flat[deaths]))
    return pairs_that_last(flat, (births[lives], deaths[lives]), least)


def in_order(flat: Array, pairs: tuple[Values, Values], superlevel: bool) -> tuple[Values, Values]:
    """Sort pairs by the value at birth, then by the points of birth and death."""
    births, deaths = pairs
    bits = flat.size.bit_length()
    order = sort_keys((deaths + 1).astype(np.uint64), bits)
    order = order[sort_keys(births[order].astype(np.uint64), bits)]
    order = order[stable_order(entry_values(flat[births[order]], superlevel))]
    return births[order], deaths[order]


def pairs_that_last(
    flat: Array, pairs: tuple[Values, Values], least: float
) -> tuple[Values, Values]:
    """Return the points of those pairs that last for at least `least`, or have no death."""
    if least == 0:
        return pairs
    births, deaths = pairs
    native = flat.dtype.newbyteorder("=")
    born, died = (flat[points].astype(native, copy=False) for points in pairs)
    kept = (deaths < 0) | lasting(born, died, least)
    return births[kept], deaths[kept]


def _absent_at(points: Values, flat: Array, known: Array | None) -> NDArray[np.bool_]:
    """Return which of some points never enter."""
    shown = None if known is None else known[points]
    return absent(flat[points], shown)


def absent(values: Array, shown: Array | None) -> NDArray[np.bool_]:
    """Return which points never enter: those that are masked or NaN."""
    never = np.zeros(values.size, np.bool_) if shown is None else ~shown
    return never | np.isnan(values) if values.dtype.kind == "f" else never
