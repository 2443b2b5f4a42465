"""The CPU backend: from checked NumPy arrays to curves and coefficients.

Every function takes an image of shape (batch, *spatial) with 1 to 3 spatial axes, a mask of the
same shape or None, and the number of worker threads; only the image and labels of regions have no
batch axis.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve
from ecc_core._backends.cpu.encoders.plans import (
    DIRECT_16_BIT,
    Plan,
    coefficient_plan,
    curve_plans,
)
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.launch import region_curves
from ecc_core._backends.cpu.scans.blocks import MAX_COLUMNS, Scanner, cut
from ecc_core._backends.cpu.sinks.cumulate import cumulate_rows
from ecc_core._backends.cpu.sinks.exact import sum_levels
from ecc_core._backends.cpu.sinks.value_range import value_range
from ecc_core._backends.cpu.sources import Block, DirectionalSource, Source, memory_order
from ecc_core._request.filtration import Boundary, Direction, Filtration
from ecc_core._request.image import as_booleans
from ecc_core.errors import NAN_MESSAGE

__all__ = ["coefficients", "curve", "exact_curve", "number", "region_curves", "value_range"]

Array = NDArray[Any]
Values = NDArray[np.int64]

INTERLEAVED = 16  # images that are read together where their points lie side by side
SHORT_ROW = 48  # points in a row that do not fill a vector
BLOCKS_A_TRIAL = 16  # of this many blocks one may not fit a plan before it is given up
NO_HISTOGRAM = np.zeros((1, 1), np.int64)


def curve(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Euler characteristic of each image of a batch at sorted thresholds: (batch, n) int64."""
    result = np.zeros((image.shape[0], thresholds.size), np.int64)
    if image.size == 0 or thresholds.size == 0:
        return result
    boundary = filtration.boundary
    if not boundary.is_closed and not _scanned_with_border(image, filtration):
        options: Any = {"mask": mask, "workers": workers}
        result += curve(image, thresholds, replace(filtration, boundary=Boundary.CLOSED), **options)
        result += bordered_curve(curve, image, thresholds, filtration, **options)
        return result
    cubes, superlevel = filtration.cubes, filtration.superlevel
    direction = filtration.direction
    dtype = np.dtype(np.float64) if direction else image.dtype.newbyteorder("=")
    points = image[0].size
    plans = curve_plans(
        dtype,
        thresholds,
        superlevel,
        cubes,
        masked=mask is not None,
        points=points,
        counts=boundary.is_closed,
    )
    for part, view, hidden in parts_of(image, mask, direction, plans[-1].key_dtype.itemsize):
        source = DirectionalSource(view, direction) if direction else Source(view)
        shown = None if hidden is None else Source(hidden, "mask")
        stack = _Stack(source, shown, cubes, filtration.ndim, boundary)
        stack.add_curves(plans, filtration.nan, workers, result[part])
    if cubes and filtration.ndim == 3:
        np.negative(result, out=result)
    return result


