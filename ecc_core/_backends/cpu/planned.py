"""Calls with small images of one layout: all that does not depend on their values is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ecc_core._backends.cpu.encoders.plans import curve_plans
from ecc_core._backends.cpu.scans.blocks import Scanner, cut
from ecc_core._backends.cpu.scans.stacks import add_histograms, parts_of, spatial_order
from ecc_core._backends.cpu.sinks.value_range import value_range
from ecc_core._backends.cpu.sources import Source
from ecc_core._request.filtration import Filtration
from ecc_core._request.thresholds import Thresholds

ALONE = 1  # worker


def plan(
    kind: str, images: Any, labels: Any, levels: Thresholds, filtration: Filtration
) -> Callable[[Any], Any] | None:
    """Return a function of an image, or None for images of several blocks and for regions.

    Arguments and results are those of :func:`ecc_core._backends.cuda.planned.plan`.
    """
    closed = filtration.direction is None and filtration.boundary.is_closed
    if labels is not None or images.size == 0 or not closed:
        return None
    shape, ndim, cubes = images.shape[1:], filtration.ndim, filtration.cubes
    options: Any = filtration.superlevel, cubes
    more: Any = {"masked": False, "points": images.size, "counts": True}
    make = partial(curve_plans, images.dtype.newbyteorder("="))
    at = levels.over(lambda: (0, 1), shape)
    plans = make(at, *options, **more)
    order = *spatial_order(images[0]), plans[-1].key_dtype.itemsize
    view = next(parts_of(images, None, *order))[1]
    if at.size == 0 or len(cut(view.shape, order[-1], ndim)) > 1:
        return None

    def run(image: Any) -> Any:
        batch, now, known = image[None], at, plans
        find = partial(value_range, batch, filtration)
        if levels.needs_range:
            now = levels.over(find, shape)
            known = make(now, *options, **more)
        result = np.zeros((1, now.size), np.int64)
        view = next(parts_of(batch, None, *order))[1]
        scanner = Scanner(Source(view), None, cubes, ndim)
        add_histograms(scanner, known, filtration.nan, ALONE, result)
        if kind == "number":
            return int(result.item())
        levels.warn_if_missed(now, result, find, "image")
        return (now.copy() if levels.array is None else None), result[0]

    return run
