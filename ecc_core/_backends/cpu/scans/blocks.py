"""Encode and scan the blocks of an image one by one.

Scans take the points of a halo for points of the image, so that halos make curves right at borders
that are not closed. Along an axis whose opposite sides touch, the halo holds the points on the
opposite side. A half-open window has the cells of the closed image without those of the last points
along an axis, so the halo behind these has the least key of all: the cells between a last point
and its halo then enter with the last point, and cancel its own.

Periodic rows have a halo on the high side only, because another word of bits before every row would
take too long. A scan begins with the last word of such a row, whose last point the first one needs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.kernels import hide_points
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import part_of
from ecc_core._backends.cpu.scans import kernels
from ecc_core._backends.cpu.scans.layouts import Layout, cut, cut_stream, lay_out
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._request.boundary import Flags
from ecc_core._request.filtration import Filtration
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Values = NDArray[np.int64]

# Slices of a volume that is staged while it is scanned: they stay in the first two caches.
STREAMED_SLICES = 8
FRONT = 64  # Elements before the keys of a block, which are read as neighbours of its first point.
NOWHERE: Flags = False, False, False
WORD_TYPE = np.dtype(np.uint64)
COEFFICIENT_TYPE = np.dtype(np.int8)


def load_box(
    plan: Plan,
    source: Source,
    mask: Source | None,
    box: Block,
    keys: Array,
    start: int,
    strides: tuple[int, int],
) -> tuple[bool, bool]:
    """Load the keys of a box, the first one to the place `start`; `strides` of slices and rows.

    Returns whether there was a NaN, and whether a key did not fit.
    """
    place = start, strides
    # Encoders read by address, so the arrays must live until the encoders are done.
    read, values = source.box(box)
    nan, unfit = plan.load(read, keys, place)
    if mask is not None:
        read, shown = mask.box(box)
        hide_points(read, mask.token, keys, place, np.uint64(plan.never))
        nan = nan and bool((np.isnan(values) & (shown != 0)).any())
    return nan, unfit


@kernel()
def fill_halo(keys, geometry, low, high, halo, key):
    """Write a key to the halo behind borders; `halo` is 1 if slices of it surround a volume."""
    slices, rows, columns, lead, pitch, slice_stride = geometry
    for z in range(1 - halo, slices + 1 + halo):
        start = z * slice_stride
        for y in range(rows + 2):
            row = part_of(keys, start + y * pitch + 64 * lead - 1, columns + 2)
            if low[2]:
                row[0] = key
            if high[2]:
                row[columns + 1] = key
        if low[1]:
            keys[start : start + pitch] = key
        if high[1]:
            end = start + (rows + 1) * pitch
            keys[end : end + pitch] = key
    if halo and low[0]:
        keys[:slice_stride] = key
    if halo and high[0]:
        keys[(slices + 1) * slice_stride : (slices + 2) * slice_stride] = key


@lru_cache(maxsize=64)
def wrapped_boxes(
    block: Block, layout: Layout, shape: tuple[int, int, int], wraps: Flags
) -> tuple[tuple[Block, int], ...]:
    """Return boxes on the opposite sides of an image, and where their first keys go.

    `wraps` tells along which axes (z, y, x) opposite sides touch.
    """
    box = layout.box
    pieces = []
    for axis, step in enumerate(layout.steps):
        start = block.start[axis]
        stop = block.stop[axis]
        length = shape[axis]
        found = [(box.start[axis], box.stop[axis], 0)]
        if wraps[axis]:
            first = box.start[axis]
            if start == 0:
                found.append((length - 1, length, -step))
            if stop == length:
                found.append((0, 1, (stop - first) * step))
        pieces.append(found)
    x = box.start[2]
    x_stop = box.stop[2]
    across = [(x, x_stop, 0)]
    ends_row = block.start[2] > 0 and block.stop[2] == shape[2]  # Whole rows are wrapped in place.
    if wraps[2] and ends_row:
        across.append((0, 1, shape[2] - x))
    boxes = [
        (Block((z, y, x), (z_stop, y_stop, x_stop)), layout.at + far + near + beside)
        for (z, z_stop, far), (y, y_stop, near), (x, x_stop, beside) in itertools.product(
            *pieces, across
        )
    ]
    return tuple(boxes[1:])


def across(chosen: Flags, ends: Flags) -> Flags:
    """Return which ends of a block are across the chosen axes."""
    return chosen[0] and ends[0], chosen[1] and ends[1], chosen[2] and ends[2]


class _Kept(threading.local):
    """The scratch arrays of a thread's last block, for the next one of the same layout."""

    layout: Any = None
    arrays: tuple[Array, ...] = ()


