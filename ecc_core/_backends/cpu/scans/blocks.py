"""Cut an image into blocks, and encode and scan them one by one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.kernels import hide_points
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.scans import kernels
from ecc_core._backends.cpu.sources import Block, Source, scratch

__all__ = ["Layout", "Scanner", "cut", "lay_out", "load_box"]

Array = NDArray[Any]

STAGED_BYTES = 1 << 20  # keys of one block: they stay in the second-level cache
MAX_ROWS = 64
MAX_COLUMNS = 8192


@lru_cache(maxsize=32)
def cut(
    shape: tuple[int, int, int], key_size: int, ndim: int, *, together: int = 1
) -> tuple[Block, ...]:
    """Blocks that cover a volume, or a stack of images, and whose keys fit in the cache.

    Of a stack, at least `together` images share a block, where they lie interleaved in memory.
    """
    slices, rows, columns = shape
    width = min(columns, MAX_COLUMNS)
    row_bytes = (width + 128) * key_size
    if ndim == 3:
        height = min(rows, MAX_ROWS)
        depth = max(8, STAGED_BYTES // (row_bytes * (height + 2)) - 2)
    elif together > 1:
        depth = min(slices, together)
        height = min(rows, max(8, STAGED_BYTES // (2 * row_bytes * depth)))
    else:
        height = min(rows, max(MAX_ROWS, STAGED_BYTES // (4 * row_bytes)))
        depth = max(1, STAGED_BYTES // (4 * row_bytes * (height + 2)))
    height, depth = _evenly(rows, height), _evenly(slices, depth)
    return tuple(
        Block((z, y, x), (min(z + depth, slices), min(y + height, rows), min(x + width, columns)))
        for z in range(0, slices, depth)
        for y in range(0, rows, height)
        for x in range(0, columns, width)
    )


def _evenly(count: int, step: int) -> int:
    """A step near the given one that leaves no small rest."""
    return -(-count // max(1, round(count / step))) if count else 1


class Layout(NamedTuple):
    """Where the keys of a block and its halo lie in a flat array.

    `geometry` is that of the kernels: own slices, rows and columns, whether a word of halo comes
    before each row, and the strides of rows and slices. `box` is what there is to read of the
    block and its halo, `extents` its size, `at` where its first point goes, and `steps` the strides
    of slices and rows.
    """

    geometry: tuple[int, int, int, int, int, int]
    box: Block
    extents: tuple[int, int, int]
    at: int
    steps: tuple[int, int]

    @property
    def size(self) -> int:
        """Elements that hold the block and its halo."""
        return (self.geometry[0] + 2) * self.geometry[5]


@lru_cache(maxsize=64)
def lay_out(block: Block, shape: tuple[int, int, int], ndim: int, spare_words: int = 1) -> Layout:
    """Place a block: words of 64 columns start at its own first column, rows come in eights."""
    (z, y, x), (z_end, y_end, x_end) = block
    slices, rows, columns = z_end - z, y_end - y, x_end - x
    lead = int(x > 0)
    pitch = 64 * (lead + -(-columns // 64) + spare_words)
    slice_stride = pitch * (-(-rows // kernels.ROWS) * kernels.ROWS + 2)
    halo = int(ndim == 3)
    above, before = min(z, halo), min(y, 1)
    left = min(x, 64)
    depth, height, width = shape
    start = (z - above, y - before, x - left)
    stop = (min(z_end + halo, depth), min(y_end + 1, height), min(x_end + 1, width))
    return Layout(
        (slices, rows, columns, lead, pitch, slice_stride),
        Block(start, stop),
        (stop[0] - start[0], stop[1] - start[1], stop[2] - start[2]),
        (1 - above) * slice_stride + (1 - before) * pitch + 64 * lead - left,
        (slice_stride, pitch),
    )


def load_box(
    plan: Plan,
    source: Source,
    mask: Source | None,
    box: Block,
    keys: Array,
    at: int,
    steps: tuple[int, int],
) -> tuple[bool, bool]:
    """Load the keys of a box, the first to ``keys[at]``, with the given strides of slices and rows.

    Returns whether there was a NaN, and whether a key did not fit.
    """
    # Encoders read by address: the arrays must live until they are done.
    address, strides, values = source.box(box)
    nan, unfit = plan.load(address, strides, values.shape, keys, at, steps)
    if mask is not None:
        address, strides, shown = mask.box(box)
        hide_points(address, strides, shown.shape, keys, at, steps, np.uint64(plan.never))
        nan = nan and bool((np.isnan(values) & (shown != 0)).any())
    return nan, unfit


class Scanner:
    """Scratch memory of one thread, and the scan of one block after another."""

    def __init__(self, source: Source, mask: Source | None, cubes: bool, ndim: int) -> None:
        self.source = source
        self.mask = mask
        self.cubes = cubes
        self.ndim = ndim
        self.keys: Array = np.empty(0)
        self._scratch: tuple[Any, ...] = ()
        self._scratch_for: Any = None

    def stage(self, plan: Plan, block: Block) -> tuple[bool, bool]:
        """Load a block's keys; whether there was a NaN, whether a key did not fit."""
        _, box, _, at, steps = layout = lay_out(block, self.source.shape, self.ndim)
        if self._scratch_for != (layout.geometry, plan.key_dtype):
            self._scratch_for = (layout.geometry, plan.key_dtype)
            self._allocate(layout, plan.key_dtype)
        return load_box(plan, self.source, self.mask, box, self.keys, at, steps)

    def _allocate(self, layout: Layout, key_dtype: np.dtype[Any]) -> None:
        _, rows, columns, lead, _, _ = layout.geometry
        words = lead + -(-columns // 64)
        kinds = 14 if self.ndim == 3 else 3
        queue = scratch.take("queue", 6 * kernels.QUEUE_ROOM, np.uint64)
        self.keys = scratch.take("keys", layout.size, key_dtype)
        self._scratch = (
            scratch.take("planes", kinds * words * (rows + 2 * kernels.ROWS), np.uint64),
            scratch.take("word", 5 * kernels.ROWS, np.uint64),
            scratch.take("carry", 3 * (rows + kernels.ROWS), np.uint64),
            queue.reshape(6, kernels.QUEUE_ROOM),
            scratch.take("event keys", kernels.EVENT_ROOM, key_dtype),
            scratch.take("event coefficients", kernels.EVENT_ROOM, np.int8),
        )

    def scan(self, block: Block, histograms: Array, out: Array) -> None:
        """Add the staged block to histograms, or write its coefficients to `out`."""
        geometry = self._scratch_for[0]
        low = tuple(a == 0 for a in block.start)
        high = tuple(b == n for b, n in zip(block.stop, self.source.shape, strict=True))
        if self.ndim == 3:
            kernels.scan_3d(
                self.keys, geometry, low, high, self.cubes, *self._scratch, histograms[0], out
            )
        else:
            kernels.scan_2d(
                self.keys, geometry, low, high, self.cubes, *self._scratch, histograms, out
            )
