"""Surfaces: the ranks of two images, block by block, and a signed histogram of their pairs.

A *code* is an unsigned integer that contains a pair of ranks, the first one in its upper half.
Every point has the cells between it and its next neighbours: the cell of a set S of axes extends
along the axes in S. Sets of axes, and corners of the box of neighbours, are numbers with a bit for
each axis. ``docs/design/surface.md`` derives the formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.llvm import part_of
from ecc_core._backends.cpu.pool import add_up, share, worker_count
from ecc_core._backends.cpu.scans.blocks import load_box, tiles
from ecc_core._backends.cpu.scans.planes import HAS_COMPRESS, compress
from ecc_core._backends.cpu.sources import Block, Source, memory_order, scratch
from ecc_core._request.filtration import Filtration
from ecc_core.errors import nan_message

Array = NDArray[Any]
Values = NDArray[np.int64]

NAMES = ("first", "second")
"""The arguments with the images."""
BLOCK_POINTS = 1 << 17  # so that codes, keys and events stay in the second-level cache
MOST_COLUMNS = 4096
MOST_ROWS = 64
SPARE = 64  # elements after the last one of a block, which may be read or written
MOST_COUNTED = 1 << 27  # points whose cells 32 bits can count
SHORT = 64  # rows with fewer points do not fill vectors
VECTOR_BYTES = 64
MOST_EVENTS = 34  # vectors that a vector of points may append to one list
FLUSH = 1 << 13  # bytes; longer lists of events are counted
EVENT_BYTES = FLUSH + (MOST_EVENTS + 1) * VECTOR_BYTES


class _Codes:
    """Vectors of codes, their comparisons, and two lists of bins to append to."""

    def __init__(
        self, builder: Any, corners: list[Any], left: Any, bins: Any, lists: Any, counts: Any
    ) -> None:
        vector = corners[0].type
        self.builder = builder
        self.element = vector.element
        self.lanes = vector.count
        self.half = self.element.width // 2
        self.low = llvm.splat(self.element, self.lanes, (1 << self.half) - 1)
        self.corners = corners
        ndim = len(corners).bit_length() - 1
        self.axes = [1 << i for i in range(ndim)]
        lane = ir.VectorType(llvm.I64, self.lanes)
        numbers = ir.Constant(lane, [llvm.I64(i) for i in range(self.lanes)])
        self.valid = builder.icmp_signed("<", numbers, llvm.each(builder, left, self.lanes))
        second, unused = (
            builder.trunc(n, self.element) if self.element.width < 64 else n for n in bins
        )
        self._second, self._unused = (llvm.each(builder, n, self.lanes) for n in (second, unused))
        self._lists = lists
        self.counts = counts

    def maximum(self, a: Any, b: Any) -> Any:
        """Return codes of the larger first ranks and the larger second ranks."""
        parts = ir.VectorType(ir.IntType(self.half), 2 * self.lanes)
        a, b = (self.builder.bitcast(code, parts) for code in (a, b))
        larger = self.builder.select(self.builder.icmp_unsigned(">", a, b), a, b)
        return self.builder.bitcast(larger, ir.VectorType(self.element, self.lanes))

    def without(self, a: Any, b: Any) -> Any:
        return self.builder.and_(a, self.builder.not_(b))

    def row_of_bins(self, code: Any) -> Any:
        """Return the first bin of the first ranks."""
        half = llvm.splat(self.element, self.lanes, self.half)
        return self.builder.mul(self.builder.lshr(code, half), self._second)

    def append(self, sign: int, place: Any, chosen: Any) -> None:
        """Append the chosen bins to the list of a sign."""
        builder = self.builder
        which = int(sign < 0)
        count = self.counts[which]
        if HAS_COMPRESS:
            place = compress(builder, place, chosen)
            kept = builder.ctpop(builder.bitcast(chosen, ir.IntType(self.lanes)))
            kept = builder.zext(kept, llvm.I64)
        else:
            place = builder.select(chosen, place, self._unused)
            kept = llvm.I64(self.lanes)
        self._lists[which].store(place, count)
        self.counts[which] = builder.add(count, kept)

    def cancel(self, left: dict[int, Any], values: dict[int, Any], axis: int) -> None:
        """Remove pairs of cells with and without an axis whose values are equal."""
        for cell in [cell for cell in left if not cell & axis and cell | axis in left]:
            both = self.builder.and_(left[cell], left[cell | axis])
            equal = self.builder.icmp_unsigned("==", values[cell], values[cell | axis])
            same = self.builder.and_(both, equal)
            left[cell] = self.without(left[cell], same)
            left[cell | axis] = self.without(left[cell | axis], same)


def _sign(axes: int) -> int:
    return -1 if axes.bit_count() & 1 else 1


def _add_vertices(codes: _Codes) -> None:
    """Append the cells of the V-construction, each at the largest ranks of its vertices."""
    pairs = dict(enumerate(codes.corners))
    for axis in codes.axes:
        for cell in pairs:
            if cell & axis:
                pairs[cell] = codes.maximum(pairs[cell], pairs[cell ^ axis])
    left = dict.fromkeys(pairs, codes.valid)
    for axis in codes.axes:
        codes.cancel(left, pairs, axis)
    for cell, pair in pairs.items():
        second = codes.builder.and_(pair, codes.low)
        place = codes.builder.add(codes.row_of_bins(pair), second)
        codes.append(_sign(cell), place, left[cell])


def _add_cubes(codes: _Codes) -> None:
    """Append the cells of the T-construction, which enter on the staircases of their cubes.

    In the order of codes, a corner is a step of a staircase if its second rank is less than the
    smallest second rank before it. The join of the two is then subtracted.
    """
    builder = codes.builder
    corners = range(len(codes.corners))
    seconds = [builder.and_(code, codes.low) for code in codes.corners]
    earlier = {
        (a, b): builder.icmp_unsigned("<=", codes.corners[a], codes.corners[b])
        for a in corners
        for b in corners
        if a < b
    }
    for corner in corners:
        least = {}  # smallest second rank of the cubes of a cell that precede the corner
        for other in corners:
            if other < corner:
                least[other] = builder.select(earlier[other, corner], seconds[other], codes.low)
            elif other > corner:
                least[other] = builder.select(earlier[corner, other], codes.low, seconds[other])
            else:
                least[other] = codes.low
        for axis in codes.axes:
            for cell in corners:
                if cell & axis:
                    pair = least[cell], least[cell ^ axis]
                    least[cell] = builder.select(builder.icmp_unsigned("<", *pair), *pair)
        second = seconds[corner]
        row = codes.row_of_bins(codes.corners[corner])
        free = [axis for axis in codes.axes if not corner & axis]
        own = [cell for cell in corners if cell & corner == corner]
        # A corner that is a step for a cell is also a step for all smaller cells.
        less = {c: builder.icmp_unsigned("<", second, least[c]) for c in own}
        steps = {c: builder.and_(codes.valid, less[c]) for c in own}
        # The cube itself has a single step and no join.
        some = {c: builder.icmp_unsigned("!=", least[c], codes.low) for c in own}
        joins = {c: builder.and_(steps[c], some[c]) for c in own if c}
        for axis in free:
            codes.cancel(joins, least, axis)
        for cell in own:
            if not (free and cell & free[0]):
                left = codes.without(steps[cell], steps[cell | free[0]]) if free else steps[cell]
                codes.append(_sign(cell), builder.add(row, second), left)
        for cell, left in joins.items():
            codes.append(-_sign(cell), builder.add(row, least[cell]), left)


def _events(add: Callable[[_Codes], None]) -> Any:
    """Return an operation that appends the cells of a vector of points, as `add` does.

    It appends the bins at which they enter to a list for each sign. `at` is the place of the first
    point in `codes`, `steps` are the distances to the next point along each axis, and `left` is the
    number of points that remain. `bins` are the number of second ranks, and a bin that is not used.
    Returns the new lengths of the lists, which must have room for ``MOST_EVENTS`` vectors.
    """

    @llvm.operation(types.UniTuple(types.intp, 2))
    def append(builder, codes, at, steps, left, bins, plus, minus, counts):
        places = [at]
        for step in steps:
            places += [builder.add(place, step) for place in places]
        lanes = 8 * VECTOR_BYTES // codes.element.width
        corners = [codes.load(place, lanes) for place in places]
        vectors = _Codes(builder, corners, left, bins, (plus, minus), counts)
        add(vectors)
        return vectors.counts

    return append


vertex_events = _events(_add_vertices)
cube_events = _events(_add_cubes)
"""Of the V-construction, and of the T-construction, in 3-D with all signs reversed."""


@kernel()
def pack_codes(first, second, pitch, extents, codes, place, never):
    """Write the codes of two boxes of keys; all other codes are `never`.

    `extents` are (slices, rows, columns), `pitch` is the distance between rows of keys, and `place`
    is that of the first point in `codes`, and the distances to the next (point, row, slice) there.
    Keys and codes are followed by room for a vector.
    """
    slices, rows, columns = extents
    at, steps = place
    written = 0
    half = np.uint64(4 * codes.itemsize)
    for z in range(slices):
        for y in range(rows):
            target = at + y * steps[1] + z * steps[2]
            for i in range(written, target):
                codes[i] = never
            start = (z * rows + y) * pitch
            upper = part_of(first, start, columns)
            lower = part_of(second, start, columns)
            own = part_of(codes, target, columns)
            for x in range(columns):
                own[x] = (upper[x] << half) | lower[x]
            written = target + columns
    for i in range(written, codes.size):
        codes[i] = never


@kernel()
def _count(plus, minus, counts, histograms):
    """Count both lists at the same time, so that additions wait less for each other."""
    both = min(counts[0], counts[1])
    for i in range(both):
        histograms[0, plus[i]] += 1
        histograms[1, minus[i]] += 1
    for i in range(both, counts[0]):
        histograms[0, plus[i]] += 1
    for i in range(both, counts[1]):
        histograms[1, minus[i]] += 1


@kernel()
def add_cells(codes, extents, steps, bins, cubes, lists, histograms):
    """Add the cells of a block of codes to one histogram for each sign.

    `extents` are the numbers of points (columns, rows, slices) from the first code. There are as
    many `steps` as the image has axes. `bins` are as for ``vertex_events``. `cubes` is True for the
    T-construction, with all signs reversed in 3-D, and otherwise None, so that each version
    compiles one construction.
    """
    lanes = VECTOR_BYTES // codes.itemsize
    plus, minus = lists
    counts = (0, 0)
    for z in range(extents[2]):
        for y in range(extents[1]):
            start = y * steps[1] + z * steps[-1]
            for x in range(0, extents[0], lanes):
                left = extents[0] - x
                if cubes is None:
                    counts = vertex_events(codes, start + x, steps, left, bins, plus, minus, counts)
                else:
                    counts = cube_events(codes, start + x, steps, left, bins, plus, minus, counts)
                if max(counts[0], counts[1]) * codes.itemsize >= FLUSH:
                    _count(plus, minus, counts, histograms)
                    counts = (0, 0)
    _count(plus, minus, counts, histograms)


def surface(
    first: Array,
    second: Array,
    thresholds: tuple[Array, Array],
    filtrations: tuple[Filtration, Filtration],
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Return the Euler characteristics of intersections, (images, n, m) int64."""
    result = np.zeros((len(first), *(at.size for at in thresholds)), np.int64)
    if result.size == 0 or first.size == 0:
        return result
    dtypes = (image.dtype.newbyteorder("=") for image in (first, second))
    plans = [
        # Plans for masked images have a key beyond all others, for points outside the image.
        curve_plans(dtype, at, filtration.superlevel, False, masked=True, points=first[0].size)[-1]
        for dtype, at, filtration in zip(dtypes, thresholds, filtrations, strict=True)
    ]
    bins = math.prod(plan.top + 1 for plan in plans)

    def each(queue: Iterator[int]) -> None:
        for i in queue:
            pair = (first[i], second[i])
            shown = None if mask is None else mask[i]
            result[i] = _surface(pair, shown, plans=plans, filtration=filtrations[0], workers=alone)

    together = 1 if len(first) == 1 else worker_count(workers, first.size, bins)
    alone = workers if together == 1 else 1
    share(range(len(first)), each, together)
    return result


