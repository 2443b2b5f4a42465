"""Regions of the components that last, as if points were flooded in the order in which they enter.

In such a flooding every minimum starts a basin, a point goes to the oldest basin beside it, and
where components meet, those that do not last become part of the oldest basin there. So a point has
the label of the oldest lasting minimum to which steps lead that go down to any lower neighbour, or
from a minimum that does not last to the point where its component dies.

Where points are brought into order in little time, they are flooded as defined
(`flood_in_order.py`). Elsewhere components are found first, and these steps are followed backwards,
from one lasting minimum after another, in words of points (`flood_words.py`).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.entering import (
    entering_points,
    exact_values,
    sorting_pays,
    stage_points,
)
from ecc_core._backends.cpu.betti.flood_in_order import (
    flood_in_order,
    joined_within,
    write_labels,
)
from ecc_core._backends.cpu.betti.flood_words import later_words, spread, spreading_of
from ecc_core._backends.cpu.betti.launch import laid_out, persistence_pairs
from ecc_core._backends.cpu.betti.memory import check_memory
from ecc_core._backends.cpu.betti.planar import planar_components
from ecc_core._backends.cpu.betti.relative_height import points_within
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._backends.cpu.gathering import values_at
from ecc_core._backends.cpu.llvm import LANES, bare
from ecc_core._backends.cpu.order import entry_values, narrowed, sort_keys, stable_order
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import round_to_levels
from ecc_core._request.persistence import lasting

Array = NDArray[Any]
Points = NDArray[np.int64]

CLOSED = np.iinfo(np.int32).max  # In place of a label for points that get none.


class Flooding(NamedTuple):
    """The components that last."""

    labels: NDArray[np.int32]
    """1 to k, oldest first, or 0; of the image's shape."""
    births: Points
    """Numbers of points in C order, (k,)."""
    deaths: Points
    """Numbers of points, (k,); the death of a component that does not die is -1."""
    merged_into: NDArray[np.int32]
    """The label of the component that each one joins when it dies, or 0, (k,)."""


def persistent_regions(
    image: Array,
    shown: Array,
    least: float,
    threshold: Any,
    filtration: Filtration,
    *,
    rel_height: float | None = None,
    workers: int | None = None,
) -> Flooding:
    """Return the components of an image without a batch axis that last for at least `least`.

    `shown`, of the image's shape, is False at points that never enter. Points that enter after the
    threshold, if there is one, have no label, nor, with `rel_height`, those that enter after that
    fraction of the persistence of their component. The filtration has no direction.
    """
    values = entry_values(image, filtration.superlevel)
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # -0.0 becomes 0.0.
    cut = _Cut(threshold, rel_height)
    if sorting_pays(image, not shown.all(), filtration):
        return _regions_in_order(image, values, shown, least, filtration, cut)
    return _regions_in_words(image, values, shown, least, filtration, cut, workers)


class _Cut(NamedTuple):
    """The limits of regions: a threshold, or a relative height."""

    threshold: Any
    rel_height: float | None

    def within(
        self,
        image: Array,
        values: Array,
        shown: NDArray[np.bool_],
        found: Flooding,
        superlevel: bool,
    ) -> NDArray[np.bool_]:
        """Return the points that enter before their region ends."""
        if self.rel_height is not None:
            shown = points_within(
                values,
                shown,
                found.labels,
                found.births,
                found.deaths,
                found.merged_into,
                self.rel_height,
            )
        if self.threshold is not None:
            shown = shown & _reaches(image, self.threshold, superlevel)
        return shown

    @property
    def is_none(self) -> bool:
        return self.threshold is None and self.rel_height is None


def _regions_in_order(
    image: Array,
    values: Array,
    shown: NDArray[np.bool_],
    least: float,
    filtration: Filtration,
    cut: _Cut,
) -> Flooding:
    """Return regions of an image whose points are sorted in little time."""
    check_memory(image.shape, image.dtype, dimensions=[0], filtration=filtration, threads=1)
    points = entering_points(image, shown, filtration)
    births, deaths, gap = exact_values(values, points, least)
    flooded = flood_in_order(points, births, deaths, gap, origins=not cut.is_none)
    minima = flooded.minima
    lasting = np.flatnonzero(minima.settled[1:]) + 1
    numbers = np.zeros(minima.settled.size, np.int32)
    numbers[lasting] = np.arange(1, lasting.size + 1, dtype=np.int32)
    labels = np.empty(image.shape, np.int32)
    write_labels(flooded.labels, points.staged.layout, numbers, labels.reshape(-1))
    forks = minima.deaths[lasting]
    ends = np.full(lasting.size, -1)
    ends[forks >= 0] = points.staged.in_image(points.forks[forks[forks >= 0]])
    found = Flooding(
        labels,
        points.staged.in_image(points.minima[lasting - 1]),
        ends,
        numbers[minima.merged_into[lasting]],
    )
    if cut.is_none:
        return found
    inside = cut.within(image, values, shown, found, filtration.superlevel)
    joined = joined_within(flooded, points, inside)
    return _born_within(found._replace(labels=np.where(inside & joined, labels, 0)), inside)


