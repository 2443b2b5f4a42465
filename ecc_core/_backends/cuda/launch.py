"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. A function
waits for the device only if something depends on the data: whether floats contain NaN, the range of
the values, the levels of an exact curve, or the regions.
"""

from dataclasses import replace
from typing import Any

import cupy
import numpy as np

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve
from ecc_core._backends.cuda.arrays import adopt, as_cupy, numbers, on_host
from ecc_core._backends.cuda.curves import (
    checked_coefficients,
    enqueue,
    finite_range,
    raise_for_nan,
    with_coefficients,
)
from ecc_core._backends.cuda.exact import EVERY_VALUE, every_value, sum_events
from ecc_core._backends.cuda.plans import plan as plan
from ecc_core._backends.cuda.regions import region_curves as region_curves
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes


def curve(
    image: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,
    own: tuple[int, int] | None = None,
) -> Any:
    """Return the Euler characteristic of each image at sorted thresholds, (batch, n) int64.

    `own` restricts the sum to the indices (first, last) of the first spatial axis. The image must
    contain one more index on each side beyond which the whole continues.
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


def coefficients(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> Any:
    with adopt(image) as view:
        return view.wrap(checked_coefficients(view, filtration, as_cupy(mask)))


def exact_curve(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        superlevel = filtration.superlevel
        direction = filtration.direction
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

        levels, sums = with_coefficients(view, filtration, as_cupy(mask), finish)
        levels = levels.astype(np.float16) if narrow else levels
        levels = view.wrap_levels(levels) if direction is None else view.wrap(levels)
        return levels, view.wrap(cupy.ascontiguousarray(sums))


def value_range(
    image: Any, filtration: Filtration, *, mask: Any = None, workers: int | None = None
) -> tuple[Any, Any]:
    with adopt(image) as view:
        return finite_range(view, filtration, as_cupy(mask))


def after_range(filtration: Filtration) -> Filtration:
    """Return the filtration that omits NaN: there is none, and no call needs to wait for that."""
    return replace(filtration, nan="omit")
