"""Numbers of cells of images and of labelled regions at all thresholds, from NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.minkowski.kernels import TOGETHER, count_cells, count_groups
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.labels import Numbering, merge_ids
from ecc_core._backends.cpu.scans.blocks import Scanner, Staged, load_box
from ecc_core._backends.cpu.scans.borders import clear_halo
from ecc_core._backends.cpu.scans.stacks import add_histograms, parts_of, spatial_order
from ecc_core._backends.cpu.sinks.cumulate import cumulate
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

MOST_POINTS = 8  # of a group
WORD = 64  # elements that loaders may write behind a row
PLACES = 1 << 12  # that are compared at once


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
    cubes = not cells.every  # cells enter with their first point: the last one in reversed order
    options: Any = {"masked": mask is not None, "points": image[0].size}
    plans = curve_plans(dtype, thresholds, filtration.superlevel, cubes, **options)
    order, _ = spatial_order(image[0])
    groups, spans = _tables(cells, filtration, image.shape[1:], [axis - 1 for axis in order])
    for part, view, hidden in parts_of(image, mask, order, (), plans[-1].key_dtype.itemsize):
        shown = None if hidden is None else Source(hidden, "mask")
        counter = _Counter(Source(view), shown, cubes, filtration.ndim, filtration.boundary)
        counter.groups, counter.spans, counter.sign = groups, spans, 1
        add_histograms(counter, plans, filtration.nan, workers, result[part])
    return result


def _tables(
    cells: Cells, filtration: Filtration, shape: tuple[int, ...], order: list[int]
) -> tuple[Values, Values]:
    """Return the groups (kinds, points, 4) and the ranges of their lowest corners (kinds, 3, 2).

    Groups are offsets along slices, rows and columns, the image's axes in an `order`, and the
    number of points. Along axes that the image does not have ranges are those of one point.
    """
    ndim, kinds = len(shape), len(cells.groups)
    own = slice(3 - ndim, 3)
    groups = np.zeros((kinds, MOST_POINTS, 4), np.int64)
    for kind, group in enumerate(cells.groups):
        groups[kind, : len(group), own] = np.array(group)[:, order or slice(None)]
        groups[kind, :, 3] = len(group)
    spans = np.tile(np.array([0, 1]), (kinds, 3, 1))
    # Groups that enter with their first point may extend one point beyond a closed border.
    ends = np.zeros((kinds, ndim, 2), np.int64)
    ends[..., 1] = np.array(shape) - filtration.boundary.missing
    if filtration.boundary.is_closed:
        ends[..., int(cells.every)] -= np.array(cells.extents)
    spans[:, own] = ends[:, order or slice(None)]
    return groups, spans


class _Counter(Scanner):
    """Counts of the cells of one block after another."""

    groups: Values
    spans: Values

    def add(self, plan: Plan, staged: Staged, histograms: Values) -> None:
        """Add a staged block to (images or 1, kinds, bins) histograms."""
        layout, keys = staged.layout, staged.keys
        if self.cubes:
            clear_halo(keys, layout.geometry, layout.low, layout.high, int(self.ndim == 3))
        start, stop = np.array(staged.block)
        spans = np.empty_like(self.spans)
        spans[..., 0] = np.where(start > 0, 0, self.spans[..., 0])
        spans[..., 1] = np.minimum(self.spans[..., 1], stop) - start
        latest = scratch.take("latest", max(TOGETHER, layout.steps[1]), keys.dtype)
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
    plan, points, strides, numbering = _load(image, thresholds, filtration, labels)
    ids, (rows,) = merge_ids([numbering])
    groups, _ = _tables(cells, filtration, image.shape, [])
    kinds, bins, size = len(groups), plan.top + 1, points[0].size
    offsets = groups[..., :3] @ np.array([*strides, 1])

    def work(queue: Iterator[tuple[int, int]]) -> Values:
        histograms = np.zeros((ids.size, kinds, bins), np.int64)
        keys, labels = points
        memory = np.empty(PLACES, keys.dtype), np.empty(PLACES, labels.dtype)
        for span in queue:
            tables = offsets, groups[:, 0, 3]
            count_groups(points, tables, span, cells.every, memory, histograms)
        return histograms

    last = size - int(offsets.max())
    parts = [(place, min(place + PLACES, last)) for place in range(0, last, PLACES)]
    total, *others = share(parts, work, worker_count(workers, size, ids.size * kinds * bins))
    for other in others:
        total += other
    result = np.zeros((ids.size, kinds, thresholds.size), np.int64)
    curves = result.reshape(-1, thresholds.size)
    cumulate(total.reshape(-1, bins), None, False, 1, plan.entered, curves)
    return ids.astype(labels.dtype), result[rows]


def _load(
    image: Array, thresholds: Array, filtration: Filtration, labels: Array
) -> tuple[Plan, tuple[Array, Array], tuple[int, int], Numbering]:
    """Encode an image without a batch axis, with points in no region between its rows.

    Returns keys and numbers of regions, and the strides of slices and rows. Points in no region
    never enter.
    """
    dtype = image.dtype.newbyteorder("=")
    options: Any = {"masked": True, "points": image.size}
    plan = curve_plans(dtype, thresholds, filtration.superlevel, False, **options)[-1]
    shape = (1,) * (3 - image.ndim) + image.shape
    values, regions = Source(image.reshape(shape)), Source(labels.reshape(shape), "labels")
    shown = Source((labels != 0).reshape(shape), "mask")
    depth, height, width = values.shape
    strides = ((height + 1) * (width + WORD), width + WORD)
    start = sum((*strides, 1)[-image.ndim :])  # behind the lowest corners around the first one
    size = start + depth * strides[0] + start
    keys = np.empty(size, plan.key_dtype)
    box = Block((0, 0, 0), (depth, height, width))
    nan, _ = load_box(plan, values, shown, box, keys, start, strides)
    if nan and filtration.nan == "raise":
        raise ValueError(NAN_MESSAGE)
    numbering = Numbering(regions.token.dtype)
    numbers, _ = numbering.stage(regions, box, lambda dtype: np.zeros(size, dtype), start, strides)
    return plan, (keys, numbers), strides, numbering
