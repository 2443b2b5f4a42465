"""Calls whose arguments, but for the values of arrays, were checked by an earlier call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import adapter_of
from ecc_core._arrays.request import Request
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import looks_thin

KEPT = 256
KEPT_LEVELS = 4096  # most thresholds of a plan


class Plan(NamedTuple):
    """What a backend computes for arrays of one layout.

    Attributes
    ----------
    filtration : Filtration
    run : function of the image, and of labels for regions
        Returns None where a call must be made in full.
    """

    filtration: Filtration
    run: Callable[..., Any]


class _Arrays:
    """The arrays of a call, compared by all but the values of the image and of labels."""

    __slots__ = ("given", "key", "thresholds")

    def __init__(self, layouts: tuple[Hashable, ...], given: Any, thresholds: Any) -> None:
        self.key: Hashable = layouts, thresholds
        if isinstance(thresholds, np.ndarray):
            self.key = layouts, (thresholds.dtype, thresholds.tobytes())
        self.given, self.thresholds = given, thresholds

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrays) and self.key == other.key


def plan_of(
    kind: str, arrays: tuple[Any, ...], thresholds: Any, options: dict[str, Any]
) -> Plan | None:
    """Return the plan of a kind of call with an image, and perhaps labels.

    None where a call must be made in full: for large arrays on the host, with a mask, thresholds
    that are neither an int nor an array on the host, and what a backend has no plan for. `options`
    are the keyword arguments of `Request.of`.
    """
    layouts = tuple(adapter_of(array).layout(array) for array in arrays)
    if None in layouts or options.get("mask") is not None or not _may_be_kept(thresholds):
        return None
    call = _Arrays(layouts, arrays, thresholds)
    try:
        return _plan(kind, call, tuple(options), *options.values())
    except TypeError:  # options without a hash
        return None
    finally:
        call.given = call.thresholds = None  # the cache may keep the call


def _may_be_kept(thresholds: Any) -> bool:
    if not isinstance(thresholds, np.ndarray):
        return type(thresholds) is int
    few = thresholds.ndim == 1 and thresholds.size <= KEPT_LEVELS
    return few and thresholds.dtype.kind in "biuf"


@lru_cache(maxsize=KEPT, typed=True)
def _plan(kind: str, call: _Arrays, names: tuple[str, ...], *values: Any) -> Plan | None:
    image, *labels = call.given
    if looks_thin(image.shape):  # every call warns
        return None
    options = dict(zip(names, values, strict=True))
    thresholds = np.copy(call.thresholds) if np.ndim(call.thresholds) else call.thresholds
    request = Request.of(image, thresholds, labels=labels[0] if labels else None, **options)
    make = getattr(request.origin.backend(), "plan", None)
    if make is None or request.geometry.batch:
        return None
    run = make(kind, request.images, request.labels, request.levels, request.filtration)
    return run and Plan(request.filtration, run)
