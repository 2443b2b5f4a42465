"""Calls with arrays of one layout, for which all that does not depend on values is prepared."""

from __future__ import annotations

from collections.abc import Callable
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
    is_capturing,
    is_stream_of_torch,
)
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, prepare
from ecc_core._backends.cuda.calls import take_reply
from ecc_core._backends.cuda.exact import is_set
from ecc_core._backends.cuda.kernels import NAN_REPORT, Struct, variant_of
from ecc_core._backends.cuda.number import Number
from ecc_core._backends.cuda.regions import plan_regions
from ecc_core._backends.cuda.rules import UNIFORM
from ecc_core._backends.cuda.samples import DATA, plan_range
from ecc_core._backends.cuda.scan import Scan, pick_levels, plan_scan, scan_of
from ecc_core._request.filtration import Filtration
from ecc_core._request.thresholds import Thresholds
from ecc_core.errors import NAN_MESSAGE

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


def _scan(view: ArrayView, levels: Thresholds, filtration: Filtration) -> Scan | Number | None:
    variant, device = variant_of(filtration, view.element), view.array.device.id
    if levels.array is None:
        return None
    return scan_of(Placement.of(view.array), None, levels.array, variant, device)


def _curve(view: ArrayView, _labels: Any, levels: Thresholds, filtration: Filtration) -> Run | None:
    if levels.needs_range:
        return _even_curve(view, levels.count, filtration)
    scan, variant = _scan(view, levels, filtration), variant_of(filtration, view.element)
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


def _even_curve(view: ArrayView, count: int, filtration: Filtration) -> Run | None:
    """Of float32 images, at thresholds over the range of each, which a kernel finds (even.cu).

    The function returns None for images without two finite values, or of a range with too few
    values of float32. The kernel of the curve is launched before the answer of the other one is
    known. If the thresholds do not fit, its result is dropped.
    """
    if view.element != "float32" or not 1 < count <= MOST_EVEN:
        return None
    # The search for the range finds NaN.
    variant = variant_of(replace(filtration, nan="omit"), view.element)
    given = Placement.of(view.array), variant, view.array.device.id
    rules = Rules(UNIFORM, count, 4, 0, UNIFORM, count + 1, 4 * (count + 1), 0, found=True)
    plan = plan_scan(given[0], None, variant, rules, given[2])
    if plan is None or plan.accumulate:
        return None
    bins = BINS(count=count, last=count)
    scan = Scan(plan, Prepared(rules, bins, bins), given[2])
    find = plan_range("even", "find_even", *given, EVEN(count=count))
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


def _number(
    view: ArrayView, _labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    scan = _scan(view, levels, filtration)
    return (lambda image: scan.number(_address(image))) if isinstance(scan, Number) else None


def _region_curves(
    view: ArrayView, labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    array, labels, at = view.array, as_cupy(labels), levels.array
    plain = labels.dtype != np.bool_ and labels.flags.c_contiguous
    if at is None or at.size == 0 or not plain:
        return None
    variant = variant_of(filtration, view.element)
    prepared = prepare(at, variant, array.device.id)
    given = Placement.of(array), variant, prepared.rules
    regions = plan_regions(*given, labels.dtype, labels.size, array.device.id)

    def run(image: Any, labels: Any) -> tuple[Any, Any]:
        found = regions.find([(DATA, _address(image))], as_cupy(labels), prepared)
        if found.nan:
            raise ValueError(NAN_MESSAGE)
        return found.ids, cupy.ascontiguousarray(pick_levels(found.values, prepared))

    return run


KINDS = {"curve": _curve, "number": _number, "region_curves": _region_curves}
