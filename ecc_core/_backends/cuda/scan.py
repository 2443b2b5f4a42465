"""Curves by the scanning kernels, which read an image once, in its own memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import Layout, arrange
from ecc_core._backends.cuda.bins import CONSECUTIVE, TABLE, UNIFORM, Prepared, Rules, prepare
from ecc_core._backends.cuda.recipe import (
    COUNTS,
    DATA,
    ITEM_BYTES,
    NAN_OMIT,
    NOT_FINITE,
    TICKETS,
    VALUES,
    Recipe,
    Variant,
    by_value,
    recipe,
)
from ecc_core._backends.cuda.tiling import PAIR_ROWS
from ecc_core._backends.cuda.zeros import lasting_zeros

__all__ = ["Scan", "pick_levels", "plan_scan", "running_sums", "whole_scan"]

Array = NDArray[Any]

# Types that the kernels read; others are recoded.
SCANNED = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "float16", "bfloat16", "float32")
THIN = 32  # columns of which a warp has many more
SMALL = 1 << 16  # samples, for which the order of axes does not matter


class Scan(NamedTuple):
    """What computes curves of images in a layout, at the levels, by a scanning kernel."""

    layout: Layout
    plan: Recipe
    prepared: Prepared
    device: int

    def begin(self, data: int) -> Any:
        """Launch the kernel for an array at this address.

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
        result[VALUES], result[COUNTS] = memory.ptr, counts
        result[TICKETS], result[NOT_FINITE] = counts + 8 * plan.counts, flags
        bins = self.prepared.pair_bins if plan.pairs else self.prepared.bins
        arguments = (by_value(image), plan.tiling, bins, by_value(result))
        plan.function(plan.grid, (plan.threads,), arguments, shared_mem=plan.shared)
        return memory

    def curves(self, data: int, superlevel: bool) -> tuple[Any, Any]:
        """Curves at the levels (images, levels), and the flags."""
        memory = self.begin(data)
        images, levels = self.layout.images, self.prepared.rules.levels
        values = cupy.ndarray((images, levels), np.int64, memory)
        if self.plan.accumulate:
            bins = memory + 8 * images * (levels + 1)
            bins = cupy.ndarray((images, levels + 1), np.int64, bins)
            cupy.multiply(running_sums(bins, superlevel), self.plan.sign, out=values)
        return values, self.flags(memory)

    def flags(self, memory: Any) -> Any:
        """The flags in the memory."""
        images, levels = self.layout.images, self.prepared.rules.levels
        return cupy.ndarray((images,), np.int64, memory + 8 * images * levels)


def whole_scan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
    thresholds: Array,
    variant: Variant,
    device: int,
) -> Scan | None:
    """The scan of images (batch, *spatial), or None where curves at thresholds take more than it.

    `address` counts modulo 16 only. The device is the current one.
    """
    prepared = prepare(thresholds, variant.element, variant.superlevel, device)
    if prepared.pick is not None or (variant.nan == NAN_OMIT and prepared.reaches_last):
        return None
    found = plan_scan(shape, strides, address, None, variant, prepared.rules, device)
    return Scan(*found, prepared, device) if found and not found[1].accumulate else None


@lru_cache(maxsize=1024)
def plan_scan(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    address: int,
    own: tuple[int, int] | None,
    variant: Variant,
    rules: Rules,
    device: int,
) -> tuple[Layout, Recipe] | None:
    """How the kernels read images without masks; None where they had better be recoded."""
    if variant.element not in SCANNED:
        return None
    single = rules.levels > 65_000 or rules.single in (UNIFORM, CONSECUTIVE, TABLE)
    if rules.pair is None and not single and variant.element not in ("uint16", "int16"):
        return None
    layout = arrange(shape, strides, ITEM_BYTES[variant.element], address, own is not None)
    if layout is None or (own is None and _is_thin(layout, len(shape) - 1)):
        return None
    return layout, recipe(layout, len(shape) - 1, own, variant, rules, device)


def _is_thin(layout: Layout, ndim: int) -> bool:
    """Whether warps would have much less than they can take, and would not in another order."""
    depth, height, width = layout.shape
    if depth * height * width < SMALL or ndim == 1:
        return False
    if ndim == 2:
        return width < THIN < height
    return (height < PAIR_ROWS or width < THIN) and sorted(layout.shape)[1] >= THIN


def running_sums(counts: Any, superlevel: bool) -> Any:
    """Curves from bins: a level has the bins up to its own, or for superlevels those above."""
    if superlevel:
        return cupy.cumsum(counts[:, :0:-1], axis=1)[:, ::-1]
    return cupy.cumsum(counts[:, :-1], axis=1)


def pick_levels(values: Any, prepared: Prepared) -> Any:
    """Curves at the thresholds from curves at the levels."""
    if prepared.pick is None:
        return values
    level, empty = prepared.pick
    found = values[:, level] if prepared.rules.levels else cupy.zeros((len(values), 1), np.int64)
    return cupy.where(empty, 0, found)
