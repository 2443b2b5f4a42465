"""Numbers of cells of each kind, of images and of labelled regions, at all thresholds.

Cells and other groups of neighbouring points enter with the last of their points, which has the
largest key. So the keys of neighbouring groups of a kind are the maxima of several rows of keys,
one for each point of a group, and are counted afterwards. Coefficients, which the scans find, are
sums over kinds and could not tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.llvm import ONE, part_of
from ecc_core._backends.cpu.pool import add_up, share, worker_count
from ecc_core._backends.cpu.regions.labels import Numbering
from ecc_core._backends.cpu.scans.blocks import Scanner, Staged, across, fill_halo, load_box
from ecc_core._backends.cpu.scans.stacks import add_histograms, cumulate, parts_of, spatial_order
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._backends.cpu.windows import (
    region_sizes,
    region_window_counts,
    region_window_sums,
    window_counts,
    window_levels,
    window_sums,
)
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = [
    "cell_counts",
    "region_cell_counts",
    "region_sizes",
    "region_window_counts",
    "region_window_sums",
    "window_counts",
    "window_levels",
    "window_sums",
]

Array = NDArray[Any]
Values = NDArray[np.int64]

MOST_POINTS = 8  # The most points of a group.
SPARE_ELEMENTS = 64  # Loaders may write so many elements behind a row.
COMPARED_AT_ONCE = 1 << 12  # Places that are compared at once.
KEYS_AT_ONCE = 4096  # So many maxima stay in the first-level cache.
POINTS_A_BIN = 16  # With more points for each bin, counting in four histograms is faster.
TWO = np.uint64(2)
THREE = np.uint64(3)


@subroutine()
def _find_latest(keys, group, at, size, strides, latest):
    """Write the keys of groups of one kind whose first points lie side by side in a row."""
    for point in range(group[0, 3]):
        offset = group[point, 0] * strides[0] + group[point, 1] * strides[1] + group[point, 2]
        others = part_of(keys, at + offset, size)
        if point == 0:
            for i in range(size):
                latest[i] = others[i]
        else:
            for i in range(size):
                latest[i] = max(latest[i], others[i])


@kernel()
def _count(keys, rows, columns, pitch, first, second, third, fourth):
    """Count the keys of some rows in four histograms in turn.

    Equal keys often follow each other, and an addition to a bin waits for the previous one.
    """
    whole = columns - columns % 4
    for row in range(rows):
        start = row * pitch
        for i in range(np.uint64(start), np.uint64(start + whole), np.uint64(4)):
            first[keys[i]] += 1
            second[keys[i + ONE]] += 1
            third[keys[i + TWO]] += 1
            fourth[keys[i + THREE]] += 1
        for i in range(np.uint64(start + whole), np.uint64(start + columns)):
            first[keys[i]] += 1


@kernel()
def count_cells(keys, geometry, groups, spans, latest, histograms):
    """Add the groups of a block of staged keys to histograms (slices or 1, kinds, bins).

    The `geometry` is that of the scan. `groups` (kinds, points, 4) holds the offsets of the points
    along z, y and x and, repeated for each point, their number. `spans` (kinds, 3, 2) are ranges of
    the lowest corners, relative to the first point of the block. `latest` is scratch memory for
    `KEYS_AT_ONCE` keys, or those of a row if these are more.
    """
    _, _, _, lead, pitch, slice_stride = geometry
    images, kinds, bins = histograms.shape
    own = slice_stride + pitch + 64 * lead
    step = max(1, KEYS_AT_ONCE // pitch)
    for kind in range(kinds):
        (z_start, z_stop), (y_start, y_stop), (x_start, x_stop) = spans[kind]
        columns = x_stop - x_start
        for image in range(images):
            if images > 1:
                z_start = image
                z_stop = image + 1
            found = histograms[image, kind]
            points = (z_stop - z_start) * (y_stop - y_start) * columns
            split = points > POINTS_A_BIN * bins
            counts = np.zeros((4, bins), np.int64) if split else found.reshape((1, bins))
            a = counts[0]
            b = counts[1] if split else a
            c = counts[2] if split else a
            d = counts[3] if split else a
            for z in range(z_start, z_stop):
                for y in range(y_start, y_stop, step):
                    rows = min(step, y_stop - y)
                    at = own + z * slice_stride + y * pitch + x_start
                    size = (rows - 1) * pitch + columns
                    _find_latest(keys, groups[kind], at, size, (slice_stride, pitch), latest)
                    _count(
                        keys=latest,
                        rows=rows,
                        columns=columns,
                        pitch=pitch,
                        first=a,
                        second=b,
                        third=c,
                        fourth=d,
                    )
            if split:
                for key in range(bins):
                    found[key] += counts[:, key].sum()


@kernel()
def count_groups(points, tables, span, every, scratch, histograms):
    """Add the groups whose lowest corners are in a span of places to (regions, kinds, bins).

    `points` are keys, which are ranks, so that the smallest enter first, and numbers of regions,
    from 1, or 0 for points in no region, which surround the image. `tables` are the distances of
    the points of a group from its lowest corner (kinds, points), and their number (kinds,). If
    `every`, a group enters with the last of its points, and counts only if all are in one region.
    Otherwise it enters each region with its earliest point there, and the first of its points in
    the region counts it. `scratch` is memory for keys and for numbers of regions, which become 0
    where no group counts.
    """
    keys, labels = points
    groups, sizes = tables
    latest, kept = scratch
    count = span[1] - span[0]
    for kind in range(groups.shape[0]):
        for first in range(1 if every else sizes[kind]):
            start = span[0] + groups[kind, first]
            own = labels[start : start + count]
            key = keys[start : start + count]
            for i in range(count):
                latest[i] = key[i]
                kept[i] = own[i]
            for other in range(sizes[kind]):
                start = span[0] + groups[kind, other]
                region = labels[start : start + count]
                key = keys[start : start + count]
                if every:
                    for i in range(count):
                        kept[i] = kept[i] if region[i] == own[i] else kept.dtype.type(0)
                        latest[i] = max(latest[i], key[i])
                else:
                    for i in range(count):
                        same = region[i] == own[i]
                        kept[i] = kept.dtype.type(0) if same and other < first else kept[i]
                        latest[i] = min(latest[i], key[i]) if same else latest[i]
            for i in range(count):
                if kept[i]:
                    histograms[kept[i] - 1, kind, latest[i]] += 1


def cell_counts(
    image: Array,
    thresholds: Array,
    cells: Cells,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Return the numbers of cells of sets at sorted thresholds, (images, kinds, n) int64."""
    result = np.zeros((image.shape[0], len(cells.groups), thresholds.size), np.int64)
    if image.size == 0 or thresholds.size == 0:
        return result
    dtype = image.dtype.newbyteorder("=")
    # Reversed keys, as for cubes, make the first point of a group the one with the largest key.
    cubes = not cells.every
    plans = curve_plans(
        dtype,
        thresholds,
        filtration.superlevel,
        cubes,
        masked=mask is not None,
        points=image[0].size,
    )
    order, _ = spatial_order(image[0])
    groups, spans = _tables(cells, filtration, image.shape[1:], [axis - 1 for axis in order])
    for part, source, shown in parts_of(
        image, mask, order=order, flips=(), key_size=plans[-1].key_dtype.itemsize
    ):
        counter = _Counter(source, shown, filtration, cubes, order)
        counter.groups = groups
        counter.spans = spans
        counter.sign = 1
        add_histograms(counter, plans, workers, result[part])
    return result


