"""Calls whose arguments were checked before, for arrays of one layout."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import cupy
import numpy as np

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
    on_device,
)
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, prepare
from ecc_core._backends.cuda.calls import is_set, take_reply
from ecc_core._backends.cuda.curves import (
    checked_coefficients,
    enqueue,
    finite_range,
    raise_for_nan,
)
from ecc_core._backends.cuda.kernels import NAN_REPORT, Struct, variant_of
from ecc_core._backends.cuda.regions import plan_regions
from ecc_core._backends.cuda.rules import UNIFORM
from ecc_core._backends.cuda.samples import DATA, plan_range
from ecc_core._backends.cuda.scan import Number, Scan, plan_scan, scan_of
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import Geometry
from ecc_core._request.thresholds import Thresholds, even_thresholds
from ecc_core.errors import NAN_MESSAGE

EVEN = Struct("even.cu", "Even")
SOME, NAN, FITS = 1, 2, 4  # as in even.cu
MOST_EVEN = 1024  # thresholds
Run = Callable[..., Any]


def plan(
    kind: str,
    images: Any,
    labels: Any,
    levels: Thresholds,
    filtration: Filtration,
    *,
    mask: Any = None,
    geometry: Geometry,
) -> Run | None:
    """Return a function of an image, and of labels for regions or a mask if given; or None.

    `images` are the image as `geometry` stacks it, as are those of the mask. The function returns
    None where a call must be made in full, else for the kind

    - "curve": thresholds, or None for those given, (n,), and the curves, (*batch, n),
    - "number": the Euler characteristic at the only threshold, an int,
    - "region_curves": ids (k,) and curves (k, n),
    - "coefficients": the coefficients, as the only item of a tuple.

    It waits for the device like the functions in full, and raises ValueError for NaN.
    """
    if not filtration.boundary.is_closed:
        return None
    with adopt(images) as view:
        array = view.array
        if array.size == 0 or is_capturing():
            return None
        flat = 1 in array.shape[1:] and array.ndim > 2
        runs = []
        # Without a copy, images are stacked where they are.
        in_place = filtration.direction is None and len(geometry.batch) < 2 and not flat
        single = mask is None and not geometry.batch
        if in_place and kind == "curve":
            runs.append(_plan_curve(view, as_cupy(mask), levels, filtration, geometry))
        elif in_place and single and kind in PREPARED:
            runs.append(PREPARED[kind](view, labels, levels, filtration))
        if kind in CHECKED:
            runs.append(CHECKED[kind](levels, filtration, geometry))
        usable = [run for run in runs if run is not None]
        if not usable:
            return None
        # Kernels on any stream may still use memory of a plan that its cache drops.
        cupy.cuda.Device().synchronize()
        return partial(_run, usable, array.device.id)


def _run(runs: list[Run], device: int, image: Any, *others: Any) -> Any:
    """Return the first result, computed where the image is, on its library's stream."""
    own = isinstance(image, cupy.ndarray)
    if cupy.cuda.runtime.getDevice() != device:
        return None
    if not own and not is_stream_of_torch(cupy.cuda.get_current_stream(), device):
        with borrowed_stream(device):
            return _run(runs, device, image, *others)
    if is_capturing():
        return None
    for run in runs:
        found = run(image, *others)
        if found is not None:
            break
    if own or not isinstance(found, tuple):
        return found
    return tuple(as_tensor(array) if array is not None else None for array in found)


def _address(array: Any) -> int:
    return int(array.data.ptr if isinstance(array, cupy.ndarray) else array.data_ptr())


def _plan_curve(
    view: ArrayView, mask: Any, levels: Thresholds, filtration: Filtration, geometry: Geometry
) -> Run | None:
    batch, array = geometry.batch, view.array
    if levels.needs_range:
        plain = mask is None and not batch
        return _plan_even_curve(view, levels.count, filtration) if plain else None
    if levels.array is None or not (mask is None or is_alike(mask, array)):
        return None
    variant = variant_of(filtration, view.element, mask)
    scan = scan_of(Placement.of(array), None, levels.array, variant)
    if not isinstance(scan, Scan) or not scan.simple or scan.prepared.pick is not None:
        return None
    reports, shape = variant.nan == NAN_REPORT, (*batch, levels.array.size)

    def check(flag: Any, image: Any, mask: Any) -> None:
        if is_set(flag):
            with _stacked(geometry, image, mask) as (view, hidden):
                if has_nan(view, hidden):
                    raise ValueError(NAN_MESSAGE)

    def run_single(image: Any, mask: Any = None) -> tuple[Any, Any]:
        addresses = _address(image), 0 if mask is None else _address(mask)
        if not reports:
            return None, scan.single(*addresses)
        flag = take_reply(scan.device)
        values = scan.single(*addresses, flag=flag.address)
        check(flag, image, mask)
        return None, values

    def run_batch(image: Any, mask: Any = None) -> tuple[Any, Any]:
        addresses = _address(image), 0 if mask is None else _address(mask)
        values, memory = scan.curves(*addresses)
        check(scan.flags(memory) if reports else None, image, mask)
        return None, values.reshape(shape)

    return run_batch if batch else run_single


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


def _plan_checked_curve(levels: Thresholds, filtration: Filtration, geometry: Geometry) -> Run:
    """Of images of any kind, by the functions in full, but for checks of arguments."""
    given, at = levels.array is not None, levels.array
    if at is None and levels.bounds is not None:
        at = even_thresholds(*levels.bounds, levels.count)
    omitting = replace(filtration, nan="omit")  # once the range is known, there is no NaN

    def run(image: Any, mask: Any = None) -> tuple[Any, Any]:
        with _stacked(geometry, image, mask) as (view, hidden):
            now, chosen = at, filtration
            if now is None:
                bounds = finite_range(view, filtration, hidden)
                now, chosen = levels.over(lambda: bounds, geometry.spatial), omitting
            values, flag = enqueue(view, now, chosen, mask=hidden, for_host=True)
            raise_for_nan(flag, view, hidden)
            curves = values.reshape((*geometry.batch, now.size))
            return None if given else on_device(now), curves

    return run


def _plan_checked_coefficients(
    _levels: Thresholds, filtration: Filtration, geometry: Geometry
) -> Run:
    def run(image: Any, mask: Any = None) -> tuple[Any]:
        with _stacked(geometry, image, mask) as (view, hidden):
            return (checked_coefficients(view, filtration, hidden)[0],)

    return run


@contextmanager
def _stacked(geometry: Geometry, image: Any, mask: Any) -> Iterator[tuple[ArrayView, Any]]:
    """View an image and its mask, or None, as batches (images, *spatial)."""
    hidden = None if mask is None else as_cupy(geometry.stack(geometry.spread(mask)))
    with adopt(geometry.stack(image)) as view:
        yield view, hidden


PREPARED = {"number": _plan_number, "region_curves": _plan_region_curves}
"""Launches whose arguments are laid out once, for plain images."""
CHECKED = {"curve": _plan_checked_curve, "coefficients": _plan_checked_coefficients}
"""Calls in full, of arguments that were checked."""