def _born_within(found: Flooding, inside: NDArray[np.bool_]) -> Flooding:
    """Return the regions that begin before they are cut, which come first."""
    born = inside.reshape(-1)[found.births]
    births = found.births[born]
    merged = found.merged_into[: births.size]
    return Flooding(found.labels, births, found.deaths[born], merged)


def _regions_in_words(
    image: Array,
    values: Array,
    shown: NDArray[np.bool_],
    least: float,
    filtration: Filtration,
    cut: _Cut,
    workers: int | None,
) -> Flooding:
    """Return regions of an image whose points are not sorted, by words of points."""
    births, deaths, weak, merged = _components(image, shown, least, filtration, workers)
    keys = np.pad(ordered_keys(values), 1)
    near = near_of(keys.shape, filtration.cubes)
    later = later_words(keys, near.steps, near.bits, near.places.size)
    flooded = _flood(later, shown, births, weak, near)
    if merged is None:
        merged = _merged_labels(values, deaths, keys, flooded, near)
    labels = np.empty(image.shape, np.int32)
    _keep_shown(flooded, shown, labels)
    del flooded, keys  # A volume has room for one array of labels with a border at a time.
    found = Flooding(labels, births, deaths, merged)
    if cut.is_none:
        return found
    inside = cut.within(image, values, shown, found, filtration.superlevel)
    found = _born_within(found, inside)
    _keep_shown(_flood(later, inside, found.births, weak, near), inside, labels)
    return found


def _merged_labels(
    values: Array, deaths: Points, keys: Array, flooded: NDArray[np.int32], near: Near
) -> NDArray[np.int32]:
    """Return the label of the component that each one joins when it dies, or 0."""
    ends = _in_order(deaths[deaths >= 0], values.reshape(-1))
    places = _padded(ends, values.shape)
    return merge_labels(places, keys.reshape(-1), flooded.reshape(-1), near.steps, deaths.size)


def _keep_shown(flooded: NDArray[np.int32], shown: Array, labels: NDArray[np.int32]) -> None:
    """Write the labels of the points shown, and 0 for those that have none, without the border."""
    inner = flooded[(slice(1, -1),) * flooded.ndim]
    labels.fill(0)
    np.copyto(labels, inner, where=shown & (inner > 0))


def _in_order(points: Points, values: Array) -> Points:
    """Return points in the order in which they enter, those of equal values in C order."""
    points = points[sort_keys(points.astype(np.uint64), values.size.bit_length())]
    return points[stable_order(values[points])]


def _components(
    image: Array, shown: Array, least: float, filtration: Filtration, workers: int | None
) -> tuple[Points, Points, Points, NDArray[np.int32] | None]:
    """Return where components that last begin and end, oldest first, and where the others do.

    For a plane, also returns the label of the component that each lasting one joins, or 0.
    """
    masked = not shown.all()
    omitted = replace(filtration, nan="omit")
    elders = None
    if image.ndim < 3:
        check_memory(image.shape, image.dtype, dimensions=[0], filtration=omitted, threads=1)
        field = laid_out(narrowed(image, masked), shown if masked else None)
        births, deaths, elders = planar_components(field, omitted)
    else:
        mask = shown[None] if masked else None
        ((births, deaths),) = persistence_pairs(
            image[None], [0], omitted, mask=mask, workers=workers, short=True
        )
    flat = image.reshape(-1)
    values = values_at(flat, births), values_at(flat, deaths)
    lasts = (deaths < 0) | ((values[0] != values[1]) & lasting(*values, least))
    weak = np.stack([births, deaths])[:, ~lasts]
    merged = None
    if elders is not None:
        numbers = np.cumsum(lasts, dtype=np.int32)
        merged = np.where(deaths < 0, np.int32(0), numbers[elders])[lasts]
    return births[lasts], deaths[lasts], weak, merged


