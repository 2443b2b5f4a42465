"""Curves of all labelled regions of an image in one pass.

The boxes of 94 regions of 1024 x 1024 points, scanned one after the other, take ten times as long.
A scan finds the coefficients of every region as if it were alone. A point owns a cell if its key is
the largest of the cell. In the V-construction of one region, a point owns no cell that extends
beyond the region; in the T-construction, points outside of the region own no cell.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.llvm import (
    ALL,
    NONE,
    ONE,
    at_least,
    count_trailing_zeros,
    equal,
    small_keys,
)
from ecc_core._backends.cpu.pool import share, worker_count
from ecc_core._backends.cpu.regions.labels import Numbering, merge_ids
from ecc_core._backends.cpu.scans.blocks import FRONT
from ecc_core._backends.cpu.scans.kernels import EVENT_FLUSH, EVENT_ROOM
from ecc_core._backends.cpu.scans.layouts import cut, lay_out
from ecc_core._backends.cpu.scans.planes import (
    HAS_COMPRESS,
    append_coefficients,
    append_compressed,
)
from ecc_core._backends.cpu.scans.stacks import cumulate
from ecc_core._backends.cpu.sources import Block, Source, memory_order, scratch
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

FEW_LEVELS = 128  # For fewer levels, keys of 8-bit values are looked up, so that there are fewer.
MOST_BINS = 1 << 23  # All threads together have no more bins, unless one of them needs more.
CURVES_AT_ONCE = 1 << 10
TOP = np.uint64(63)

# Offsets (z, y, x) to the neighbours that come later in C order; first the 4 of the same slice.
DIRECTIONS = [d for d in itertools.product((0, 1), (-1, 0, 1), (-1, 0, 1)) if d > (0, 0, 0)]
_OFFSETS = np.array(DIRECTIONS)


def _cells(extent: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the cells at a point that span `extent` axes, as the neighbours that complete them.

    A neighbour is the index of its direction, or 25 minus the index of the opposite direction.
    """
    number: dict[tuple[int, ...], int] = {d: i for i, d in enumerate(DIRECTIONS)}
    number |= {tuple(-o for o in d): 25 - i for i, d in enumerate(DIRECTIONS)}
    cells = []
    for far in itertools.product((-1, 0, 1), repeat=3):
        if sum(map(abs, far)) == extent:
            corners = itertools.product(*({0, a} for a in far))
            cells.append([number[c] for c in corners if any(c)])
    return np.array(cells, dtype=np.uint64)


_EDGES = _cells(1)
_SQUARES = _cells(2)
_CUBES = _cells(3)


@subroutine()
def _add(total, plane):
    """Add one plane to a number of 4 planes."""
    a, b, c, d = total
    ab = a & plane
    abc = b & ab
    return a ^ plane, b ^ ab, c ^ abc, d ^ (c & abc)


@subroutine()
def _take(total, plane):
    """Subtract one plane from a number of 4 planes."""
    a, b, c, d = total
    ab = ~a & plane
    abc = ~b & ab
    return a ^ plane, b ^ ab, c ^ abc, d ^ (~c & abc)


@subroutine()
def _pair(planes, at, direction, strides, behind, outside, first):
    """Return which of 64 points own the edges to neighbours in a direction, and in the opposite.

    Backward planes of a direction follow its forward ones. They lie at the place of the earlier
    neighbour: `behind` elements on if it is in the slice before, a row up or down, or shifted along
    x.
    """
    word_step, direction_step = strides
    forward = planes[np.uint64(at + 2 * direction * direction_step)]
    dy = _OFFSETS[direction, 1]
    dx = _OFFSETS[direction, 2]
    there = at + behind + (2 * direction + 1) * direction_step - dy
    backward = planes[np.uint64(there)]
    if dx == 1:
        before = outside if first else planes[np.uint64(there - word_step)]
        backward = (backward << ONE) | (before >> TOP)
    elif dx == -1:
        backward = (backward >> ONE) | (planes[np.uint64(there + word_step)] << TOP)
    return forward, backward


@subroutine()
def _coefficients_2d(planes, at, strides, outside, first):
    """Return the coefficients of the 64 points whose planes lie at `at`, as 4 planes."""
    east, west = _pair(planes, at, 0, strides, 0, outside, first)
    southwest, northeast = _pair(planes, at, 1, strides, 0, outside, first)
    south, north = _pair(planes, at, 2, strides, 0, outside, first)
    southeast, northwest = _pair(planes, at, 3, strides, 0, outside, first)
    total = _take(_take(_take(_take((ALL, NONE, NONE, NONE), east), west), south), north)
    total = _add(_add(total, east & south & southeast), west & south & southwest)
    return _add(_add(total, east & north & northeast), west & north & northwest)


