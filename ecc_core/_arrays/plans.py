"""Calls of one image whose arguments, but for the values, were checked by an earlier call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import adapter_of
from ecc_core._arrays.request import Request
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import looks_thin

__all__ = ["Plan", "plan_of"]

KEPT = 256
KEPT_LEVELS = 4096  # most thresholds of a plan


class Plan(NamedTuple):
    """The curve of images of one layout.

    Attributes
    ----------
    filtration : Filtration
    run : function of an image
        Returns the curve, or None where the call must be made in full.
    """

    filtration: Filtration
    run: Callable[[Any], Any]


class _Arrays:
    """The arrays of a call, compared by all but the values of the image."""

    __slots__ = ("image", "key", "thresholds")

    def __init__(self, layout: Hashable, image: Any, thresholds: Any) -> None:
        self.key = layout, thresholds.dtype, thresholds.shape, thresholds.tobytes()
        self.image, self.thresholds = image, thresholds

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrays) and self.key == other.key


def plan_of(image: Any, thresholds: Any, options: dict[str, Any]) -> Plan | None:
    """Return the plan of the curve of an image at an array of thresholds on the host.

    None where a call must be made in full: for arrays on the host, with a mask, or where more than
    one kernel computes the curve. `options` are the keyword arguments of `Request.of`.
    """
    if not isinstance(thresholds, np.ndarray) or thresholds.ndim != 1:
        return None
    if thresholds.size > KEPT_LEVELS or thresholds.dtype.kind not in "biuf":
        return None
    layout = adapter_of(image).layout(image)
    if layout is None or options["mask"] is not None:
        return None
    arrays = _Arrays(layout, image, thresholds)
    try:
        return _plan(arrays, tuple(options), *options.values())
    except TypeError:  # options without a hash
        return None
    finally:
        arrays.image = arrays.thresholds = None  # the cache may keep the key


@lru_cache(maxsize=KEPT, typed=True)
def _plan(arrays: _Arrays, names: tuple[str, ...], *values: Any) -> Plan | None:
    image, thresholds = arrays.image, arrays.thresholds.copy()
    if looks_thin(image.shape):  # every call warns
        return None
    request = Request.of(image, thresholds, **dict(zip(names, values, strict=True)))
    make = getattr(request.origin.backend(), "plan", None)
    if make is None or request.geometry.batch:
        return None
    run = make(request.images, thresholds, request.filtration)
    return run and Plan(request.filtration, run)
