"""Betti curves and persistence pairs on a device, from minimum spanning forests."""

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import closed
from ecc_core._backends.components import complete, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    adopt,
    as_cupy,
    numbers,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.exact import EVERY_VALUE, every_value
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.keys import keys_of
from ecc_core._backends.cuda.pairs import pairs_of_keys
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._backends.cuda.torus import (
    circles_of,
    curves_around,
    periodic_curves,
    without_circles,
)
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes
from ecc_core._request.persistence import lasting


def betti_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    least: float = 0,
) -> Any:
    if least > 0:
        return _lasting_curves(image, thresholds, filtration=filtration, mask=mask, least=least)
    circles = circles_of(image.shape[1:], filtration)
    if circles:
        rest, sets = without_circles(image, filtration)
        shown = None if mask is None else without_circles(mask, filtration)[0]
        found = as_cupy(betti_curves(rest, thresholds, sets, mask=shown))
        with adopt(image) as view:
            return view.wrap(curves_around(found, circles))
    if not filtration.boundary.is_closed:
        return periodic_curves(image, thresholds, filtration, mask)
    ndim = filtration.ndim
    superlevel = filtration.superlevel
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # It raises for NaN.
    with adopt(image) as view:
        result = cupy.zeros((len(euler), ndim, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            images = Images.of(view, filtration, as_cupy(mask))
            kinds = kinds_of(filtration)
            host = thresholds_on_host(thresholds)
            prepared = prepare(host, images.variant, view.array.device.id)
            codes, _, memory = codes_of(images, prepared)
            for i, code in enumerate(codes):
                forests = Forests(code, kinds, prepared.rules.levels, reverse=superlevel)
                reached = at_thresholds(forests.histograms(), prepared, superlevel)
                # The histogram of a complement has no entry for its frame.
                signs = (-1 if kind.complement else 1 for kind in kinds)
                ends = [sign * at for sign, at in zip(signs, reached, strict=True)]
                result[i] = complete(ends, kinds, euler[i], ndim)
            del memory
        return view.wrap(result)


def _lasting_curves(
    image: Any, thresholds: Any, filtration: Filtration, mask: Any, least: float
) -> Any:
    """Return Betti numbers of classes that last for at least `least`, (images, d, n) int64."""
    with adopt(image) as view:
        host = thresholds_on_host(thresholds)
        mask = as_cupy(mask)
        result = cupy.zeros((len(view.array), filtration.classes, host.size), np.int64)
        if not (result.size and view.array.size):
            return view.wrap(result)
        images = Images.of(view, closed(filtration, filtration.ndim), mask)
        prepared = prepare(host, images.variant, view.array.device.id)
        codes, _, memory = codes_of(images, prepared, keep=True)
        values = values_of(view)
        levels = prepared.rules.levels
        inside = tuple(map(slice, values.shape[1:]))
        dimensions = range(filtration.classes)
        for i, own in enumerate(values):
            flat = codes[i][inside].ravel()
            shown = None if mask is None else mask[i]
            found = lasting_points(
                own, shown, dimensions=dimensions, filtration=filtration, least=least
            )
            alive = []
            for points in found:
                born, died = (cupy.bincount(flat[at], minlength=levels + 1) for at in points)
                counts = born - died
                alive.append(counts[::-1] if filtration.superlevel else counts)
            result[i] = at_thresholds(cupy.stack(alive), prepared, filtration.superlevel)
        del memory
        return view.wrap(result)


def lasting_points(
    values: Any, mask: Any, dimensions: Sequence[int], filtration: Filtration, least: float
) -> list[tuple[Any, Any]]:
    """Return the points at which classes that last are born and die; not all of them die."""
    flat = values.ravel()
    listed = []
    for births, deaths in _pairs(values, mask, dimensions, filtration):
        dies = deaths >= 0
        if least > 0:
            lasts = lasting(flat[births], flat[deaths], least)
            births = births[cupy.flatnonzero(lasts | ~dies)]
            dies = dies & lasts
        listed.append((births, deaths[cupy.flatnonzero(dies)]))
    return listed


def values_of(view: ArrayView) -> Any:
    """Return the images as numbers; True is any byte but 0."""
    values = numbers(view)
    return values.view(np.uint8) != 0 if values.dtype.kind == "b" else values


def exact_betti_curves(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    least: float = 0,
) -> tuple[Any, Any]:
    with adopt(image) as view:
        if least > 0:
            levels = _levels_of_lasting(view, as_cupy(mask), filtration, least)
        elif view.element in EVERY_VALUE:
            levels = every_value(view.element)
        else:
            values = numbers(view).ravel()
            levels = cupy.unique(values[~cupy.isnan(values)]).get()
        found = as_cupy(betti_curves(image, levels, filtration, mask=mask, least=least))[0]
        at, changed = changes(cupy.asarray(levels), found, filtration.superlevel)
        return view.wrap_levels(at), view.wrap(cupy.ascontiguousarray(changed))


def _levels_of_lasting(
    view: ArrayView, mask: Any, filtration: Filtration, least: float
) -> NDArray[Any]:
    """Return the values at which classes that last of the only image are born and die."""
    values = values_of(view)[0]
    shown = None if mask is None else mask[0]
    dimensions = range(filtration.classes)
    found = lasting_points(values, shown, dimensions=dimensions, filtration=filtration, least=least)
    points = cupy.concatenate([points for pair in found for points in pair])
    levels: NDArray[Any] = cupy.unique(values.ravel()[points]).get()
    return levels


def persistence_pairs(
    image: Any,
    dimensions: Sequence[int],
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
) -> list[tuple[Any, Any]]:
    with adopt(image) as view:
        shown = None if mask is None else as_cupy(mask)[0]
        return _pairs(values_of(view)[0], shown, dimensions, filtration)


def _pairs(
    values: Any, mask: Any, dimensions: Sequence[int], filtration: Filtration
) -> list[tuple[Any, Any]]:
    """Return the points at which classes of an image are born and die, for each dimension."""
    if not values.size:
        return [(cupy.empty(0, np.int64), cupy.empty(0, np.int64)) for _ in dimensions]
    keys, never = keys_of(values, mask, filtration)
    return pairs_of_keys(keys, never, dimensions, filtration)
