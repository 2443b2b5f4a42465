"""Curves of all labelled regions of an image in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.kernels import DIRECTIONS, scan_regions
from ecc_core._backends.cpu.regions.labels import DenseRanks, HashedRanks, rank_labels
from ecc_core._backends.cpu.scans.blocks import cut, lay_out
from ecc_core._backends.cpu.sinks.cumulate import cumulate_rows
from ecc_core._backends.cpu.sources import Block, Source, memory_order
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["region_curves"]

Array = NDArray[Any]
Values = NDArray[np.int64]

FRONT = 64  # elements before a staged block: the neighbours of its first point
FEW_LEVELS = 128  # for which looking up 8-bit values pays


def region_curves(
    image: Array,
    labels: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Ids of the regions, increasing, and their curves, (ids, n) int64."""
    spatial, superlevel, cubes = filtration.ndim, filtration.superlevel, filtration.cubes
    shape = (1,) * (3 - spatial)
    order, flips = memory_order(image)  # a region's curve does not depend on them
    image, labels = (array.transpose(order)[flips] for array in (image, labels))
    image_source = Source(image.reshape(shape + image.shape))
    label_source = Source(labels.reshape(shape + labels.shape), "labels")
    ids, ranks = rank_labels(label_source, workers)
    ids = ids.astype(np.bool_) if labels.dtype == np.bool_ else ids
    result = np.zeros((ids.size, thresholds.size), np.int64)
    if result.size == 0:
        return ids, result
    dtype = image.dtype.newbyteorder("=")
    # One plan that fits all keys. Tables keep the histograms of many regions small.
    few = thresholds.size < FEW_LEVELS
    plan = curve_plans(dtype, thresholds, superlevel, cubes, masked=few, points=0)[-1]
    blocks = cut(image_source.shape, 4, max(spatial, 2))

    # Narrow counts take less of the cache; a coefficient is at most 7.
    counts = np.int32 if image.size < 1 << 28 else np.int64

    def work(queue: Iterator[Block]) -> Array:
        scanner = _Scanner(image_source, label_source, ranks, plan, cubes, spatial)
        histograms = np.zeros((ids.size, plan.top + 1), counts)
        for block in queue:
            scanner.add(block, histograms)
        return histograms

    count = worker_count(workers, image.size, ids.size * (plan.top + 1))
    first, *others = share(blocks, work, count)
    for other in others:
        first += other
    cumulate_rows(first, cubes, plan.entered, result)
    if cubes and spatial == 3:
        np.negative(result, out=result)
    return ids, result


class _Scanner:
    """Scratch memory of one thread for blocks of keys and labels."""

    def __init__(
        self,
        image: Source,
        labels: Source,
        ranks: DenseRanks | HashedRanks,
        plan: Plan,
        cubes: bool,
        ndim: int,
    ) -> None:
        self.image, self.labels, self.ranks, self.plan = image, labels, ranks, plan
        self.cubes = cubes
        self.ndim = max(ndim, 2)
        self.count = len(DIRECTIONS) if ndim == 3 else 4
        self._size = 0
        self._planes = np.empty(0, np.uint64)
        self._beats = np.empty(2 * self.count, np.uint64)

    def add(self, block: Block, histograms: Array) -> None:
        """Add a block to the histograms of its regions."""
        layout = lay_out(block, self.image.shape, self.ndim, spare_words=2)
        geometry, box, extents, at, steps = layout[:5]
        _, rows, columns, lead, _, _ = geometry
        if layout.size > self._size:
            self._size = layout.size
            self._keys = np.empty(layout.size + 2 * FRONT, self.plan.key_dtype)
            self._region = np.empty(layout.size + 2 * FRONT, self.ranks.dtype)
        needed = 4 * self.count * (lead + -(-columns // 64) + 1) * (rows + 2)
        if self._planes.size < needed:
            self._planes = np.empty(needed, np.uint64)
        keys, region = self._keys[FRONT:], self._region[FRONT:]
        flat = self.ndim == 2  # then the slices before and behind the only one are not read
        self._region[
            FRONT + steps[0] - 1 if flat else 0 : FRONT + 2 * steps[0] + 1 if flat else None
        ] = 0
        address, strides, values = self.image.box(box)
        nan, _ = self.plan.load(address, strides, extents, keys, at, steps)
        shown = self.ranks.stage(self.labels, box, extents, region, at, steps)
        if nan and np.isnan(values[shown != 0]).any():
            raise ValueError(NAN_MESSAGE)
        scan_regions(
            keys,
            region,
            geometry,
            self.count,
            self.cubes,
            self._planes,
            self._beats,
            histograms,
        )
