"""Curves of arrays of one layout: what is launched is prepared once, and given addresses."""

import math
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    address_of,
    copy_of,
    keeping,
)
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules
from ecc_core._backends.cuda.calls import WORDS, lasting_zeros, plan_call, take_reply
from ecc_core._backends.cuda.curves import run_scan, scan_for, without_flat_axes
from ecc_core._backends.cuda.exact import every_value
from ecc_core._backends.cuda.kernels import NAN_NONE, NAN_OMIT, Struct
from ecc_core._backends.cuda.recode import RecodedScan
from ecc_core._backends.cuda.rules import UNIFORM
from ecc_core._backends.cuda.samples import (
    DATA,
    MASK,
    Arrangement,
    Images,
)
from ecc_core._backends.cuda.scan import SUM_THREADS, Number, Scan, plan_scan
from ecc_core._backends.cuda.value_range import (
    as_range,
    plan_range,
    plan_range_of_samples,
    range_of,
    read_range,
)
from ecc_core._request.filtration import Filtration
from ecc_core._request.spatial_axes import Geometry
from ecc_core._request.thresholds import Thresholds, even_thresholds
from ecc_core.errors import NAN_MESSAGE

EVEN = Struct("even.cu", "Even")
# The flags of even.cu.
SOME = 1
NAN = 2
FITS = 4
MOST_EVEN = 1024  # The most even thresholds that a kernel prepares.
RANGE_WORDS = 5  # Words of the kernels' Range, and of the reply of range.cu.
KEPT_RANGES = 64
"""Ranges of values whose thresholds a plan keeps."""

Run = Callable[..., Any]
Check = Callable[[Any, Any, Any], None]
"""Looks for NaN, given a flag, an image and its mask."""


def plan_curve(
    view: ArrayView,
    mask: Any,
    levels: Thresholds,
    filtration: Filtration,
    geometry: Geometry,
    check: Check,
) -> list[Run]:
    """Return functions of an image, and of its mask if there is one, as `plans.plan` does.

    Images and masks are stacked without a copy. A function that returns None leaves the call to the
    next one.
    """
    view, filtration = without_flat_axes(view, mask, filtration)
    images = Arrangement.of(Images.of(view, filtration, mask))
    if levels.needs_range:
        omits = filtration.nan == "omit"
        if run := _plan_even_bytes(images, geometry, levels.count):
            return [run]
        even = _plan_even_curve(images, omits, geometry, levels.count)
        return [*([even] if even else []), _over_range(images, omits, geometry, levels)]
    at = levels.array
    if at is None:
        assert levels.bounds is not None
        at = even_thresholds(*levels.bounds, levels.count)
    scan = scan_for(images, at) if at.size else None
    if scan is None:
        return []
    return [
        _at_thresholds(scan, at, given=levels.array is not None, geometry=geometry, check=check)
    ]


def _at_thresholds(
    scan: Scan | Number | RecodedScan,
    at: NDArray[Any],
    given: bool,
    geometry: Geometry,
    check: Check,
) -> Run:
    """Return a function for thresholds that the caller has `given`, or that results need."""
    shape = (*geometry.batch, at.size)
    kept = None if given else programs.upload(at)

    def with_thresholds(values: Any) -> tuple[Any, Any]:
        if kept is None:
            return None, values
        thresholds = copy_of(kept)
        return thresholds, keeping(values, thresholds) if programs.is_capturing() else values

    def run_at_once(image: Any, mask: Any = None) -> tuple[Any, Any] | None:
        """Write the result by one launch. These calls are the most frequent: each step counts."""
        assert isinstance(scan, Scan)
        hidden = 0 if mask is None else address_of(mask)
        if not wanted:
            return with_thresholds(scan.shaped(address_of(image), hidden, shape))
        if programs.is_capturing():  # The host cannot read the flags.
            return None
        flag = take_reply(scan.device, wanted)
        values = scan.shaped(address_of(image), hidden, shape, flag.address)
        found = with_thresholds(values)  # Results are made while the kernel runs.
        check(flag, image, mask)
        return found

    wanted = scan.flags_wanted
    at_once = isinstance(scan, Scan) and scan.simple and scan.prepared.pick is None
    if at_once and wanted <= WORDS:
        return run_at_once

    def run(image: Any, mask: Any = None) -> tuple[Any, Any] | None:
        if scan.flags_wanted and programs.is_capturing():  # The host cannot read the flags.
            return None
        values, flag = run_scan(scan, address_of(image), address_of(mask))
        if flag is not None:
            check(flag, image, mask)
        return with_thresholds(values.reshape(shape))

    return run


def _without_nan(images: Arrangement) -> Arrangement:
    """Return the images for kernels that omit NaN, since another kernel looks for it."""
    variant = images.variant
    omitting = variant._replace(nan=NAN_NONE if variant.nan == NAN_NONE else NAN_OMIT)
    return images._replace(variant=omitting)


