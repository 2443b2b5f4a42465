"""Regions of the components that last, as if points were flooded in the order in which they enter.

In such a flooding every minimum starts a basin, a point goes to the oldest basin beside it, and
where components meet, those that do not last become part of the oldest basin there. So a point has
the label of the oldest lasting minimum to which steps lead that go down to any lower neighbour, or
from a minimum that does not last to the point where its component dies. These steps are followed
backwards, from one lasting minimum after another, which needs no order of all points.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.launch import by_birth, forest_pairs
from ecc_core._backends.cpu.betti.order import entry_values
from ecc_core._backends.cpu.betti.scan import ONE, bare
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.order import ordered_keys
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import round_to_levels
from ecc_core._request.persistence import lasting

__all__ = ["Flooding", "persistent_regions"]

Array = NDArray[Any]
Points = NDArray[np.int64]

CLOSED = np.iinfo(np.int32).max  # the label of points that get none; others have 0 before


class Flooding(NamedTuple):
    """The components that last.

    Attributes
    ----------
    labels : int32 array of the image's shape
        1 to k, oldest first, or 0.
    births, deaths : (k,) int64 arrays
        Numbers of points in C order; the death of a component that does not die is -1.
    merged_into : (k,) int32 array
        The label of the component that each one joins when it dies, or 0.
    """

    labels: NDArray[np.int32]
    births: Points
    deaths: Points
    merged_into: NDArray[np.int32]


class _Components(NamedTuple):
    """Points at which the components that last are born and die, oldest first, and the others."""

    births: Points
    deaths: Points
    weak_births: Points
    weak_deaths: Points


def persistent_regions(
    image: Array,
    shown: Array,
    least: float,
    threshold: Any,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> Flooding:
    """Return the components of an image that last for at least `least`.

    Parameters
    ----------
    image : (*spatial) array
        Without a direction.
    shown : bool array of the same shape
        False at points that never enter.
    least : float
    threshold : number or None
        Points that enter after it have no label.
    """
    found = _components(image, shown, least, filtration, workers)
    values = entry_values(image, filtration.superlevel)
    if values.dtype.kind == "f":
        values = values + values.dtype.type(0)  # no -0.0
    keys = np.pad(ordered_keys(values), 1)
    steps = _steps(keys.shape, filtration.cubes)
    labels = _flood(keys, shown, found, steps)
    merged = np.arange(found.births.size + 1, dtype=np.int32)
    dies = np.flatnonzero(found.deaths >= 0)
    ends = found.deaths[dies]
    dies = dies[np.lexsort((ends, values.reshape(-1)[ends]))]
    places = _padded(found.deaths[dies], image.shape)
    _merge(places, keys.reshape(-1), labels.reshape(-1), steps, merged.copy(), merged)
    merged[merged == np.arange(merged.size)] = 0
    if threshold is not None:  # the components that are born before it come first
        shown = shown & _reaches(image, threshold, filtration.superlevel)
        born = shown.reshape(-1)[found.births]
        found = found._replace(births=found.births[born], deaths=found.deaths[born])
        merged = merged[: found.births.size + 1]
        labels = _flood(keys, shown, found, steps)
    inner = labels[(slice(1, -1),) * image.ndim]
    return Flooding(np.where(shown & (inner > 0), inner, 0), found.births, found.deaths, merged[1:])


def _components(
    image: Array, shown: Array, least: float, filtration: Filtration, workers: int | None
) -> _Components:
    """Return where components begin and end."""
    empty = np.empty(0, np.int64)
    if not shown.any():
        return _Components(empty, empty, empty, empty)
    never, flat = ~shown.reshape(-1), image.reshape(-1)
    mask = None if shown.all() else shown
    omitted = replace(filtration, nan="omit")
    births, deaths = forest_pairs(image, mask, never, False, omitted, workers)
    births, deaths = births[~never[births]], deaths[~never[births]]
    deaths = np.where((deaths >= 0) & never[deaths], -1, deaths)
    native = image.dtype.newbyteorder("=")
    values = flat[births].astype(native), flat[deaths].astype(native)
    lasts = (deaths < 0) | ((values[0] != values[1]) & lasting(*values, least))
    strong = by_birth(flat, births[lasts], deaths[lasts], filtration.superlevel)
    return _Components(*strong, births[~lasts], deaths[~lasts])


def _flood(keys: Array, shown: Array, found: _Components, steps: Points) -> NDArray[np.int32]:
    """Return the labels of the points shown, with a border of points that get none."""
    labels = np.full(keys.shape, CLOSED, np.int32)
    labels[(slice(1, -1),) * keys.ndim][shown] = 0
    joined = shown.reshape(-1)[found.weak_deaths]
    weak = found.weak_births[joined], found.weak_deaths[joined]
    seeds, *ends = (_padded(points, shown.shape) for points in (found.births, *weak))
    stack = np.empty(shown.size, np.int32 if keys.size < 2**31 else np.int64)
    following = np.empty(ends[0].size, np.int32)
    _spread(keys.reshape(-1), steps, seeds, *ends, labels.reshape(-1), stack, following)
    return labels


def _reaches(image: Array, threshold: Any, superlevel: bool) -> NDArray[np.bool_]:
    """Whether points enter up to a threshold."""
    levels = round_to_levels(np.array([threshold]), image.dtype.newbyteorder("="), superlevel)
    if not levels.entered[0]:
        return np.zeros(image.shape, bool)
    values = image.view(np.uint8) if image.dtype.kind == "b" else image
    level = levels.values[0]
    reached: NDArray[np.bool_] = values >= level if superlevel else values <= level
    return reached


def _steps(padded: tuple[int, ...], cubes: bool) -> Points:
    """Distances from a point to its neighbours in the memory of a padded image."""
    strides = [math.prod(padded[axis + 1 :]) for axis in range(len(padded))]
    offsets = [o for o in itertools.product((-1, 0, 1), repeat=len(padded)) if any(o)]
    near = [o for o in offsets if cubes or sum(map(abs, o)) == 1]
    found: Points = np.array(near, np.int64) @ np.array(strides)
    return found


def _padded(points: Points, shape: tuple[int, ...]) -> Points:
    """Numbers of points in the padded image from those in the image."""
    if points.size == 0:
        return points
    index = tuple(part + 1 for part in np.unravel_index(points, shape))
    found: Points = np.ravel_multi_index(index, [n + 2 for n in shape])
    return found


@kernel()
def _spread(
    keys: Any,
    steps: Any,
    seeds: Any,
    births: Any,
    deaths: Any,
    labels: Any,
    stack: Any,
    following: Any,
) -> None:
    """Label the points from which steps lead to seeds, by the number of the first of these.

    `births` and `deaths` are those of the components that do not last. Before a point of death gets
    a label it holds ``-1 - k`` for the last of them, and `following` the same for the next ones.
    """
    keys, labels, stack = bare(keys), bare(labels), bare(stack)
    for k in range(deaths.size):
        following[k] = labels[deaths[k]]
        labels[deaths[k]] = -1 - k
    for number in range(seeds.size):
        labels[seeds[number]] = number + 1
        stack[0], size = seeds[number], np.uint64(1)
        while size:
            size -= ONE
            place = stack[size]
            key = keys[np.uint64(place)]
            for step in steps:
                beside = np.uint64(place + step)
                label = labels[beside]
                if label <= 0 and (keys[beside] > key or (keys[beside] == key and step > 0)):
                    labels[beside] = number + 1
                    stack[size] = beside
                    size += ONE
                    while label < 0:
                        minimum = births[-1 - label]
                        labels[minimum] = number + 1
                        stack[size] = minimum
                        size += ONE
                        label = following[-1 - label]


@kernel()
def _merge(places: Any, keys: Any, labels: Any, steps: Any, parents: Any, merged: Any) -> None:
    """Write which label each one joins, for the places at which they end, in their order."""
    for place in places:
        oldest = merged.size
        for step in steps:
            label = labels[place + step]
            beside, key = keys[place + step], keys[place]
            if 0 < label < CLOSED and (beside < key or (beside == key and step < 0)):
                oldest = min(oldest, find(parents, label))
        for step in steps:
            label = labels[place + step]
            beside, key = keys[place + step], keys[place]
            if 0 < label < CLOSED and (beside < key or (beside == key and step < 0)):
                younger = find(parents, label)
                if younger != oldest:
                    parents[younger] = oldest
                    merged[younger] = oldest
