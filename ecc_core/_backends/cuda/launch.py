"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. A function
waits for the device only if something depends on the data: whether floats contain NaN, the range of
the values, the levels of an exact curve, or the regions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve
from ecc_core._backends.cuda.arrays import (
    Adopted,
    Placement,
    adopt,
    as_cupy,
    as_tensor,
    has_nan,
    is_alike,
    is_capturing,
    is_stream_of_torch,
    keeping,
    numbers,
    on_host,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.coefficients import scanned_coefficients
from ecc_core._backends.cuda.counts import counted_curves
from ecc_core._backends.cuda.even import MOST_EVEN, even_scan
from ecc_core._backends.cuda.exact import EVERY_VALUE, changes, is_set, sum_events
from ecc_core._backends.cuda.number import Number
from ecc_core._backends.cuda.points import point_coefficients
from ecc_core._backends.cuda.recode import recoded_curves
from ecc_core._backends.cuda.regions import region_curves
from ecc_core._backends.cuda.replies import take_reply
from ecc_core._backends.cuda.samples import find_range
from ecc_core._backends.cuda.scan import Scan, pick_levels, scan_of, whole_scan
from ecc_core._backends.cuda.variants import NAN_REPORT, variant_of
from ecc_core._request.filtration import Direction, Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = [
    "CurvePlan",
    "coefficients",
    "curve",
    "enqueue",
    "even_curve",
    "every_value",
    "exact_curve",
    "give_levels",
    "number",
    "plan",
    "raise_for_nan",
    "region_curves",
    "thresholds_on_host",
    "value_range",
]

Array = NDArray[Any]


def curve(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
    own: tuple[int, int] | None = None,
) -> Any:
    """Euler characteristic of each image of a batch at sorted thresholds: (batch, n) int64.

    `own` restricts the sum to the indices (first, last) of the first spatial axis. The image must
    contain one more index on each side where it goes on.
    """
    with adopt(image) as adopted:
        mask = as_cupy(mask)
        values, flag = enqueue(adopted, thresholds, filtration, mask=mask, own=own, for_host=True)
        raise_for_nan(flag, adopted, mask)
        if not filtration.boundary.is_closed:
            values += bordered_curve(curve, numbers(adopted), thresholds, filtration, mask=mask)
        return adopted.give_back(values)


def plan(image: Any, thresholds: Array, filtration: Filtration) -> CurvePlan | None:
    """The curve of single images that are laid out as the only one of a batch.

    None where more than one kernel computes it.
    """
    with adopt(image) as adopted:
        array = adopted.array
        if filtration.direction is not None or not _is_plain(array, filtration) or is_capturing():
            return None
        variant, device = variant_of(filtration, adopted.element, masked=False), array.device.id
        scan = whole_scan(Placement.of(array), thresholds, variant, device)
        if not isinstance(scan, Scan):
            return None
        # Kernels on any stream may still use memory of a plan that its cache drops.
        cupy.cuda.Device().synchronize()
        return CurvePlan(scan, variant.nan == NAN_REPORT, device)


class CurvePlan(NamedTuple):
    """A scan of single images, whether it looks for NaN, and their device."""

    scan: Scan
    reports: bool
    device: int

    def __call__(self, image: Any) -> Any:
        """The curve of an image, (n,); None if its device or its library's stream is not current.

        Waits for the device if it looks for NaN. ValueError if there is one.
        """
        stream, own = cupy.cuda.get_current_stream(), isinstance(image, cupy.ndarray)
        here = cupy.cuda.runtime.getDevice() == self.device
        if (
            not here
            or stream.is_capturing()
            or not (own or is_stream_of_torch(stream, self.device))
        ):
            return None
        data = image.data.ptr if own else image.data_ptr()
        if self.reports:
            flag = take_reply(self.device)
            values = self.scan.single(data, flag=flag.address)
            if is_set(flag):
                with adopt(image) as adopted:
                    if has_nan(adopted, None):
                        raise ValueError(NAN_MESSAGE)
        else:
            values = self.scan.single(data)
        return values if own else as_tensor(values)


def number(
    image: Any,
    level: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> int:
    """Euler characteristic of the only image of a batch at one level, (1,)."""
    with adopt(image) as adopted:
        array = adopted.array
        if mask is None and _is_plain(array, filtration):
            variant = variant_of(filtration, adopted.element, masked=False)
            scan = scan_of(Placement.of(array), None, level, variant, array.device.id)
            if isinstance(scan, Number):
                return scan.number(array.data.ptr)
        values = as_cupy(curve(image, level, filtration, mask=mask))
        return int(on_host(values)[0, 0])


def even_curve(
    image: Any, count: int, filtration: Filtration, *, mask: Any = None
) -> tuple[Any, Any] | None:
    """Even thresholds over the range of the only image, (count,), and its curve, (1, count).

    None if the thresholds must be prepared on the host: for masks, directions, batches, other types
    than float32, many thresholds, and ranges with too few values.
    """
    with adopt(image) as adopted:
        array = adopted.array
        plain = mask is None and filtration.direction is None and _is_plain(array, filtration)
        if not plain or adopted.element != "float32" or not 1 < count <= MOST_EVEN:
            return None
        omitted = replace(filtration, nan="omit")  # the search for the range finds NaN
        variant = variant_of(omitted, adopted.element, masked=False)
        omits = filtration.nan == "omit"
        scan = even_scan(Placement.of(array), count, variant, omits, array.device.id)
        found = None if scan is None else scan(array.data.ptr)
        return found and (adopted.give_back(found[0]), adopted.give_back(found[1][None]))


def _is_plain(array: Any, filtration: Filtration) -> bool:
    """Whether one scan computes the curve of the only image of a batch."""
    flat = 1 in array.shape[1:] and array.ndim > 2
    return len(array) == 1 and array.size > 0 and not flat and filtration.boundary.is_closed


def enqueue(
    adopted: Adopted,
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
    array = adopted.array
    device = array.device.id
    thresholds = thresholds_on_host(thresholds)
    if array.size == 0 or thresholds.size == 0:
        return cupy.zeros((len(array), thresholds.size), np.int64), None
    direction = filtration.direction
    plain = mask is None and direction is None
    if plain and own is None and 1 in array.shape[1:] and array.ndim > 2:
        array = _without_flat_axes(array)
        adopted, filtration = adopted._replace(array=array), filtration.in_axes(array.ndim - 1)
    variant = variant_of(filtration, _element(adopted, direction), masked=mask is not None)
    data, scan = array.data.ptr, None
    mask_address = 0 if mask is None else mask.data.ptr
    if plain or (direction is None and is_alike(mask, array)):
        scan = scan_of(Placement.of(array), own, thresholds, variant, device)
    if scan is None:
        prepared = prepare(thresholds, variant.element, variant.superlevel, device)
        given = adopted, mask, variant, prepared, direction, own
        values, flag, memory = recoded_curves(*given) or counted_curves(*given)
    else:
        prepared, reports = scan.prepared, variant.nan == NAN_REPORT
        if reports and for_host and len(array) == 1 and scan.simple and not is_capturing():
            flag = take_reply(device)
            values, memory = scan.curves(data, variant.superlevel, mask_address, flag.address)
        else:
            values, memory = scan.curves(data, variant.superlevel, mask_address)
            flag = scan.flags(memory) if reports else None
    if prepared.pick is None and scan is not None:
        return values, flag
    picked = pick_levels(values, prepared)
    if is_capturing():
        picked = keeping(picked, (values, memory))
    return picked, flag


def _without_flat_axes(array: Any) -> Any:
    """Drop spatial axes of length one, which do not change the curves, but keep one axis."""
    kept = [axis for axis in range(1, array.ndim) if array.shape[axis] > 1] or [array.ndim - 1]
    return array[
        (slice(None), *(slice(None) if axis in kept else 0 for axis in range(1, array.ndim)))
    ]


def _element(adopted: Adopted, direction: Direction | None) -> str:
    """The type in which values are compared with thresholds."""
    return adopted.element if direction is None else "float64"


def raise_for_nan(flag: Any, adopted: Adopted, mask: Any) -> None:
    """Wait for flags, which infinities set as well, and raise ValueError for NaN."""
    if is_set(flag) and has_nan(adopted, mask):
        raise ValueError(NAN_MESSAGE)


def coefficients(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Coefficient of every point of each image: int8, the image's shape."""
    with adopt(image) as adopted:
        return adopted.give_back(_coefficients(adopted, filtration, as_cupy(mask)))


def _coefficients(adopted: Adopted, filtration: Filtration, mask: Any) -> Any:
    """Return coefficients. Waits if NaN must be looked for."""
    found, flag = _enqueue_coefficients(adopted, filtration, mask, for_host=True)
    again = _needs_again(adopted, filtration, mask, is_set(flag))
    return _enqueue_coefficients(adopted, filtration, mask, scans=False)[0] if again else found


def _enqueue_coefficients(
    adopted: Adopted,
    filtration: Filtration,
    mask: Any,
    *,
    scans: bool = True,
    for_host: bool = False,
) -> tuple[Any, Any]:
    """Return coefficients, and a flag if NaN must be looked for, else None. Does not wait.

    `scans`: whether the kernel that treats NaN as a number may be used. The flag is on the device,
    or may be a Reply if `for_host`; :func:`is_set` reads both.
    """
    direction = filtration.direction
    variant = variant_of(filtration, _element(adopted, direction), masked=mask is not None)
    floats = "float" in variant.element
    if scans and mask is None and direction is None and not (floats and is_capturing()):
        scanned = scanned_coefficients(adopted, variant, for_host=for_host)
        if scanned is not None:
            return scanned
    found, flag = point_coefficients(adopted, mask, variant, direction)
    return found, flag if floats and filtration.nan == "raise" else None


def _needs_again(adopted: Adopted, filtration: Filtration, mask: Any, flagged: bool) -> bool:
    """Return whether a NaN was treated as a number. ValueError if NaN must not be omitted."""
    if not flagged or not has_nan(adopted, mask):
        return False
    if filtration.nan == "raise":
        raise ValueError(NAN_MESSAGE)
    return True


def exact_curve(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """The levels at which the curve of one image (batch of 1) changes, and the values there."""
    with adopt(image) as adopted:
        superlevel, direction = filtration.superlevel, filtration.direction
        if not filtration.boundary.is_closed:
            given = numbers(adopted)
            levels, values = bordered_exact_curve(
                exact_curve, curve, given, filtration, mask=as_cupy(mask)
            )
            return give_levels(adopted, levels), adopted.give_back(values)
        if direction is None and adopted.element in EVERY_VALUE:
            levels = every_value(adopted.element)
            sums = as_cupy(curve(adopted.array, levels, filtration, mask=mask))[0]
            found = _changes_of(cupy.asarray(levels), sums, superlevel)
            return tuple(adopted.give_back(array) for array in found)
        levels, sums = _sums_of_events(adopted, filtration, as_cupy(mask))
        levels = give_levels(adopted, levels) if direction is None else adopted.give_back(levels)
        return levels, adopted.give_back(cupy.ascontiguousarray(sums))


def _sums_of_events(adopted: Adopted, filtration: Filtration, mask: Any) -> tuple[Any, Any]:
    """The levels at which a curve changes, float64 along a direction, and its values there."""
    direction = filtration.direction
    values = numbers(adopted) if direction is None else _directed(adopted.array, direction)
    narrow = values.dtype == np.float16
    given = values.astype(np.float32) if narrow else values
    counts, flag = _enqueue_coefficients(adopted, filtration, mask)
    levels, sums, flagged = sum_events(counts, given, filtration.superlevel, flag)
    if _needs_again(adopted, filtration, mask, flagged):
        counts, flag = _enqueue_coefficients(adopted, filtration, mask, scans=False)
        levels, sums, _ = sum_events(counts, given, filtration.superlevel, flag)
    return levels.astype(np.float16) if narrow else levels, sums


def give_levels(adopted: Adopted, levels: Any) -> Any:
    """Return values of an image in its own library and dtype."""
    given = adopted.give_back(levels)
    if adopted.element != "bfloat16":
        return given
    import torch

    return given.to(torch.bfloat16)


def every_value(element: str) -> Array:
    """Return all values of a type of at most 16 bits."""
    if element == "bool":
        return np.array([False, True])
    info = np.iinfo(element)
    return np.arange(info.min, info.max + 1).astype(element)


def _changes_of(levels: Any, sums: Any, superlevel: bool) -> tuple[Any, Any]:
    """Return the levels at which a curve changes, and its values there."""
    if not superlevel:
        return changes(levels, sums, False)
    after = cupy.concatenate([sums[1:], cupy.zeros(1, np.int64)])
    kept = sums != after
    return levels[kept], sums[kept]


def value_range(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Smallest and largest finite value that is not masked, or (None, None)."""
    with adopt(image) as adopted:
        direction, mask = filtration.direction, as_cupy(mask)
        variant = variant_of(filtration, _element(adopted, direction), masked=mask is not None)
        low, high, nan = find_range(adopted, mask, variant, direction)
        if nan and filtration.nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return low, high


def _directed(array: Any, direction: Direction) -> Any:
    """Return the image plus a * <u, x> in float64, added in the order of `Direction.add`."""
    ndim = len(direction.terms)
    height: Any = None
    for axis, terms in enumerate(direction.terms):
        term = cupy.asarray(terms).reshape((-1,) + (1,) * (ndim - axis - 1))
        height = term if height is None else height + term
    return array.astype(np.float64) + direction.scale * height
