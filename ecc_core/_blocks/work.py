"""The blocks of an image, and the tasks of each of them.

A block emits its own values or table and copies of its outermost planes. The terms between a block
and its later neighbours need nothing else, and are added to it: this is the *share* of the block.

A table is int64 of shape (labels, 1 + n): in each row a label, then the curve of its region. Rows
are in the order of labels; those of unsigned labels beyond int64 keep their bits.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.signed_boxes import Box, Term
from ecc_core._blocks.boxes import BoxValues, add
from ecc_core._blocks.planes import (
    Array,
    BlockSums,
    Place,
    crossing_terms,
    flattened,
    outermost,
)
from ecc_core._boxes import block_box, edges_of
from ecc_core._request.boundary import Border, check_boundary
from ecc_core._request.image import check_label_values

Index = tuple[int, ...]
Values = NDArray[np.int64]
Span = tuple[int, int]
"""Numbers of blocks, half open."""


class Group(NamedTuple):
    """Consecutive blocks of a column, whose contributions are added."""

    images: Index  # index of the blocks along the batch axes
    column: tuple[slice, ...]  # which blocks the column has along the spatial axes
    first: int  # the place of the group's first block in the C order of the column
    stop: int  # the place after its last block

    def blocks(self) -> Iterator[Index]:
        """Return the indices of the blocks, batch axes first."""
        shape = [part.stop - part.start for part in self.column]
        for number in range(self.first, self.stop):
            inside = np.unravel_index(number, shape)
            yield (
                *self.images,
                *(s.start + int(i) for s, i in zip(self.column, inside, strict=True)),
            )


class Work:
    """The computation for each block: values of the image, or a table of those of its regions.

    `read` takes a box, a slice for each axis, and returns its points and their labels, if there are
    (`regions`); it is None where blocks come from elsewhere. `chunks` are the lengths of the blocks
    along each axis, batch axes first; those of labelled images have length 1 along batch axes.

    Along an axis whose border is not closed, every block has a neighbour. Behind the last one this
    is the first point of a periodic image, or the last point of a half-open window. Where such a
    window has no other point along an axis, nothing counts, and blocks are those of a closed image,
    of which only the labels are used.
    """

    def __init__(
        self,
        read: Callable[[tuple[slice, ...]], tuple[Array, ...]] | None,
        chunks: tuple[tuple[int, ...], ...],
        computed: Any,
        *,
        regions: bool = False,
    ) -> None:
        self.read: Any = read
        self.computed = computed
        self.regions = regions
        self.lead = len(chunks) - computed.filtration.ndim
        self.shape = tuple(map(sum, chunks))
        boundary = computed.filtration.boundary
        check_boundary(boundary.name)
        sides = zip(self.shape[self.lead :], boundary.missing, strict=True)
        self.counts_nothing = any(missing and length <= missing for length, missing in sides)
        self.open = tuple(not (border.is_closed or self.counts_nothing) for border in boundary.axes)
        """Along which spatial axes there is a point behind the last block, as a block."""
        ends = zip(chunks[self.lead :], boundary.axes, self.open, strict=True)
        spatial = (
            _with_end(lengths, border) if is_open else lengths for lengths, border, is_open in ends
        )
        chunks = (*chunks[: self.lead], *spatial)
        self.chunks = chunks
        self.counts = tuple(map(len, chunks))
        self.crossed = tuple(count > 1 for count in self.counts[self.lead :])
        """Along which spatial axes blocks meet."""
        self.edges = list(map(edges_of, chunks))
        self.steps = [_alone(count) for count in self.counts[: self.lead]]
        self.steps += [_with_later(count) for count in self.counts[self.lead :]]
        """For each axis and block along it, the indices of the block and of its later neighbour."""

    @property
    def owners(self) -> tuple[int, ...]:
        """Numbers of blocks along each axis, without those behind the last one."""
        spatial = zip(self.counts[self.lead :], self.open, strict=True)
        return (*self.counts[: self.lead], *(max(0, n - is_open) for n, is_open in spatial))

    @property
    def blocks(self) -> int:
        """Number of blocks that have a share."""
        return math.prod(self.owners)

    def box(self, block: Index) -> tuple[slice, ...]:
        """Return the place of a block along as many axes as its index has."""
        box = block_box(self.edges[: len(block)], block)
        pairs = zip(box, self.shape, strict=False)
        # A block behind the last one is the first point.
        return tuple(part if part.start < length else slice(0, 1) for part, length in pairs)

    def place(self, block: Index) -> Place:
        """Return where a block is along each axis."""
        at = block[self.lead :]
        counts = self.owners[self.lead :]
        first = tuple(i == 0 for i in at)
        last = tuple(i + 1 == n for i, n in zip(at, counts, strict=True))
        before = tuple(is_open or not end for is_open, end in zip(self.open, first, strict=True))
        after = tuple(is_open or not end for is_open, end in zip(self.open, last, strict=True))
        return Place(before, after, first, last)

    def near(self, block: Index) -> list[Index]:
        """Return a block and all its later neighbours in C order."""
        along = (steps[i] for steps, i in zip(self.steps, block, strict=True))
        return list(itertools.product(*along))

    def emit(self, block: Index) -> BlockSums:
        """Read a block and return what its neighbours need."""
        return self.emitted(self.read(self.box(block)))

    def emitted(self, arrays: Sequence[Array]) -> BlockSums:
        """Return what the neighbours of a block need."""
        batch, box = self._points(arrays)
        own = table_of(box, self.computed) if self.regions else self.computed.of_box(*box)
        return self._with_planes(batch, own, box)

    def planes(self, block: Index, across: Sequence[int]) -> BlockSums:
        """Read the first points of a block across some spatial axes, without a sum of its own.

        They are all that its neighbours need if each of them is earlier along all of these axes.
        """
        box = list(self.box(block))
        for axis in across:
            start = box[self.lead + axis].start
            box[self.lead + axis] = slice(start, start + 1)
        batch, points = self._points(self.read(tuple(box)))
        none = np.zeros((0, 0), np.int64)
        return self._with_planes(batch, none, points)

    def _with_planes(self, batch: Index, own: Values, box: Box) -> BlockSums:
        first = outermost(box, slice(0, 1), self.crossed)
        last = outermost(box, slice(-1, None), self.crossed)
        return BlockSums(batch, own, first, last)

    def _points(self, arrays: Sequence[Array]) -> tuple[Index, Box]:
        """Return the lengths of the batch axes, and the points (batch, *spatial) of a block."""
        if not self.regions:
            batch = arrays[0].shape[: self.lead]
            images = math.prod(batch)
            flat = [array.reshape((images, *array.shape[self.lead :])) for array in arrays]
            return batch, tuple(flat)
        points: Any = tuple(array.reshape(array.shape[self.lead :]) for array in arrays)
        if self.computed.windows:
            check_label_values(points[1], points[1].dtype)
        else:
            image, labels = points
            points = without_missing(image, labels, self.computed.filtration.nan)
        return (), tuple(array[None] for array in points)

    def share(self, block: Index, emitted: Sequence[BlockSums]) -> Values:
        """Return the contribution of a block: a table, or values of shape (*batch, size).

        `emitted` are the block and all its later neighbours, the last axis running fastest.
        """
        own = emitted[0]
        place = self.place(block)
        parts = self.computed.parts()
        stops = np.cumsum([self.regions, *(part.size for part in parts)]).tolist()
        shares: list[Values] = []
        for part, (start, stop) in zip(parts, itertools.pairwise(stops), strict=True):
            terms = []
            if not self.counts_nothing:
                terms = crossing_terms(emitted, place.after, part.faces(place))
            if self.regions:
                table = table_with_terms(own.own[:, [0, *range(start, stop)]], terms, part)
                shares.append(table[:, 1:] if shares else table)
            else:
                shares.append(part.with_terms(own.own[:, start:stop], terms))
        values: Values = shares[0] if len(shares) == 1 else np.concatenate(shares, axis=1)
        if self.counts_nothing:
            values[:, int(self.regions) :] = 0
        return values if self.regions else values.reshape((*own.batch, values.shape[-1]))

    def sum(self, shares: Sequence[Values]) -> Values:
        return add_tables(shares) if self.regions else add(shares)

    def groups(self, size: int, side: int, span: Span | None = None) -> list[Group]:
        """All blocks, in groups of at most `size` in columns of `side` blocks across.

        In this order blocks are numbered, and a `span` of numbers can be chosen.
        """
        begin, end = span or (0, self.blocks)
        images = itertools.product(*map(range, self.counts[: self.lead]))
        first, *across = self.owners[self.lead :]
        parts = [_parts(count, side) for count in across]
        columns = list(itertools.product([slice(0, first)], *parts))
        groups = []
        number = 0
        for at, column in itertools.product(images, columns):
            count = math.prod(part.stop - part.start for part in column)
            stop = min(count, end - number)
            starts = range(max(0, begin - number), stop, size)
            groups += [Group(at, column, i, min(i + size, stop)) for i in starts]
            number += count
        return groups


def _parts(count: int, side: int) -> list[slice]:
    """Return the parts of `side` blocks of an axis, of which the last one may have fewer."""
    return [slice(i, min(i + side, count)) for i in range(0, count, side)]


def _alone(count: int) -> list[tuple[int, ...]]:
    """Return the index of each block along an axis across which no planes are exchanged."""
    return [(i,) for i in range(count)]


def _with_later(count: int) -> list[tuple[int, ...]]:
    """Return the index of each block along an axis, and that of its later neighbour if any."""
    steps: list[tuple[int, ...]] = [(i, i + 1) for i in range(count)]
    if steps:
        steps[-1] = (count - 1,)
    return steps


def _with_end(lengths: tuple[int, ...], border: Border) -> tuple[int, ...]:
    """Return the lengths of blocks along an axis, with the point behind the last one."""
    if border.is_closed or not lengths:
        return lengths
    *others, last = lengths
    return tuple(filter(None, (*others, last - border.missing, 1)))


def table_of(box: Box, computed: BoxValues) -> Values:
    """Return the table of an image and its labels, each (1, *spatial)."""
    ids, values = computed.of_regions(*(array[0] for array in box))
    return np.concatenate([ids.astype(np.int64)[:, None], values], axis=1)


def without_missing(image: Array, labels: Array, nan: str) -> Box:
    """Return an image and its checked labels, in which omitted NaN are in no region."""
    check_label_values(labels, labels.dtype)
    if nan == "omit" and image.dtype.kind == "f":
        missing = np.isnan(image)
        labels = np.where(missing, labels.dtype.type(0), labels)
        image = np.where(missing, image.dtype.type(0), image)
    return image, labels


def table_with_terms(own: Values, terms: Sequence[Term], computed: BoxValues) -> Values:
    """Return the sum of a block's table and the given terms."""
    tables = [own]
    for sign, box in terms:
        table = table_of(flattened(box) if computed.flat else box, computed)
        table[:, 1:] *= sign
        tables.append(table)
    return add_tables(tables)


