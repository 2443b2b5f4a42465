"""Boxes of an array: blocks of any lengths, and chunks of one size."""

import itertools
from collections.abc import Sequence

from ecc_core._arithmetic import ceil_div


def whole_box(shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the box of all points of an array."""
    return tuple(slice(0, length) for length in shape)


def edges_of(lengths: Sequence[int]) -> list[int]:
    """Return where the blocks along an axis begin, and where the last one ends."""
    return [0, *itertools.accumulate(int(length) for length in lengths)]


def block_box(edges: Sequence[Sequence[int]], index: Sequence[int]) -> tuple[slice, ...]:
    """Return the box of a block; `edges` are those of the blocks along each axis."""
    box = []
    for along, i in zip(edges, index, strict=True):
        box.append(slice(int(along[i]), int(along[i + 1])))
    return tuple(box)


def chunk_counts(shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return how many chunks of these sizes it takes along each axis to cover an array."""
    return tuple(ceil_div(length, size) for length, size in zip(shape, sizes, strict=True))


def chunk_box(
    shape: Sequence[int], sizes: Sequence[int], index: Sequence[int]
) -> tuple[slice, ...]:
    """Return the box of a chunk; the last ones along an axis end with the array."""
    box = []
    for length, size, i in zip(shape, sizes, index, strict=True):
        start = i * size
        box.append(slice(start, min(start + size, length)))
    return tuple(box)
