"""Regions of the components that last: points are flooded in the order in which they enter.

Every minimum starts a basin. A point goes to the oldest basin beside it. Where components meet, all
but the oldest one die; those that did not last become part of a basin of the older one. Basins are
numbered by age, from 1.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.order import entry_values, stable_order
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import round_to_levels

__all__ = ["Flooding", "persistent_regions"]

Array = NDArray[Any]
MOST = 27  # points of a neighbourhood
MOST_GAP = 2**64 - 1  # between integers


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
    births: NDArray[np.int64]
    deaths: NDArray[np.int64]
    merged_into: NDArray[np.int32]


def persistent_regions(
    image: Array,
    shown: Array,
    least: float,
    threshold: Any,
    filtration: Filtration,
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
    # Points around the image never enter, so that each one has all neighbours.
    values = np.pad(entry_values(image, filtration.superlevel), 1)
    order = stable_order(values.reshape(-1))
    order = order[np.pad(shown, 1).reshape(-1)[order]]
    limit = order.size
    labelled = shown
    if threshold is not None:
        labelled = shown & _reaches(image, threshold, filtration.superlevel)
        limit = int(np.count_nonzero(labelled))
    codes = _codes(values).reshape(-1)
    steps = _steps(values.shape, filtration.cubes)
    room = order.size // 2 + 2
    basins = np.zeros(values.size, np.int32)
    parents, components, merged = (np.zeros(room, np.int32) for _ in range(3))
    births, deaths = np.zeros(room, np.int64), np.full(room, -1)
    forest = parents, components, merged, births, deaths
    whole = codes.dtype.kind == "u"
    lasting = np.uint64(MOST_GAP if least > MOST_GAP else math.ceil(least))
    given = codes, steps, lasting if whole else np.float64(least)
    count = _flood(order[:limit], *given, basins, forest, 0)
    _follow(parents, count)
    owners = parents.copy()
    count = _flood(order[limit:], *given, basins, forest, count)
    _follow(parents, count)
    inner = basins.reshape(values.shape)[(slice(1, -1),) * image.ndim]
    owned = np.where(labelled, owners[inner], 0)
    points = [_inner(places, values.shape) for places in (births, deaths)]
    return _numbered(owned, parents[: count + 1], merged, *points)


def _reaches(image: Array, threshold: Any, superlevel: bool) -> NDArray[np.bool_]:
    """Whether points enter up to a threshold."""
    levels = round_to_levels(np.array([threshold]), image.dtype.newbyteorder("="), superlevel)
    if not levels.entered[0]:
        return np.zeros(image.shape, bool)
    values = image.view(np.uint8) if image.dtype.kind == "b" else image
    level = levels.values[0]
    reached: NDArray[np.bool_] = values >= level if superlevel else values <= level
    return reached


def _codes(values: Array) -> Array:
    """Numbers with the differences of the values, which hold in uint64 or float64."""
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype.kind in "bu":
        return values.astype(np.uint64)
    return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def _steps(padded: tuple[int, ...], cubes: bool) -> NDArray[np.int64]:
    """Distances from a point to its neighbours in the memory of a padded image."""
    strides = [math.prod(padded[axis + 1 :]) for axis in range(len(padded))]
    offsets = [o for o in itertools.product((-1, 0, 1), repeat=len(padded)) if any(o)]
    near = [o for o in offsets if cubes or sum(map(abs, o)) == 1]
    found: NDArray[np.int64] = np.array(near, np.int64) @ np.array(strides)
    return found


def _inner(places: NDArray[np.int64], padded: tuple[int, ...]) -> NDArray[np.int64]:
    """Numbers of points in an image from those in the padded one; -1 as it is."""
    index = [part - 1 for part in np.unravel_index(np.maximum(places, 0), padded)]
    shape = [n - 2 for n in padded]
    found = np.ravel_multi_index(index, shape, mode="clip") if 0 not in shape else places
    return np.where(places < 0, -1, found)


def _numbered(
    owners: NDArray[np.int32],
    parents: NDArray[np.int32],
    merged: NDArray[np.int32],
    births: NDArray[np.int64],
    deaths: NDArray[np.int64],
) -> Flooding:
    """Number the basins that last and have points."""
    ids = np.arange(parents.size)
    lasts = (parents == ids) & (np.bincount(owners.ravel(), minlength=ids.size)[: ids.size] > 0)
    lasts[0] = False
    numbers = np.where(lasts, np.cumsum(lasts), 0).astype(np.int32)
    kept = np.flatnonzero(lasts)
    return Flooding(numbers[owners], births[kept], deaths[kept], numbers[merged[kept]])


@kernel()
def _root(parents: Any, basin: Any) -> Any:
    parent = parents[basin]
    while parent != basin:
        parents[basin] = parents[parent]
        basin = parent
        parent = parents[basin]
    return basin


@kernel()
def _follow(parents: Any, count: Any) -> None:
    """Point all basins to their roots, which are older."""
    for basin in range(1, count + 1):
        parents[basin] = parents[parents[basin]]


@kernel()
def _flood(
    order: Any, codes: Any, steps: Any, least: Any, basins: Any, forest: Any, count: Any
) -> Any:
    """Flood points in this order, and return the number of basins so far."""
    parents, components, merged, births, deaths = forest
    beside = np.empty(MOST, np.int32)  # the basins around a point
    for point in order:
        near, last = 0, np.int32(0)
        home = np.int32(count + 1)
        for step in steps:
            basin = basins[point + step]
            if basin == 0 or basin == last:
                continue
            last = basin
            basin = _root(parents, basin)
            if near == 0 or basin != home:
                beside[near] = basin
                near += 1
                home = min(home, basin)
        if near == 0:
            count += 1
            parents[home] = components[home] = home
            births[home] = point
        basins[point] = home
        if near > 1:
            oldest = _root(components, home)
            for i in range(near):
                oldest = min(oldest, _root(components, beside[i]))
            for i in range(near):
                younger = _root(components, beside[i])
                if younger != oldest:
                    components[younger] = oldest
                    deaths[younger], merged[younger] = point, oldest
                    first, last_code = codes[births[younger]], codes[point]
                    if first == last_code or last_code - first < least:
                        parents[younger] = home
    return count
