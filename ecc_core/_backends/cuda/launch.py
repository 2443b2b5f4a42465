"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. Nothing
waits for the device except where an answer depends on the data: `nan="raise"` for floats, value
ranges, exact curves and regions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import Adopted, Layout, adopt, arrange, as_cupy, numbers
from ecc_core._backends.cuda.bins import Prepared, Rules, prepare
from ecc_core._backends.cuda.points import point_coefficients, point_curves, running_sums
from ecc_core._backends.cuda.recipe import (
    COUNTS,
    DATA,
    ITEM_BYTES,
    MASK,
    NAN_OMIT,
    NAN_REPORT,
    NOT_FINITE,
    TICKETS,
    VALUES,
    Construction,
    Recipe,
    by_value,
    recipe,
)
from ecc_core._backends.cuda.recipe import Filtration as Kind
from ecc_core._backends.cuda.recipe import filtration as kind_of
from ecc_core._backends.cuda.zeros import lasting_zeros
from ecc_core._request.filtration import Direction, Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["coefficients", "curve", "exact_curve", "region_curves", "value_range"]

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

    `own` restricts the sum to some indices of the first spatial axis; where it ends inside the
    image, one more index must be there on that side.
    """
    with adopt(image) as adopted:
        adopted = _directed(adopted, filtration.direction)
        mask = as_cupy(mask)
        values, flag = enqueue(adopted, thresholds, filtration, mask=mask, own=own)
        if flag is not None:
            _raise_for_nan(flag, adopted, mask)
        return adopted.give_back(values)


def enqueue(
    adopted: Adopted,
    thresholds: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    own: tuple[int, int] | None = None,
) -> tuple[Any, Any]:
    """Curves, and flags on the device: set where NaN must be looked for. Does not wait."""
    images, device = adopted.array.shape[0], adopted.array.device.id
    if not isinstance(thresholds, np.ndarray):
        thresholds = as_cupy(thresholds).get()
    if adopted.array.size == 0 or thresholds.size == 0:
        return cupy.zeros((images, thresholds.size), np.int64), None
    kind = kind_for(filtration, adopted.element, masked=mask is not None)
    prepared = prepare(thresholds, adopted.element, kind.superlevel, device)
    hides = kind.masked or kind.nan == NAN_OMIT
    if (hides and prepared.reaches_last) or (kind.masked and prepared.rules.key_size == 8):
        values, flag = point_curves(adopted, mask, kind, prepared, None, images)
    else:
        values, flag = _march(adopted.array, mask, kind, prepared, own, device)
    if prepared.pick is not None:
        values = _pick(values, prepared)
    return values, flag if kind.nan == NAN_REPORT else None


def kind_for(filtration: Filtration, element: str, *, masked: bool) -> Kind:
    """The variant of the kernels."""
    construction: Construction = "V" if filtration.connectivity == 1 else "T"
    return kind_of(construction, filtration.superlevel, filtration.nan, element, masked)


class March(NamedTuple):
    """What computes curves of images in a layout, at the levels, by a marching kernel."""

    layout: Layout
    plan: Recipe
    prepared: Prepared
    device: int

    def begin(self, data: int, mask: int = 0) -> Any:
        """Launch the kernel for an array and a mask at these addresses.

        The memory returned holds the curves, flags of values that are not finite, then mostly bins
        and tickets: a CUDA graph that has captured the call stays valid as long as it lives.
        """
        plan, images, levels = self.plan, self.layout.images, self.prepared.rules.levels
        zeros = plan.counts + images if plan.counts else 0  # bins and tickets
        lasting = 0 if plan.accumulate else lasting_zeros(zeros, self.device)
        memory = cupy.cuda.alloc(8 * (images * (levels + 1) + (0 if lasting else zeros)))
        flags = memory.ptr + 8 * images * levels
        counts = lasting or flags + 8 * images
        if zeros and not lasting:
            stream = cupy.cuda.get_current_stream().ptr
            first = flags if plan.accumulate else counts
            cupy.cuda.runtime.memsetAsync(first, 0, counts + 8 * zeros - first, stream)
        image, result = plan.image.copy(), plan.result.copy()
        image[DATA] = data + self.layout.offset
        if mask:
            image[MASK] = mask + self.layout.mask_offset
        result[VALUES], result[COUNTS] = memory.ptr, counts
        result[TICKETS], result[NOT_FINITE] = counts + 8 * plan.counts, flags
        bins = self.prepared.pair_bins if plan.pairs else self.prepared.bins
        arguments = (by_value(image), plan.tiling, bins, by_value(result))
        plan.function(plan.grid, (plan.threads,), arguments, shared_mem=plan.shared)
        return memory

    def flags(self, memory: Any) -> Any:
        """The flags in the memory."""
        images, levels = self.layout.images, self.prepared.rules.levels
        return cupy.ndarray((images,), np.int64, memory + 8 * images * levels)


def whole_march(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
    thresholds: Array,
    kind: Kind,
    device: int,
) -> March | None:
    """The march of images (batch, *spatial), or None where curves at thresholds take more than it.

    `address` counts modulo 16 only. The device is the current one.
    """
    prepared = prepare(thresholds, kind.element, kind.superlevel, device)
    if prepared.pick is not None or (kind.nan == NAN_OMIT and prepared.reaches_last):
        return None
    found = _planned(shape, strides, address, kind, prepared.rules, device)
    return found and March(*found, prepared, device)


@lru_cache(maxsize=1024)
def _planned(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
    kind: Kind,
    rules: Rules,
    device: int,
) -> tuple[Layout, Recipe] | None:
    """What is needed for curves without masks by one kernel; None where one does not suffice."""
    layout = arrange(shape, strides, ITEM_BYTES[kind.element], address, None, False)
    if layout is None:
        return None
    plan = recipe(layout, len(shape) - 1, None, kind, rules, device)
    return None if plan.accumulate else (layout, plan)


def _march(
    array: Any,
    mask: Any,
    kind: Kind,
    prepared: Prepared,
    own: tuple[int, int] | None,
    device: int,
) -> tuple[Any, Any]:
    """Curves at the levels by the marching kernels, and flags of values that are not finite."""
    hidden = None if mask is None else cupy.broadcast_to(mask, array.shape)
    layout = arrange(
        array.shape,
        array.strides,
        array.itemsize,
        array.data.ptr % 16,
        None if hidden is None else hidden.strides,
        own is not None,
    )
    if layout is None:
        array = cupy.ascontiguousarray(array)
        if hidden is not None:
            hidden = cupy.ascontiguousarray(hidden)
        return _march(array, hidden, kind, prepared, own, device)
    plan = recipe(layout, array.ndim - 1, own, kind, prepared.rules, device)
    march = March(layout, plan, prepared, device)
    memory = march.begin(array.data.ptr, 0 if hidden is None else hidden.data.ptr)
    images, levels = layout.images, prepared.rules.levels
    values = cupy.ndarray((images, levels), np.int64, memory)
    if plan.accumulate:
        bins = memory + 8 * images * (levels + 1)
        bins = cupy.ndarray((images, levels + 1), np.int64, bins)
        cupy.multiply(running_sums(bins, kind.superlevel), plan.sign, out=values)
    return values, march.flags(memory) if kind.nan == NAN_REPORT else None


def _pick(values: Any, prepared: Prepared) -> Any:
    """Curves at the thresholds from curves at the levels."""
    assert prepared.pick is not None
    level, empty = prepared.pick
    found = values[:, level] if prepared.rules.levels else cupy.zeros((len(values), 1), np.int64)
    return cupy.where(empty, 0, found)


def _raise_for_nan(flag: Any, adopted: Adopted, mask: Any) -> None:
    """Wait for the flag; where it is set, tell NaN from infinity by a second look."""
    if not bool(flag.any() if flag.size > 1 else flag[0]):
        return
    half = adopted.element == "bfloat16"
    values = adopted.array
    bad = (values & 0x7FFF) > 0x7F80 if half else cupy.isnan(values)
    if mask is not None:
        bad &= mask
    if bool(bad.any()):
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
        found = _coefficients(_as_booleans(adopted), filtration, as_cupy(mask))
        return adopted.give_back(found)


def _coefficients(adopted: Adopted, filtration: Filtration, mask: Any) -> Any:
    kind = kind_for(filtration, adopted.element, masked=mask is not None)
    out, flag = point_coefficients(adopted, mask, kind)
    if kind.nan == NAN_REPORT:
        _raise_for_nan(flag, adopted, mask)
    return out


def exact_curve(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """The levels at which the curve of one image (batch of 1) changes, and the values there."""
    with adopt(image) as adopted:
        adopted = _as_booleans(_directed(adopted, filtration.direction))
        counts = _coefficients(adopted, filtration, as_cupy(mask))
        changes = counts != 0
        levels, where = cupy.unique(numbers(adopted)[changes], return_inverse=True)
        jumps = cupy.zeros(levels.size, np.int64)
        cupy.add.at(jumps, where, counts[changes].astype(np.int64))
        levels, jumps = levels[jumps != 0], jumps[jumps != 0]
        values = cupy.cumsum(jumps[::-1])[::-1] if filtration.superlevel else cupy.cumsum(jumps)
        values = adopted.give_back(cupy.ascontiguousarray(values))
        if adopted.element == "bfloat16":
            import torch

            return adopted.give_back(levels).to(torch.bfloat16), values
        return adopted.give_back(levels), values


def region_curves(
    image: Any,
    labels: Any,
    thresholds: Any,
    filtration: Filtration,
    *,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Ids of the regions, increasing, and the curve of each: (k,), (k, n) int64."""
    with adopt(image) as adopted:
        regions = cupy.ascontiguousarray(as_cupy(labels))
        if not isinstance(thresholds, np.ndarray):
            thresholds = as_cupy(thresholds).get()
        ids = cupy.unique(regions)
        ids = ids[ids != 0]
        values = cupy.zeros((ids.size, thresholds.size), np.int64)
        if values.size:
            rows = cupy.where(regions != 0, cupy.searchsorted(ids, regions) + 1, 0)
            single = Adopted(adopted.array[None], adopted.element, adopted.give_back)
            kind = kind_for(filtration, adopted.element, masked=False)
            device = single.array.device.id
            prepared = prepare(thresholds, adopted.element, kind.superlevel, device)
            rows = rows.astype(np.int32)
            values, flag = point_curves(single, None, kind, prepared, rows, int(ids.size))
            if kind.nan == NAN_REPORT:
                _raise_for_nan(flag, single, None)
            values = values if prepared.pick is None else _pick(values, prepared)
        return adopted.give_back(ids), adopted.give_back(cupy.ascontiguousarray(values))


