"""Numbers of cells of windows of any shape: those whose lowest corner is a point of a window.

Cells, and other groups of neighbouring points, are those of the whole image: points outside the
window complete them. A group counts only if all of its points are points of the image. This is not
the code of labelled regions (`cells.py`), whose groups end at the region.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import add_up, share, worker_count
from ecc_core._backends.cpu.regions.labels import Numbering
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.scans.layouts import tiles
from ecc_core._backends.cpu.scans.stacks import cumulate
from ecc_core._backends.cpu.scans.values import entered, entered_keys, keys_of, plan_of
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import distinct_values
from ecc_core._request.masks import grown
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

BLOCK_POINTS = 1 << 18  # Keys of so many points stay in the second-level cache.
SPARE_ELEMENTS = 64  # Loaders may write so many elements behind a row.


class _Groups(NamedTuple):
    """Groups of points as the kernel takes them, one kind after another."""

    offsets: Values
    """(kinds, points, 3): offsets of the points from the lowest corner."""
    sizes: Values
    """(kinds,): numbers of points."""
    extents: Values
    """(kinds, 3): steps from the lowest corner to the last point along each axis."""
    rows: Values
    """(kinds,): the row of the histograms in which a kind is counted."""
    signs: Values
    """(kinds,): what each group adds to that row."""

    @classmethod
    def of(cls, cells: Cells, signs: Values | None, ndim: int) -> _Groups:
        """Lay out groups; with `signs`, all kinds are added up in one row."""
        kinds = len(cells.groups)
        sizes = np.array([len(group) for group in cells.groups])
        offsets = np.zeros((kinds, sizes.max(), 3), np.int64)
        for kind, group in enumerate(cells.groups):
            offsets[kind, : len(group), 3 - ndim :] = group
        rows = np.arange(kinds) if signs is None else np.zeros(kinds, np.int64)
        counted = np.ones(kinds, np.int64) if signs is None else signs
        return cls(offsets, sizes, offsets.max(axis=1), rows, counted)


@dataclass(frozen=True)
class _Counter:
    """Counts the groups of the windows of one image, whose axes are slices, rows and columns."""

    image: Array
    mask: Array | None
    """The points that may enter; None for all."""
    plan: Plan
    groups: _Groups
    every: bool
    """Whether groups enter with their last point, not with their first."""
    rejects_nan: bool

    @classmethod
    def of(
        cls,
        image: Array,
        mask: Array | None,
        thresholds: Array,
        cells: Cells,
        filtration: Filtration,
        signs: Values | None,
    ) -> _Counter:
        """Prepare for the windows of an image; with `signs`, all kinds are added up in one row."""
        # Keys are ranks: without T's reversed order, points that never enter have the largest one.
        plans = curve_plans(
            image.dtype.newbyteorder("="),
            thresholds,
            filtration.superlevel,
            False,
            masked=mask is not None,
            points=image.size,
        )
        return cls(
            image=_as_volume(image),
            mask=None if mask is None else _as_volume(mask),
            plan=plans[-1],
            groups=_Groups.of(cells, signs, image.ndim),
            every=cells.every,
            rejects_nan=filtration.nan == "raise",
        )

    def write_curves(self, numbers: Array, curves: Values, workers: int | None) -> None:
        """Write the numbers of cells of numbered regions to curves (regions, rows, n)."""
        histograms = self.histograms(_as_volume(numbers), len(curves), workers)
        rows = curves.reshape(-1, curves.shape[-1])
        cumulate(histograms.reshape(len(rows), -1), None, False, 1, self.plan.entered, rows)

    def histograms(self, numbers: Array, regions: int, workers: int | None) -> Values:
        """Return the histograms of numbered regions, (regions, rows, bins)."""
        shape = regions, int(self.groups.rows.max()) + 1, self.plan.top + 1
        values = Source(self.image)
        shown = None if self.mask is None else Source(self.mask, "mask")

        def work(queue: Iterator[Block]) -> Values:
            found = np.zeros(shape, np.int64)
            for block in queue:
                self._add(block, values, shown, numbers, found)
            return found

        blocks = [
            block for block in tiles(numbers.shape, _block_shape(numbers.shape)) if min(block.shape)
        ]
        if not blocks or not regions:
            return np.zeros(shape, np.int64)
        threads = worker_count(workers, numbers.size, math.prod(shape))
        return add_up(share(blocks, work, threads))

    def _add(
        self, block: Block, values: Source, shown: Source | None, numbers: Array, found: Values
    ) -> None:
        """Add the groups whose lowest corners are in a block."""
        part = numbers[tuple(map(slice, *block))]
        if part.dtype == np.bool_:
            # Another thread may write other bytes than 0 and 1 to the window: the copy has none.
            own = (part.view(np.uint8) != 0).view(np.uint8)
        else:
            own = np.ascontiguousarray(part)
        if not own.any():
            return
        ends = zip(block.stop, self.image.shape, strict=True)
        # Cells reach to the next points, as far as the image has them.
        z, y, x = [min(end + 1, length) for end, length in ends]
        box = Block(block.start, (z, y, x))
        room = box.shape
        row = room[2] + SPARE_ELEMENTS
        strides = room[1] * row, row
        keys = scratch.take("window", room[0] * strides[0], self.plan.key_dtype)
        nan, _ = load_box(self.plan, values, shown, box, keys, 0, strides)
        if nan and self.rejects_nan:
            self._check_nan(box, own)
        latest = scratch.take("latest", own.shape[2], keys.dtype)
        count_window(
            keys=keys,
            numbers=own,
            room=room,
            strides=strides,
            groups=tuple(self.groups),
            every=self.every,
            latest=latest,
            histograms=found,
        )

    def _check_nan(self, box: Block, own: Array) -> None:
        """Raise an error if a point of a window, or one that completes its cells, is NaN."""
        at = tuple(map(slice, *box))
        needed = grown(own != 0, box.shape)
        if self.mask is not None:
            needed &= self.mask[at]
        if (np.isnan(self.image[at]) & needed).any():
            raise ValueError(NAN_MESSAGE)


def _block_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the extents of blocks, which have whole rows and slices where these are short."""
    _, rows, columns = shape
    width = max(1, min(columns, BLOCK_POINTS))
    height = max(1, min(rows, BLOCK_POINTS // width))
    return max(1, BLOCK_POINTS // (width * height)), height, width


@kernel()
def count_window(keys, numbers, room, strides, groups, every, latest, histograms):
    """Add the groups whose lowest corners are in a window to histograms (regions, rows, bins).

    `numbers` tells the region of each of a block's own points, from 1, or 0 for none. Keys begin at
    the first of these points; there are `room` keys along each axis, with `strides` of slices and
    rows. If `every`, a group enters with the last of its points, which has the largest key,
    otherwise with the first. `latest` is scratch memory for the keys of a row.
    """
    offsets, sizes, extents, rows, signs = groups
    for z in range(numbers.shape[0]):
        for y in range(numbers.shape[1]):
            own = numbers[z, y]
            first = 0
            last = own.size
            while first < last and own[first] == 0:
                first += 1
            while last > first and own[last - 1] == 0:
                last -= 1
            for kind in range(sizes.size):
                size = min(last, room[2] - extents[kind, 2]) - first
                if size <= 0 or z + extents[kind, 0] >= room[0] or y + extents[kind, 1] >= room[1]:
                    continue
                corner = z * strides[0] + y * strides[1] + first
                for point in range(sizes[kind]):
                    step = offsets[kind, point]
                    start = corner + step[0] * strides[0] + step[1] * strides[1] + step[2]
                    key = keys[start : start + size]
                    if point == 0:
                        for i in range(size):
                            latest[i] = key[i]
                    elif every:
                        for i in range(size):
                            latest[i] = max(latest[i], key[i])
                    else:
                        for i in range(size):
                            latest[i] = min(latest[i], key[i])
                row = rows[kind]
                sign = signs[kind]
                for i in range(size):
                    number = own[first + i]
                    if number:
                        histograms[number - 1, row, latest[i]] += sign


def window_counts(
    image: Array,
    windows: Array,
    thresholds: Array,
    cells: Cells,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    signs: Values | None = None,
    workers: int | None = None,
) -> Values:
    """Return the numbers of cells of the windows of a batch, (images, kinds, n) int64.

    Windows are boolean, and may have fewer points at the ends of axes than the images. With
    `signs`, the signed sum of all kinds is returned, (images, 1, n).
    """
    kinds = len(cells.groups) if signs is None else 1
    result = np.zeros((len(image), kinds, thresholds.size), np.int64)
    if image.size == 0 or thresholds.size == 0:
        return result
    for i, curves in enumerate(result):
        shown = None if mask is None else mask[i]
        counter = _Counter.of(image[i], shown, thresholds, cells, filtration, signs)
        counter.write_curves(windows[i], curves[None], workers)
    return result


def region_window_counts(
    image: Array,
    labels: Array,
    thresholds: Array,
    cells: Cells,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    signs: Values | None = None,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Return the increasing ids of regions, and the numbers of cells of each as a window.

    They are (ids, kinds, n) int64. Labels may have fewer points at the ends of axes than the image.
    """
    ids, numbers = _numbered(labels)
    kinds = len(cells.groups) if signs is None else 1
    result = np.zeros((ids.size, kinds, thresholds.size), np.int64)
    if image.size == 0 or 0 in result.shape:
        return np.sort(ids), result
    counter = _Counter.of(image, mask, thresholds, cells, filtration, signs)
    counter.write_curves(numbers, result, workers)
    order = np.argsort(ids)
    return ids[order], result[order]


def region_sizes(labels: Array) -> tuple[Array, Values]:
    """Return the increasing ids of regions, and their numbers of points, (ids,)."""
    ids, numbers = _numbered(labels)
    points = np.zeros(ids.size, np.int64)
    for plane in numbers:  # np.bincount copies to int64: planes take less memory.
        points += np.bincount(plane.ravel(), minlength=ids.size + 1)[1:]
    order = np.argsort(ids)
    return ids[order], points[order]


def window_sums(
    images: Array, coefficients: Array, windows: Array, thresholds: Array, filtration: Filtration
) -> Values:
    """Return the sums of the coefficients of windows that have entered, (images, n) int64.

    Coefficients are those of the images without windows. ValueError for NaN in a window, unless it
    is omitted.
    """
    if filtration.nan == "raise":
        _check_no_nan(images, windows)
    counted = windows & (coefficients != 0)
    found = np.zeros((len(images), thresholds.size), np.int64)
    if found.size == 0:
        return found
    plan = plan_of(images.dtype, thresholds, filtration.superlevel, images[0].size)
    for row, image, own, points in zip(found, images, coefficients, counted, strict=True):
        row[:] = entered(image[points], plan, own[points])
    return found


def region_window_sums(
    image: Array, coefficients: Array, labels: Array, thresholds: Array, filtration: Filtration
) -> tuple[Array, Values]:
    """Return the increasing ids of regions, and the same sums for each, (ids, n).

    ValueError if a labelled point is NaN.
    """
    _check_no_nan(image, labels != 0)
    ids = distinct_values(native(labels[labels != 0]))
    rows = np.zeros((ids.size, thresholds.size), np.int64)
    if rows.size == 0:
        return ids, rows
    counted = (labels != 0) & (coefficients != 0)
    order = np.argsort(labels[counted], kind="stable")
    plan = plan_of(image.dtype, thresholds, filtration.superlevel)
    keys = keys_of(image[counted][order], plan)
    weights = coefficients[counted][order]
    ends = np.searchsorted(labels[counted][order], ids, side="right")
    for row, (start, end) in zip(rows, itertools.pairwise([0, *ends]), strict=True):
        row[:] = entered_keys(keys[start:end], plan, weights[start:end])
    return ids, rows


def window_levels(images: Array, coefficients: Array, windows: Array) -> Array:
    """Return the distinct values of the points of windows that have a coefficient."""
    return distinct_values(native(images[windows & (coefficients != 0)]))


def _check_no_nan(image: Array, inside: Array) -> None:
    if image.dtype.kind == "f" and bool(np.isnan(image[inside]).any()):
        raise ValueError(NAN_MESSAGE)


def native(array: Array) -> Array:
    """Return an array in the byte order of the machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _numbered(labels: Array) -> tuple[Array, Array]:
    """Return the ids of regions, and the number of each point's region, from 1 on, or 0."""
    if labels.size == 0:
        return np.empty(0, labels.dtype), np.zeros(labels.shape, np.uint16)
    volume = _as_volume(labels)
    source = Source(volume, "labels")
    slices, rows, columns = volume.shape
    numbering = Numbering(source.token.dtype)
    staged, _ = numbering.stage(
        source,
        Block((0, 0, 0), (slices, rows, columns)),
        lambda dtype: np.zeros(labels.size, dtype),
        0,
        (rows * columns, columns),
    )
    return numbering.ids.astype(labels.dtype), staged.reshape(labels.shape)


def _as_volume(array: Array) -> Array:
    return array.reshape((1,) * (3 - array.ndim) + array.shape)
