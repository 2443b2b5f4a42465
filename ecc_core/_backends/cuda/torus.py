"""Betti curves of images that are periodic along some axes, as functions on a torus.

The first plane across a periodic axis is repeated behind the last one, and both are joined: the
rest is as for images that end (:mod:`ecc_core._backends.cuda.forests`). In a volume, components of
the complement are classes of dimension 2, except for one; so are loops that it loses, of which a
torus has three. They wind around it, and the links of a forest tell which sides are crossed.
Therefore an axis that ends is one of a torus, too, with points that never enter between its ends.
"""

from typing import Any

import cupy
import numpy as np

from ecc_core._backends.borders import closed
from ecc_core._backends.components import kind_of
from ecc_core._backends.cuda import launch
from ecc_core._backends.cuda.arrays import adopt, as_cupy, thresholds_on_host
from ecc_core._backends.cuda.bins import Prepared, prepare
from ecc_core._backends.cuda.forests import Forests
from ecc_core._backends.cuda.recode import codes_of
from ecc_core._backends.cuda.samples import Images
from ecc_core._backends.cuda.scan import at_thresholds
from ecc_core._request.filtration import Filtration


def periodic_curves(image: Any, thresholds: Any, filtration: Filtration, mask: Any) -> Any:
    """Return Betti numbers of periodic images at thresholds, (images, classes, n) int64."""
    euler = as_cupy(launch.curve(image, thresholds, filtration, mask=mask))  # raises for NaN
    with adopt(image) as view:
        shape = view.array.shape[1:]
        result = cupy.zeros((len(euler), filtration.classes, euler.shape[-1]), np.int64)
        if result.size and view.array.size:
            images = Images.of(view, closed(filtration, filtration.ndim), as_cupy(mask))
            host = thresholds_on_host(thresholds)
            prepared = prepare(host, images.variant, view.array.device.id)
            codes, _, memory = codes_of(images, prepared, keep=True)
            inside = tuple(map(slice, shape))
            for i, code in enumerate(codes):
                result[i] = _numbers(code[inside], prepared, filtration, euler[i])
            del memory
        return view.wrap(result)


def _numbers(codes: Any, prepared: Prepared, filtration: Filtration, euler: Any) -> Any:
    """Return the Betti numbers of one image, (classes, n), of which one follows from the others."""
    ndim = filtration.ndim
    superlevel = filtration.superlevel
    levels = prepared.rules.levels
    wraps = filtration.boundary.wraps
    repeated = _repeated(codes, wraps, 0 if superlevel else levels)
    kinds = [kind_of(filtration, complement=k > 0) for k in range(1 + (ndim == 3))]
    on_torus = (True,) * 3 if ndim == 3 else wraps
    forests = Forests(repeated, kinds, levels, reverse=superlevel, wraps=on_torus)
    histograms = forests.histograms()
    last = levels - int(codes.min()) if superlevel else int(codes.max())
    complete = [last] if all(wraps) else []
    # The complement enters from the last key to the first.
    lost = [levels - key for key in forests.closed_loops(1)] if ndim == 3 else []
    events = cupy.stack([*histograms, _entries(complete, levels), _entries(lost, levels)])
    components, *outside, whole, loops = at_thresholds(events, prepared, superlevel)
    found = {0: components, ndim: whole}
    if ndim == 3:
        found[2] = cupy.maximum(-outside[0], 0) + loops
    if ndim > 1:
        found[1] = sum((-1) ** k * numbers for k, numbers in found.items()) - euler
    return cupy.stack([found[k] for k in range(filtration.classes)])


def _entries(keys: list[int], levels: int) -> Any:
    """Return how many of some keys there are, (levels + 1,) int64."""
    return cupy.asarray(np.bincount(np.array(keys, np.int64), minlength=levels + 1))


def _repeated(codes: Any, wraps: tuple[bool, ...], never: int) -> Any:
    """Return contiguous codes with the first plane across each axis of a torus behind the last one.

    Axes of a volume that end have a plane of points that never enter before it.
    """
    for axis, wrap in enumerate(wraps):
        first = codes[(slice(None),) * axis + (slice(0, 1),)]
        if wrap:
            codes = cupy.concatenate([codes, first], axis=axis)
        elif codes.ndim == 3:
            absent = cupy.full(first.shape, never, codes.dtype)
            codes = cupy.concatenate([codes, absent, first], axis=axis)
    return cupy.ascontiguousarray(codes)
