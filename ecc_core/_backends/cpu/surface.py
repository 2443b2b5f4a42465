"""Surfaces: the ranks of two images, block by block, and a signed histogram of their pairs.

A *code* is an unsigned integer that contains a pair of ranks, the first one in its upper half.
``surface_kernels.py`` counts codes, and ``docs/design/surface.md`` derives the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import add_up, share, worker_count
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.scans.layouts import tiles
from ecc_core._backends.cpu.sources import Block, Source, memory_order, scratch
from ecc_core._backends.cpu.surface_kernels import EVENT_BYTES, add_cells, pack_codes
from ecc_core._request.filtration import Filtration
from ecc_core.errors import nan_message

Array = NDArray[Any]
Values = NDArray[np.int64]

NAMES = ("first", "second")
"""The arguments with the images."""
BLOCK_POINTS = 1 << 17  # Codes, keys and events of so many points fit in the second-level cache.
MOST_COLUMNS = 4096
MOST_ROWS = 64
SPARE = 64  # So many elements after the last one of a block may be read or written.
MOST_COUNTED = 1 << 27  # The cells of so many points can be counted by integers of 32 bits.
SHORT = 64  # Rows with fewer points do not fill vectors.


def surface(
    first: Array,
    second: Array,
    thresholds: tuple[Array, Array],
    filtrations: tuple[Filtration, Filtration],
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Return the Euler characteristics of intersections, (images, n, m) int64."""
    result = np.zeros((len(first), *(at.size for at in thresholds)), np.int64)
    if result.size == 0 or first.size == 0:
        return result
    dtypes = (image.dtype.newbyteorder("=") for image in (first, second))
    plans = [
        # Plans for masked images have a key beyond all others, for points outside the image.
        curve_plans(dtype, at, filtration.superlevel, False, masked=True, points=first[0].size)[-1]
        for dtype, at, filtration in zip(dtypes, thresholds, filtrations, strict=True)
    ]
    bins = math.prod(plan.top + 1 for plan in plans)

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            pair = (first[i], second[i])
            shown = None if mask is None else mask[i]
            result[i] = _surface(pair, shown, plans=plans, filtration=filtrations[0], workers=alone)

    together = 1 if len(first) == 1 else worker_count(workers, first.size, bins)
    alone = workers if together == 1 else 1
    share(range(len(first)), each, together)
    return result


def _place(block: Block, shape: tuple[int, int, int], cubes: bool, ndim: int) -> Any:
    """Return where a block lies in the array of codes.

    These are the box of its points and their next neighbours, as far as they exist; the place of
    the first of them, and the distances to the next point, row and slice; and the numbers of
    columns, rows and slices of points whose cells are counted. With cubes, these begin before the
    first points of the image, where there are cells too.
    """
    after = (int(ndim == 3), 1, 1)  # Neighbours along each axis.
    before = [0, 0, 0]
    if cubes:
        before = [n if start == 0 else 0 for n, start in zip(after, block.start, strict=True)]
    stop = [min(end + n, length) for end, n, length in zip(block.stop, after, shape, strict=True)]
    depth, height, width = [n + more for n, more in zip(block.shape, before, strict=True)]
    step_of_row = width + 1
    step_of_slice = step_of_row * (height + 1)
    first = before[2] + before[1] * step_of_row + before[0] * step_of_slice
    steps = (1, step_of_row, step_of_slice)
    z, y, x = stop
    return Block(block.start, (z, y, x)), (first, steps), (width, height, depth)


