"""The boxes of an image that are processed one at a time, with a halo of one point around each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._partition import Box, Offset, Partition

Array = NDArray[Any]
Points = NDArray[np.int64]

POINTS_AT_ONCE = 1 << 18
"""Points whose boxes are found at once, so that temporary arrays stay small."""


@dataclass(frozen=True)
class BoxGrid:
    """The boxes of a partition, by number. A window is a box with the points around it."""

    partition: Partition
    margin: int
    """Number of points that a window has around its box. The innermost ones are the halo."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the image."""
        return self.partition.shape

    @property
    def size(self) -> int:
        """Number of boxes."""
        return self.partition.size

    def number(self, index: Sequence[int]) -> int:
        return self.partition.number(index)

    def box(self, number: int) -> Box:
        return self.partition.box(self.partition.index(number))

    def shape_of(self, number: int) -> tuple[int, ...]:
        return tuple(part.stop - part.start for part in self.box(number))

    def window_of(self, number: int) -> tuple[int, ...]:
        """Return the shape of a box with its margin."""
        return tuple(n + 2 * self.margin for n in self.shape_of(number))

    @property
    def inner(self) -> Box:
        """The slices of a window that are its box."""
        return (slice(self.margin, -self.margin),) * len(self.shape)

    def numbers_of(self, places: Points) -> NDArray[np.int32]:
        """Return the numbers of the boxes in which points lie."""
        found = np.empty(places.size, np.int32)
        for first in range(0, places.size, POINTS_AT_ONCE):
            part = slice(first, first + POINTS_AT_ONCE)
            index = np.unravel_index(places[part], self.shape)
            pairs = zip(self.partition.edges, index, strict=True)
            at = tuple(np.searchsorted(along, own, side="right") - 1 for along, own in pairs)
            found[part] = np.ravel_multi_index(at, self.partition.counts)
        return found

    def that_meet(self, box: Box) -> Iterator[int]:
        """Yield the numbers of the boxes that have points in another one."""
        yield from map(self.number, self.partition.that_meet(box))

    def in_window(self, number: int, places: Points) -> Points:
        """Convert places in the image to places in the window of the box in which they lie."""
        index = np.unravel_index(places, self.shape)
        pairs = zip(index, self.box(number), strict=True)
        at = tuple(own - part.start + self.margin for own, part in pairs)
        found: Points = np.ravel_multi_index(at, self.window_of(number))
        return found

    def in_image(self, number: int) -> Points | None:
        """Return the places in the image of a window's points, if it reaches over a periodic end.

        None if the points of the window lie in the same order as in the image.
        """
        partition = self.partition
        index = partition.index(number)
        ends = zip(partition.wraps, index, partition.counts, strict=True)
        if not any(touch and i in (0, n - 1) for touch, i, n in ends):
            return None
        along = [
            np.arange(part.start - self.margin, part.stop + self.margin) % n
            for part, n in zip(self.box(number), self.shape, strict=True)
        ]
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(len(along))]
        grid = np.ix_(*(own * step for own, step in zip(along, steps, strict=True)))
        return np.asarray(sum(grid), np.int64)

    @cached_property
    def _neighbours(self) -> dict[int, list[tuple[Offset, int]]]:
        """The neighbours of boxes, as far as they have been computed."""
        return {}

    def neighbours(self, number: int) -> list[tuple[Offset, int]]:
        """Return the offsets and the numbers of the neighbours of a box.

        In a periodic image a box can be its own neighbour.
        """
        known = self._neighbours.get(number)
        if known is None:
            index = self.partition.index(number)
            around = self.partition.neighbours(index)
            known = [(offset, self.number(other)) for offset, other in around]
            self._neighbours[number] = known
        return known

    def halo(self, number: int, offset: Offset) -> Box:
        """Return the part of a box's window that has points of the neighbour at an offset."""
        places = []
        for n, step in zip(self.window_of(number), offset, strict=True):
            first = {-1: self.margin - 1, 0: self.margin, 1: n - self.margin}[step]
            last = {-1: self.margin, 0: n - self.margin, 1: n - self.margin + 1}[step]
            places.append(slice(first, last))
        return tuple(places)

    def sides(self, number: int) -> Iterator[tuple[Box, Offset]]:
        """Yield the planes of outermost points of a box, as parts of its window.

        With each comes the offset of the box from its neighbour on that side.
        """
        shape = self.window_of(number)
        for axis, n in enumerate(shape):
            for first, step in ((self.margin, 1), (n - self.margin - 1, -1)):
                part = slice(first, first + 1)
                offset = [0] * len(shape)
                offset[axis] = step
                yield (*self.inner[:axis], part, *self.inner[axis + 1 :]), tuple(offset)

    def from_shell(self, shell: Array, number: int, offset: Offset) -> Array:
        """Return the part of a box's shell that lies in the halo of a neighbour.

        `offset` is that of the box from the neighbour.
        """
        axis = next(i for i, step in enumerate(offset) if step)
        plane = _planes(shell, self.shape_of(number))[axis, int(offset[axis] < 0)]
        part = {-1: slice(-1, None), 0: slice(None), 1: slice(0, 1)}
        index = tuple(part[step] for i, step in enumerate(offset) if i != axis)
        return np.expand_dims(plane[index], axis)


def by_box(grid: BoxGrid, places: Points) -> Callable[[int], Points]:
    """Return a function of a box's number that gives the indices of the places within the box."""
    numbers = grid.numbers_of(places)
    order = np.argsort(numbers, kind="stable")
    firsts = np.searchsorted(numbers[order], np.arange(grid.size + 1, dtype=np.int32))
    if order.size < 1 << 32:
        order = order.astype(np.uint32)

    def of_box(number: int) -> Points:
        return order[firsts[number] : firsts[number + 1]].astype(np.int64)

    return of_box


def shell_of(values: Array) -> Array:
    """Return the shell of a box, its outermost points, as a 1-D array."""
    sides = [(axis, end) for axis in range(values.ndim) for end in (0, -1)]
    planes = (values[(slice(None),) * axis + (end,)] for axis, end in sides)
    return np.concatenate([plane.reshape(-1) for plane in planes])


def _planes(shell: Array, shape: Sequence[int]) -> dict[tuple[int, int], Array]:
    """Return the planes of a shell, by axis and side (0: low, 1: high)."""
    planes = {}
    first = 0
    for axis in range(len(shape)):
        across = tuple(n for i, n in enumerate(shape) if i != axis)
        for side in (0, 1):
            last = first + math.prod(across)
            planes[axis, side] = shell[first:last].reshape(across)
            first = last
    return planes