@subroutine()
def _coefficients_3d(planes, at, strides, behind, outside, first, owned):
    """Return the same as :func:`_coefficients_2d` in 3-D.

    The planes of the slice before lie `behind` elements after those of the slice.
    """
    for i in range(13):
        step = behind if i >= 4 else 0
        owned[i], owned[25 - i] = _pair(planes, at, i, strides, step, outside, first)
    total = (ALL, NONE, NONE, NONE)
    for i in range(6):
        total = _take(total, owned[_EDGES[i, 0]])
    for i in range(12):
        square = owned[_SQUARES[i, 0]] & owned[_SQUARES[i, 1]] & owned[_SQUARES[i, 2]]
        total = _add(total, square)
    for i in range(8):
        cube = ALL
        for j in range(7):
            cube &= owned[_CUBES[i, j]]
        total = _take(total, cube)
    return total


@subroutine()
def _drain(event_keys, event_labels, event_coefficients, count, histograms):
    """Add the listed coefficients to the histograms of their regions."""
    flat = histograms.reshape(-1)
    bins = np.uint64(histograms.shape[1])
    for i in range(count):
        region = np.uint64(event_labels[i]) - ONE
        flat[region * bins + np.uint64(event_keys[i])] += event_coefficients[i]


@subroutine()
def _scatter(planes, wanted, point, keys, labels, histograms):
    """Add the coefficients of a word where the target cannot compress vectors."""
    a, b, c, d = planes
    while wanted:
        bit = np.uint64(count_trailing_zeros(wanted))
        wanted &= wanted - ONE
        label = labels[point + np.int64(bit)]
        if label:
            value = ((a >> bit) & ONE) + 2 * ((b >> bit) & ONE) + 4 * ((c >> bit) & ONE)
            signed = np.int64(value) - 8 * np.int64((d >> bit) & ONE)
            histograms[label - 1, keys[point + np.int64(bit)]] += signed


@kernel(inline="always")
def _compare_slice(keys, labels, geometry, directions, flip, z, planes):
    """Write which points of a slice own the edges between them and their neighbours.

    There are two planes for each direction: whether the point itself owns the edge, and whether its
    neighbour does.
    """
    _, rows, columns, lead, pitch, slice_stride = geometry
    words = lead + (columns + 63) // 64
    word_step = rows + 2
    direction_step = (words + 1) * word_step
    for i in range(directions):
        dz, dy, dx = _OFFSETS[i]
        for word in range(words + 1):
            here = (z + 1) * slice_stride + 64 * word
            there = here + dz * slice_stride + dy * pitch + dx
            out = 2 * i * direction_step + word * word_step
            # The last row's planes are needed where the neighbour is not below.
            lines = rows + 2 if dy < 0 else rows + 1
            skip = 1 if dy < 0 else 0
            for row in range(skip, lines):
                at = here + row * pitch
                other = there + row * pitch
                owns = at_least(keys, at, other)
                same = equal(labels, at, other)
                planes[np.uint64(out + row)] = ((owns ^ flip) & same) ^ flip
                back = np.uint64(out + row + direction_step)
                planes[back] = ((~owns ^ flip) & same) ^ flip


@kernel()
def scan_regions(
    keys,
    labels,
    geometry,
    directions,
    cubes,
    planes,
    owned,
    event_keys,
    event_labels,
    event_coefficients,
    histograms,
):
    """Add the coefficients of a block's points to the histograms of their regions.

    Keys and labels are staged alike, with a halo of label 0, which is no region, outside of the
    image. The `geometry` is that of the scan; a word more follows every row. There are 4 directions
    within a slice, or all 13. `planes` and `owned` are scratch; `owned` is None with 4 directions.
    Row i of the histograms (regions, bins) is label i + 1.
    """
    slices, rows, columns, lead, pitch, slice_stride = geometry
    words = lead + (columns + 63) // 64
    flip = ALL if cubes else NONE
    word_step = rows + 2
    direction_step = (words + 1) * word_step
    parity_step = 2 * directions * direction_step
    strides = (word_step, direction_step)
    count = 0
    for z in range(-1 if directions > 4 else 0, slices):
        current = ((z + 1) & 1) * parity_step
        _compare_slice(keys, labels, geometry, directions, flip, z, planes[current:])
        if z < 0:
            continue
        for word in range(lead, words):
            last = columns - 64 * (word - lead)
            valid = ALL if last >= 64 else (ONE << np.uint64(last)) - ONE
            for row in range(rows):
                at = current + word * word_step + row + 1
                first = word == 0
                if owned is None:  # numba then leaves out the other branch.
                    a, b, c, d = _coefficients_2d(planes, at, strides, flip, first)
                else:
                    a, b, c, d = _coefficients_3d(
                        planes, at, strides, parity_step - 2 * current, flip, first, owned
                    )
                wanted = (a | b | c | d) & valid
                point = (z + 1) * slice_stride + (row + 1) * pitch + 64 * word
                if HAS_COMPRESS:
                    wanted &= ~small_keys(labels, point, NONE)
                    append_coefficients((a, b, c, d), wanted, event_coefficients, count)
                    append_compressed(labels, point, wanted, event_labels, count)
                    count = append_compressed(keys, point, wanted, event_keys, count)
                    if count > EVENT_FLUSH:
                        _drain(event_keys, event_labels, event_coefficients, count, histograms)
                        count = 0
                elif wanted:
                    _scatter((a, b, c, d), wanted, point, keys, labels, histograms)
    _drain(event_keys, event_labels, event_coefficients, count, histograms)


