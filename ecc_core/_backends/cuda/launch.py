"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. A function
waits for the device only if something depends on the data: whether floats contain NaN, the range of
the values, the levels of an exact curve, or the regions.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    Placement,
    adopt,
    as_cupy,
    as_tensor,
    borrowed_stream,
    has_nan,
    is_alike,
    is_capturing,
    is_stream_of_torch,
    keeping,
    numbers,
    on_host,
    thresholds_on_host,
)
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, prepare
from ecc_core._backends.cuda.calls import is_set, take_reply
from ecc_core._backends.cuda.coefficients import (
    EVERY_VALUE,
    counted_curves,
    every_value,
    image_coefficients,
    sum_events,
)
from ecc_core._backends.cuda.kernels import NAN_REPORT, Struct, variant_of
from ecc_core._backends.cuda.recode import recoded_curves
from ecc_core._backends.cuda.regions import plan_regions
from ecc_core._backends.cuda.regions import region_curves as region_curves
from ecc_core._backends.cuda.rules import UNIFORM
from ecc_core._backends.cuda.samples import DATA, Images, find_range, plan_range
from ecc_core._backends.cuda.scan import Number, Scan, pick_levels, plan_scan, scan_of
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes
from ecc_core._request.thresholds import Thresholds
from ecc_core.errors import NAN_MESSAGE


