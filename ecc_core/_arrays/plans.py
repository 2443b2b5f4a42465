"""Cached plans of calls: a backend's launch for arrays of one layout, with checked arguments.

A cached plan skips validation: only the values of arrays can still be invalid.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import adapter_of, given_on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._request.filtration import Filtration
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes, looks_thin, warn_of_missing_axis
from ecc_core._request.thresholds import exact_array

MOST_PLANS = 256
"""The most plans that are kept."""
MOST_THRESHOLDS = 4096
"""The most thresholds of a plan."""
HASHED_BYTES = 64
"""The bytes at either end of the thresholds that are hashed."""


class Plan(NamedTuple):
    """A planned call, for arrays of one layout."""

    result: Any
    """A result of such a call without its arrays, or None if results record no options."""
    run: Callable[..., Any]
    """Takes the image, and the labels or the mask if the call has them. Returns None if the call
    must be made in full."""
    axis_is_missing: bool
    """Whether the image was taken for a volume, but its shape is that of a batch or of colours."""

    def warn_of_axis(self, image: Any) -> None:
        """Warn if `axis_is_missing`, as a call without a plan does."""
        if self.axis_is_missing:
            warn_of_missing_axis(image.shape)


class _Arrays:
    """The arrays of a call, equal to those of another if layouts and thresholds are equal."""

    __slots__ = ("hash", "image", "key", "labels", "mask", "request", "thresholds")

    def __init__(
        self, layouts: tuple[Hashable, ...], image: Any, labels: Any, mask: Any, thresholds: Any
    ) -> None:
        if isinstance(thresholds, np.ndarray):
            raw = thresholds.tobytes()
            self.key: Hashable = layouts, (thresholds.dtype, raw)
            # To hash all bytes would take longer than the rest of a planned call.
            self.hash = hash((layouts, raw[:HASHED_BYTES], raw[-HASHED_BYTES:], len(raw)))
        else:
            self.key = layouts, thresholds
            self.hash = hash(self.key)
        self.image = image
        self.labels = labels
        self.mask = mask
        self.thresholds = thresholds
        self.request: Request | None = None
        """The checked request of a call whose plan was not in the cache."""

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrays) and self.key == other.key

    def forget(self) -> None:
        """Drop the arrays, because the cache keeps the call."""
        self.image = self.labels = self.mask = self.thresholds = self.request = None


def plan_of(
    kind: str,
    image: Any,
    thresholds: Any,
    options: ImageOptions,
    *,
    labels: Any = None,
    result_of: Callable[[Filtration], Any] | None = None,
) -> tuple["Plan | None", Request | None]:
    """Return the plan of a kind of call, and the request if this call has checked its arguments.

    `result_of` makes the `result` of the plan, once for all calls that use the plan.

    The plan is None if a call must be made in full: for large arrays on the host, thresholds that
    are neither an int nor an array, options without a hash, and what a backend has no plan for.
    The request is None if it was not made. `thresholds` are on the host.
    """
    if not _can_be_planned(thresholds):
        return None, None
    layouts = [adapter_of(image).layout(image)]
    if labels is not None:
        layouts += "labels", adapter_of(labels).layout(labels)
    mask = options.mask
    if mask is not None:
        layouts += "mask", adapter_of(mask).layout(mask)
        options = options._replace(mask=None)
    if None in layouts:
        return None, None
    call = _Arrays(
        layouts=tuple(layouts), image=image, labels=labels, mask=mask, thresholds=thresholds
    )
    try:
        plan = _plan(kind, call, result_of, *options)
        request = None if plan is not None else call.request
    except TypeError:
        if _is_hashable(options):  # The error was not raised by the cache.
            raise
        return None, None
    finally:
        call.forget()
    if request is not None and _lacks_axis(image, options):
        warn_of_missing_axis(image.shape)
    return plan, request


def levels_of(thresholds: Any) -> Any:
    """Return thresholds as `plan_of` takes them: on the host, and sequences as an array."""
    if isinstance(thresholds, list | tuple):
        return exact_array(thresholds, "thresholds")
    return given_on_host(thresholds)


def thresholds_of(image: Any, thresholds: Any, levels: Any) -> Any:
    """Return the thresholds of a result: the argument if it is an array, otherwise `levels`."""
    if getattr(thresholds, "ndim", 0):
        return thresholds
    return origin_of(image).wrap(levels)


def _can_be_planned(thresholds: Any) -> bool:
    """Whether a plan can be kept for thresholds: a number of them, or a small array."""
    if type(thresholds) is int:
        return thresholds <= MOST_THRESHOLDS
    if type(thresholds) is not np.ndarray:  # Subclasses may be masked, or have a unit.
        return False
    if thresholds.ndim != 1 or thresholds.size > MOST_THRESHOLDS:
        return False
    return thresholds.dtype.kind in "biuf"


def _lacks_axis(image: Any, options: ImageOptions) -> bool:
    """Whether an image is taken for a volume, but probably is a batch or has colours."""
    return options.axis is None and looks_thin(image.shape)


def _is_hashable(values: tuple[Any, ...]) -> bool:
    try:
        hash(values)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=MOST_PLANS, typed=True)
def _plan(
    kind: str, call: _Arrays, result_of: Callable[[Filtration], Any] | None, *values: Any
) -> Plan | None:
    """Return a plan. The cache is typed, because 1 and True are equal but mean other options."""
    image = call.image
    options = ImageOptions(*values)._replace(mask=call.mask)
    thresholds = np.copy(call.thresholds) if np.ndim(call.thresholds) else call.thresholds
    axis_is_missing = _lacks_axis(image, options)
    if axis_is_missing:  # `plan_of` warns, because this function is not called for cached plans.
        options = options._replace(axis=all_axes(image))
    request = call.request = Request.of(image, thresholds, options, labels=call.labels)
    make = getattr(request.origin.backend(), "plan", None)
    if make is None:
        return None
    run = make(
        kind,
        request.images,
        request.labels,
        request.levels,
        request.filtration,
        mask=request.mask,
        geometry=request.geometry,
        workers=request.workers,
    )
    if run is None:
        return None
    result = None if result_of is None else result_of(request.filtration)
    return Plan(result, run, axis_is_missing)