def region_curves(
    image: Array,
    labels: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    workers: int | None = None,
) -> tuple[Array, Values]:
    """Return the ids of the regions, increasing, and their curves, (ids, n) int64."""
    spatial = filtration.ndim
    cubes = filtration.cubes
    dtype, label_dtype = (array.dtype.newbyteorder("=") for array in (image, labels))
    if image.size == 0:
        return np.empty(0, label_dtype), np.zeros((0, thresholds.size), np.int64)
    order, flips = memory_order(image)  # Curves do not depend on the order of axes.
    lead = (None,) * (3 - spatial)
    image, labels = (array.transpose(order)[flips][lead] for array in (image, labels))
    sources = Source(image), Source(labels, "labels")
    # One plan that fits all keys. Tables keep the histograms of many regions small.
    few = thresholds.size < FEW_LEVELS
    plan = curve_plans(dtype, thresholds, filtration.superlevel, cubes, masked=few, points=0)[-1]
    blocks = cut(image.shape, 4, max(spatial, 2))
    count = worker_count(workers, image.size, 1)
    caller = threading.get_ident()

    def work(queue: Iterator[Block]) -> tuple[Numbering, Array]:
        # If regions are scattered over the image, each thread needs the histograms of all of them.
        # Threads that have their part of the bins then stop, and the caller does the rest.
        most = math.inf if threading.get_ident() == caller else MOST_BINS // count
        return _count(queue, *sources, plan, filtration, len(blocks), most)

    numberings, histograms = zip(*share(blocks, work, count), strict=True)
    ids, rows = merge_ids(numberings)
    result = np.zeros((ids.size, thresholds.size), np.int64)
    sign = -1 if cubes and spatial == 3 else 1

    def sum_up(queue: Iterator[int]) -> None:
        for first in queue:
            part = slice(first, first + CURVES_AT_ONCE)
            for histogram, own in zip(histograms, rows, strict=True):
                cumulate(histogram, own[part], cubes, sign, plan.entered, result[part])

    if result.size:
        parts = range(0, ids.size, CURVES_AT_ONCE)
        share(parts, sum_up, worker_count(workers, result.size, 1))
    return ids.astype(label_dtype), result


def _count(
    queue: Iterator[Block],
    image: Source,
    labels: Source,
    plan: Plan,
    filtration: Filtration,
    total: int,
    most: float,
) -> tuple[Numbering, Array]:
    """Return the numbers of the regions of some of `total` blocks, and their histograms.

    The block with which there are more than `most` bins is the last one.
    """
    volume = filtration.ndim == 3
    bins = plan.top + 1
    directions = len(DIRECTIONS) if volume else 4
    owned = np.empty(2 * directions, np.uint64) if volume else None
    numbering = Numbering(labels.token.dtype)
    # Narrow counts take less of the cache; a coefficient is at most 7.
    counts = np.int32 if image.array.size < 1 << 28 else np.int64
    histograms = np.zeros((0, bins), counts)
    for block in queue:
        layout = lay_out(block, image.shape, 3 if volume else 2, spare_words=2)
        size = layout.size + 2 * FRONT
        step = layout.steps[0]
        keys = scratch.take("keys", size, plan.key_dtype)
        start = layout.at + FRONT
        read, values = image.box(layout.box)
        nan, _ = plan.load(read, keys, (start, layout.steps))
        # In 2-D the slices before and behind the only one are not read.
        cleared = slice(0, size) if volume else slice(FRONT + step - 1, FRONT + 2 * step + 1)
        background = partial(_background, size, cleared)
        regions, shown = numbering.stage(labels, layout.box, background, start, layout.steps)
        if nan and np.isnan(values[shown != 0]).any():
            raise ValueError(NAN_MESSAGE)
        held = len(histograms)
        needed = numbering.count
        if needed > held:  # Zeros take no memory before they are written to.
            expected = min(needed * total, MOST_BINS // bins) if held == 0 else 2 * held
            known = histograms
            histograms = np.zeros((max(needed, expected), bins), counts)
            histograms[:held] = known
        _, rows, columns, lead, _, _ = layout.geometry
        words = lead + ceil_div(columns, 64) + 1
        scan_regions(
            keys=keys[FRONT:],
            labels=regions[FRONT:],
            geometry=layout.geometry,
            directions=directions,
            cubes=filtration.cubes,
            planes=scratch.take("planes", 4 * directions * words * (rows + 2), np.uint64),
            owned=owned,
            event_keys=scratch.take("event keys", EVENT_ROOM, plan.key_dtype),
            event_labels=scratch.take("event regions", EVENT_ROOM, regions.dtype),
            event_coefficients=scratch.take("event coefficients", EVENT_ROOM, np.int8),
            histograms=histograms,
        )
        if needed * bins > most:
            break
    return numbering, histograms


def _background(size: int, cleared: slice, dtype: np.dtype[Any]) -> Array:
    """Return an array for the numbers of regions, 0 where the scan reads beyond the image."""
    regions = scratch.take("regions", size, dtype)
    regions[cleared] = 0
    return regions
