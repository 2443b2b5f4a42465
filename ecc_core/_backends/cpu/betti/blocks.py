"""The blocks of an image, and how the keys of a block are staged with those around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import OUTSIDE
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.cpu.llvm import ALL, NONE, bare
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.sources import Block, Source, scratch
from ecc_core._partition import Partition
from ecc_core.errors import NAN_MESSAGE

Array = NDArray[Any]
Plane = tuple[int, int]
Words = tuple[np.uint64, ...]
Index = tuple[slice | int, ...]

SPARE = 64
"""Keys behind a block that vectors read but do not use."""


class Field(NamedTuple):
    """An image as (slices, rows, columns), its mask, and its number of axes."""

    source: Source
    mask: Source | None
    ndim: int


class Staged:
    """The layout of a staged block: contiguous, with one point of halo on each side.

    The `layout` is (slices, rows, columns, step of slices, step of rows), and `steps` are (step of
    slices, of rows, 1). In 2-D there is no halo of slices, and their step is 0. The `shape` is that
    with the halo, `first` the first staged point (z, y, x) in the image, and `size` the number of
    staged points. The `halo` is what is read of the image, the block and the halo within it, and
    `at` is where its first point is staged.
    """

    def __init__(self, block: Block, field: Field) -> None:
        self.block = block
        self.field = field
        lead = int(field.ndim == 3)
        around = (lead, 1, 1)
        slices, rows, columns = block.shape
        self.shape = slices + 2 * lead, rows + 2, columns + 2
        self.size = math.prod(self.shape)
        self.steps = lead * (rows + 2) * (columns + 2), columns + 2, 1
        self.layout = (*block.shape, *self.steps[:2])
        self.first = tuple(a - n for a, n in zip(block.start, around, strict=True))
        self.halo = block.with_halo(around, around, field.source.shape)
        self.at = self.place(self.halo.start)

    def load(self, plan: Plan, nan: str) -> tuple[Array, bool, bool]:
        """Load the keys; return them, whether there was a NaN, and whether a key did not fit."""
        keys = scratch.take("keys", self.size + SPARE, plan.key_dtype)
        has_nan, unfit = load_box(
            plan, self.field.source, self.field.mask, self.halo, keys, self.at, self.steps[:2]
        )
        if has_nan and nan == "raise":
            raise ValueError(NAN_MESSAGE)
        return keys, has_nan, unfit

    def place(self, point: Sequence[int]) -> int:
        """Return where a point is staged."""
        gaps = zip(point, self.first, self.steps, strict=True)
        return sum((a - first) * step for a, first, step in gaps)

    def part(self, staged: Array, box: Block) -> Array:
        """Return what is staged for the points of a box."""
        spans = zip(*box, self.first, strict=True)
        index = tuple(slice(a - first, b - first) for a, b, first in spans)
        return staged[: self.size].reshape(self.shape)[index]

    def points(self, places: Array) -> list[Array]:
        """Return the indices (z, y, x) in the image of staged points."""
        found = np.unravel_index(places, self.shape)
        return [index + first for index, first in zip(found, self.first, strict=True)]

    def in_image(self, places: Array) -> Array:
        """Convert staged places to places in the image in C order; the frame is at -1."""
        found = np.empty(places.shape, np.int64)
        _convert_places(
            np.ascontiguousarray(places).reshape(-1),
            self.shape,
            self.first,
            self.field.source.shape,
            found.reshape(-1),
        )
        return found

    def mark_halo(self, labels: Array, framed: Words) -> None:
        """Label the points around the block, after its own points have been scanned.

        The frame, which begins on these sides, is node 0. The points beyond belong to it, and so do
        the points at the border: the frame is their lowest neighbour.
        """
        around = labels[: self.size].reshape(self.shape)
        for low, high, _ in self._sides:
            around[low] = around[high] = OUTSIDE
        for i, (_, _, borders) in enumerate(self._sides, 3 - len(self._sides)):
            for side, within in enumerate(borders):
                if framed[2 * i + side]:
                    around[within] = 0

    @cached_property
    def _sides(self) -> list[tuple[Index, Index, tuple[Index, Index]]]:
        """For each axis with a halo: the points of the halo, and with those beside them."""
        sides: list[tuple[Index, Index, tuple[Index, Index]]] = []
        for axis in range(3):
            if self.steps[axis]:
                before: Index = (slice(None),) * axis
                borders: tuple[Index, Index] = ((*before, slice(2)), (*before, slice(-2, None)))
                sides.append(((*before, 0), (*before, -1), borders))
        return sides


@kernel()
def _convert_places(places, staged_shape, first, shape, found):
    """Convert places of staged points to those in an image; negative ones become -1."""
    staged_rows = np.uint64(staged_shape[1])
    staged_columns = np.uint64(staged_shape[2])
    places = bare(places)
    found = bare(found)
    for i in range(places.size):
        place = places[i]
        if place < 0:
            found[i] = -1
            continue
        line = np.uint64(place) // staged_columns
        x = first[2] + np.int64(np.uint64(place) - line * staged_columns)
        z = line // staged_rows
        y = first[1] + np.int64(line - z * staged_rows)
        found[i] = ((first[0] + np.int64(z)) * shape[1] + y) * shape[2] + x


class Grid:
    """The blocks of an image, and the *surface*: the planes on both sides of all cuts between them.

    The image may be a box of a larger one. The planes on its *open* sides, beyond which the larger
    image goes on, belong to the surface too. Sides are pairs of axis and side (0: low, 1: high),
    `planes` pairs of axis and index along it.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        step: tuple[int, int, int],
        open_sides: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.shape = shape
        self._open = open_sides
        partition = Partition.evenly(shape, step)
        self.blocks = [Block.of(box) for box in partition.boxes()]
        cuts = [(axis, cut) for axis, along in enumerate(partition.edges) for cut in along[1:-1]]
        planes = {(axis, at) for axis, cut in cuts for at in (cut - 1, cut)}
        planes |= {self.side(*side) for side in open_sides}
        self.planes = sorted(planes)
        self._borders: dict[tuple[Block, bool], tuple[Words, Words]] = {}  # Results of `borders`.

    def side(self, axis: int, side: int) -> Plane:
        """Return the plane on one side of the image."""
        return axis, side * (self.shape[axis] - 1)

    def borders(self, block: Block, frame: bool) -> tuple[Words, Words]:
        """Return on which sides of a block the image ends, and on which a frame begins.

        Words are all ones there, and 0 elsewhere. There is no frame on open sides.
        """
        known = self._borders.get((block, frame))
        if known is not None:
            return known
        ends = [end for axis in zip(block.start, block.stop, strict=True) for end in axis]
        border = [a == (i % 2) * self.shape[i // 2] for i, a in enumerate(ends)]
        framed = [frame and at and divmod(i, 2) not in self._open for i, at in enumerate(border)]
        found = _as_words(border), _as_words(framed)
        self._borders[block, frame] = found
        return found

    def faces(self, block: Block) -> dict[Plane, Block]:
        """Return the faces of a block that are part of the surface."""
        return {
            (axis, at): section(block, axis, at)
            for axis, at in self.planes
            if at in (block.start[axis], block.stop[axis] - 1)
        }


def _as_words(flags: list[bool]) -> Words:
    return tuple(ALL if flag else NONE for flag in flags)


grid_of = lru_cache(maxsize=16)(Grid)
"""The grid of an image; images of one shape share it."""


def section(block: Block, axis: int, at: int) -> Block:
    """Return the points of a block in a plane."""
    start = list(block.start)
    stop = list(block.stop)
    start[axis] = at
    stop[axis] = at + 1
    return Block(tuple(start), tuple(stop))  # type: ignore[arg-type]
