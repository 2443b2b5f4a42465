"""Curves of all labelled regions of an image in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu import region_kernels
from ecc_core._backends.cpu.blocks import cut, lay_out
from ecc_core._backends.cpu.plans import Construction, Plan, curve_plans
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.sources import Block, Source
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["region_curves"]

Array = NDArray[Any]
Values = NDArray[np.int64]

FRONT = 64  # elements before a staged block: the neighbours of its first point
FEW_LEVELS = 128  # for which looking up 8-bit values pays
LABELS_A_POINT = 8  # ids larger than this many times the points are ranked by sorting


def region_curves(
    image: Array,
    labels: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Ids of the regions, increasing, and their curves, (ids, n) int64."""
    spatial, superlevel = filtration.ndim, filtration.superlevel
    construction: Construction = "V" if filtration.connectivity == 1 else "T"
    ids, labels, table = _rank(labels)
    result = np.zeros((ids.size, thresholds.size), np.int64)
    if result.size == 0:
        return ids, result
    dtype = image.dtype.newbyteorder("=")
    # One plan that fits all keys. Tables keep the histograms of many regions small.
    few = thresholds.size < FEW_LEVELS
    plan = curve_plans(dtype, thresholds, superlevel, construction, masked=few, points=0)[-1]
    shape = (1,) * (3 - spatial) + image.shape
    image_source, label_source = (
        Source(image.reshape(shape)),
        Source(labels.reshape(shape), "labels"),
    )
    blocks = cut(image_source.shape, 4, max(spatial, 2))

    # Narrow counts take less of the cache; a coefficient is at most 7.
    counts = np.int32 if image.size < 1 << 28 else np.int64

    def work(queue: Iterator[Block]) -> Array:
        marcher = _Marcher(image_source, label_source, table, plan, construction, spatial)
        histograms = np.zeros((ids.size, plan.top + 1), counts)
        for block in queue:
            marcher.add(block, histograms)
        return histograms

    count = worker_count(workers, image.size, ids.size * (plan.top + 1))
    first, *others = share(blocks, work, count)
    for other in others:
        first += other
    region_kernels.cumulate_rows(first, construction == "T", plan.entered, result)
    if construction == "T" and spatial == 3:
        np.negative(result, out=result)
    return ids, result


def _rank(labels: Array) -> tuple[Array, Array, NDArray[np.unsignedinteger[Any]]]:
    """The ids present, labels to look up, and the table that gives an id's rank from 1."""
    native = labels.dtype.newbyteorder("=")
    labels = labels.view(np.uint8) if native == np.bool_ else labels
    if labels.size == 0:
        return np.empty(0, native), labels, np.zeros(1, np.uint16)
    largest = int(labels.max())
    if largest >= LABELS_A_POINT * labels.size + 256:
        # A copy without the negative labels that another thread may have written since the checks.
        ids, ranks = np.unique(np.maximum(labels, 0), return_inverse=True)
        first = int(ids[0] != 0)
        table = np.arange(first, ids.size + first, dtype=_rank_dtype(ids.size))
        return ids[ids != 0], ranks.reshape(labels.shape), table
    present = np.zeros(largest + 1, np.bool_)
    whole = labels.flags.c_contiguous and labels.dtype.isnative and labels.flags.aligned
    for part in [labels] if whole or labels.ndim == 1 else labels:
        contiguous = np.ascontiguousarray(part, part.dtype.newbyteorder("=")).reshape(-1)
        region_kernels.mark_labels(contiguous, present)
    present[0] = False
    ids = np.flatnonzero(present).astype(native)
    table = np.cumsum(present, dtype=_rank_dtype(ids.size))
    return ids, labels, table


def _rank_dtype(count: int) -> type[np.unsignedinteger[Any]]:
    """Narrow ranks compare faster."""
    return np.uint16 if count < 1 << 16 else np.uint32


class _Marcher:
    """Scratch memory of one thread for blocks of keys and labels."""

    def __init__(
        self,
        image: Source,
        labels: Source,
        table: NDArray[np.unsignedinteger[Any]],
        plan: Plan,
        construction: Construction,
        ndim: int,
    ) -> None:
        self.image, self.labels, self.table, self.plan = image, labels, table, plan
        self.closed = construction == "T"
        self.ndim = max(ndim, 2)
        self.count = len(region_kernels.DIRECTIONS) if ndim == 3 else 4
        self.token = np.empty(0, labels.array.dtype.newbyteorder("="))
        self._size = 0
        self._planes = np.empty(0, np.uint64)
        self._beats = np.empty(2 * self.count, np.uint64)

    def add(self, block: Block, histograms: Array) -> None:
        """Add a block to the histograms of its regions."""
        geometry, box, extents, at, steps = layout = lay_out(
            block, self.image.shape, self.ndim, spare_words=2
        )
        _, rows, columns, lead, _, _ = geometry
        if layout.size > self._size:
            self._size = layout.size
            self._keys = np.empty(layout.size + 2 * FRONT, self.plan.key_dtype)
            self._region = np.empty(layout.size + 2 * FRONT, self.table.dtype)
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
        address, strides, shown = self.labels.box(box)
        region_kernels.copy_labels(
            address, self.token, strides, extents, region, at, steps, self.table
        )
        if nan and np.isnan(values[shown != 0]).any():
            raise ValueError(NAN_MESSAGE)
        region_kernels.march_regions(
            keys,
            region,
            geometry,
            self.count,
            self.closed,
            self._planes,
            self._beats,
            histograms,
        )