def add_tables(tables: Sequence[Values]) -> Values:
    """Return the sum of tables, with a row for each label that occurs in any of them."""
    labels = np.unique(np.concatenate([table[:, 0] for table in tables]))
    added = np.zeros_like(tables[0], shape=(labels.size, tables[0].shape[1]))
    added[:, 0] = labels
    for table in tables:
        added[np.searchsorted(labels, table[:, 0]), 1:] += table[:, 1:]
    return added


def labels_of(table: Values, *, order: np.dtype[Any]) -> Array:
    """Return the labels of a table, increasing, in the given dtype."""
    return np.sort(table[:, 0].astype(order))


def values_of(table: Values, *, order: np.dtype[Any]) -> Values:
    """Return the curves of a table, in the order of its labels in the given dtype."""
    return table[np.argsort(table[:, 0].astype(order)), 1:]


def rows_of(table: Values, *, ids: Array) -> Values:
    """Return the curves of given labels; zero for labels without points."""
    if table.shape[0] == 0:
        return np.zeros_like(table, shape=(ids.size, table.shape[1] - 1))
    wanted = np.asarray(ids.astype(np.int64), like=table)
    at = np.minimum(np.searchsorted(table[:, 0], wanted), len(table) - 1)
    return np.where((table[at, 0] == wanted)[:, None], table[at, 1:], 0)
