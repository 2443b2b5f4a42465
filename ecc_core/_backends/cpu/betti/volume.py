"""The gradient of a volume, and that of a block before it is kept; see ``stars.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.scan import Stars
from ecc_core._backends.cpu.betti.stars import Steps, edge_offsets, tree_words
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import LANES, bare
from ecc_core._backends.cpu.sources import Block, scratch

Array = NDArray[Any]
Shape = tuple[int, int, int]


class Volume(NamedTuple):
    """The gradient of a volume, see ``stars.py``."""

    gradient: Array
    """A byte for each edge."""
    shape: tuple[int, int, int]
    """The shape of the volume with the layers around it."""
    home: Array | None
    """For each place of a periodic volume the place of the same point inside the layers."""

    @property
    def width(self) -> int:
        """The number of places, made up to a multiple of 64."""
        return self.gradient.size // 3

    @property
    def steps(self) -> tuple[int, int, int]:
        """Distances of places along the axes."""
        return self.shape[1] * self.shape[2], self.shape[2], 1


def empty_volume(shape: Sequence[int]) -> Volume:
    """Return a volume whose edges are all matched with points."""
    depth, height, width = shape
    layers = depth + 2, height + 1, width + 1
    return Volume(no_gradient(layers), layers, None)


def no_gradient(shape: tuple[int, int, int]) -> Array:
    """Return the gradient of a volume whose edges are all matched with points."""
    return np.zeros(3 * LANES * ceil_div(math.prod(shape), LANES), np.uint8)


def staged_stars(steps: Steps, width: int) -> Stars:
    """Return what a scan needs to write the gradient of a block of so many staged points."""
    gradient = scratch.take("gradient", 3 * width, np.dtype(np.uint8))
    gradient[:] = 0
    return Stars(tree_words(), gradient, edge_offsets(steps, width))


def keep_gradient(volume: Volume, block: Block, gradient: Array, shape: Shape) -> None:
    """Write the gradient of a block, whose staged points have this shape, to that of the volume."""
    staged_steps = shape[1] * shape[2], shape[2], 1
    _keep_edges(
        volume.gradient, volume.steps, gradient, staged_steps, tuple(block.start), block.shape
    )


@kernel()
def _keep_edges(gradient, steps, staged, staged_steps, start, shape):
    """Copy the bytes of the edges of a block, which begins at `start` and has this shape.

    An edge that leaves the block may belong to a point of the next one: it is 0 here then, and
    another thread may write it.
    """
    width = gradient.size // 3
    staged_width = staged.size // 3
    gradient = bare(gradient)
    staged = bare(staged)
    slices, rows, columns = shape
    for axis in range(3):
        first_slice = 0 if axis == 0 else 1
        first_row = 0 if axis == 1 else 1
        for z in range(first_slice, slices + 1):
            for y in range(first_row, rows + 1):
                there = axis * width + start[2]
                there += (start[0] + z) * steps[0] + (start[1] + y) * steps[1]
                here = axis * staged_width + z * staged_steps[0] + y * staged_steps[1]
                if (axis == 0 and (z == 0 or z == slices)) or (axis == 1 and (y == 0 or y == rows)):
                    _keep_own(gradient, there, staged, here, 1, columns + 1)
                    continue
                inner = columns if axis == 2 else columns + 1
                for x in range(1, inner):
                    gradient[np.uint64(there + x)] = staged[np.uint64(here + x)]
                if axis == 2:
                    _keep_own(gradient, there, staged, here, 0, 1)
                    _keep_own(gradient, there, staged, here, columns, columns + 1)


@subroutine()
def _keep_own(gradient, there, staged, here, first, end):
    """Copy those bytes of a part of a row that are not 0."""
    for x in range(first, end):
        byte = staged[np.uint64(here + x)]
        if byte:
            gradient[np.uint64(there + x)] = byte
