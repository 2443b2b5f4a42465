"""Curves of all labelled regions of an image in one pass."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.kernels import DIRECTIONS, scan_regions
from ecc_core._backends.cpu.regions.labels import Numbering, merge_ids
from ecc_core._backends.cpu.scans.blocks import cut, lay_out
from ecc_core._backends.cpu.scans.kernels import EVENT_ROOM
from ecc_core._backends.cpu.sinks.cumulate import cumulate
from ecc_core._backends.cpu.sources import Block, Source, memory_order, scratch
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

FRONT = 64  # elements before a staged block: the neighbours of its first point
FEW_LEVELS = 128  # for which looking up 8-bit values pays
MOST_BINS = 1 << 23  # of all threads together, if one of them does not need more
CURVES_AT_ONCE = 1 << 10


def region_curves(
    image: Array,
    labels: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Ids of the regions, increasing, and their curves, (ids, n) int64."""
    spatial, cubes = filtration.ndim, filtration.cubes
    dtype, label_dtype = (array.dtype.newbyteorder("=") for array in (image, labels))
    if image.size == 0:
        return np.empty(0, label_dtype), np.zeros((0, thresholds.size), np.int64)
    order, flips = memory_order(image)  # a region's curve does not depend on them
    lead = (None,) * (3 - spatial)
    image, labels = (array.transpose(order)[flips][lead] for array in (image, labels))
    sources = Source(image), Source(labels, "labels")
    # One plan that fits all keys. Tables keep the histograms of many regions small.
    few = thresholds.size < FEW_LEVELS
    options: Any = {"masked": few, "points": 0}
    plan = curve_plans(dtype, thresholds, filtration.superlevel, cubes, **options)[-1]
    blocks = cut(image.shape, 4, max(spatial, 2))
    count = worker_count(workers, image.size, 1)
    caller = threading.get_ident()

    def work(queue: Iterator[Block]) -> _Scanner:
        scanner = _Scanner(*sources, plan, cubes, spatial, len(blocks))
        for block in queue:
            scanner.add(block)
            # Of regions that are scattered over the image each thread would hold all histograms.
            if scanner.bins > MOST_BINS // count and threading.get_ident() != caller:
                break
        return scanner

    scanners = share(blocks, work, count)
    ids, rows = merge_ids([scanner.numbering for scanner in scanners])
    result = np.zeros((ids.size, thresholds.size), np.int64)
    sign = -1 if cubes and spatial == 3 else 1

    def sum_up(queue: Iterator[int]) -> None:
        for first in queue:
            part = slice(first, first + CURVES_AT_ONCE)
            for scanner, own in zip(scanners, rows, strict=True):
                cumulate(scanner.histograms, own[part], cubes, sign, plan.entered, result[part])

    if result.size:
        parts = range(0, ids.size, CURVES_AT_ONCE)
        share(parts, sum_up, worker_count(workers, result.size, 1))
    return ids.astype(label_dtype), result


class _Scanner:
    """The regions that one thread meets: their numbers, histograms, and scratch memory."""

    def __init__(
        self, image: Source, labels: Source, plan: Plan, cubes: bool, ndim: int, blocks: int
    ) -> None:
        self.image, self.labels, self.plan, self.cubes = image, labels, plan, cubes
        self.ndim = max(ndim, 2)
        self.blocks = blocks
        self.numbering = Numbering(labels.token.dtype)
        # Narrow counts take less of the cache; a coefficient is at most 7.
        counts = np.int32 if image.array.size < 1 << 28 else np.int64
        self.histograms = np.zeros((0, plan.top + 1), counts)
        self._directions = len(DIRECTIONS) if ndim == 3 else 4
        self._owned = np.empty(2 * self._directions, np.uint64) if ndim == 3 else None

    @property
    def bins(self) -> int:
        """Bins in use."""
        return self.numbering.count * (self.plan.top + 1)

    def _make_room(self) -> None:
        """A histogram for each number. Zeros that are not used yet take no memory."""
        held, bins = self.histograms.shape
        needed = self.numbering.count
        if needed <= held:
            return
        expected = min(needed * self.blocks, MOST_BINS // bins) if held == 0 else 2 * held
        histograms = np.zeros((max(needed, expected), bins), self.histograms.dtype)
        histograms[:held] = self.histograms
        self.histograms = histograms

    def add(self, block: Block) -> None:
        """Add a block to the histograms of its regions."""
        layout = lay_out(block, self.image.shape, self.ndim, spare_words=2)
        size = layout.size + 2 * FRONT
        keys = scratch.take("keys", size, self.plan.key_dtype)
        place = layout.at + FRONT, layout.steps
        read, values = self.image.box(layout.box)
        nan, _ = self.plan.load(read, keys, place)

        def background(dtype: np.dtype[Any]) -> Array:
            regions = scratch.take("regions", size, dtype)
            step = layout.steps[0]
            # In 2-D the slices before and behind the only one are not read.
            start, stop = (FRONT + step - 1, FRONT + 2 * step + 1) if self.ndim == 2 else (0, size)
            regions[start:stop] = 0
            return regions

        regions, shown = self.numbering.stage(self.labels, layout.box, background, *place)
        if nan and np.isnan(values[shown != 0]).any():
            raise ValueError(NAN_MESSAGE)
        self._make_room()
        _, rows, columns, lead, _, _ = layout.geometry
        words = lead + -(-columns // 64) + 1
        scan_regions(
            keys[FRONT:],
            regions[FRONT:],
            layout.geometry,
            self._directions,
            self.cubes,
            scratch.take("planes", 4 * self._directions * words * (rows + 2), np.uint64),
            self._owned,
            scratch.take("event keys", EVENT_ROOM, self.plan.key_dtype),
            scratch.take("event regions", EVENT_ROOM, regions.dtype),
            scratch.take("event coefficients", EVENT_ROOM, np.int8),
            self.histograms,
        )
