"""Numbers of cells of closed images, from the Euler characteristics of their sections.

Let F_A be the sum of the Euler characteristics of all sections of an image along a set A of axes
(its number of points for the empty set), and N_S the number of cells with two points along each
axis in S and one point along the others. In the V-construction, these are vertices, edges and so
on, so that

    F_A = sum over S in A of (-1)^|S| N_S,    N_S = sum over A in S of (-1)^|A| F_A.

Every point adds to the numbers of cells, but Euler coefficients are mostly zero on smooth images.
So all points are counted, and the other F_A only where they change. As for curves, T is V of the
reversed order with open borders.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.launch import parts_of, spatial_order
from ecc_core._backends.cpu.minkowski.scans import SUBTABLES, scan_fields_2d, scan_fields_3d
from ecc_core._backends.cpu.minkowski.vector_fields import CARRIES, FIELDS, PLANES
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.scans.blocks import Layout, cut, lay_out, load_box
from ecc_core._backends.cpu.scans.kernels import ROWS
from ecc_core._backends.cpu.sinks.cumulate import cumulate_rows
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

__all__ = ["closed_counts"]

Array = NDArray[Any]
Values = NDArray[np.int64]
Histograms = tuple[Array, Array]

WORD = np.dtype(np.uint64)
EXPANDED = np.dtype(np.int8)


def closed_counts(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None,
    workers: int | None,
) -> Values:
    """Return the numbers of cells of closed images, (images, kinds, n), with kinds in C order."""
    ndim = filtration.ndim
    sections = np.zeros((image.shape[0], FIELDS, thresholds.size), np.int64)
    dtype = image.dtype.newbyteorder("=")
    plans = curve_plans(
        dtype,
        thresholds,
        filtration.superlevel,
        filtration.cubes,
        masked=mask is not None,
        points=image[0].size,
    )
    for part, view, hidden in parts_of(image, mask, None, plans[-1].key_dtype.itemsize):
        shown = None if hidden is None else Source(hidden, "mask")
        stack = _Stack(Source(view), shown, filtration)
        stack.add(plans, workers, sections[part])
    order, _ = spatial_order(image[0])
    axes = [axis - 1 for axis in order] or list(range(ndim))  # of slices, rows and columns
    counts: Values = np.matmul(_signs(tuple(axes)), sections)
    return counts


@lru_cache(maxsize=32)
def _signs(axes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return (-1)^|A| for each kind S in C order and each field A in S, (kinds, fields).

    `axes` are the axes of the image that are used as slices, rows and columns.
    """
    ndim = len(axes)
    bits = {axis: 1 << (ndim - 1 - place) for place, axis in enumerate(axes)}
    signs = np.zeros((1 << ndim, FIELDS), np.int64)
    for kind, pairs in enumerate(itertools.product((0, 1), repeat=ndim)):
        long = [bits[axis] for axis, pair in enumerate(pairs) if pair]
        for size in range(ndim + 1):
            for chosen in itertools.combinations(long, size):
                signs[kind, sum(chosen)] = (-1) ** size
    return signs


class _Stack:
    """One volume, or images of one shape, to be cut into blocks and scanned."""

    def __init__(self, source: Source, mask: Source | None, filtration: Filtration) -> None:
        self.source, self.mask, self.filtration = source, mask, filtration
        self.ndim = max(filtration.ndim, 2)
        self.lock = threading.Lock()

    def add(self, plans: list[Plan], workers: int | None, out: Values) -> None:
        """Add the sections of each image to `out`, (images, fields, n)."""
        key_size = max(plans[-1].key_dtype.itemsize, self.source.copied_size)
        blocks = cut(self.source.shape, key_size, self.ndim)
        alone = len(out) == 1

        def work(queue: Iterator[Block]) -> None:
            if alone:
                self._cumulate(plans, self._scan(queue, plans, 1), out)
                return
            for block in queue:
                own = out[block.start[0] : block.stop[0]]
                self._cumulate(plans, self._scan([block], plans, len(own)), own)

        size = SUBTABLES * (1 + FIELDS) * (plans[-1].top + 1)
        share(blocks, work, worker_count(workers, math.prod(self.source.shape), size))

    def _cumulate(
        self, plans: list[Plan], histograms: Sequence[Histograms | None], out: Values
    ) -> None:
        with self.lock:  # a block may hold parts of its images
            for plan, found in zip(plans, histograms, strict=True):
                if found is None:
                    continue
                parts = len(out), -1, SUBTABLES
                fields = found[1].reshape(*parts, FIELDS).sum(axis=2, dtype=np.int64)
                fields[..., 0] += found[0].reshape(parts).sum(axis=2, dtype=np.int64)
                rows = np.ascontiguousarray(np.moveaxis(fields, -1, 1))
                sums = np.zeros((len(out) * FIELDS, plan.entered.size), np.int64)
                cumulate_rows(
                    rows.reshape(len(sums), -1), self.filtration.cubes, plan.entered, sums
                )
                out += sums.reshape(out.shape)

    def _scan(
        self, blocks: Iterator[Block] | list[Block], plans: list[Plan], images: int
    ) -> list[Histograms | None]:
        """Return the histograms of blocks for each plan, or None for a plan that was not used."""
        histograms: list[Histograms | None] = [None] * len(plans)
        # Narrow counts need less of the cache. A field is at most 7.
        counts = np.int32 if math.prod(self.source.shape) < 1 << 28 else np.int64
        current = 0
        for block in blocks:
            layout = lay_out(block, self.source.shape, self.ndim)
            keys, *others = self._arrays(layout, plans[current])
            while self._stage(plans[current], layout, keys):
                current += 1
                keys, *others = self._arrays(layout, plans[current])
            found = histograms[current]
            if found is None:
                parts = images, SUBTABLES * (plans[current].top + 1)
                found = np.zeros(parts, counts), np.zeros((*parts, FIELDS), counts)
                histograms[current] = found
            scan = scan_fields_3d if self.ndim == 3 else scan_fields_2d
            sides = layout.low, layout.high, self.filtration.cubes
            scan(keys, layout.geometry, *sides, *others, *found)
        return histograms

    def _stage(self, plan: Plan, layout: Layout, keys: Array) -> bool:
        """Load the keys of a block, and return whether a key did not fit."""
        nan, unfit = load_box(
            plan, self.source, self.mask, layout.box, keys, layout.at, layout.steps
        )
        if nan and self.filtration.nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return unfit

    def _arrays(self, layout: Layout, plan: Plan) -> tuple[Array, ...]:
        _, rows, columns, lead, _, _ = layout.geometry
        words = lead + -(-columns // 64)
        kinds = 14 if self.ndim == 3 else 3
        return (
            scratch.take("keys", layout.size, plan.key_dtype),
            scratch.take("planes", kinds * words * (rows + 2 * ROWS), WORD),
            scratch.take("fields", (PLANES + 1) * ROWS, WORD),
            scratch.take("field carries", CARRIES * (rows + ROWS), WORD),
            scratch.take("expanded fields", 64 * FIELDS, EXPANDED),
        )
