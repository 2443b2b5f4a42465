"""Curves and coefficients of device arrays, queued in the order of the current stream."""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda.arrays import (
    ArrayView,
    Placement,
    has_nan,
    is_alike,
    is_capturing,
    keeping,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import is_set, take_reply
from ecc_core._backends.cuda.coefficients import counted_curves, image_coefficients
from ecc_core._backends.cuda.kernels import NAN_REPORT, variant_of
from ecc_core._backends.cuda.recode import recoded_curves
from ecc_core._backends.cuda.samples import Images, find_range
from ecc_core._backends.cuda.scan import pick_levels, scan_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE


def enqueue(
    view: ArrayView,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    own: tuple[int, int] | None = None,
    for_host: bool = False,
) -> tuple[Any, Any]:
    """Return curves, and flags that are set if there may be a NaN, or None.

    The flags are on the device, or may be a Reply if `for_host`; :func:`is_set` reads both. Does
    not wait for the device.
    """
    array, device = view.array, view.array.device.id
    thresholds = thresholds_on_host(thresholds)
    if array.size == 0 or thresholds.size == 0:
        return cupy.zeros((len(array), thresholds.size), np.int64), None
    direction = filtration.direction
    plain = mask is None and direction is None
    if plain and own is None and 1 in array.shape[1:] and array.ndim > 2:
        flat = [axis for axis in range(1, array.ndim) if array.shape[axis] == 1]
        array = array.squeeze(tuple(flat[: array.ndim - 2]))  # which does not change the curves
        view, filtration = view._replace(array=array), filtration.in_axes(array.ndim - 1)
    variant = variant_of(filtration, view.element, mask)
    data, scan = array.data.ptr, None
    mask_address = 0 if mask is None else mask.data.ptr
    if plain or (direction is None and is_alike(mask, array)):
        scan = scan_of(Placement.of(array), own, thresholds, variant)
    if scan is None:
        prepared = prepare(thresholds, variant, device)
        given = Images(view, mask, direction, variant), prepared, own
        values, flag, memory = recoded_curves(*given) or counted_curves(*given)
    else:
        prepared, reports = scan.prepared, variant.nan == NAN_REPORT
        if reports and for_host and len(array) == 1 and scan.simple and not is_capturing():
            flag = take_reply(device)
            values, memory = scan.curves(data, mask_address, flag.address)
        else:
            values, memory = scan.curves(data, mask_address)
            flag = scan.flags(memory) if reports else None
    if prepared.pick is None and scan is not None:
        return values, flag
    picked = pick_levels(values, prepared)
    if is_capturing():
        picked = keeping(picked, (values, memory))
    return picked, flag


def raise_for_nan(flag: Any, view: ArrayView, mask: Any) -> None:
    """Wait for flags, which infinities set as well, and raise ValueError for NaN."""
    if is_set(flag) and has_nan(view, mask):
        raise ValueError(NAN_MESSAGE)


def with_coefficients(
    view: ArrayView,
    filtration: Filtration,
    mask: Any,
    finish: Callable[[Any, Any], tuple[Any, ...]],
    *,
    for_host: bool = False,
) -> tuple[Any, ...]:
    """Return what `finish` makes of the coefficients of images, without the last of its results.

    `finish` takes the coefficients and the flag of :func:`image_coefficients`, and its last result
    is whether the flag is set. If so, and if the images contain NaN, ValueError is raised or, where
    NaN is omitted, the coefficients are computed again by a kernel that omits it.
    """
    images = Images.of(view, filtration, mask)
    for scans in (not ("float" in images.variant.element and is_capturing()), False):
        found, flag = image_coefficients(images, scans=scans, for_host=for_host)
        *result, flagged = finish(found, flag)
        if not flagged or not has_nan(view, mask):
            break
        if filtration.nan == "raise":
            raise ValueError(NAN_MESSAGE)
    return tuple(result)


def checked_coefficients(view: ArrayView, filtration: Filtration, mask: Any) -> Any:
    """Return the coefficients of images; ValueError for NaN. Waits for flags of floats."""

    def finish(found: Any, flag: Any) -> tuple[Any, bool]:
        return found, is_set(flag)

    (found,) = with_coefficients(view, filtration, mask, finish, for_host=True)
    return found


def finite_range(view: ArrayView, filtration: Filtration, mask: Any) -> tuple[Any, Any]:
    """Wait for the smallest and the largest finite value, or None; ValueError for NaN."""
    low, high, nan = find_range(Images.of(view, filtration, mask))
    if nan and filtration.nan == "raise":
        raise ValueError(NAN_MESSAGE)
    return low, high