def _flood(
    later: Array, shown: Array, births: Points, weak: Points, near: Near
) -> NDArray[np.int32]:
    """Return the labels of the points shown, with a border of points that get none."""
    # The kernel needs labels in C order, and `np.where` keeps the order of the mask.
    inside = np.pad(np.ascontiguousarray(shown), 1)
    labels = np.where(inside, np.int32(0), np.int32(CLOSED))
    weak = weak[:, shown.reshape(-1)[weak[1]]]
    places, *ends = (_padded(points, shown.shape) for points in (births, *weak))
    seeds = places, np.arange(1, places.size + 1, dtype=np.int32)
    following = np.empty(ends[0].size, np.int32)
    lead = ceil_div(int(near.steps.max()), LANES) + 1
    waiting = spreading_of(inside, lead)
    flat = labels.reshape(-1)
    spread(later, near.rows, lead, seeds, *ends, flat, following, waiting, None)
    return labels


def _reaches(image: Array, threshold: Any, superlevel: bool) -> NDArray[np.bool_]:
    """Return whether points enter up to a threshold."""
    levels = round_to_levels(np.array([threshold]), image.dtype.newbyteorder("="), superlevel)
    if not levels.entered[0]:
        return np.zeros(image.shape, bool)
    values = image.view(np.uint8) if image.dtype.kind == "b" else image
    level = levels.values[0]
    reached: NDArray[np.bool_] = values >= level if superlevel else values <= level
    return reached


class Near(NamedTuple):
    """The neighbours of a point in a padded image."""

    steps: Points
    """Distances to the m neighbours in memory."""
    bits: Points
    """The bit of each of these neighbours in a set."""
    rows: Points
    """Distances to the 3**(d - 1) rows of three points around a point, whose bits follow each
    other."""
    places: Points
    """The distance of the point of each of the 3**d bits."""


def near_of(padded: tuple[int, ...], cubes: bool) -> Near:
    ndim = len(padded)
    strides = np.array([math.prod(padded[axis + 1 :]) for axis in range(ndim)])
    offsets = np.array(list(itertools.product((-1, 0, 1), repeat=ndim)))
    far = np.abs(offsets).sum(axis=1)
    bits = np.flatnonzero((far > 0) & (cubes | (far == 1)))
    places: Points = offsets @ strides
    return Near(places[bits], bits, places[::3].copy(), places)


def _padded(points: Points, shape: tuple[int, ...]) -> Points:
    """Convert numbers of points in the image to those in the padded image."""
    slices, rows, columns = (*(1,) * (3 - len(shape)), *shape)
    row_step = columns + 2 if len(shape) > 1 else 0
    slice_step = (rows + 2) * row_step if len(shape) > 2 else 0
    padded = np.empty(points.size, np.int64)
    layout = slices, rows, columns, slice_step, row_step
    stage_points(np.ascontiguousarray(points, np.int64), layout, padded)
    return padded


def merge_labels(
    places: Points,
    keys: Array,
    labels: NDArray[np.int32],
    steps: Points,
    count: int,
) -> NDArray[np.int32]:
    """Return the label that each of `count` components joins, or 0; `places` are those of deaths.

    Places are in the order of deaths. The labels around them are read in the order of memory,
    because in that of deaths each read would miss the cache.
    """
    in_memory = sort_keys(places.astype(np.uint64), keys.size.bit_length())
    spans = np.empty((places.size, 2), np.int64)
    # Few elements are written to, so that the array takes little memory.
    listed = np.empty(places.size * steps.size, np.int32)
    _list_lower(places, in_memory, keys, labels, steps, spans, listed)
    merged = np.arange(count + 1, dtype=np.int32)
    _merge(spans, listed, merged.copy(), merged)
    merged[merged == np.arange(merged.size)] = 0
    return merged[1:]


@kernel()
def _list_lower(places, in_memory, keys, labels, steps, spans, listed):
    """List the labels of the neighbours that enter before each place, and where its list is."""
    keys = bare(keys)
    labels = bare(labels)
    listed = bare(listed)
    size = 0
    for i in in_memory:
        place = places[i]
        key = keys[place]
        spans[i, 0] = size
        last = np.int32(0)
        for step in steps:
            label = labels[place + step]
            beside = keys[place + step]
            lower = beside < key or (beside == key and step < 0)
            if lower and 0 < label < CLOSED and label != last:
                listed[size] = label
                size += 1
                last = label
        spans[i, 1] = size


@kernel()
def _merge(spans, listed, parents, merged):
    """Write which label each label joins where the listed ones meet, in the order of deaths."""
    parents = bare(parents)
    merged = bare(merged)
    listed = bare(listed)
    for i in range(spans.shape[0]):
        first = spans[i, 0]
        last = spans[i, 1]
        oldest = merged.size
        for k in range(first, last):  # The oldest component must be known before others join it.
            listed[k] = find(parents, listed[k])
            oldest = min(oldest, np.int64(listed[k]))
        for k in range(first, last):
            root = listed[k]
            if root != oldest:
                parents[root] = merged[root] = oldest
