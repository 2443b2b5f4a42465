"""Cut an image into blocks, and lay out their keys in memory."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.scans.kernels import ROWS
from ecc_core._backends.cpu.sources import Block, Box, Triple
from ecc_core._partition import Partition, even_step
from ecc_core._request.boundary import Flags

STAGED_BYTES = 1 << 20  # Bytes of the keys of a block of a volume; half of it for 2-D images.
MOST_BLOCK_ROWS = 64
MOST_BLOCK_COLUMNS = 8192
STREAMED_BYTES = 1 << 15  # The keys of a slice of a block that is staged while it is scanned.
MOST_STREAMED_SLICES = 256  # Workers wait for the last block of an image.


@lru_cache(maxsize=32)
def cut(shape: Triple, key_size: int, ndim: int, together: int = 1) -> tuple[Block, ...]:
    """Return blocks that cover a volume or a stack of images, and whose keys fit in the cache.

    Of a stack, at least `together` images share a block, where they lie interleaved in memory.
    """
    slices, rows, _ = shape
    width = _width(shape, ndim)
    row_bytes = (width + 128) * key_size
    if ndim == 3:
        height = min(rows, MOST_BLOCK_ROWS)
        depth = max(8, STAGED_BYTES // (row_bytes * (height + 2)) - 2)
    elif together > 1:
        depth = min(slices, together)
        height = min(rows, max(8, STAGED_BYTES // (2 * row_bytes * depth)))
    else:
        height = min(rows, max(MOST_BLOCK_ROWS, STAGED_BYTES // (2 * row_bytes)))
        depth = max(1, STAGED_BYTES // (2 * row_bytes * (height + 2)))
    return tiles(shape, (even_step(slices, depth), even_step(rows, height), width))


@lru_cache(maxsize=32)
def cut_stream(shape: Triple, key_size: int, workers: int) -> tuple[Block, ...]:
    """Return blocks of a volume that is staged slice by slice, at least one for each worker."""
    slices, rows, _ = shape
    width = _width(shape, 3)
    row_bytes = (width + 128) * key_size
    height = min(rows, max(2 * ROWS, STREAMED_BYTES // row_bytes))
    depth = min(MOST_STREAMED_SLICES, ceil_div(slices, workers))
    return tiles(shape, (even_step(slices, depth), even_step(rows, height), width))


def _width(shape: Triple, ndim: int) -> int:
    """Return the number of columns of a block, more of them if the image has few rows."""
    slices, rows, columns = shape
    thin = (slices if ndim == 3 else 1) * rows
    return min(columns, MOST_BLOCK_COLUMNS * max(1, 4 * ROWS // max(thin, 1)))


@lru_cache(maxsize=64)
def tiles(shape: Triple, steps: Triple) -> tuple[Block, ...]:
    """Return blocks that cover a shape in steps."""
    return tuple(map(Block.of, Partition.of_chunks(shape, steps).boxes()))


class Layout(NamedTuple):
    """Where the keys of a block and its halo lie in a flat array.

    `geometry` is that of the kernels: own slices, rows and columns, whether a word of halo comes
    before each row, and the strides of rows and slices. `box` is the part of the block and its halo
    that is in the image, `at` is the place of its first point, and `steps` are the strides of
    slices and rows. `low` and `high` tell which sides of the block are borders of the image.
    """

    geometry: tuple[int, int, int, int, int, int]
    box: Block
    at: int
    steps: tuple[int, int]
    low: Flags
    high: Flags

    @property
    def size(self) -> int:
        """Number of elements that the block and its halo take."""
        return self.size_of(self.geometry[0] + 2)

    def values(self, plan: Plan, box: Box) -> tuple[Any, ...]:
        """Return what a scan loads the keys of the block and its halo from; see `_scan`."""
        slice_step, _ = self.steps
        return box, self.at % slice_step, *plan.loader[1]

    def size_of(self, slices: int) -> int:
        """Return the number of elements that so many slices take."""
        return slices * self.geometry[5]


@lru_cache(maxsize=64)
def lay_out(block: Block, shape: tuple[int, int, int], ndim: int, spare_words: int = 1) -> Layout:
    """Lay out a block: words of 64 columns begin at its first column, rows come in eights."""
    (z, y, x), (z_end, y_end, x_end) = block
    slices = z_end - z
    rows = y_end - y
    columns = x_end - x
    lead = int(x > 0)
    pitch = 64 * (lead + ceil_div(columns, 64) + spare_words)
    slice_stride = pitch * (ceil_div(rows, ROWS) * ROWS + 2)
    halo = int(ndim == 3)
    box = block.with_halo((halo, 1, 64), (halo, 1, 1), shape)
    above = z - box.start[0]
    before = y - box.start[1]
    left = x - box.start[2]
    depth, height, width = shape
    return Layout(
        geometry=(slices, rows, columns, lead, pitch, slice_stride),
        box=box,
        at=(1 - above) * slice_stride + (1 - before) * pitch + 64 * lead - left,
        steps=(slice_stride, pitch),
        low=(z == 0, y == 0, x == 0),
        high=(z_end == depth, y_end == height, x_end == width),
    )