def number(
    image: Array,
    level: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> int:
    """Euler characteristic of the only image of a batch at one level, (1,)."""
    return int(curve(image, level, filtration, mask=mask, workers=workers).item())


def _scanned_with_border(image: Array, filtration: Filtration) -> bool:
    """Whether scans deal with the border of an image that is not closed.

    They do if whole rows are in one block of a periodic image, and if no axis of a half-open window
    has to be flipped.
    """
    if filtration.ndim == 1:
        return False
    if filtration.boundary.wraps:
        return bool(max(image.shape[1:]) <= MAX_COLUMNS)
    return bool(min(image.strides[1:]) >= 0)


class _Stack:
    """One volume, or images of one shape, to be cut into blocks and scanned."""

    def __init__(
        self,
        source: Source,
        mask: Source | None,
        cubes: bool,
        ndim: int,
        boundary: Boundary = Boundary.CLOSED,
    ) -> None:
        self.source, self.mask = source, mask
        self.cubes, self.ndim, self.boundary = cubes, max(ndim, 2), boundary
        self.interleaved = INTERLEAVED if self.ndim == 2 and source.interleaved else 1

    def scanner(self) -> Scanner:
        return Scanner(self.source, self.mask, self.cubes, self.ndim, self.boundary)

    def add_curves(self, plans: list[Plan], nan: str, workers: int | None, out: Values) -> None:
        """Add one curve an image to `out`, (images, n); a volume is one image."""
        key_size = max(plans[-1].key_dtype.itemsize, self.source.copied_size)
        blocks = cut(self.source.shape, key_size, self.ndim, self.interleaved)
        alone = len(out) == 1
        lock = threading.Lock()

        def work(queue: Iterator[Block]) -> None:
            scanner = self.scanner()
            trials = [1 + len(blocks) // BLOCKS_A_TRIAL] * len(plans)
            histograms: list[Values | None] = [None] * len(plans)
            for block in queue:
                own = out if alone else out[block.start[0] : block.stop[0]]
                _add_block(scanner, plans, trials, block, nan, histograms, len(own))
                if not alone:
                    add(histograms, own)
                    histograms = [None] * len(plans)
            if alone:
                add(histograms, out)

        def add(histograms: list[Values | None], curves: Values) -> None:
            with lock:  # a block may hold parts of its images
                for plan, histogram in zip(plans, histograms, strict=True):
                    if histogram is not None:
                        cumulate_rows(histogram, self.cubes, plan.entered, curves)

        points = math.prod(self.source.shape)
        share(blocks, work, worker_count(workers, points, plans[-1].top + 1))

    def coefficients(
        self, plan: Plan, nan: str, workers: int | None, out: NDArray[np.int8]
    ) -> None:
        """Write the coefficients of one volume or stack to `out`."""
        _, rows, columns = self.source.shape
        flat = out.reshape(-1)

        def write(queue: Iterator[Block]) -> None:
            scanner = self.scanner()
            for block in queue:
                has_nan, _ = scanner.stage(plan, block)
                if has_nan and nan == "raise":
                    raise ValueError(NAN_MESSAGE)
                z, y, x = block.start
                scanner.scan(NO_HISTOGRAM, flat, (z * rows + y) * columns + x)

        blocks = cut(self.source.shape, plan.key_dtype.itemsize, self.ndim)
        share(blocks, write, worker_count(workers, out.size, 1))


def parts_of(
    image: Array, mask: Array | None, direction: Direction | None, key_size: int
) -> Iterator[tuple[slice, Array, Array | None]]:
    """Views of (slices, rows, columns) to compute at once, with their place in the batch.

    Images of one or two axes come as one stack if blocks hold whole ones, or if the images are
    interleaved in memory.
    """
    count, spatial = image.shape[0], image.ndim - 1
    order, flips = spatial_order(image[0]) if direction is None else ([], [])

    def lay(array: Array) -> Array:
        if order:
            array = array.transpose(0, *order)[(slice(None), *flips)]
        return array if spatial > 1 else array[:, None, :]

    view = lay(image)
    shown = None if mask is None else lay(np.broadcast_to(mask, image.shape))
    if spatial == 3:
        for i in range(count):
            yield slice(i, i + 1), view[i], None if shown is None else shown[i]
        return
    whole = cut((count, *view.shape[1:]), key_size, 2)[0].stop[1:] == view.shape[1:]
    step = count if whole or Source(view).interleaved else 1
    for i in range(0, count, step):
        part = slice(i, i + step)
        yield part, view[part], None if shown is None else shown[part]


def spatial_order(image: Array) -> tuple[list[int], list[slice]]:
    """The axes to take for slices, rows and columns, behind the batch axis, and flips, if any.

    The curve does not change when axes are swapped or reversed. So rows go along the memory, or, if
    those were short, along the axis of the shortest steps that is not, or the longest axis.
    """
    if image.flags.c_contiguous and image.shape[-1] >= SHORT_ROW:
        return [], []
    order, flips = memory_order(image)
    lengths = [image.shape[axis] for axis in order]
    long = [place for place, length in enumerate(lengths) if length >= SHORT_ROW]
    rows = long[-1] if long else lengths.index(max(lengths))
    order.append(order.pop(rows))
    flips = (*flips[:rows], *flips[rows + 1 :], flips[rows])
    return [axis + 1 for axis in order], list(flips)


def _add_block(
    scanner: Scanner,
    plans: list[Plan],
    trials: list[int],
    block: Block,
    nan: str,
    histograms: list[Values | None],
    rows: int,
) -> None:
    """Add a block to the histogram of the first plan that its keys fit, one row an image.

    `trials` are the numbers of blocks that may still not fit each plan before it is given up.
    """
    for number, plan in enumerate(plans):
        if trials[number] == 0:
            continue
        has_nan, unfit = scanner.stage(plan, block)
        if has_nan and nan == "raise":
            raise ValueError(NAN_MESSAGE)
        if not unfit:
            break
        trials[number] -= 1
    histogram = histograms[number]
    if histogram is None:
        histogram = histograms[number] = np.zeros((rows, plan.top + 1), np.int64)
    if plan.bound is None:
        scanner.scan(histogram)
    else:
        scanner.count(plan, histogram)


def coefficients(
    image: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> NDArray[np.int8]:
    """Coefficient of every point of each image: int8, the image's shape."""
    out = np.zeros(image.shape, np.int8)
    if image.size == 0:
        return out
    spatial, cubes = filtration.ndim, filtration.cubes
    if image.dtype == np.bool_:
        image = as_booleans(image)
    given = image
    if mask is not None and image.dtype.kind in "iu" and image.dtype.itemsize == 8:
        # No wider integers are left for a value beyond all others.
        image = np.unique(image, return_inverse=True)[1].reshape(image.shape).astype(np.uint32)
    dtype = image.dtype.newbyteorder("=")
    plan = coefficient_plan(dtype, filtration.superlevel, cubes, mask is not None)

    def lay(array: Array, i: int) -> Array:
        return array[i] if spatial == 3 else array if spatial == 2 else array[:, None]

    for i in range(image.shape[0] if spatial == 3 else 1):  # others are the slices of one stack
        source = Source(lay(image, i))
        shown = None if mask is None else Source(lay(mask, i), "mask")
        stack = _Stack(source, shown, cubes, spatial)
        stack.coefficients(plan, filtration.nan, workers, lay(out, i))
    if cubes and spatial == 3:
        np.negative(out, out=out)
    if mask is not None:
        out[~mask] = 0
    if given.dtype.kind == "f" and filtration.nan == "omit":
        out[np.isnan(given)] = 0
    return out


def exact_curve(
    image: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """The levels at which the curve of one image (batch of 1) changes, and the values there."""
    superlevel = filtration.superlevel
    if not filtration.boundary.is_closed:
        options: Any = {"mask": mask, "workers": workers}
        return bordered_exact_curve(exact_curve, curve, image, filtration, **options)
    if filtration.direction is not None:
        image = filtration.direction.add(image, (0,) * filtration.ndim)
        filtration = replace(filtration, direction=None)
    dtype = image.dtype.newbyteorder("=")
    if dtype.itemsize == 1 or (dtype.itemsize == 2 and image.size >= DIRECT_16_BIT):
        levels = _all_values(dtype)
        values = curve(image, levels, filtration, mask=mask, workers=workers)[0]
        jumps = np.diff(values[::-1], prepend=0)[::-1] if superlevel else np.diff(values, prepend=0)
        return levels[jumps != 0], values[jumps != 0]
    counts = coefficients(image, filtration, mask=mask, workers=workers)
    levels, jumps = sum_levels(image, counts)
    if superlevel:
        return levels, np.cumsum(jumps[::-1])[::-1]
    return levels, np.cumsum(jumps)


def _all_values(dtype: np.dtype[Any]) -> Array:
    """Every value of a dtype of at most 16 bits, increasing."""
    if dtype.kind == "b":
        return np.array([False, True])
    bits = np.arange(1 << (8 * dtype.itemsize), dtype=np.uint32)
    values = bits.astype(f"u{dtype.itemsize}").view(dtype)
    return np.unique(values[~np.isnan(values)])