def _place(block: Block, shape: tuple[int, int, int], cubes: bool, ndim: int) -> Any:
    """Return where a block lies in the array of codes.

    These are the box of its points and their next neighbours, as far as they exist; the place of
    the first of them, and the distances to the next point, row and slice; and the numbers of
    columns, rows and slices of points whose cells are counted. With cubes, these begin before the
    first points of the image, where there are cells too.
    """
    after = (int(ndim == 3), 1, 1)  # neighbours along each axis
    before = [0, 0, 0]
    if cubes:
        before = [n if start == 0 else 0 for n, start in zip(after, block.start, strict=True)]
    stop = [min(end + n, length) for end, n, length in zip(block.stop, after, shape, strict=True)]
    depth, height, width = [n + more for n, more in zip(block.shape, before, strict=True)]
    step_of_row = width + 1
    step_of_slice = step_of_row * (height + 1)
    first = before[2] + before[1] * step_of_row + before[0] * step_of_slice
    steps = (1, step_of_row, step_of_slice)
    z, y, x = stop
    return Block(block.start, (z, y, x)), (first, steps), (width, height, depth)


def _surface(
    images: tuple[Array, Array],
    mask: Array | None,
    plans: list[Plan],
    filtration: Filtration,
    workers: int | None,
) -> Values:
    """Return the surface of a pair of images, (n, m)."""
    first = images[0]
    order, _ = memory_order(first)
    if first.shape[order[-1]] < SHORT:
        order.sort(key=lambda axis: first.shape[axis])
    lead = (None,) * (3 - first.ndim)  # the surface does not change when axes are swapped
    sources = [Source(image.transpose(order)[lead]) for image in images]
    shown = None if mask is None else Source(mask.transpose(order)[lead], "mask")
    counter = _Counter(sources, shown, plans, filtration)
    threads = worker_count(workers, first.size, counter.last + 1)
    total = add_up(share(_blocks(sources[0].shape), counter.count, threads))
    tops = [plan.top for plan in plans]
    reached = np.zeros([top + 2 for top in tops], np.int64)
    total = total.reshape([top + 1 for top in tops])
    np.cumsum(np.cumsum(total, axis=0), axis=1, out=reached[1:, 1:])
    values = reached[np.ix_(*(plan.entered for plan in plans))]
    if filtration.cubes and filtration.ndim == 3:
        return -values
    return values