def value_range(
    image: Any,
    filtration: Filtration,
    *,
    mask: Any = None,
    workers: int | None = None,  # noqa: ARG001
) -> tuple[Any, Any]:
    """Smallest and largest finite value that is not masked; (None, None) where there is none."""
    with adopt(image) as adopted:
        array = numbers(_directed(adopted, filtration.direction))
        mask = as_cupy(mask)
        if mask is not None:
            array = array[cupy.broadcast_to(mask, array.shape)]
        if array.size == 0:
            return None, None
        low, high = array.min(), array.max()
        if array.dtype.kind == "f" and not bool(cupy.isfinite(low) & cupy.isfinite(high)):
            if filtration.nan == "raise" and bool(cupy.isnan(low) | cupy.isnan(high)):
                raise ValueError(NAN_MESSAGE)
            array = array[cupy.isfinite(array)]
            if array.size == 0:
                return None, None
            low, high = array.min(), array.max()
        return low.get()[()], high.get()[()]


def _as_booleans(adopted: Adopted) -> Adopted:
    """Booleans in which True is the byte 1; others as they are."""
    if adopted.array.dtype != np.bool_:
        return adopted
    return adopted._replace(array=adopted.array.view(np.uint8) != 0)


def _directed(adopted: Adopted, direction: Direction | None) -> Adopted:
    """X + a * <u, x> in float64, in the order of operations of Direction.add."""
    if direction is None:
        return adopted
    ndim = len(direction.terms)
    height: Any = None
    for axis, terms in enumerate(direction.terms):
        term = cupy.asarray(terms).reshape((-1,) + (1,) * (ndim - axis - 1))
        height = term if height is None else height + term
    values = adopted.array.astype(np.float64) + direction.scale * height
    return Adopted(values, "float64", adopted.give_back)