def _surface(
    images: tuple[Array, Array],
    mask: Array | None,
    plans: list[Plan],
    filtration: Filtration,
    workers: int | None,
) -> Values:
    """Return the surface of a pair of images, (n, m)."""
    first = images[0]
    order, _ = memory_order(first)
    if first.shape[order[-1]] < SHORT:
        order.sort(key=lambda axis: first.shape[axis])
    # The surface does not change when axes are swapped.
    lead = (None,) * (3 - first.ndim)
    sources = [Source(image.transpose(order)[lead]) for image in images]
    shown = None if mask is None else Source(mask.transpose(order)[lead], "mask")
    counter = _Counter(sources, shown, plans, filtration)
    threads = worker_count(workers, first.size, counter.last + 1)
    total = add_up(share(_blocks(sources[0].shape), counter.count, threads))
    tops = [plan.top for plan in plans]
    reached = np.zeros([top + 2 for top in tops], np.int64)
    total = total.reshape([top + 1 for top in tops])
    np.cumsum(np.cumsum(total, axis=0), axis=1, out=reached[1:, 1:])
    values = reached[np.ix_(*(plan.entered for plan in plans))]
    if filtration.cubes and filtration.ndim == 3:
        return -values
    return values


def _blocks(shape: tuple[int, int, int]) -> tuple[Block, ...]:
    """Return blocks of an image, smaller than those of curves: points take more memory here."""
    depth, height, width = shape
    width = min(width, MOST_COLUMNS)
    height = min(height, max(MOST_ROWS, BLOCK_POINTS // (width * depth)))
    depth = min(depth, max(1, BLOCK_POINTS // (width * height)))
    return tiles(shape, (depth, height, width))


class _Counter:
    """Counts the cells of two images by their codes."""

    def __init__(
        self,
        sources: Sequence[Source],
        shown: Source | None,
        plans: Sequence[Plan],
        filtration: Filtration,
    ) -> None:
        key_bytes = max(plan.key_dtype.itemsize for plan in plans)
        first, second = (plan.top for plan in plans)
        self.sources = sources
        self.shown = shown
        self.plans = plans
        self.filtration = filtration
        self.ndim = max(filtration.ndim, 2)
        self.code = np.dtype(f"u{2 * key_bytes}")
        self.never = self.code.type(first << 8 * key_bytes | second)
        """The code of points that enter in neither image."""
        self.row = second + 1
        """Number of bins for each rank of the first image: one for each rank of the second."""
        self.last = first * self.row + second
        """The last bin."""

    def count(self, queue: Iterator[Block]) -> Values:
        """Return the signed histogram of the cells of some blocks."""
        total = np.zeros(self.last + 1, np.int64)
        counts = np.zeros((2, total.size), np.uint32)
        counted = 0
        room = EVENT_BYTES // self.code.itemsize
        plus = scratch.take("plus events", room, self.code)
        minus = scratch.take("minus events", room, self.code)
        for block in queue:
            if counted > MOST_COUNTED:
                total += counts[0].astype(np.int64) - counts[1]
                counts[:] = 0
                counted = 0
            codes, extents, steps = self._codes_of(block)
            add_cells(
                codes=codes,
                extents=extents,
                steps=steps[: self.ndim],
                bins=(self.row, self.last),
                cubes=self.filtration.cubes or None,
                lists=(plus, minus),
                histograms=counts,
            )
            counted += codes.size - SPARE
        total += counts[0].astype(np.int64) - counts[1]
        return total

    def _codes_of(self, block: Block) -> Any:
        """Return the codes of a block, the extents that are counted, and the steps along axes."""
        box, place, extents = _place(block, self.sources[0].shape, self.filtration.cubes, self.ndim)
        steps = place[1]
        slices, rows, columns = box.shape
        pitch = ceil_div(columns, SPARE) * SPARE
        keys = []
        for plan, source, name in zip(self.plans, self.sources, NAMES, strict=True):
            own = scratch.take(f"{name} keys", slices * rows * pitch + SPARE, plan.key_dtype)
            nan, _ = load_box(plan, source, self.shown, box, own, 0, (rows * pitch, pitch))
            if nan and self.filtration.nan == "raise":
                raise ValueError(nan_message(name))
            keys.append(own)
        depth = extents[2] + 1 if self.ndim == 3 else extents[2]
        codes = scratch.take("codes", depth * steps[2] + SPARE, self.code)
        pack_codes(*keys, pitch, box.shape, codes, place, self.never)
        return codes, extents, steps
