"""Numbers of cells of images and of labelled regions at all thresholds, from NumPy arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import border_boxes, closed, sides_of
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.minkowski.groups import (
    MOST_POINTS,
    count_groups,
    count_rows,
    wrap_keys,
)
from ecc_core._backends.cpu.minkowski.sections import closed_counts
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.labels import Numbering, merge_ids
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sinks.cumulate import cumulate_rows
from ecc_core._backends.cpu.sources import Block, Source
from ecc_core._backends.spans import spans_of
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["cell_counts", "region_cell_counts"]

Array = NDArray[Any]
Values = NDArray[np.int64]

WORD = 64  # elements that loaders may write behind a row
SLICES = 8  # that a thread takes at a time
PARTS = 4  # of histograms: equal keys follow each other, and would wait for each other
MOST_BINS = 1 << 12  # of histograms in parts


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
    if cells.boxes:
        return _box_counts(image, thresholds, filtration, mask, workers)
    for i, out in enumerate(result):
        shown = None if mask is None else np.broadcast_to(mask, image.shape)[i]
        points = _Points.load(image[i], thresholds, filtration, shown)
        out[:] = points.totals(cells, filtration, workers)[0]
    return result


def _box_counts(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    mask: Array | None,
    workers: int | None,
) -> Values:
    """Return the numbers of cells of the complex: of the closed image, corrected at the border."""
    options: Any = {"thresholds": thresholds, "workers": workers}
    whole = closed(filtration, filtration.ndim)
    result = closed_counts(image, filtration=whole, mask=mask, **options)
    sides = sides_of(filtration)
    box = (image,) if mask is None else (image, np.broadcast_to(mask, image.shape))
    kinds = list(itertools.product((0, 1), repeat=filtration.ndim))
    for across, part in border_boxes(box, filtration, sides):
        kept = [axis for axis, side in enumerate(across) if side is None]
        missing = max(0, min(filtration.ndim, 2) - len(kept))
        plane, *shown = (array[(slice(None), *(None,) * missing)] for array in part)
        counts = closed_counts(
            plane,
            filtration=closed(filtration, plane.ndim - 1),
            mask=shown[0] if shown else None,
            **options,
        )
        for kind, pairs in enumerate(kinds):
            flat = [bool(pair) == filtration.cubes for pair in pairs]
            weight = math.prod(
                side.flat if f else side.long
                for side, f in zip(across, flat, strict=True)
                if side is not None
            )
            if weight:
                rest = sum(pairs[axis] << place for place, axis in enumerate(reversed(kept)))
                result[:, kind] += weight * counts[:, rest]
    return result


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
    points = _Points.load(image, thresholds, filtration, labels != 0)
    source, box = Source(_as_volume(labels), "labels"), Block((0, 0, 0), points.shape)
    numbering = Numbering(source.token.dtype)
    regions, _ = numbering.stage(
        source, box, lambda dtype: np.zeros(points.keys.size, dtype), 0, points.strides
    )
    ids, (rows,) = merge_ids([numbering])
    points = points._replace(labels=regions, regions=ids.size)
    return ids.astype(labels.dtype), points.totals(cells, filtration, workers)[rows]


class _Points(NamedTuple):
    """The keys of an image, in rows followed by spare elements, and the regions of its points."""

    keys: Array
    shape: tuple[int, int, int]
    strides: tuple[int, int]
    plan: Plan
    labels: Array
    regions: int

    @classmethod
    def load(
        cls, image: Array, thresholds: Array, filtration: Filtration, mask: Array | None
    ) -> _Points:
        """Encode an image without a batch axis. Points outside the mask never enter."""
        dtype = image.dtype.newbyteorder("=")
        masked = mask is not None
        options: Any = {"masked": masked, "points": image.size}
        plan = curve_plans(dtype, thresholds, filtration.superlevel, False, **options)[-1]
        volume = _as_volume(image)
        depth, height, width = volume.shape
        strides = (height * (width + WORD), width + WORD)
        keys = np.empty(depth * strides[0] + WORD, plan.key_dtype)
        shown = Source(_as_volume(mask), "mask") if mask is not None else None
        box = Block((0, 0, 0), (depth, height, width))
        nan, _ = load_box(plan, Source(volume), shown, box, keys, 0, strides)
        if nan and filtration.nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return cls(keys, box.stop, strides, plan, np.empty(0, np.uint8), 1)

    def totals(self, cells: Cells, filtration: Filtration, workers: int | None) -> Values:
        """Return the numbers of cells, (regions, kinds, n)."""
        ndim, kinds = filtration.ndim, len(cells.groups)
        groups = np.zeros((kinds, MOST_POINTS, 4), np.int64)
        for kind, group in enumerate(cells.groups):
            groups[kind, : len(group), 3 - ndim : 3] = group
            groups[kind, 0, 3] = len(group)
        spans = np.zeros((kinds, 3, 2), np.int64)
        spans[:, :, 1] = 1
        spans[:, 3 - ndim :] = spans_of(self.shape[3 - ndim :], cells, filtration.boundary)
        wraps = filtration.boundary.wraps
        if cells.every and not self.labels.size:
            return self._row_totals(groups, spans, wraps, workers)

        def work(queue: Iterator[tuple[int, int]]) -> Values:
            histograms = np.zeros((self.regions, kinds, self.plan.top + 1), np.int64)
            places = np.empty(MOST_POINTS, np.int64)
            for slices in queue:
                count_groups(
                    self.keys,
                    self.labels,
                    self.shape,
                    self.strides,
                    wraps,
                    groups,
                    spans,
                    slices,
                    cells.every,
                    places,
                    histograms,
                )
            return histograms

        return self._sum(work, self.regions * kinds, workers).reshape(self.regions, kinds, -1)

    def _row_totals(self, groups: Array, spans: Array, wraps: bool, workers: int | None) -> Values:
        """Return the numbers of groups that enter with their last point, without regions."""
        if wraps:
            wrap_keys(self.keys, self.shape, self.strides)
        bins = self.plan.top + 1
        parts = PARTS if bins <= MOST_BINS else 1

        def work(queue: Iterator[tuple[int, int]]) -> Values:
            histograms = np.zeros((len(groups), bins, parts), np.int64)
            row = np.empty(self.shape[2], self.keys.dtype)
            for z, stop in queue:
                slices = z, min(stop, self.shape[0])
                count_rows(
                    self.keys, self.shape, self.strides, groups, spans, slices, row, histograms
                )
            summed: Values = histograms.sum(axis=2)
            return summed

        return self._sum(work, len(groups), workers)[None]

    def _sum(self, work: Any, rows: int, workers: int | None) -> Values:
        """Return sums (rows, n) of the histograms that `work` returns for parts of the image."""
        size = rows * (self.plan.top + 1)
        parts = [(z, z + SLICES) for z in range(-1, self.shape[0], SLICES)]
        first, *others = share(parts, work, worker_count(workers, self.keys.size, size))
        for other in others:
            first += other
        result = np.zeros((rows, self.plan.entered.size), np.int64)
        cumulate_rows(first.reshape(rows, -1), False, self.plan.entered, result)
        return result


def _as_volume(array: Array) -> Array:
    return array.reshape((1,) * (3 - array.ndim) + array.shape)
