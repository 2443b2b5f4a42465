"""Calls whose arguments were checked before, for arrays of one layout."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import (
    ArrayView,
    Placement,
    address_of,
    adopt,
    as_cupy,
    as_tensor,
    borrowed_stream,
    has_nan,
    is_stream_of_torch,
    on_device,
    on_host,
)
from ecc_core._backends.cuda.bins import prepare
from ecc_core._backends.cuda.calls import is_set, take_reply
from ecc_core._backends.cuda.coefficients import prepared_coefficients
from ecc_core._backends.cuda.curve_plans import plan_curve
from ecc_core._backends.cuda.curves import (
    checked_coefficients,
    enqueue,
    finite_range,
    raise_for_nan,
    run_scan,
    scan_for,
    without_flat_axes,
)
from ecc_core._backends.cuda.kernels import variant_of
from ecc_core._backends.cuda.regions import plan_regions
from ecc_core._backends.cuda.samples import DATA, Arrangement, Images
from ecc_core._backends.cuda.scan import Number
from ecc_core._request.filtration import Filtration
from ecc_core._request.spatial_axes import Geometry
from ecc_core._request.thresholds import Thresholds, even_thresholds
from ecc_core.errors import NAN_MESSAGE

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
    workers: int | None = None,
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
        if array.size == 0 or programs.is_capturing():
            return None
        runs: list[Run | None] = []
        # Without a copy, images are stacked where they are.
        in_place = len(geometry.batch) < 2
        single = mask is None and not geometry.batch and filtration.direction is None
        if in_place and kind == "curve":
            check = partial(_raise_for_nan, geometry)
            given = view, as_cupy(mask), levels, filtration, geometry
            runs += plan_curve(*given, check)
        elif in_place and kind == "coefficients":
            runs.append(_plan_coefficients(view, as_cupy(mask), filtration, geometry))
        elif single and kind in PREPARED:
            runs.append(PREPARED[kind](view, labels, levels, filtration))
        if kind in CHECKED:
            runs.append(CHECKED[kind](levels, filtration, geometry))
        usable = [run for run in runs if run is not None]
        if not usable:
            return None
        return partial(_run, usable, array.device.id)


def _run(runs: list[Run], device: int, image: Any, *others: Any) -> Any:
    """Return the first result, computed where the image is, on its library's stream."""
    own = isinstance(image, cupy.ndarray)
    if cupy.cuda.runtime.getDevice() != device:
        return None
    if not own and not is_stream_of_torch(cupy.cuda.get_current_stream(), device):
        with borrowed_stream(device):
            return _run(runs, device, image, *others)
    for run in runs:
        found = run(image, *others)
        if found is not None:
            break
    if own or not isinstance(found, tuple):
        return found
    arrays = [None if array is None else as_tensor(array) for array in found]
    return tuple(arrays)


def _plan_number(
    view: ArrayView, _labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    if levels.array is None:
        return None
    view, filtration = without_flat_axes(view, None, filtration)
    scan = scan_for(Arrangement.of(Images.of(view, filtration)), levels.array)
    if scan is None or (not isinstance(scan, Number) and scan.flags_wanted):
        return None

    def run(image: Any) -> int | None:
        if programs.is_capturing():
            return None
        if isinstance(scan, Number):
            return scan.number(address_of(image))
        values, _ = run_scan(scan, address_of(image))
        return int(on_host(values)[0, 0])

    return run


def _plan_region_curves(
    view: ArrayView, labels: Any, levels: Thresholds, filtration: Filtration
) -> Run | None:
    array = view.array
    labels = as_cupy(labels)
    at = levels.array
    plain = labels.dtype != np.bool_ and labels.flags.c_contiguous
    if at is None or at.size == 0 or not plain:
        return None
    variant = variant_of(filtration, view.element)
    prepared = prepare(at, variant, array.device.id)
    given = Placement.of(array), variant, prepared.rules
    regions = plan_regions(*given, labels.dtype, labels.size)

    def run(image: Any, labels: Any) -> tuple[Any, Any]:
        return regions.find([(DATA, address_of(image))], labels, prepared)

    return run


def _plan_checked_curve(levels: Thresholds, filtration: Filtration, geometry: Geometry) -> Run:
    """Return a function for images of any kind: the call in full, without checks of arguments."""
    given = levels.array is not None
    at = levels.array
    if at is None and levels.bounds is not None:
        at = even_thresholds(*levels.bounds, levels.count)
    omitting = replace(filtration, nan="omit")  # Once the range is known, there is no NaN.

    def run(image: Any, mask: Any = None) -> tuple[Any, Any] | None:
        if programs.is_capturing():
            return None
        with _stacked(geometry, image, mask) as (view, hidden):
            now = at
            chosen = filtration
            if now is None:
                bounds = finite_range(view, filtration, hidden)
                now = levels.over(lambda: bounds, geometry.spatial)
                chosen = omitting
            values, flag = enqueue(view, now, chosen, mask=hidden, for_host=True)
            raise_for_nan(flag, view, hidden)
            curves = values.reshape((*geometry.batch, now.size))
            return None if given else on_device(now), curves

    return run


def _plan_checked_coefficients(
    _levels: Thresholds, filtration: Filtration, geometry: Geometry
) -> Run:
    def run(image: Any, mask: Any = None) -> tuple[Any] | None:
        if programs.is_capturing():
            return None
        with _stacked(geometry, image, mask) as (view, hidden):
            return (checked_coefficients(view, filtration, hidden)[0],)

    return run


def _plan_coefficients(
    view: ArrayView, mask: Any, filtration: Filtration, geometry: Geometry
) -> Run:
    """Return a function that leaves images with flags, which NaN and infinities set, to others."""
    images = Arrangement.of(Images.of(view, filtration, mask))
    device = images.placement.device
    launch, reports = prepared_coefficients(images)

    def run(image: Any, mask: Any = None) -> tuple[Any] | None:
        if reports and programs.is_capturing():
            return None
        out = cupy.ndarray(geometry.shape, np.int8)
        flag = take_reply(device) if reports else None
        launch((address_of(image), address_of(mask)), out, flag)
        return None if is_set(flag) else (out,)

    return run


def _raise_for_nan(geometry: Geometry, flag: Any, image: Any, mask: Any) -> None:
    """Wait for flags of an image, and raise ValueError for NaN."""
    if is_set(flag):
        with _stacked(geometry, image, mask) as (view, hidden):
            if has_nan(view, hidden):
                raise ValueError(NAN_MESSAGE)


@contextmanager
def _stacked(geometry: Geometry, image: Any, mask: Any) -> Iterator[tuple[ArrayView, Any]]:
    """View an image and its mask, or None, as batches (images, *spatial)."""
    hidden = None
    if mask is not None:
        spread = geometry.spread(mask)
        hidden = as_cupy(geometry.stack(spread))
    with adopt(geometry.stack(image)) as view:
        yield view, hidden


PREPARED = {"number": _plan_number, "region_curves": _plan_region_curves}
"""Launches whose arguments are laid out once, for plain images."""
CHECKED = {"curve": _plan_checked_curve, "coefficients": _plan_checked_coefficients}
"""Calls in full, of arguments that were checked."""