def _tables(
    cells: Cells, filtration: Filtration, shape: tuple[int, ...], order: list[int]
) -> tuple[Values, Values]:
    """Return the groups (kinds, points, 4) and the ranges of their lowest corners (kinds, 3, 2).

    Groups are offsets along slices, rows and columns, the image's axes in an `order`, and the
    number of points. Along axes that the image does not have ranges are those of one point.
    """
    ndim = len(shape)
    kinds = len(cells.groups)
    own = slice(3 - ndim, 3)
    groups = np.zeros((kinds, MOST_POINTS, 4), np.int64)
    for kind, group in enumerate(cells.groups):
        groups[kind, : len(group), own] = np.array(group)[:, order or slice(None)]
        groups[kind, :, 3] = len(group)
    spans = np.tile(np.array([0, 1]), (kinds, 3, 1))
    # Groups that enter with their first point may extend one point beyond a closed border.
    ends = np.zeros((kinds, ndim, 2), np.int64)
    ends[..., 1] = np.array(shape) - np.array(filtration.boundary.missing)
    closed = [border.is_closed for border in filtration.boundary.axes]
    ends[..., int(cells.every)] -= np.array(cells.extents) * closed
    spans[:, own] = ends[:, order or slice(None)]
    return groups, spans


class _Counter(Scanner):
    """Counts the cells of one block after another."""

    groups: Values
    spans: Values

    @property
    def can_stream(self) -> bool:
        """Whether the keys may be staged later, which they may not: all of them are counted."""
        return False

    def add(self, plan: Plan, staged: Staged, histograms: Values) -> None:
        """Add a staged block to (images or 1, kinds, bins) histograms."""
        layout = staged.layout
        keys = staged.keys
        if True in self.cubes:
            low, high = (across(self.cubes, ends) for ends in (layout.low, layout.high))
            fill_halo(keys, layout.geometry, low, high, int(self.ndim == 3), 0)
        start, stop = np.array(staged.block)
        spans = np.empty_like(self.spans)
        spans[..., 0] = np.where(start > 0, 0, self.spans[..., 0])
        spans[..., 1] = np.minimum(self.spans[..., 1], stop) - start
        latest = scratch.take("latest", max(KEYS_AT_ONCE, layout.steps[1]), keys.dtype)
        count_cells(keys, layout.geometry, self.groups, spans, latest, histograms)