def _over_range(images: Arrangement, omits: bool, geometry: Geometry, levels: Thresholds) -> Run:
    """Return a function for thresholds over the range of an image, for which the host waits."""
    call = range_of(images)
    device = images.placement.device
    omitting = _without_nan(images)
    kept: dict[tuple[int, ...], tuple[Scan | Number | RecodedScan, Any]] = {}

    def prepare_scan(found: tuple[int, ...]) -> tuple[Scan | Number | RecodedScan, Any] | None:
        low, high, _ = as_range(found, images)
        at = levels.over(lambda: (low, high), geometry.spatial)
        scan = scan_for(omitting, at) if at.size else None
        if scan is None:
            return None
        if len(kept) == KEPT_RANGES:
            kept.clear()
        kept[found] = scan, programs.upload(at)
        return kept[found]

    def run(image: Any, mask: Any = None) -> tuple[Any, Any] | None:
        if programs.is_capturing():
            return None
        data = address_of(image)
        hidden = address_of(mask)
        found = read_range(call, device, data, hidden)
        if found[4] & NAN and not omits:
            raise ValueError(NAN_MESSAGE)
        prepared = kept.get(found) or prepare_scan(found)
        if prepared is None:
            return None
        scan, at = prepared
        values, _ = run_scan(scan, data, hidden)
        return copy_of(at), values.reshape((*geometry.batch, at.size))

    return run


def _plan_even_bytes(images: Arrangement, geometry: Geometry, count: int) -> Run | None:
    """Plan curves of 8-bit integers at thresholds over their range; the host waits for nothing.

    The curve at every value has that at any thresholds, which a kernel finds.
    """
    plain = images.mask is None and images.direction is None
    if images.element not in ("uint8", "int8") or not plain or count < 2:
        return None
    every = every_value(images.element)
    scan = scan_for(images, every)
    if scan is None or not scan.simple or scan.prepared.pick is not None:
        return None
    find = range_of(images)
    device = images.placement.device
    shape = (*geometry.batch, count)
    size = math.prod(shape)
    macros = {"SUPER": int(images.variant.superlevel)}
    grid = (ceil_div(size, SUM_THREADS),)
    pick = plan_call(
        "sums", "pick_even", macros=macros, grid=grid, threads=SUM_THREADS, arguments=[0] * 7
    )
    image, found_at, answer = find.places

    def run(image_given: Any, _mask: Any = None) -> tuple[Any, Any]:
        stream = cupy.cuda.get_current_stream()
        data = address_of(image_given)
        lasting = lasting_zeros(RANGE_WORDS, device, stream)
        memory = cupy.cuda.alloc(8 * (count + 2 * RANGE_WORDS))
        told = memory.ptr + 8 * count
        if not lasting:
            own = told + 8 * RANGE_WORDS
            cupy.cuda.runtime.memsetAsync(own, 0, 8 * RANGE_WORDS, stream.ptr)
        find.launch([(image + DATA, data), (found_at, lasting or own), (answer, told)], stream.ptr)
        values, counted = scan.curves(data)
        found = cupy.ndarray(shape, np.int64)
        given = values.data.ptr, told, int(every[0]), count, size, memory.ptr, found.data.ptr
        pick.launch(zip(pick.places, given, strict=True), stream.ptr)
        thresholds = cupy.ndarray((count,), np.float64, memory)
        if stream.is_capturing():
            programs.captured.append((scan, find, pick))
            found = keeping(found, (values, counted, memory))
        return thresholds, found

    return run


def _plan_even_curve(
    images: Arrangement, omits: bool, geometry: Geometry, count: int
) -> Run | None:
    """Plan curves of float32 images at thresholds over the range of each, which even.cu finds.

    The function returns None for images without two finite values, or of a range with too few
    values of float32. The kernel of the curve is launched before the answer of the other one is
    known. If the thresholds do not fit, its result is dropped.
    """
    in_place = images.element == "float32" and images.is_scanned_in_place
    if not in_place or not 1 < count <= MOST_EVEN:
        return None
    images = _without_nan(images)  # The search for the range tells whether there is a NaN.
    placement = images.placement
    variant = images.variant
    rules = Rules(
        single=UNIFORM,
        levels=count,
        key_size=4,
        cells=0,
        pair=UNIFORM,
        codes=count + 1,
        table=4 * (count + 1),
        pieces=0,
        found=True,
    )
    plan = plan_scan(placement, None, variant, rules)
    if plan is None or plan.accumulate:
        return None
    bins = BINS(count=count, last=count)
    scan = Scan(plan, Prepared(rules, bins, bins), placement.device, reports=False)
    kernel = ("even", "find_even")
    even = EVEN(count=count)
    if images.mask is None:
        find = plan_range(*kernel, placement, variant, even)
    else:
        find = plan_range_of_samples(images, *kernel, even)
    samples, found, answer, given = find.places
    shape = (*geometry.batch, count)

    def run(image: Any, mask: Any = None) -> tuple[Any, Any] | None:
        if programs.is_capturing():
            return None
        data = address_of(image)
        hidden = address_of(mask)
        reply = take_reply(scan.device)
        memory = cupy.cuda.alloc(8 * count + 4 * (count + 3))
        table = memory.ptr + 8 * count
        words = [(samples + DATA, data), (samples + MASK, hidden)]
        words += [(found, reply.memory.data.ptr), (answer, reply.address)]
        find.launch([*words, (given, memory.ptr), (given + 1, table)])
        values = scan.shaped(data, hidden, shape, table=table)
        thresholds = cupy.ndarray((count,), np.float64, memory)
        (state,) = reply.wait(1)
        reply.release()
        if state & NAN and not omits:
            raise ValueError(NAN_MESSAGE)
        return (thresholds, values) if state & FITS else None

    return run
