"""Curves and coefficients of device arrays, queued in the order of the current stream."""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    check_not_capturing,
    has_nan,
    keeping,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import WORDS, is_set, take_reply
from ecc_core._backends.cuda.coefficients import counted_curves, image_coefficients
from ecc_core._backends.cuda.kernels import NAN_REPORT
from ecc_core._backends.cuda.recode import RecodedScan, recoded_scan
from ecc_core._backends.cuda.samples import (
    Arrangement,
    Images,
)
from ecc_core._backends.cuda.scan import Number, Scan, pick_levels, scan_of
from ecc_core._backends.cuda.value_range import (
    find_range,
)
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
    array = view.array
    thresholds = thresholds_on_host(thresholds)
    if array.size == 0 or thresholds.size == 0:
        return cupy.zeros((len(array), thresholds.size), np.int64), None
    if own is None:
        view, filtration = without_flat_axes(view, mask, filtration)
    images = Images.of(view, filtration, mask)
    scan = scan_for(Arrangement.of(images), thresholds, own)
    if scan is not None:
        return run_scan(scan, *images.addresses, for_host=for_host)
    prepared = prepare(thresholds, images.variant, array.device.id)
    values, flag, memory = counted_curves(images, prepared, own)
    picked = pick_levels(values, prepared)
    return keeping(picked, (values, memory)) if programs.is_capturing() else picked, flag


def without_flat_axes(
    view: ArrayView, mask: Any, filtration: Filtration
) -> tuple[ArrayView, Filtration]:
    """Return images without spatial axes of length 1, which do not change the curves.

    At least one axis is left, and all if there is a mask or a direction.
    """
    array = view.array
    flat = [axis for axis in range(1, array.ndim) if array.shape[axis] == 1][: array.ndim - 2]
    if not flat or mask is not None or filtration.direction is not None:
        return view, filtration
    array = array.squeeze(tuple(flat))
    return view._replace(array=array), filtration.in_axes(array.ndim - 1)


def scan_for(
    images: Arrangement, thresholds: NDArray[Any], own: tuple[int, int] | None = None
) -> Scan | Number | RecodedScan | None:
    """Return the scan of images at thresholds, or None if coefficients are to be counted."""
    variant = images.variant
    scan = None
    if images.is_scanned_in_place:
        scan = scan_of(images.placement, own, thresholds, variant)
    if scan is not None:
        return scan
    prepared = prepare(thresholds, variant, images.placement.device)
    return recoded_scan(images, prepared, own)


def run_scan(
    scan: Scan | Number | RecodedScan, data: int, mask: int = 0, *, for_host: bool = True
) -> tuple[Any, Any]:
    """Return the curves at the thresholds of a scan, and flags as :func:`enqueue` does."""
    wanted = scan.flags_wanted
    flag = None
    if 0 < wanted <= WORDS and for_host and scan.simple and not programs.is_capturing():
        flag = take_reply(scan.device, wanted)
        values, memory = scan.curves(data, mask, flag.address, flag.memory.data.ptr)
    else:
        values, memory = scan.curves(data, mask)
        flag = scan.flags(memory) if wanted else None
    if scan.prepared.pick is not None:
        memory = values, memory
        values = pick_levels(values, scan.prepared)
    # Outside a graph, the values are all that is needed.
    if isinstance(memory, tuple) and programs.is_capturing():
        programs.captured.append(scan)
        values = keeping(values, memory)
    return values, flag


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
    for scans in (not ("float" in images.variant.element and programs.is_capturing()), False):
        if images.variant.nan == NAN_REPORT and for_host:
            check_not_capturing()
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