def region_cell_counts(
    image: Array,
    labels: Array,
    thresholds: Array,
    cells: Cells,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Return the increasing ids of regions, and their numbers of cells, (ids, kinds, n) int64."""
    if not (thresholds.size and labels.any()):
        ids = np.unique(labels)
        ids = ids[ids != 0]
        return ids, np.zeros((ids.size, len(cells.groups), thresholds.size), np.int64)
    dtype = image.dtype.newbyteorder("=")
    plan = curve_plans(
        dtype, thresholds, filtration.superlevel, False, masked=True, points=image.size
    )[-1]
    keys, numbers, strides, numbering = _staged_regions(image, labels, plan, filtration.nan)
    ids = numbering.ids
    rows = np.argsort(ids)
    groups, _ = _tables(cells, filtration, image.shape, [])
    kinds = len(groups)
    bins = plan.top + 1
    offsets = groups[..., :3] @ np.array([*strides, 1])

    def work(queue: Iterator[tuple[int, int]]) -> Values:
        histograms = np.zeros((ids.size, kinds, bins), np.int64)
        memory = np.empty(COMPARED_AT_ONCE, keys.dtype), np.empty(COMPARED_AT_ONCE, numbers.dtype)
        points = (keys, numbers)
        tables = (offsets, groups[:, 0, 3])
        for span in queue:
            count_groups(points, tables, span, cells.every, memory, histograms)
        return histograms

    last = keys.size - int(offsets.max())
    starts = range(0, last, COMPARED_AT_ONCE)
    parts = [(place, min(place + COMPARED_AT_ONCE, last)) for place in starts]
    threads = worker_count(workers, keys.size, ids.size * kinds * bins)
    total = add_up(share(parts, work, threads))
    result = np.zeros((ids.size, kinds, thresholds.size), np.int64)
    curves = result.reshape(-1, thresholds.size)
    cumulate(total.reshape(-1, bins), None, False, 1, plan.entered, curves)
    return ids[rows].astype(labels.dtype), result[rows]


def _staged_regions(
    image: Array, labels: Array, plan: Plan, nan: str
) -> tuple[Array, Array, tuple[int, int], Numbering]:
    """Return the keys of an image, the numbers of regions at the same places, and the strides.

    Between rows and slices, and around the image, lie points in no region, which never enter.
    """
    shape = (1,) * (3 - image.ndim) + image.shape
    values = Source(image.reshape(shape))
    regions = Source(labels.reshape(shape), "labels")
    shown = Source((labels != 0).reshape(shape), "mask")
    depth, height, width = values.shape
    strides = ((height + 1) * (width + SPARE_ELEMENTS), width + SPARE_ELEMENTS)
    # The lowest corners of groups that contain the first point lie before it.
    start = sum((*strides, 1)[-image.ndim :])
    size = start + depth * strides[0] + start
    keys = np.empty(size, plan.key_dtype)
    box = Block((0, 0, 0), (depth, height, width))
    has_nan, _ = load_box(plan, values, shown, box, keys, start, strides)
    if has_nan and nan == "raise":
        raise ValueError(NAN_MESSAGE)
    numbering = Numbering(regions.token.dtype)

    def empty(dtype: Any) -> Array:
        return np.zeros(size, dtype)

    numbers, _ = numbering.stage(regions, box, empty, start, strides)
    return keys, numbers, strides, numbering
