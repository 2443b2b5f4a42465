"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. A function
waits for the device only if something depends on the data: whether floats contain NaN, the range of
the values, the levels of an exact curve, or the regions.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    Placement,
    adopt,
    as_cupy,
    has_nan,
    is_alike,
    is_capturing,
    keeping,
    numbers,
    on_host,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import take_reply
from ecc_core._backends.cuda.coefficients import counted_curves, image_coefficients
from ecc_core._backends.cuda.exact import EVERY_VALUE, changes, is_set, sum_events
from ecc_core._backends.cuda.kernels import NAN_REPORT, variant_of
from ecc_core._backends.cuda.planned import plan as plan
from ecc_core._backends.cuda.recode import recoded_curves
from ecc_core._backends.cuda.regions import region_curves as region_curves
from ecc_core._backends.cuda.samples import find_range
from ecc_core._backends.cuda.scan import pick_levels, scan_of
from ecc_core._request.filtration import Direction, Filtration
from ecc_core.errors import NAN_MESSAGE


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
    with adopt(image) as view:
        mask = as_cupy(mask)
        values, flag = enqueue(view, thresholds, filtration, mask=mask, own=own, for_host=True)
        raise_for_nan(flag, view, mask)
        if not filtration.boundary.is_closed:
            values += bordered_curve(curve, numbers(view), thresholds, filtration, mask=mask)
        return view.wrap(values)


def number(
    image: Any,
    level: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> int:
    """Euler characteristic of the only image of a batch at one level, (1,)."""
    with adopt(curve(image, level, filtration, mask=mask)) as values:
        return int(on_host(values.array)[0, 0])


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
    device = array.device.id
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
        scan = scan_of(Placement.of(array), own, thresholds, variant, device)
    if scan is None:
        prepared = prepare(thresholds, variant, device)
        given = view, mask, variant, prepared, direction, own
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


def coefficients(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> Any:
    """Coefficient of every point of each image: int8, the image's shape."""
    with adopt(image) as view:
        mask = as_cupy(mask)
        found, flag = _enqueue_coefficients(view, filtration, mask, for_host=True)
        if _needs_again(view, filtration, mask, is_set(flag)):
            found, _ = _enqueue_coefficients(view, filtration, mask, scans=False)
        return view.wrap(found)


def _enqueue_coefficients(
    view: ArrayView,
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
    variant = variant_of(filtration, view.element, mask)
    scans = scans and not ("float" in variant.element and is_capturing())
    return image_coefficients(view, mask, variant, direction, scans=scans, for_host=for_host)


def _needs_again(view: ArrayView, filtration: Filtration, mask: Any, flagged: bool) -> bool:
    """Return whether a NaN was treated as a number. ValueError if NaN must not be omitted."""
    if not flagged or not has_nan(view, mask):
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
    with adopt(image) as view:
        superlevel, direction = filtration.superlevel, filtration.direction
        if not filtration.boundary.is_closed:
            given = numbers(view)
            levels, values = bordered_exact_curve(
                exact_curve, curve, given, filtration, mask=as_cupy(mask)
            )
            return wrap_levels(view, levels), view.wrap(values)
        if direction is None and view.element in EVERY_VALUE:
            levels = every_value(view.element)
            sums = as_cupy(curve(view.array, levels, filtration, mask=mask))[0]
            found = changes(cupy.asarray(levels), sums, superlevel)
            return tuple(view.wrap(array) for array in found)
        levels, sums = _sums_of_events(view, filtration, as_cupy(mask))
        levels = wrap_levels(view, levels) if direction is None else view.wrap(levels)
        return levels, view.wrap(cupy.ascontiguousarray(sums))


def _sums_of_events(view: ArrayView, filtration: Filtration, mask: Any) -> tuple[Any, Any]:
    """The levels at which a curve changes, float64 along a direction, and its values there."""
    direction = filtration.direction
    values = numbers(view) if direction is None else _directed(view.array, direction)
    narrow = values.dtype == np.float16
    given = values.astype(np.float32) if narrow else values
    counts, flag = _enqueue_coefficients(view, filtration, mask)
    levels, sums, flagged = sum_events(counts, given, filtration.superlevel, flag)
    if _needs_again(view, filtration, mask, flagged):
        counts, flag = _enqueue_coefficients(view, filtration, mask, scans=False)
        levels, sums, _ = sum_events(counts, given, filtration.superlevel, flag)
    return levels.astype(np.float16) if narrow else levels, sums


def wrap_levels(view: ArrayView, levels: Any) -> Any:
    """Return values of an image in its own library and dtype."""
    given = view.wrap(levels)
    if view.element != "bfloat16":
        return given
    import torch

    return given.to(torch.bfloat16)


def every_value(element: str) -> NDArray[Any]:
    """Return all values of a type of at most 16 bits."""
    if element == "bool":
        return np.array([False, True])
    info = np.iinfo(element)
    return np.arange(info.min, info.max + 1).astype(element)


def value_range(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Smallest and largest finite value that is not masked, or (None, None)."""
    with adopt(image) as view:
        direction, mask = filtration.direction, as_cupy(mask)
        variant = variant_of(filtration, view.element, mask)
        low, high, nan = find_range(view, mask, variant, direction)
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