_kept = _Kept()


class Staged(NamedTuple):
    """The keys of a block, the scratch arrays of its scan, and whether a key did not fit.

    The keys are behind `FRONT` elements that may be read as well. If there are `values`, as
    described at ``kernels._scan``, the scan stages the keys itself. `owner` is the array whose
    memory it reads then.
    """

    block: Block
    layout: Layout
    keys: Array
    spare: list[Array]
    unfit: bool
    values: tuple[Any, ...] | None = None
    owner: Array | None = None


def kept_arrays(
    layout: Layout, key_dtype: np.dtype[Any], ndim: int, streams: bool = False
) -> tuple[Array, ...]:
    """Return the thread's arrays for a scan: the keys, and what the kernels need behind these.

    If a volume streams, these are the keys of a few of its slices at a time.
    """
    wanted = layout.geometry, key_dtype, ndim, streams
    if _kept.layout == wanted:
        return _kept.arrays
    _, rows, columns, lead, _, _ = layout.geometry
    words = lead + ceil_div(columns, 64)
    kinds = 14 if ndim == 3 else 3
    slices = layout.geometry[0] + 2
    size = layout.size_of(min(slices, STREAMED_SLICES) if streams else slices)
    queue = scratch.take("queue", 6 * kernels.QUEUE_ROOM, WORD_TYPE)
    _kept.arrays = (
        scratch.take("keys", size + FRONT, key_dtype)[FRONT:],
        scratch.take("planes", kinds * words * (rows + 2 * kernels.ROWS), WORD_TYPE),
        scratch.take("word", 5 * kernels.ROWS, WORD_TYPE),
        scratch.take("carry", 3 * (rows + kernels.ROWS), WORD_TYPE),
        queue.reshape(6, kernels.QUEUE_ROOM),
        scratch.take("event keys", kernels.EVENT_ROOM, key_dtype),
        scratch.take("event coefficients", kernels.EVENT_ROOM, COEFFICIENT_TYPE),
    )
    _kept.layout = wanted  # Set last: an allocation may have failed.
    return _kept.arrays


