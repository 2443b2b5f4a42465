"""Surfaces on the CPU: encode the ranks of two images, block by block, and count their cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._backends.cpu.surface import kernels
from ecc_core._request.filtration import Filtration
from ecc_core.errors import nan_message

Array = NDArray[Any]
Values = NDArray[np.int64]

BLOCK_POINTS = 1 << 17  # so that codes, keys and events stay in the second-level cache
MOST_COLUMNS, MOST_ROWS = 4096, 64
SPARE = 64  # elements after the last one of a block, which may be read or written
MOST_COUNTED = 1 << 27  # points whose cells 32 bits can count
SHORT = 64  # rows with fewer points do not fill vectors


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
            shown = None if mask is None else mask[i]
            pair = _Pair(first[i], second[i], shown, plans, filtrations[0])
            result[i] = pair.surface(alone)

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
    after = (int(ndim == 3), 1, 1)  # neighbours along each axis
    z, y, x = (min(b + a, n) for a, b, n in zip(after, block.stop, shape, strict=True))
    before = [a * int(cubes and at == 0) for a, at in zip(after, block.start, strict=True)]
    depth, height, width = (n + b for n, b in zip(block.shape, before, strict=True))
    steps = (1, width + 1, (width + 1) * (height + 1))
    at = sum(b * step for b, step in zip(reversed(before), steps, strict=True))
    return Block(block.start, (z, y, x)), (at, steps), (width, height, depth)


class _Pair:
    """Two images of shape (slices, rows, columns), and the plans to encode them."""

    def __init__(
        self,
        first: Array,
        second: Array,
        mask: Array | None,
        plans: list[Plan],
        filtration: Filtration,
    ) -> None:
        order = sorted(range(first.ndim), key=lambda axis: -abs(first.strides[axis]))
        if first.shape[order[-1]] < SHORT:
            order.sort(key=lambda axis: first.shape[axis])
        lead = (None,) * (3 - first.ndim)  # the surface does not change when axes are swapped
        self.sources = [Source(image.transpose(order)[lead]) for image in (first, second)]
        self.mask = None if mask is None else Source(mask.transpose(order)[lead], "mask")
        self.plans, self.filtration = plans, filtration
        self.ndim = max(filtration.ndim, 2)
        self.key_size = max(plan.key_dtype.itemsize for plan in plans)

    def surface(self, workers: int | None) -> Values:
        """Return the surface, (n, m)."""
        shape = self.sources[0].shape
        bins = tuple(plan.top + 1 for plan in self.plans)
        count = worker_count(workers, math.prod(shape), math.prod(bins))
        counted = share(_cut(shape), self._histogram, count)
        total = sum(counted[1:], start=counted[0]).reshape(bins)
        reached = np.zeros(tuple(n + 1 for n in bins), np.int64)
        np.cumsum(np.cumsum(total, axis=0), axis=1, out=reached[1:, 1:])
        values = reached[np.ix_(*(plan.entered for plan in self.plans))]
        return -values if self.filtration.cubes and self.ndim == 3 else values

    def _histogram(self, queue: Iterator[Block]) -> Values:
        """Return the signed histogram of the cells of some blocks."""
        code = np.dtype(f"u{2 * self.key_size}")
        second = self.plans[1].top + 1
        bins = (second, self.plans[0].top * second + self.plans[1].top)
        total = np.zeros(bins[1] + 1, np.int64)
        counts, counted = np.zeros((2, total.size), np.uint32), 0
        never = code.type(self.plans[0].top << 8 * self.key_size | self.plans[1].top)
        room = kernels.EVENT_BYTES // code.itemsize
        lists = scratch.take("plus events", room, code), scratch.take("minus events", room, code)
        cubes = True if self.filtration.cubes else None
        for block in queue:
            if counted > MOST_COUNTED:
                total += counts[0].astype(np.int64) - counts[1]
                counts[:], counted = 0, 0
            shape, whole = self.sources[0].shape, self.filtration.cubes
            box, place, extents = _place(block, shape, whole, self.ndim)
            slices, rows, columns = box.shape
            pitch = -(-columns // SPARE) * SPARE
            keys = [
                self._keys(i, box, slices * rows * pitch, (rows * pitch, pitch)) for i in (0, 1)
            ]
            steps = place[1]
            size = (extents[2] + (self.ndim == 3)) * steps[2]
            codes = scratch.take("codes", size + SPARE, code)
            kernels.pack_codes(*keys, pitch, box.shape, codes, place, never)
            kernels.add_cells(codes, extents, steps[: self.ndim], bins, cubes, lists, counts)
            counted += size
        total += counts[0].astype(np.int64) - counts[1]
        return total

    def _keys(self, which: int, box: Block, size: int, steps: tuple[int, int]) -> Array:
        """Return the keys of a box of one image, with the given strides of slices and rows."""
        plan = self.plans[which]
        keys = scratch.take(f"keys {which}", size + SPARE, plan.key_dtype)
        nan, _ = load_box(plan, self.sources[which], self.mask, box, keys, 0, steps)
        if nan and self.filtration.nan == "raise":
            raise ValueError(nan_message(("first", "second")[which]))
        return keys


def _cut(shape: tuple[int, int, int]) -> list[Block]:
    """Return blocks smaller than those of curves, as a point takes more memory."""
    slices, rows, columns = shape
    width = min(columns, MOST_COLUMNS)
    height = min(rows, max(MOST_ROWS, BLOCK_POINTS // (width * slices)))
    depth = min(slices, max(1, BLOCK_POINTS // (width * height)))
    places = (range(0, n, step) for n, step in zip(shape, (depth, height, width), strict=True))
    return [
        Block((z, y, x), (min(z + depth, slices), min(y + height, rows), min(x + width, columns)))
        for z, y, x in itertools.product(*places)
    ]
