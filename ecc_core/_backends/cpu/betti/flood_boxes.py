"""Regions of the components that last, of boxes of an image: labels that spread from box to box.

The label of a point is that of the oldest component to which steps lead (`flood.py`). Where steps
leave a box, it depends on labels of other boxes. So a box is processed with a *halo* of one point,
which has the labels that other boxes know so far. Labels only ever become those of older
components, and once no label of any box changes any more, they are those of the whole image,
whatever the order in which boxes were processed.

A *mark* stands for a label, and for whether the point enters after the level at which the region is
cut. It is ``2 * label``, and 1 more beyond this level, so that the least mark of those that a point
could have is the one of the oldest component.

In a box without marks they spread in words (`flood_words.py`). When a box is processed again, few
marks change, and only their neighbours are compared, one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.flood import merge_labels, near_of
from ecc_core._backends.cpu.betti.flood_words import (
    BIT_MASK,
    WORD_SHIFT,
    Words,
    cut_of,
    later_words,
    spread,
    spreading_of,
    words_of,
)
from ecc_core._backends.cpu.betti.relative_height import cut_levels
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.llvm import LANES, ONE, bare
from ecc_core._backends.cpu.order import entry_values
from ecc_core._backends.pair_options import Pairs
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Points = NDArray[np.int64]
Marks = NDArray[np.int32]

NEVER = np.int32(0)
"""The mark of points that get no label: those that never enter, and those beyond the image."""
UNKNOWN = np.int32(np.iinfo(np.int32).max)
"""The mark of points whose label is not known yet."""
MOST_LABELS = int(UNKNOWN) // 2 - 1
MARGIN = 2
"""Points around a box in its window: one of the halo, and one beyond it that never enters."""


class Links(NamedTuple):
    """Places of a window where components that do not last are born and die, sorted by deaths."""

    deaths: Points
    births: Points
    ends: Words
    """A bit for each point of the window: whether such a component ends there."""

    @classmethod
    def of(cls, births: Points, deaths: Points, points: int) -> Links:
        """Return the links of a window of so many points."""
        order = np.argsort(deaths, kind="stable")
        ends = np.zeros(points, np.bool_)
        ends[deaths] = True
        return cls(deaths[order], births[order], words_of(ends, 0))


def entered_values(image: Array, superlevel: bool) -> Array:
    """Return numbers that grow in the order in which points enter, those of booleans as bytes."""
    values = entry_values(image, superlevel)
    if values.dtype.kind == "f":
        return np.asarray(values + values.dtype.type(0))  # -0.0 becomes 0.0.
    return values.view(np.uint8) if values.dtype.kind == "b" else values


def keys_of(image: Array, superlevel: bool) -> Array:
    """Return unsigned integers in the order in which points enter; those of NaN have no meaning.

    They may be a view of the image.
    """
    values = entered_values(image, superlevel)
    return values if values.dtype.kind == "u" else ordered_keys(values)


def lowest(dtype: np.dtype[Any], count: int) -> Array:
    """Return `count` numbers that precede all values of a dtype in the order of entry."""
    number = np.dtype(np.uint8) if dtype.kind == "b" else dtype.newbyteorder("=")
    first = -np.inf if number.kind == "f" else np.iinfo(number).min
    return np.full(count, first, number)


def ends_of(image: Array, shown: NDArray[np.bool_] | None, superlevel: bool) -> Array:
    """Return the least and the largest finite value, and the last one, in the order of entry.

    They are those of the points shown, (1, 3), or (0, 3) if there are none. Without a finite value,
    the least one exceeds the largest.
    """
    values = entered_values(image, superlevel)
    own = values if shown is None else values[shown]
    if own.size == 0:
        return np.empty((0, 3), values.dtype)
    low = own.min()
    high = own.max()
    if values.dtype.kind != "f" or (np.isfinite(low) and np.isfinite(high)):
        return np.array([[low, high, high]], values.dtype)
    known = np.isfinite(own)
    least = own.min(where=known, initial=np.inf)
    return np.array([[least, own.max(where=known, initial=-np.inf), high]], values.dtype)


def cut_keys(
    pairs: Pairs,
    last: Array,
    rel_height: float,
    finite: tuple[float, float] | None,
    superlevel: bool,
) -> NDArray[np.uint64]:
    """Return the keys of the last values at which points of each component are in its region.

    A component that never dies ends at its `last` value, which like the `finite` ones is in the
    order of entry.
    """
    births, deaths = (entered_values(part, superlevel) for part in (pairs.births, pairs.deaths))
    ends = np.where(pairs.death_places < 0, last, deaths)
    levels = cut_levels(births, ends, rel_height, finite)
    if births.dtype.kind == "f":
        with np.errstate(over="ignore"):
            rounded = levels.astype(births.dtype)
        before = np.nextafter(rounded, births.dtype.type(-np.inf))
        levels = np.where(rounded > levels, before, rounded) + births.dtype.type(0)
    return ordered_keys(np.ascontiguousarray(levels)).astype(np.uint64)


def order_of(keys: Array, places: Points | None) -> Array:
    """Return numbers of the points of a window in the order in which they enter.

    `keys` have the shape of the window. `places` are those of its points in the whole image; None
    if points of equal keys are in the order of the window, so that their keys will do.
    """
    flat = keys.reshape(-1)
    return flat if places is None else _ranks(flat, places.reshape(-1))


def first_marks(
    order: Array,
    keys: Array,
    marks: Marks,
    filtration: Filtration,
    entries: tuple[Points, Marks],
    links: Links,
    levels: NDArray[np.uint64],
) -> None:
    """Mark the points of a window from which steps lead to entries; other marks are dropped.

    The arguments are those of `spread_marks`.
    """
    near = near_of(keys.shape, filtration.cubes)
    later = later_words(order, near.steps, near.bits, near.places.size)
    flat = marks.reshape(-1)
    free = flat != NEVER
    flat[free] = UNKNOWN
    lead = ceil_div(int(near.steps.max()), LANES) + 1
    following = np.empty(links.deaths.size, np.int32)
    spread(
        later,
        near.rows,
        lead,
        _by_mark(entries),
        links.births,
        links.deaths,
        flat,
        following,
        spreading_of(free, lead),
        cut_of(keys, levels, lead),
    )
    ends = flat[links.deaths]
    # Points of death that were not reached still hold the negative number of a death.
    flat[links.deaths] = np.where(ends < 0, UNKNOWN, ends)


def spread_marks(
    order: Array,
    keys: Array,
    marks: Marks,
    filtration: Filtration,
    entries: tuple[Points, Marks],
    links: Links,
    levels: NDArray[np.uint64],
) -> None:
    """Spread the marks of entries within a window, to points whose own marks are larger.

    `keys` and `marks` have the shape of the window. The `entries` are places in it and marks that
    they can have, `levels` the keys after which labels are cut, by label, or none.
    """
    near = near_of(keys.shape, filtration.cubes)
    points, given = _by_mark(entries)
    if not points.size:
        return
    _spread(
        order,
        near.steps,
        keys.reshape(-1),
        levels,
        (points, given),
        links,
        marks.reshape(-1),
        np.empty(keys.size + 1, np.int64),
    )


def _by_mark(entries: tuple[Points, Marks]) -> tuple[Points, Marks]:
    """Return entries in the order of their marks."""
    first = np.argsort(entries[1], kind="stable")
    return entries[0][first], entries[1][first]


def _ranks(keys: Array, places: Points) -> NDArray[np.uint32]:
    """Return ranks of points by keys and, if equal, by places; copies of a point have the same."""
    order = np.lexsort((places, keys))
    new = np.ones(order.size, np.bool_)
    new[1:] = places[order[1:]] != places[order[:-1]]
    ranks = np.empty(order.size, np.uint32)
    ranks[order] = np.cumsum(new)
    return ranks


@kernel()
def _spread(order, steps, keys, levels, entries, links, marks, stack):
    """Give each entry its mark if that is less than its own, and spread the marks of entries.

    Entries come in the order of their marks, so that no point is given a second mark.
    """
    order = bare(order)
    steps = bare(steps)
    keys = bare(keys)
    levels = bare(levels)
    marks = bare(marks)
    stack = bare(stack)
    points = bare(entries[0])
    given = bare(entries[1])
    ends = bare(links.ends)
    deaths = bare(links.deaths)
    births = bare(links.births)
    for k in range(points.size):
        first = np.uint64(points[k])
        if marks[first] < given[k]:
            continue
        marks[first] = given[k]
        stack[0] = first
        size = np.uint64(1)
        while size:
            size -= ONE
            place = stack[size]
            mark = marks[np.uint64(place)]
            if ends[np.uint64(place) >> WORD_SHIFT] >> (np.uint64(place) & BIT_MASK) & ONE:
                at = np.searchsorted(deaths, place)
                while at < deaths.size and deaths[at] == place:
                    birth = np.uint64(births[at])
                    if marks[birth] > mark:
                        marks[birth] = mark
                        stack[size] = birth
                        size += ONE
                    at += 1
            uncut = mark & np.int32(1) == 0 and levels.size > 0
            level = levels[np.uint64(mark >> 1)] if uncut else np.uint64(0)
            entered = order[np.uint64(place)]
            for step in steps:
                beside = np.uint64(place + step)
                if marks[beside] <= mark:
                    continue
                after = order[beside]
                if after < entered or (after == entered and step < 0):
                    continue
                own = mark
                if uncut and np.uint64(keys[beside]) > level:
                    own = mark + np.int32(1)
                    if marks[beside] <= own:
                        continue
                marks[beside] = own
                stack[size] = beside
                size += ONE


def lower_labels(
    keys: Array, places: Points | None, marks: Marks, at: Points, filtration: Filtration
) -> NDArray[np.int32]:
    """Return the labels of the neighbours of points of a window that enter before them, or 0.

    The result has a row for each point, and a column for each neighbour.
    """
    steps = near_of(keys.shape, filtration.cubes).steps
    flat = keys.reshape(-1)
    beside = at[:, None] + steps
    own = flat[at][:, None]
    if places is None:
        is_after = np.broadcast_to(steps > 0, beside.shape)
    else:
        number = places.reshape(-1)
        is_after = number[beside] >= number[at][:, None]
    before = (flat[beside] < own) | ((flat[beside] == own) & ~is_after)
    found = marks.reshape(-1)[beside]
    return np.where(before & (found != UNKNOWN), found >> 1, 0).astype(np.int32)


def merged_of(rows: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Return the label that each of `count` components joins, or 0.

    `rows` are those of `lower_labels` for the points at which they end, in the order of entry.
    """
    deaths, width = rows.shape
    labels = np.zeros((deaths, width + 1), np.int32)
    labels[:, 1:] = rows
    keys = np.zeros_like(labels, dtype=np.uint8)
    keys[:, 0] = 1
    places = np.arange(deaths, dtype=np.int64) * (width + 1)
    steps = np.arange(1, width + 1)
    return merge_labels(places, keys.reshape(-1), labels.reshape(-1), steps, count)