def _blocks(shape: tuple[int, int, int]) -> tuple[Block, ...]:
    """Return blocks of an image, smaller than those of curves: points take more memory here."""
    depth, height, width = shape
    width = min(width, MOST_COLUMNS)
    height = min(height, max(MOST_ROWS, BLOCK_POINTS // (width * depth)))
    depth = min(depth, max(1, BLOCK_POINTS // (width * height)))
    return tiles(shape, (depth, height, width))


class _Counter:
    """Counts the cells of two images by their codes."""

    def __init__(
        self,
        sources: Sequence[Source],
        shown: Source | None,
        plans: Sequence[Plan],
        filtration: Filtration,
    ) -> None:
        key_bytes = max(plan.key_dtype.itemsize for plan in plans)
        first, second = (plan.top for plan in plans)
        self.sources = sources
        self.shown = shown
        self.plans = plans
        self.filtration = filtration
        self.ndim = max(filtration.ndim, 2)
        self.code = np.dtype(f"u{2 * key_bytes}")
        self.never = self.code.type(first << 8 * key_bytes | second)
        """The code of points that enter in neither image."""
        self.row = second + 1
        """The bins of each rank of the first image: one for each rank of the second."""
        self.last = first * self.row + second
        """The last bin."""

    def count(self, queue: Iterator[Block]) -> Values:
        """Return the signed histogram of the cells of some blocks."""
        total = np.zeros(self.last + 1, np.int64)
        counts = np.zeros((2, total.size), np.uint32)
        counted = 0
        room = EVENT_BYTES // self.code.itemsize
        plus = scratch.take("plus events", room, self.code)
        minus = scratch.take("minus events", room, self.code)
        for block in queue:
            if counted > MOST_COUNTED:
                total += counts[0].astype(np.int64) - counts[1]
                counts[:] = 0
                counted = 0
            codes, extents, steps = self._codes_of(block)
            add_cells(
                codes=codes,
                extents=extents,
                steps=steps[: self.ndim],
                bins=(self.row, self.last),
                cubes=self.filtration.cubes or None,
                lists=(plus, minus),
                histograms=counts,
            )
            counted += codes.size - SPARE
        total += counts[0].astype(np.int64) - counts[1]
        return total

    def _codes_of(self, block: Block) -> Any:
        """Return the codes of a block, the extents that are counted, and the steps along axes."""
        box, place, extents = _place(block, self.sources[0].shape, self.filtration.cubes, self.ndim)
        steps = place[1]
        slices, rows, columns = box.shape
        pitch = ceil_div(columns, SPARE) * SPARE
        keys = []
        for plan, source, name in zip(self.plans, self.sources, NAMES, strict=True):
            own = scratch.take(f"{name} keys", slices * rows * pitch + SPARE, plan.key_dtype)
            nan, _ = load_box(plan, source, self.shown, box, own, 0, (rows * pitch, pitch))
            if nan and self.filtration.nan == "raise":
                raise ValueError(nan_message(name))
            keys.append(own)
        depth = extents[2] + 1 if self.ndim == 3 else extents[2]
        codes = scratch.take("codes", depth * steps[2] + SPARE, self.code)
        pack_codes(*keys, pitch, box.shape, codes, place, self.never)
        return codes, extents, steps
