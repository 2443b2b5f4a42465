"""Count groups of neighbouring points: of staged blocks of keys, and of labelled regions.

A group enters with the last of its points, which has the largest key. So the keys of all groups of
a kind are the maxima of rows, one row for each point of the kind, and are counted afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.kernels import part_of

TOGETHER = 4096  # keys, so that the maxima stay in the first-level cache
POINTS_A_BIN = 16  # from which on four histograms pay
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@subroutine()
def _find_latest(keys: Any, group: Any, at: Any, size: Any, strides: Any, latest: Any) -> None:
    """Write the keys of groups of one kind, the first points of which follow each other."""
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
def _count(
    keys: Any, rows: Any, columns: Any, pitch: Any, first: Any, second: Any, third: Any, fourth: Any
) -> None:
    """Count the keys of some rows in four histograms in turn.

    Equal keys often follow each other, and additions to a bin wait for each other.
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
def count_cells(
    keys: Any, geometry: Any, groups: Any, spans: Any, latest: Any, histograms: Any
) -> None:
    """Add the groups of a block of staged keys to histograms (slices or 1, kinds, bins).

    The `geometry` is that of the scan. `groups` (kinds, points, 4) are the offsets of the points
    along z, y and x, and for the first one the number of points, and `spans` (kinds, 3, 2) ranges
    of the lowest corners, relative to the first point of the block. `latest` is scratch memory for
    `TOGETHER` keys, or those of a row, and a vector.
    """
    _, _, _, lead, pitch, slice_stride = geometry
    images, kinds, bins = histograms.shape
    own = slice_stride + pitch + 64 * lead
    step = max(1, TOGETHER // pitch)
    for kind in range(kinds):
        (z_start, z_stop), (y_start, y_stop), (x_start, x_stop) = spans[kind]
        columns = x_stop - x_start
        for image in range(images):
            if images > 1:
                z_start, z_stop = image, image + 1
            found = histograms[image, kind]
            points = (z_stop - z_start) * (y_stop - y_start) * columns
            split = points > POINTS_A_BIN * bins
            counts = np.zeros((4, bins), np.int64) if split else found.reshape((1, bins))
            a, b, c, d = counts[0], counts[split * 1], counts[split * 2], counts[split * 3]
            for z in range(z_start, z_stop):
                for y in range(y_start, y_stop, step):
                    rows = min(step, y_stop - y)
                    at = own + z * slice_stride + y * pitch + x_start
                    size = (rows - 1) * pitch + columns
                    _find_latest(keys, groups[kind], at, size, (slice_stride, pitch), latest)
                    _count(latest, rows, columns, pitch, a, b, c, d)
            if split:
                for key in range(bins):
                    found[key] += counts[:, key].sum()


@kernel()
def count_groups(
    points: Any, tables: Any, span: Any, every: Any, scratch: Any, histograms: Any
) -> None:
    """Add the groups whose lowest corners are in a span of places to (regions, kinds, bins).

    Points have keys, which are ranks, and the smallest enter first, and numbers of regions, from 1,
    or 0 for points in no region, which surround the image. `tables` are the distances of the points
    of a group from its lowest corner (kinds, points), and how many there are (kinds,). If `every`,
    a group enters with the last of its points, if all are in one region. Otherwise it enters with
    its first point in each region, which counts for the first of these points. `scratch` is for
    keys and numbers of regions, 0 where none is counted.
    """
    (keys, labels), (groups, sizes), (latest, kept) = points, tables, scratch
    count = span[1] - span[0]
    for kind in range(groups.shape[0]):
        for first in range(1 if every else sizes[kind]):
            start = span[0] + groups[kind, first]
            own, key = labels[start : start + count], keys[start : start + count]
            for i in range(count):
                latest[i], kept[i] = key[i], own[i]
            for other in range(sizes[kind]):
                start = span[0] + groups[kind, other]
                region, key = labels[start : start + count], keys[start : start + count]
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