class Scanner:
    """The scan of one block after another, in scratch memory of the thread."""

    def __init__(
        self,
        source: Source,
        mask: Source | None,
        filtration: Filtration,
        cubes: bool,
        order: Sequence[int] = (),
    ) -> None:
        """Prepare scans of a source, whose axes are those of the image in the given order.

        Axes are numbered behind the batch axis, as by `spatial_order`; without an order they are as
        in the image.
        """
        self.source: Any = source
        self.mask = mask
        self.nan = filtration.nan
        self.shape = source.shape
        self.descending = cubes  # The largest keys of the T-construction enter first.
        self.ndim = max(filtration.ndim, 2)
        boundary = filtration.boundary
        self.closed = boundary.is_closed
        if order and not self.closed:
            boundary = boundary.taken([axis - 1 for axis in order])
        self.sides = boundary.sides
        # Borders that are not closed are those of vertices in both constructions.
        self.cubes = self.sides.closed if cubes else NOWHERE
        self.sign = -1 if cubes and self.ndim == 3 else 1  # The sign of coefficients from the scan.

    def detached(self) -> Self:
        """Return the scanner without its source and mask, for blocks that are staged elsewhere."""
        other = copy(self)
        other.source = other.mask = None
        return other

    def closed_sides(self, layout: Layout) -> tuple[Flags, Flags]:
        """Return on which low and high sides of a block a scan meets a closed border.

        A half-open window has those on its low sides.
        """
        if self.closed:
            return layout.low, layout.high
        low = layout.low
        wraps = self.sides.wraps
        ends = low[0] and not wraps[0], low[1] and not wraps[1], low[2] and not wraps[2]
        return ends, across(self.sides.closed, layout.high)

    def blocks(self, plan: Plan, workers: int, together: int = 1) -> tuple[Block, ...]:
        """Return the blocks of the source; see `cut`."""
        shape = self.source.shape
        key_size = max(plan.key_dtype.itemsize, self.source.copied_size)
        if plan.streams and self.can_stream:
            return cut_stream(shape, key_size, workers)
        return cut(shape, key_size, self.ndim, together)

    @property
    def can_stream(self) -> bool:
        """Whether the scan can stage keys itself, slice by slice, if the plan is for it.

        Images of two axes are staged block by block whatever the plan, so that all plans share a
        compiled scan.
        """
        return self.ndim == 3 and self.closed and self.mask is None and self.source.direct

    def stage(self, plan: Plan, block: Block) -> Staged:
        """Load the keys of a block and of its halo, or say from where the scan loads them."""
        layout = lay_out(block, self.source.shape, self.ndim)
        streams = plan.streams and self.can_stream
        keys, *spare = kept_arrays(layout, plan.key_dtype, self.ndim, streams)
        source = self.source
        if streams:
            box, owner = source.box(layout.box)
            values = layout.values(plan, box)
            return Staged(block, layout, keys, spare, unfit=False, values=values, owner=owner)
        mask = self.mask
        steps = layout.steps
        nan, unfit = load_box(plan, source, mask, layout.box, keys, layout.at, steps)
        if not self.closed:
            found = self._load_halo(plan, block, layout, keys)
            nan = nan or found[0]
            unfit = unfit or found[1]
        if nan and self.nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return Staged(block=block, layout=layout, keys=keys, spare=spare, unfit=unfit)

    def _load_halo(
        self, plan: Plan, block: Block, layout: Layout, keys: Array
    ) -> tuple[bool, bool]:
        """Write the keys behind borders that are not closed; return what `load_box` does."""
        nan = unfit = False
        wraps = self.sides.wraps
        if True in wraps:
            for other, place in wrapped_boxes(block, layout, self.source.shape, wraps):
                found = load_box(plan, self.source, self.mask, other, keys, place, layout.steps)
                nan = nan or found[0]
                unfit = unfit or found[1]
            if wraps[2] and layout.low[2] and layout.high[2]:
                lines = keys[: layout.size].reshape(-1, layout.steps[1])
                lines[:, layout.geometry[2]] = lines[:, 0]
        missing = across(self.sides.misses, layout.high)
        if True in missing:
            fill_halo(keys, layout.geometry, NOWHERE, missing, int(self.ndim == 3), 0)
        return nan, unfit

    def add(self, plan: Plan, staged: Staged, histograms: Values) -> None:
        """Add a staged block to (images or 1, bins) histograms.

        Those of a plan with a bound have a bin for keys up to the bound, which is not used in the
        T-construction, and one for those above.
        """
        if plan.bound is None:
            self.scan(staged, histograms)
            return
        layout = staged.layout
        take = scratch.take
        volume = self.ndim == 3
        sides = layout.low, layout.high
        fill_halo(staged.keys, layout.geometry, *sides, int(volume), plan.never)
        bits = take("bits", layout.size // 64 + 1, WORD_TYPE)
        kernels.mark(staged.keys, plan.bound, bits)
        words = layout.geometry[5] // 64 + 1
        spare = take("valid bits", words, WORD_TYPE), take("shared bits", words, WORD_TYPE)
        kernels.count_sets(
            bits=bits,
            geometry=layout.geometry,
            sides=sides,
            cubes=all(self.cubes),
            volume=volume,
            scratch=spare,
            histograms=histograms,
        )

    def scan(
        self, staged: Staged, histograms: Values, out: Array | None = None, first: int = 0
    ) -> None:
        """Add a staged block to histograms, or write its coefficients to ``out[first:]``.

        Coefficients go where the block's points lie in an image in C order.
        """
        layout = staged.layout
        borders = kernels.Borders(*self.closed_sides(layout), self.cubes)
        scan = kernels.scan_3d if self.ndim == 3 else kernels.scan_2d
        _, height, width = self.shape
        place = first, height * width, width
        scan(
            staged.keys,
            staged.values,
            layout.geometry,
            borders,
            *staged.spare,
            histograms,
            out,
            place,
        )
