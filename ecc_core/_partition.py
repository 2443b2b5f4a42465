"""How an array is cut into blocks, and which neighbours each block has.

A `Partition` describes the blocks of threads, of dask tasks and of the parts of `ecc stack`, and
the chunks of files. Arrays that belong to an image, such as its mask or its labels, are cut as the
image is, so that one box is valid for all of them.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._request.boundary import CLOSED, Border

Box = tuple[slice, ...]
"""The points between two corners of an array."""
Index = tuple[int, ...]
"""The position of a block, counted in blocks along each axis."""
Ranges = tuple[tuple[int, int], ...]
"""A box of blocks: along each axis the first one, and the one after the last."""
Offset = tuple[int, ...]
"""The step from a block to one of its neighbours: -1, 0 or 1 along each axis."""
Side = tuple[int, int]
"""An axis, and 0 for its low side or 1 for its high side."""


class Place(NamedTuple):
    """Where a block lies along each spatial axis.

    `first` and `last` tell whether it is the first or the last block that owns cells, `before` and
    `after` whether the image continues before or behind it. Along an axis whose border is not
    closed, the image continues beyond its first and last block, too.
    """

    before: tuple[bool, ...]
    after: tuple[bool, ...]
    first: tuple[bool, ...]
    last: tuple[bool, ...]


@dataclass(frozen=True)
class Partition:
    """An array that is cut into blocks along each of its axes."""

    edges: tuple[tuple[int, ...], ...]
    """The indices at which blocks begin along each axis, followed by the length of the axis."""
    borders: tuple[Border, ...]
    """What lies beyond the image along its spatial axes, which are the last ones.

    The axes before these are those of a batch, across which blocks have nothing in common.
    """
    open: tuple[bool, ...]
    """For each spatial axis, whether a block of one point follows those of the image."""

    @classmethod
    def of_edges(cls, *edges: Sequence[int]) -> Self:
        """Return the partition of a closed array, or of a box of it, with these edges."""
        closed = (CLOSED,) * len(edges)
        return cls(tuple(map(tuple, edges)), closed, (False,) * len(edges))

    @classmethod
    def of_blocks(
        cls, lengths: Sequence[Sequence[int]], borders: Sequence[Border] | None = None
    ) -> Self:
        """Return the partition whose blocks have these lengths along each axis.

        Without borders, all axes are spatial ones of a closed image.
        """
        edges = tuple(edges_of(along) for along in lengths)
        borders = (CLOSED,) * len(edges) if borders is None else tuple(borders)
        return cls(edges, borders, (False,) * len(borders))

    @classmethod
    def of_chunks(cls, shape: Sequence[int], sizes: Sequence[int]) -> Self:
        """Return the partition into chunks of one size; the array cuts off the last ones."""
        pairs = zip(shape, sizes, strict=True)
        edges = [(*range(0, length, size), length) for length, size in pairs]
        return cls.of_edges(*edges)

    @classmethod
    def evenly(cls, shape: Sequence[int], sizes: Sequence[int]) -> Self:
        """Return the partition into nearly equal blocks of about these sizes."""
        pairs = zip(shape, sizes, strict=True)
        return cls.of_chunks(shape, [even_step(length, size) for length, size in pairs])

    def with_ends(self) -> Self:
        """Return the partition with a block of one point at the end where a border is not closed.

        It is the first point of a periodic image again, or the last point of a half-open window,
        so that every block that owns cells has a later neighbour. A window that has no other point
        along some axis owns no cells, and its partition is returned unchanged.
        """
        if self.owns_nothing:
            return self
        edges = list(self.edges)
        for axis, border in enumerate(self.borders, self.lead):
            if not border.is_closed and len(edges[axis]) > 1:
                stop = edges[axis][-1] - border.missing
                inner = (at for at in edges[axis] if at < stop)
                edges[axis] = (*inner, stop, stop + 1)
        is_open = tuple(not border.is_closed for border in self.borders)
        return replace(self, edges=tuple(edges), open=is_open)

    @property
    def lead(self) -> int:
        """The number of batch axes."""
        return len(self.edges) - len(self.borders)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        lengths = [along[-1] for along in self.edges]
        for axis, (border, is_open) in enumerate(zip(self.borders, self.open, strict=True)):
            # The point at the end is the first one again, and does not count.
            if border.wraps and is_open:
                lengths[self.lead + axis] = max(0, lengths[self.lead + axis] - 1)
        return tuple(lengths)

    @cached_property
    def counts(self) -> Index:
        """The number of blocks along each axis."""
        return tuple(len(along) - 1 for along in self.edges)

    @cached_property
    def owners(self) -> Index:
        """The number of blocks that own cells along each axis: all but the points at the end."""
        owners = list(self.counts)
        for axis, is_open in enumerate(self.open, self.lead):
            if is_open:
                owners[axis] = max(0, owners[axis] - 1)
        return tuple(owners)

    @property
    def owns_nothing(self) -> bool:
        """Whether the image is a half-open window with only its last point along some axis."""
        sides = zip(self.shape[self.lead :], self.borders, strict=True)
        return any(border.missing and length <= border.missing for length, border in sides)

    @property
    def size(self) -> int:
        """The number of blocks."""
        return math.prod(self.counts)

    @cached_property
    def crossed(self) -> tuple[bool, ...]:
        """For each spatial axis, whether there are several blocks along it."""
        return tuple(count > 1 for count in self.counts[self.lead :])

    @cached_property
    def wraps(self) -> tuple[bool, ...]:
        """For each spatial axis, whether opposite sides of the image touch."""
        return tuple(border.wraps for border in self.borders)

    @cached_property
    def lengths(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of blocks along each axis."""
        found = []
        for along in self.edges:
            pairs = itertools.pairwise(along)
            found.append(tuple(stop - start for start, stop in pairs))
        return tuple(found)

    def indices(self) -> Iterator[Index]:
        """Yield the indices of all blocks in C order, in which they are numbered."""
        return itertools.product(*map(range, self.counts))

    def index(self, number: int) -> Index:
        """Return the index of the block with this number."""
        return tuple(int(i) for i in np.unravel_index(number, self.counts))

    def number(self, index: Sequence[int]) -> int:
        """Return the number of a block."""
        return int(np.ravel_multi_index(tuple(index), self.counts))

    def box(self, index: Sequence[int]) -> Box:
        """Return the box of a block along as many axes as its index has."""
        return tuple(parts[i] for parts, i in zip(self._parts, index, strict=False))

    def boxes(self) -> Iterator[Box]:
        """Yield the boxes of all blocks in C order."""
        return itertools.product(*self._parts)

    @cached_property
    def _parts(self) -> tuple[tuple[slice, ...], ...]:
        """The points of each block along each axis."""
        found = []
        for along, length in zip(self.edges, self.shape, strict=True):
            parts = [slice(start, stop) for start, stop in itertools.pairwise(along)]
            # The point at the end of a periodic image is its first one.
            if parts and along[-1] > length:
                parts[-1] = slice(0, 1)
            found.append(tuple(parts))
        return tuple(found)

    def that_meet(self, box: Box) -> Iterator[Index]:
        """Yield the indices of the blocks that have points in a box, in C order."""
        ranges = []
        for along, part in zip(self.edges, box, strict=True):
            first = bisect_right(along, part.start) - 1
            ranges.append(range(first, bisect_left(along, part.stop)))
        return itertools.product(*ranges)

    def place(self, index: Index) -> Place:
        """Return where a block lies along each spatial axis."""
        at = index[self.lead :]
        first = tuple(i == 0 for i in at)
        last = tuple(i + 1 == n for i, n in zip(at, self.owners[self.lead :], strict=True))
        before = tuple(is_open or not end for is_open, end in zip(self.open, first, strict=True))
        after = tuple(is_open or not end for is_open, end in zip(self.open, last, strict=True))
        return Place(before, after, first, last)

    def open_sides(self, index: Index) -> tuple[Side, ...]:
        """Return the sides of a block at which another block lies, first all the low ones."""
        sides = list(enumerate(zip(index[self.lead :], self.counts[self.lead :], strict=True)))
        low = [(axis, 0) for axis, (i, _) in sides if i > 0]
        high = [(axis, 1) for axis, (i, count) in sides if i < count - 1]
        return (*low, *high)

    @cached_property
    def steps(self) -> tuple[tuple[Index, ...], ...]:
        """For each axis and block along it, the index of the block and of its later neighbour."""
        alone = [_alone(count) for count in self.counts[: self.lead]]
        return (*alone, *[_with_later(count) for count in self.counts[self.lead :]])

    def near(self, index: Index) -> list[Index]:
        """Return the indices of a block and of all its later neighbours in C order."""
        along = (steps[i] for steps, i in zip(self.steps, index, strict=True))
        return list(itertools.product(*along))

    def neighbours(self, index: Index) -> Iterator[tuple[Offset, Index]]:
        """Yield the offset and the index of each neighbour of a block.

        Where opposite sides touch, a block can be its own neighbour.
        """
        for offset in itertools.product((-1, 0, 1), repeat=len(index)):
            if not any(offset):
                continue
            beside = [i + step for i, step in zip(index, offset, strict=True)]
            sides = zip(beside, self.counts, self.wraps, strict=True)
            if all(touch or 0 <= i < n for i, n, touch in sides):
                around = (i % n for i, n in zip(beside, self.counts, strict=True))
                yield offset, tuple(around)

    @cached_property
    def spatial(self) -> Partition:
        """The partition of each image of a batch."""
        return Partition(self.edges[self.lead :], self.borders, self.open)

    @property
    def whole(self) -> Ranges:
        """The box of all blocks."""
        return tuple((0, count) for count in self.counts)

    def halves(self, box: Ranges) -> tuple[int, Ranges, Ranges] | None:
        """Return the axis across which a box of blocks is cut, and its halves; None for one block.

        It is cut across its longest axis, at the edge that is nearest to the middle.
        """
        lengths = [0] * len(box)
        for axis, (first, stop) in enumerate(box):
            if stop - first > 1:
                lengths[axis] = self.edges[axis][stop] - self.edges[axis][first]
        axis = lengths.index(max(lengths))
        first, stop = box[axis]
        if stop - first == 1:
            return None
        along = np.asarray(self.edges[axis])
        middle = (along[first] + along[stop]) / 2
        inner = np.abs(along[first + 1 : stop] - middle)
        cut = first + 1 + int(np.argmin(inner))
        return axis, with_range(box, axis, (first, cut)), with_range(box, axis, (cut, stop))

    def in_halves(self, box: Ranges) -> Iterator[Index]:
        """Yield the blocks of a box of blocks in the order in which its halves are joined."""
        cut = self.halves(box)
        if cut is None:
            yield tuple(first for first, _ in box)
            return
        _, low, high = cut
        yield from self.in_halves(low)
        yield from self.in_halves(high)


def whole_box(shape: Sequence[int]) -> Box:
    """Return the box of all points of an array."""
    return tuple(slice(0, length) for length in shape)


def edges_of(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return the indices at which blocks of these lengths begin, and at which the last one ends."""
    return (0, *itertools.accumulate(int(length) for length in lengths))


def even_step(length: int, size: int) -> int:
    """Return the size near the given one that cuts a length into nearly equal parts."""
    if not length:
        return 1
    return ceil_div(length, max(1, round(length / size)))


def with_range(box: Ranges, axis: int, blocks: tuple[int, int]) -> Ranges:
    """Return a box of blocks with another range along one axis."""
    return (*box[:axis], blocks, *box[axis + 1 :])


def block_count(box: Ranges) -> int:
    """Return how many blocks a box of blocks has."""
    return math.prod(stop - first for first, stop in box)


def _alone(count: int) -> tuple[Index, ...]:
    """Return the index of each block along an axis of a batch."""
    return tuple((i,) for i in range(count))


def _with_later(count: int) -> tuple[Index, ...]:
    """Return the index of each block along an axis, and that of its later neighbour if any."""
    if not count:
        return ()
    return (*((i, i + 1) for i in range(count - 1)), (count - 1,))
