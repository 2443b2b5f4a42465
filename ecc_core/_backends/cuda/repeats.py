"""Functions that repeat a call for other arrays of the same layout, without checks or plans.

They keep plans and thresholds on the device, but no image: each takes an array and reads its
address only. Regions have theirs in ``regions.py``, coefficients in ``launch.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import cupy
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import (
    Adopted,
    Placement,
    adopt,
    device_of,
    has_nan,
    is_capturing,
)
from ecc_core._backends.cuda.even import MOST_EVEN, even_curve
from ecc_core._backends.cuda.number import Number
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._backends.cuda.scan import Scan, repeated_scan, whole_scan
from ecc_core._backends.cuda.variants import NAN_REPORT, variant_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["repeated_curve", "repeated_even_curve", "repeated_number"]

Array = NDArray[Any]
Result = TypeVar("Result")


def repeated_curve(
    image: Any, thresholds: Array, filtration: Filtration
) -> Callable[[Any], Any] | None:
    """Return a function that computes the curve (n,) of arrays of the layout of the only image.

    The arrays have no batch axis. None if the curve takes more than one kernel. The function
    returns None if it has to look for NaN while the stream is being captured, as it cannot wait.
    """
    with adopt(image) as adopted:
        variant = variant_of(filtration, adopted.element, masked=False)
        placement = _only_image(adopted, filtration)
        if placement is None or thresholds.size == 0:
            return None
        find = repeated_scan(placement, thresholds, variant, adopted.array.device.id)
        kind = adopted._replace(array=None)  # whose memory must not be kept
    if find is None:
        return None
    if variant.nan != NAN_REPORT:
        return _of_arrays(lambda data: find().single(data))

    def again(array: Any) -> Any:
        with device_of(array):
            return _checked_curve(find(), kind._replace(array=array))

    return again


def _checked_curve(scan: Scan, adopted: Adopted) -> Any:
    """Return the curve of a single image, or None while the stream is being captured.

    Raises ValueError for NaN.
    """
    if is_capturing():
        return None
    reply = take_reply(scan.device)
    values = scan.single(adopted.array.data.ptr, flag=reply.address)
    (flagged,) = reply.wait(1, cupy.cuda.get_current_stream())
    reply.release()
    if flagged and has_nan(adopted, None):
        raise ValueError(NAN_MESSAGE)
    return values


def repeated_even_curve(
    image: Any, count: int, filtration: Filtration
) -> Callable[[Any], tuple[Any, Any] | None] | None:
    """Return a function that computes thresholds and curve, (count,), of arrays of one layout.

    The thresholds are evenly spaced over the range of each array, which has no batch axis. None if
    they must be prepared on the host. The function returns None for arrays that need this.
    """
    with adopt(image) as adopted:
        placement = _only_image(adopted, filtration)
        if placement is None or adopted.element != "float32" or not 1 < count <= MOST_EVEN:
            return None
        omitted = replace(filtration, nan="omit")  # the search for the range finds NaN
        variant = variant_of(omitted, adopted.element, masked=False)
        omits, device = filtration.nan == "omit", adopted.array.device.id
        found = even_curve(placement, count, variant, omits, device)
    return found and _of_arrays(found)


def repeated_number(
    image: Any, level: Array, filtration: Filtration
) -> Callable[[Any], int] | None:
    """Return a function that computes the Euler number of arrays of the layout of the only image.

    The arrays have no batch axis. None if `number.cu` cannot read them.
    """
    with adopt(image) as adopted:
        variant = variant_of(filtration, adopted.element, masked=False)
        placement = _only_image(adopted, filtration)
        if placement is None:
            return None
        scan = whole_scan(placement, level, variant, adopted.array.device.id)
    return _of_arrays(scan.number) if isinstance(scan, Number) else None


def _only_image(adopted: Adopted, filtration: Filtration) -> Placement | None:
    """Return the placement of the only image of a batch, or None if it may take several scans."""
    array = adopted.array
    flat = 1 in array.shape[1:] and array.ndim > 2
    if len(array) != 1 or array.size == 0 or flat or filtration.boundary != "closed":
        return None
    return Placement.of(array)


def _of_arrays(function: Callable[[int], Result]) -> Callable[[Any], Result]:
    """Return a function of arrays that applies a function of addresses on their devices."""

    def again(array: Any) -> Result:
        with device_of(array):
            return function(array.data.ptr)

    return again
