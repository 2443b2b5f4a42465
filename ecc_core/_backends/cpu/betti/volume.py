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
from ecc_core._backends.cpu.llvm import LANES
from ecc_core._backends.cpu.sources import Block, scratch

Array = NDArray[Any]
Shape = tuple[int, int, int]


class Volume(NamedTuple):
    """The gradient of a volume, see ``stars.py``."""

    gradient: Array
    """A byte for each edge."""
    shape: tuple[int, int, int]
    """That of the volume with its layers."""
    home: Array | None
    """For each place of a periodic volume that of the same point between the layers."""

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
    """Write the gradient of a block, whose staged points have this shape, to that of the volume.

    An edge that leaves the block may belong to a point of the next one: it is 0 here then.
    """
    width = gradient.size // 3
    for axis in range(3):
        target = volume.gradient[axis * volume.width :][: math.prod(volume.shape)]
        target = target.reshape(volume.shape)
        source = gradient[axis * width :][: math.prod(shape)].reshape(shape)
        inner = []
        own = []
        for number, (first, end) in enumerate(zip(block.start, block.stop, strict=True)):
            last = end if number == axis else end + 1
            inner.append(slice(first + 1, last))
            own.append(slice(1, last - first))
        target[tuple(inner)] = source[tuple(own)]
        for at in (block.start[axis], block.stop[axis]):
            inner[axis] = slice(at, at + 1)
            own[axis] = slice(at - block.start[axis], at - block.start[axis] + 1)
            leaving = source[tuple(own)]
            np.copyto(target[tuple(inner)], leaving, where=leaving != 0)