def curve(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
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
    image: Any, level: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> int:
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


def coefficients(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> Any:
    with adopt(image) as view:

        def finish(found: Any, flag: Any) -> tuple[Any, bool]:
            return found, is_set(flag)

        (found,) = _with_coefficients(view, filtration, as_cupy(mask), finish, for_host=True)
        return view.wrap(found)


def _with_coefficients(
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


def exact_curve(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        superlevel, direction = filtration.superlevel, filtration.direction
        if not filtration.boundary.is_closed:
            given = exact_curve, curve, numbers(view), filtration
            levels, values = bordered_exact_curve(*given, mask=as_cupy(mask))
            return view.wrap_levels(levels), view.wrap(values)
        if direction is None and view.element in EVERY_VALUE:
            levels = every_value(view.element)
            sums = as_cupy(curve(view.array, levels, filtration, mask=mask))[0]
            found = changes(cupy.asarray(levels), sums, superlevel)
            return tuple(view.wrap(array) for array in found)
        values = numbers(view)
        if direction is not None:
            values = direction.add(values, (0,) * filtration.ndim)
        narrow = values.dtype == np.float16
        given = values.astype(np.float32) if narrow else values

        def finish(found: Any, flag: Any) -> tuple[Any, Any, bool]:
            return sum_events(found, given, superlevel, flag)

        levels, sums = _with_coefficients(view, filtration, as_cupy(mask), finish)
        levels = levels.astype(np.float16) if narrow else levels
        levels = view.wrap_levels(levels) if direction is None else view.wrap(levels)
        return levels, view.wrap(cupy.ascontiguousarray(sums))


def value_range(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        low, high, nan = find_range(Images.of(view, filtration, as_cupy(mask)))
        if nan and filtration.nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return low, high


EVEN = Struct("even.cu", "Even")
SOME, NAN, FITS = 1, 2, 4  # as in even.cu
MOST_EVEN = 1024  # thresholds
Run = Callable[..., Any]


def plan(
    kind: str, images: Any, labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    """Return a function of an image, and of labels for regions; or None.

    `images` is a batch of the only image. The function returns None where a call must be made in
    full, else for the kind

    - "curve": thresholds, or None for those given, and the curve, both (n,),
    - "number": the Euler characteristic at the only threshold, an int,
    - "region_curves": ids (k,) and curves (k, n).

    It waits for the device like the functions in full, and raises ValueError for NaN.
    """
    with adopt(images) as view:
        array = view.array
        flat = 1 in array.shape[1:] and array.ndim > 2
        if filtration.direction is not None or not filtration.boundary.is_closed or flat:
            return None
        if array.size == 0 or is_capturing():
            return None
        run = KINDS[kind](view, labels, levels, filtration)
        # Kernels on any stream may still use memory of a plan that its cache drops.
        cupy.cuda.Device().synchronize()
        return run and partial(_run, run, array.device.id)


def _run(run: Run, device: int, image: Any, *labels: Any) -> Any:
    """Run where the image is, on its library's stream."""
    own = isinstance(image, cupy.ndarray)
    if cupy.cuda.runtime.getDevice() != device:
        return None
    if not own and not is_stream_of_torch(cupy.cuda.get_current_stream(), device):
        with borrowed_stream(device):
            return _run(run, device, image, *labels)
    if is_capturing():
        return None
    found = run(image, *labels)
    if own or not isinstance(found, tuple):
        return found
    return tuple(as_tensor(array) if array is not None else None for array in found)


def _address(array: Any) -> int:
    return int(array.data.ptr if isinstance(array, cupy.ndarray) else array.data_ptr())


def _plan_curve(
    view: ArrayView, _labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    if levels.needs_range:
        return _plan_even_curve(view, levels.count, filtration)
    scan, variant = _plain_scan(view, levels, filtration), variant_of(filtration, view.element)
    if not isinstance(scan, Scan) or not scan.simple or scan.prepared.pick is not None:
        return None

    def run(image: Any) -> tuple[Any, Any]:
        if variant.nan != NAN_REPORT:
            return None, scan.single(_address(image))
        flag = take_reply(scan.device)
        values = scan.single(_address(image), flag=flag.address)
        if is_set(flag):
            with adopt(image) as view:
                if has_nan(view, None):
                    raise ValueError(NAN_MESSAGE)
        return None, values

    return run


def _plan_even_curve(view: ArrayView, count: int, filtration: Filtration) -> Run | None:
    """Of float32 images, at thresholds over the range of each, which a kernel finds (even.cu).

    The function returns None for images without two finite values, or of a range with too few
    values of float32. The kernel of the curve is launched before the answer of the other one is
    known. If the thresholds do not fit, its result is dropped.
    """
    if view.element != "float32" or not 1 < count <= MOST_EVEN:
        return None
    # The search for the range finds NaN.
    variant = variant_of(replace(filtration, nan="omit"), view.element)
    placement = Placement.of(view.array)
    rules = Rules(UNIFORM, count, 4, 0, UNIFORM, count + 1, 4 * (count + 1), 0, found=True)
    plan = plan_scan(placement, None, variant, rules)
    if plan is None or plan.accumulate:
        return None
    bins = BINS(count=count, last=count)
    scan = Scan(plan, Prepared(rules, bins, bins), placement.device)
    find = plan_range("even", "find_even", placement, variant, EVEN(count=count))
    samples, found, answer, even = find.places

    def run(image: Any) -> tuple[Any, Any] | None:
        data, reply = _address(image), take_reply(scan.device)
        memory = cupy.cuda.alloc(8 * count + 4 * (count + 3))
        table = memory.ptr + 8 * count
        words = (samples + DATA, data), (found, reply.memory.data.ptr), (answer, reply.address)
        find.launch((*words, (even, memory.ptr), (even + 1, table)))
        values = scan.single(data, table=table)
        thresholds = cupy.ndarray((count,), np.float64, memory)
        (state,) = reply.wait(1)
        reply.release()
        if state & NAN and filtration.nan != "omit":
            raise ValueError(NAN_MESSAGE)
        return (thresholds, values) if state & FITS else None

    return run


def _plain_scan(
    view: ArrayView, levels: Thresholds, filtration: Filtration
) -> Scan | Number | None:
    if levels.array is None:
        return None
    variant = variant_of(filtration, view.element)
    return scan_of(Placement.of(view.array), None, levels.array, variant)


def _plan_number(
    view: ArrayView, _labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    scan = _plain_scan(view, levels, filtration)
    return (lambda image: scan.number(_address(image))) if isinstance(scan, Number) else None


def _plan_region_curves(
    view: ArrayView, labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    array, labels, at = view.array, as_cupy(labels), levels.array
    plain = labels.dtype != np.bool_ and labels.flags.c_contiguous
    if at is None or at.size == 0 or not plain:
        return None
    variant = variant_of(filtration, view.element)
    prepared = prepare(at, variant, array.device.id)
    given = Placement.of(array), variant, prepared.rules
    regions = plan_regions(*given, labels.dtype, labels.size)

    def run(image: Any, labels: Any) -> tuple[Any, Any]:
        return regions.find([(DATA, _address(image))], as_cupy(labels), prepared)

    return run


KINDS = {"curve": _plan_curve, "number": _plan_number, "region_curves": _plan_region_curves}
