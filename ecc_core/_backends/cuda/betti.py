"""Betti curves and persistence pairs on a device, from minimum spanning forests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, complete, kind_of, kinds_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import ArrayView, adopt, as_cupy, has_nan, numbers
from ecc_core._backends.cuda.betti_regions import region_betti_curves as region_betti_curves
from ecc_core._backends.cuda.bins import Prepared, prepare
from ecc_core._backends.cuda.exact import EVERY_VALUE
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.scan import pick_levels
from ecc_core._backends.cuda.variants import variant_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE, BackendError


def betti_curves(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Betti numbers of each image of a batch at sorted thresholds: (batch, d, n) int64."""
    ndim = filtration.ndim
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # raises for NaN
    with adopt(image) as view:
        result = cupy.zeros((len(euler), ndim, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            host = launch.thresholds_on_host(thresholds)
            ends = _ends(view, host, filtration, as_cupy(mask))
            kinds = kinds_of(filtration)
            for i, counted in enumerate(ends):
                result[i] = complete(counted, kinds, euler[i], ndim)
        return view.wrap(result)


def _ends(
    view: ArrayView, thresholds: NDArray[Any], filtration: Filtration, mask: Any
) -> list[list[Any]]:
    """Return the numbers of components of each kind at each threshold, for each image."""
    device = view.array.device.id
    variant = variant_of(filtration, view.element, masked=mask is not None)
    prepared = prepare(thresholds, variant.element, variant.superlevel, device)
    codes, _, memory = codes_of(view, mask, variant, prepared)
    kinds, levels, found = kinds_of(filtration), prepared.rules.levels, []
    for image in codes:
        forests = Forests(image, kinds, levels, reverse=filtration.superlevel)
        pairs = zip(kinds, forests.histograms(), strict=True)
        found.append([_at_thresholds(counts, kind, filtration, prepared) for kind, counts in pairs])
    del memory
    return found


def _at_thresholds(histogram: Any, kind: Kind, filtration: Filtration, prepared: Prepared) -> Any:
    """Return components at each threshold; of the complement, without that of the frame."""
    reached = cupy.cumsum(histogram)[:-1]  # the last key is that of points that never enter
    if filtration.superlevel:
        reached = reached[::-1]
    at = pick_levels(cupy.ascontiguousarray(reached)[None], prepared)[0]
    return -at if kind.complement else at


def exact_betti_curves(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Return the levels at which a Betti number of one image changes, and the numbers there."""
    with adopt(image) as view:
        if view.element in EVERY_VALUE:
            levels = launch.every_value(view.element)
        else:
            values = numbers(view).ravel()
            levels = cupy.unique(values[~cupy.isnan(values)]).get()
        found = as_cupy(betti_curves(image, levels, filtration, mask=mask))[0]
        ordered = found[:, ::-1] if filtration.superlevel else found
        before = cupy.concatenate([cupy.zeros_like(ordered[:, :1]), ordered[:, :-1]], axis=1)
        changed = (ordered != before).any(axis=0)
        kept = cupy.flatnonzero(changed[::-1] if filtration.superlevel else changed)
        at = launch.wrap_levels(view, cupy.asarray(levels)[kept])
        return at, view.wrap(cupy.ascontiguousarray(found[:, kept]))


def persistence_pairs(
    image: Any,
    dimensions: Sequence[int],
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> list[tuple[Any, Any]]:
    """Return the points at which classes of an image (batch of 1) are born and die, by birth."""
    last = filtration.ndim - 1
    if any(0 < k < last for k in dimensions):
        raise BackendError(
            f"`dimension` must be 0 or {last} for a volume on a device: copy the array to the "
            "host for tunnels, which are of dimension 1"
        )
    with adopt(image) as view:
        mask, values = as_cupy(mask), numbers(view)[0]
        if filtration.nan == "raise" and values.dtype.kind == "f" and has_nan(view, mask):
            raise ValueError(NAN_MESSAGE)
        if not values.size:
            return [(cupy.empty(0, np.int64), cupy.empty(0, np.int64))] * len(dimensions)
        shown = None if mask is None else mask[0].view(np.uint8) != 0
        keys, never = _ranks(values, shown, filtration.superlevel)
        kinds = [kind_of(filtration, complement=k > 0) for k in dimensions]
        forests = Forests(keys, kinds, never, reverse=False, paired=True)
        return [_lasting(forests, i) for i in range(len(kinds))]


def _ranks(values: Any, shown: Any, superlevel: bool) -> tuple[Any, int]:
    """Return the ranks of values in the order of the filtration, and that of excluded points."""
    levels, ranks = cupy.unique(values.ravel(), return_inverse=True)
    ranks = ranks.reshape(values.shape)
    never = levels.size
    if superlevel:
        ranks = never - 1 - ranks
    ranks = ranks.astype(np.uint32)
    if values.dtype.kind == "f":
        ranks[cupy.isnan(values)] = never
    if shown is not None:
        ranks[~shown] = never
    return ranks, never


def _lasting(forests: Forests, index: int) -> tuple[Any, Any]:
    """Return where classes that last are born and die, by birth; -1 if they do not die."""
    births, deaths = forests.pairs(index)
    if forests.kinds[index].complement:
        births, deaths = deaths, births
    keys = forests.codes.ravel()
    deaths[(deaths >= 0) & (keys[deaths] == forests.levels)] = -1
    born = keys[births]
    lasts = cupy.flatnonzero((born < forests.levels) & ((deaths < 0) | (born != keys[deaths])))
    births, deaths, born = births[lasts], deaths[lasts], born[lasts].astype(np.int64)
    order = cupy.lexsort(cupy.stack([deaths, births, born]))
    return births[order], deaths[order]
