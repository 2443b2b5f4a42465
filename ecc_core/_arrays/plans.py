"""Plans of calls: what a backend computes for arrays of one layout, and arguments checked before.

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
from ecc_core._request.image import all_axes, looks_thin, warn_of_missing_axis
from ecc_core._request.options import ImageOptions
from ecc_core._request.thresholds import exact_array

KEPT = 256
"""The most plans that are kept."""
KEPT_LEVELS = 4096
"""The most thresholds of a plan."""
HASHED = 64
"""The bytes at either end of thresholds of which a hash is made."""


class Plan(NamedTuple):
    """What a backend computes for arrays of one layout."""

    result: Any
    """A result of such a call without its arrays, or None where results have no facts."""
    run: Callable[..., Any]
    """Takes the image, and the labels or the mask of a call that has them. Returns None if the call
    must be made in full."""
    axis_is_missing: bool

    def warn_of_axis(self, image: Any) -> None:
        """Warn, as every call does, if the image was taken for a volume and probably is none."""
        if self.axis_is_missing:
            warn_of_missing_axis(image.shape)


class _Arrays:
    """The arrays of a call, compared by all but the values of the image, labels and mask."""

    __slots__ = ("hash", "image", "key", "labels", "mask", "request", "thresholds")

    def __init__(
        self, layouts: tuple[Hashable, ...], image: Any, labels: Any, mask: Any, thresholds: Any
    ) -> None:
        if isinstance(thresholds, np.ndarray):
            raw = thresholds.tobytes()
            self.key: Hashable = layouts, (thresholds.dtype, raw)
            # Of all bytes it would take longer than everything else that is done for a kept call.
            self.hash = hash((layouts, raw[:HASHED], raw[-HASHED:], len(raw)))
        else:
            self.key = layouts, thresholds
            self.hash = hash(self.key)
        self.image = image
        self.labels = labels
        self.mask = mask
        self.thresholds = thresholds
        self.request: Request | None = None
        """The request of a call whose plan was not in the cache: it has been checked, too."""

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Arrays) and self.key == other.key

    def forget(self) -> None:
        """Drop the arrays, since a cache may keep the call."""
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
    """Return the plan of a kind of call, whose `run` takes the image and the other arrays given.

    `result_of` makes the `result` of the plan, whose facts are therefore checked once.

    Without a plan, also the request, if the arguments have been checked now; otherwise None.

    There is no plan where a call must be made in full: for large arrays on the host, thresholds
    that are neither an int nor an array, options without a hash, and what a backend has no plan
    for. `thresholds` are on the host.
    """
    few = type(thresholds) is int and thresholds <= KEPT_LEVELS
    if type(thresholds) is np.ndarray:  # subclasses may be masked, or have a unit
        few = thresholds.ndim == 1 and thresholds.size <= KEPT_LEVELS
        few = few and thresholds.dtype.kind in "biuf"
    if not few:
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
        if _is_hashable(options):  # such as an error of the backend
            raise
        return None, None
    finally:
        call.forget()
    if request is not None and _lacks_axis(image, options):
        warn_of_missing_axis(image.shape)
    return plan, request


def levels_of(thresholds: Any) -> Any:
    """Return thresholds as calls are planned for them: on the host, and numbers in an array."""
    if isinstance(thresholds, list | tuple):
        return exact_array(thresholds, "thresholds")
    return given_on_host(thresholds)


def thresholds_of(image: Any, thresholds: Any, levels: Any) -> Any:
    """Return the thresholds of a result, which are those given if they are an array."""
    if getattr(thresholds, "ndim", 0):
        return thresholds
    return origin_of(image).wrap(levels)


def _lacks_axis(image: Any, options: ImageOptions) -> bool:
    """Whether an image is taken for a volume that is none, probably."""
    return options.axis is None and looks_thin(image.shape)


def _is_hashable(values: tuple[Any, ...]) -> bool:
    try:
        hash(values)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=KEPT, typed=True)
def _plan(
    kind: str, call: _Arrays, result_of: Callable[[Filtration], Any] | None, *values: Any
) -> Plan | None:
    """Return a plan; arguments are compared with their types, of which 1 and True differ."""
    image = call.image
    options = ImageOptions(*values)._replace(mask=call.mask)
    thresholds = np.copy(call.thresholds) if np.ndim(call.thresholds) else call.thresholds
    axis_is_missing = _lacks_axis(image, options)
    if axis_is_missing:  # as every call, and not only this one, warns
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
    )
    if run is None:
        return None
    result = None if result_of is None else result_of(request.filtration)
    return Plan(result, run, axis_is_missing)
