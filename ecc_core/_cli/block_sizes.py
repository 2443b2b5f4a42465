"""The sizes of blocks in which the commands read images: as large as memory allows."""

import math
from argparse import Namespace
from typing import NamedTuple

from ecc_core._arithmetic import ceil_div
from ecc_core._blocks.glued import joining_bytes, piece_bytes
from ecc_core._cli.outputs import glued_of
from ecc_core._io.blocks import Blocks
from ecc_core._io.stored import grown_chunks
from ecc_core._request.resources import available_cores
from ecc_core.errors import InputFileError
from ecc_core.quantities.registry import quantities_of

BLOCK_BYTES = 1 << 24
"""Smaller chunks are put together to blocks of so many bytes."""
CLUSTER_BYTES = 1 << 27
"""The bytes of blocks on a cluster, whose scheduler takes milliseconds for each block."""
BLOCKS_IN_MEMORY = 5
"""A worker holds encoded and decoded points, planes and waiting results."""
PIECES_IN_MEMORY = 12
"""The most pieces that a worker holds, with what it takes to join two of them."""
FRONT_SHARE = 4
"""A quarter of the memory is for planes that wait for later blocks."""
LEAST_SIDE = 8
"""The least number of blocks across a column: narrower columns would read too many blocks twice."""
REACHES = 8
"""A smoothed block is at least so many times as long as its filter reaches: the points within reach
of two blocks are smoothed twice."""
MEMORY_SHARE = 4
"""The blocks of an image in memory may take a quarter of its size."""
LEAST_MEMORY = 1 << 26
"""The least memory for the blocks of an image in memory, in bytes."""
MEBIBYTE = 1 << 20


class BlockSizes(NamedTuple):
    """The sizes of the blocks of an image, and how many of them fit in memory."""

    points: tuple[int, ...]
    """Lengths of a block along each axis of the source."""
    workers: int
    """The number of threads whose blocks fit in memory together."""
    across: int
    """The number of blocks across a column, so that its planes fit in memory."""
    piece: int
    """Bytes that Betti numbers or sizes of components keep of a block, or 0."""


class _Needed(NamedTuple):
    """The bytes of memory that blocks of some size need."""

    block: int
    """While a block is computed."""
    piece: int
    """While its piece waits to be joined."""
    joining: int
    """While the last pieces of the image are joined."""

    @property
    def least(self) -> int:
        """The bytes without which an image is refused: some for joining are no reason."""
        return self.block + (self.joining if self.joining > MEBIBYTE else 0)


def block_sizes_of(
    blocks: Blocks,
    ndim: int,
    arguments: Namespace,
    share: int | None = None,
    *,
    alike: bool = False,
) -> BlockSizes:
    """Return the sizes of the blocks of an image with `ndim` spatial axes.

    An image that is in memory takes a `share` besides, or that of a single block. Blocks that are
    to be `alike` on all machines do not depend on the number of cores, nor on a cluster.
    """
    memory: int = min(arguments.max_memory, share or arguments.max_memory)
    workers = arguments.workers or available_cores()
    reach = (0,) * ndim if blocks.smoothing is None else blocks.smoothing.reach
    lengths = [max(1, REACHES * r) for r in reach]
    smoothed = blocks.bytes_a_point * math.prod(lengths)
    usual = CLUSTER_BYTES if arguments.scheduler and not alike else BLOCK_BYTES
    at_once = 1 if alike else workers
    limit = min(max(usual, smoothed), memory // BLOCKS_IN_MEMORY // at_once)
    while True:
        sizes = _sizes_within(limit, blocks, ndim, alone=bool(glued_of(arguments)))
        block = [sizes[axis] for axis in blocks.image.order]
        needed = _needed(block, blocks, ndim, arguments)
        if needed.least <= memory or not limit:
            break
        # Points around a block, or pieces, take much of the memory: blocks become smaller.
        limit //= 2
    if needed.least > memory and share is None:
        raise InputFileError(
            f"{blocks.image.source.path}: its chunks of shape {tuple(sizes)} need --max-memory of "
            f"at least {ceil_div(needed.least, MEBIBYTE)}M, got {memory >> 20}M"
        )
    left = max(0, memory - needed.block - needed.joining)
    room = 1 + left // (needed.block + PIECES_IN_MEMORY * needed.piece)
    return BlockSizes(
        points=tuple(sizes),
        workers=min(room, workers),
        across=_blocks_across(block, memory // FRONT_SHARE, blocks.bytes_a_point, ndim),
        piece=needed.piece,
    )


def _sizes_within(limit: int, blocks: Blocks, ndim: int, *, alone: bool) -> list[int]:
    """Return the largest sizes of blocks of at most `limit` bytes, along the axes of the source.

    Each block has one image only if images are joined `alone`, or have labels.
    """
    image = blocks.image
    grown = grown_chunks(
        image.source.chunks,
        image.source.shape,
        grow=sorted(image.order[-ndim:]),
        itemsize=blocks.bytes_a_point,
        limit=limit,
    )
    sizes = list(grown)
    if blocks.labels is not None or alone:
        for axis in image.order[:-ndim]:
            sizes[axis] = 1
    return sizes


def _needed(block: list[int], blocks: Blocks, ndim: int, arguments: Namespace) -> _Needed:
    """Return the memory that a block, with its axes in the order of the image, needs."""
    whole = blocks.image.shape[-ndim:]
    reach = (0,) * ndim if blocks.smoothing is None else blocks.smoothing.reach
    around = []  # lengths of a block with the points that the filter reaches
    for length, r, most in zip(block[-ndim:], reach, whole, strict=True):
        within = min(length + 2 * r, most)
        around.append(max(length, within))
    points = math.prod(block[:-ndim]) * math.prod(around)
    more = sum(one.point_bytes for one in quantities_of(arguments))
    of_block = points * (blocks.bytes_a_point * BLOCKS_IN_MEMORY + more)
    if not glued_of(arguments):
        return _Needed(of_block, 0, 0)
    extents = block[-ndim:], whole
    return _Needed(of_block, piece_bytes(*extents), joining_bytes(*extents))


def _blocks_across(block: list[int], memory: int, point: int, ndim: int) -> int:
    """Return how many blocks a column has across, so that their planes fit in some memory."""
    points = math.prod(block)
    planes = point * sum(2 * points // length for length in block[-ndim:])
    across = memory // planes
    return max(LEAST_SIDE, across if ndim < 3 else math.isqrt(across))
