"""Betti curves of labelled regions, each of which is counted alone.

A large region is an image of its own, the rest of its bounding box masked. So is a region that
touches opposite sides of an image along an axis that is periodic: its box is periodic along such
axes, and closed along the others. The boxes of small regions are laid side by side on *sheets*, one
masked point apart, so that each region and its complement have the same components as alone. Each
class of a sheet belongs to the region in which it is born.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import closed
from ecc_core._backends.components import complete, kinds_of
from ecc_core._backends.cpu.betti.launch import betti_curves, lasting_points
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.curves import region_curves
from ecc_core._backends.cpu.regions.labels import Numbering, merge_ids
from ecc_core._backends.cpu.scans.layouts import cut
from ecc_core._backends.cpu.scans.values import entered_in_regions, plan_of
from ecc_core._backends.cpu.sources import Source
from ecc_core._backends.sheets import Sheet, lay_out
from ecc_core._request.boundary import CLOSED, PERIODIC, Boundary
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Values = NDArray[np.int64]

MOST_SMALL_POINTS = 1 << 16  # Regions whose boxes have up to so many points are laid on sheets.
SHEET = (256, 256)
"""Rows and columns of a sheet of volumes."""
SHEET_2D = (1024, 1024)


def region_betti_curves(
    image: Array,
    labels: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    workers: int | None = None,
    least: float = 0,
) -> tuple[Array, Values]:
    """Return the ids of the regions, increasing, and their Betti numbers, (ids, d, n) int64.

    Counts only classes that last for at least `least`.
    """
    flat = closed(filtration, filtration.ndim)
    ids, euler = region_curves(image, labels, thresholds, flat, workers=workers)
    result = np.zeros((ids.size, filtration.classes, thresholds.size), np.int64)
    if result.size == 0:
        return ids, result
    lead = (None,) * (3 - image.ndim)
    volume = image[lead]
    regions = labels[lead]
    boxes = _boxes_of(Source(regions, "labels"), workers)
    starts = boxes[:, 0, len(lead) :]
    stops = boxes[:, 1, len(lead) :]
    wraps = np.array(filtration.boundary.wraps) & (starts == 0) & (stops == image.shape)
    small = (np.prod(stops - starts, axis=1) <= MOST_SMALL_POINTS) & ~wraps.any(axis=1)
    for i in np.flatnonzero(~small):
        box = tuple(map(slice, starts[i].tolist(), stops[i].tolist()))
        borders = tuple(PERIODIC if touch else CLOSED for touch in wraps[i])
        sets = replace(filtration, boundary=Boundary(borders))
        inside = labels[box] == ids[i]
        values = betti_curves(
            image[box][None], thresholds, sets, mask=inside[None], workers=workers, least=least
        )[0]
        result[i, : len(values)] = values
    if small.any():
        sheets = _Sheets(volume, regions, ids, boxes, flat, least)
        counts: Any = sheets.curves(np.flatnonzero(small), thresholds, workers)
        if least == 0:
            counts = complete(counts, kinds_of(flat), euler, filtration.ndim)
        result[small, : filtration.ndim] = np.stack(counts, 1)[small]
    return ids, result


@kernel()
def _widen(numbers, start, boxes):
    """Widen the boxes around the regions of a block to its points; they are half open."""
    slices, rows, columns = numbers.shape
    for z in range(slices):
        for y in range(rows):
            before = 0
            for x in range(columns):
                own = numbers[z, y, x]
                if own and (own != before or x == columns - 1 or numbers[z, y, x + 1] != own):
                    box = boxes[own - 1]
                    place = (z + start[0], y + start[1], x + start[2])
                    for axis in range(3):
                        box[0, axis] = min(box[0, axis], place[axis])
                        box[1, axis] = max(box[1, axis], place[axis] + 1)
                before = own


def _boxes_of(labels: Source, workers: int | None) -> Values:
    """Return the bounding box of each region, half open: (ids, 2, 3)."""
    blocks = cut(labels.shape, 4, 3)
    # The box of a region none of whose points has been met.
    ends = np.array([[np.iinfo(np.int64).max] * 3, [0] * 3])

    def work(queue: Iterator[Any]) -> tuple[Numbering, Values]:
        numbering = Numbering(labels.token.dtype)
        boxes = np.empty((0, 2, 3), np.int64)
        for block in queue:
            _, rows, columns = shape = block.shape
            empty = functools.partial(np.empty, math.prod(shape))
            staged, _ = numbering.stage(labels, block, empty, 0, (rows * columns, columns))
            more = np.broadcast_to(ends, (numbering.count - len(boxes), 2, 3))
            boxes = np.concatenate([boxes, more])
            _widen(staged.reshape(shape), block.start, boxes)
        return numbering, boxes

    found = share(blocks, work, worker_count(workers, labels.array.size, 1))
    ids, rows = merge_ids([numbering for numbering, _ in found])
    merged = np.tile(ends, (ids.size, 1, 1))
    for (_, boxes), own in zip(found, rows, strict=True):
        met = own >= 0
        boxes = boxes[own[own >= 0]]
        merged[met, 0] = np.minimum(merged[met, 0], boxes[:, 0])
        merged[met, 1] = np.maximum(merged[met, 1], boxes[:, 1])
    return merged


class _Sheets(NamedTuple):
    """Counts the classes of regions that are laid on sheets."""

    image: Array
    labels: Array
    ids: Array
    boxes: Values
    filtration: Filtration
    least: float

    def curves(self, regions: Values, thresholds: Array, workers: int | None) -> list[Values]:
        """Count the classes of each dimension, (ids, n), for some of the regions.

        If all classes count, these are only the dimensions from which the others follow.
        """
        limits = SHEET if self.filtration.ndim == 3 else SHEET_2D
        sheets = lay_out(self.boxes[:, 1] - self.boxes[:, 0], regions, limits)
        points = sum(math.prod(sheet.shape) for sheet in sheets)

        def work(queue: Iterator[Sheet]) -> list[list[Any]]:
            return [self._events(sheet) for sheet in queue]

        found = itertools.chain(*share(sheets, work, worker_count(workers, points, 1)))

        plan = plan_of(self.image.dtype, thresholds, self.filtration.superlevel)

        def entered(side: Sequence[tuple[Array, Array]]) -> Values:
            """Count the events of all sheets, given the values and the regions of each."""
            values, numbers = zip(*side, strict=True)
            regions = np.concatenate(numbers)
            return entered_in_regions(np.concatenate(values), regions, self.ids.size, plan)

        totals = []
        for events in zip(*found, strict=True):
            born, dead = zip(*events, strict=True)
            totals.append(entered(born) - entered(dead))
        return totals

    def _events(self, sheet: Sheet) -> list[Any]:
        """Return the values and regions at births and deaths on a sheet, for each dimension.

        Regions are numbered from 1 on.
        """
        image = np.zeros(sheet.shape, self.image.dtype.newbyteorder("="))
        ranks = np.zeros(sheet.shape, np.int32)
        for i, (y, x) in zip(sheet.regions, sheet.places, strict=True):
            (z0, y0, x0), (z1, y1, x1) = self.boxes[i].tolist()
            there = slice(0, z1 - z0), slice(y, y + y1 - y0), slice(x, x + x1 - x0)
            inside = self.labels[z0:z1, y0:y1, x0:x1] == self.ids[i]
            np.copyto(image[there], self.image[z0:z1, y0:y1, x0:x1], where=inside)
            np.copyto(ranks[there], i + 1, where=inside)
        values = image.reshape(-1)
        rank = ranks.reshape(-1)
        ndim = self.filtration.ndim
        sets = replace(self.filtration.in_axes(max(ndim, 2)), nan="omit")
        given = image[None] if ndim == 3 else image
        mask = ranks.reshape(given.shape) > 0
        dimensions = [*range(ndim)]
        if self.least == 0:
            dimensions = [(ndim - 1) * kind.complement for kind in kinds_of(self.filtration)]
        events = lasting_points(given, dimensions, sets, self.least, mask=mask, workers=1)
        return [[(values[p], rank[p]) for p in points] for points in events]
