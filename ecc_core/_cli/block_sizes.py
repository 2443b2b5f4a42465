"""The sizes of blocks in which the commands read images, which are limited by memory."""

import math
from argparse import Namespace
from typing import NamedTuple

from ecc_core._blocks.glued import joining_bytes, piece_bytes
from ecc_core._cli.argument_types import given_memory, least_memory
from ecc_core._cli.outputs import glued_of
from ecc_core._io.blocks import Blocks
from ecc_core._io.stored import grown_chunks
from ecc_core._request.resources import available_cores
from ecc_core.errors import InputFileError
from ecc_core.quantities.registry import quantities_of

BLOCK_BYTES = 1 << 24
"""The bytes of a block. Chunks that are smaller are combined up to this size."""
CLUSTER_BLOCK_BYTES = 1 << 27
"""The bytes of a block on a cluster, whose scheduler takes milliseconds for each block."""
BLOCKS_IN_MEMORY = 5
"""The memory of a worker in blocks: encoded and decoded points, planes and waiting results."""
PIECES_IN_MEMORY = 12
"""The most pieces that a worker holds, including the memory to join two of them."""
PLANES_DIVISOR = 4
"""Planes that wait for later blocks take at most the memory limit divided by this."""
LEAST_SIDE = 8
"""The least width of a column, in blocks: narrower ones would read too many blocks twice."""
LEAST_REACHES = 8
"""The least length of a smoothed block, in reaches of the filter. Points within reach of two blocks
are smoothed twice, so shorter blocks would cost too much."""
HELD_IMAGE_DIVISOR = 4
"""Blocks of an image in memory take at most the size of the image divided by this."""
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
    """The width of a column in blocks, for which its planes fit in memory."""
    piece: int
    """The bytes of the piece of a block, 0 if blocks are not glued."""


class _Needed(NamedTuple):
    """The bytes of memory that blocks of some size need."""

    block: int
    """Bytes to compute a block."""
    piece: int
    """Bytes of a piece that waits to be joined."""
    joining: int
    """Bytes to join the last pieces of the image."""

    @property
    def least(self) -> int:
        """The bytes without which an image is refused. Little memory for joining is ignored."""
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

    `share` limits the memory for blocks of an image that is in memory itself, though a single block
    may exceed it. If `alike` is True, sizes depend neither on the number of cores nor on a cluster,
    so that blocks are the same on all machines.
    """
    memory: int = min(arguments.max_memory, share or arguments.max_memory)
    workers = arguments.workers or available_cores()
    reach = (0,) * ndim if blocks.smoothing is None else blocks.smoothing.reach
    lengths = [max(1, LEAST_REACHES * r) for r in reach]
    smoothed = blocks.bytes_a_point * math.prod(lengths)
    usual = CLUSTER_BLOCK_BYTES if arguments.scheduler and not alike else BLOCK_BYTES
    at_once = 1 if alike else workers
    limit = min(max(usual, smoothed), memory // BLOCKS_IN_MEMORY // at_once)
    while True:
        sizes = _sizes_within(limit, blocks, ndim, alone=bool(glued_of(arguments)))
        block = [sizes[axis] for axis in blocks.image.order]
        needed = _needed(block, blocks, ndim, arguments)
        if needed.least <= memory or not limit:
            break
        # Smaller blocks have fewer points around them, and smaller pieces.
        limit //= 2
    if needed.least > memory and share is None:
        raise InputFileError(
            f"{blocks.image.source.path}: its chunks of shape {tuple(sizes)} need --max-memory of "
            f"at least {least_memory(needed.least)}, got {given_memory(memory)}"
        )
    left = max(0, memory - needed.block - needed.joining)
    room = 1 + left // (needed.block + PIECES_IN_MEMORY * needed.piece)
    return BlockSizes(
        points=tuple(sizes),
        workers=min(room, workers),
        across=_blocks_across(block, memory // PLANES_DIVISOR, blocks.bytes_a_point, ndim),
        piece=needed.piece,
    )


def _sizes_within(limit: int, blocks: Blocks, ndim: int, *, alone: bool) -> list[int]:
    """Return the largest sizes of blocks of at most `limit` bytes, along the axes of the source.

    If images are glued one by one (`alone`), or have labels, each block has one image.
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
    """Return the memory for a block whose axes are in the order of the image."""
    whole = blocks.image.shape[-ndim:]
    reach = (0,) * ndim if blocks.smoothing is None else blocks.smoothing.reach
    around = []  # The lengths of a block with the points that the filter reaches.
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
    """Return the width of a column in blocks for which their planes fit in some memory.

    `point` is the number of bytes of a point.
    """
    points = math.prod(block)
    planes = point * sum(2 * points // length for length in block[-ndim:])
    across = memory // planes
    return max(LEAST_SIDE, across if ndim < 3 else math.isqrt(across))
