"""The blocks of an image, and the tasks of each of them.

Processing a block gives its own values or table, and copies of its outermost planes. From these the
terms between a block and its later neighbours are computed. The *share* of a block is the sum of
its own values and these terms.

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
    crossing_terms,
    flattened,
    outermost,
)
from ecc_core._partition import Index, Partition
from ecc_core._request.boundary import check_boundary
from ecc_core._request.labels import check_label_values

Values = NDArray[np.int64]
Span = tuple[int, int]
"""Numbers of blocks, half open."""


class Group(NamedTuple):
    """Consecutive blocks of a column, whose contributions are added."""

    images: Index  # Index of the blocks along the batch axes.
    column: tuple[slice, ...]  # The blocks of the column along the spatial axes.
    first: int  # The place of the group's first block in the C order of the column.
    stop: int  # The place after its last block.

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

    `read` takes a box, a slice for each axis, and returns its points, and their labels if there are
    `regions`. It is None if blocks come from elsewhere. `chunks` are the lengths of the blocks
    along each axis, batch axes first. Along batch axes of labelled images, blocks have length 1.

    The `partition` has a block behind the last one along axes whose border is not closed. If a
    half-open window owns no cells, only its labels are used.
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
        boundary = computed.filtration.boundary
        check_boundary(boundary.name)
        self.partition = Partition.of_blocks(chunks, boundary.axes).with_ends()

    @property
    def lead(self) -> int:
        """Number of batch axes."""
        return self.partition.lead

    @property
    def blocks(self) -> int:
        """Number of blocks that have a share."""
        return math.prod(self.partition.owners)

    def near(self, block: Index) -> list[Index]:
        """Return the blocks whose planes the share of a block needs, beginning with itself."""
        return self.partition.near(block)

    def process(self, block: Index) -> BlockSums:
        """Read a block and return its own values and its outermost planes."""
        return self.sums_of(self.read(self.partition.box(block)))

    def sums_of(self, arrays: Sequence[Array]) -> BlockSums:
        """Return the own values and the outermost planes of a block that has been read."""
        batch, box = self._points(arrays)
        own = table_of(box, self.computed) if self.regions else self.computed.of_box(*box)
        return self._with_planes(batch, own, box)

    def planes(self, block: Index, across: Sequence[int]) -> BlockSums:
        """Read only the first points of a block along some spatial axes, and return its planes.

        Neighbours need nothing else if each of them is earlier along all of these axes.
        """
        box = list(self.partition.box(block))
        for axis in across:
            start = box[self.lead + axis].start
            box[self.lead + axis] = slice(start, start + 1)
        batch, points = self._points(self.read(tuple(box)))
        none = np.zeros((0, 0), np.int64)
        return self._with_planes(batch, none, points)

    def _with_planes(self, batch: Index, own: Values, box: Box) -> BlockSums:
        first = outermost(box, slice(0, 1), self.partition.crossed)
        last = outermost(box, slice(-1, None), self.partition.crossed)
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

    def share(self, block: Index, processed: Sequence[BlockSums]) -> Values:
        """Return the contribution of a block: a table, or values of shape (*batch, size).

        `processed` are the block and all its later neighbours, the last axis running fastest.
        """
        own = processed[0]
        place = self.partition.place(block)
        owns_nothing = self.partition.owns_nothing
        parts = self.computed.parts()
        stops = np.cumsum([self.regions, *(part.size for part in parts)]).tolist()
        shares: list[Values] = []
        for part, (start, stop) in zip(parts, itertools.pairwise(stops), strict=True):
            terms = []
            if not owns_nothing:
                terms = crossing_terms(processed, place.after, part.faces(place))
            if self.regions:
                table = table_with_terms(own.own[:, [0, *range(start, stop)]], terms, part)
                shares.append(table[:, 1:] if shares else table)
            else:
                shares.append(part.with_terms(own.own[:, start:stop], terms))
        values: Values = shares[0] if len(shares) == 1 else np.concatenate(shares, axis=1)
        if owns_nothing:
            values[:, int(self.regions) :] = 0
        return values if self.regions else values.reshape((*own.batch, values.shape[-1]))

    def sum(self, shares: Sequence[Values]) -> Values:
        return add_tables(shares) if self.regions else add(shares)

    def groups(self, size: int, side: int, span: Span | None = None) -> list[Group]:
        """Return groups of at most `size` blocks, in columns that are `side` blocks wide.

        Blocks are numbered in this order. A `span` of numbers restricts the groups to them.
        """
        begin, end = span or (0, self.blocks)
        owners = self.partition.owners
        images = itertools.product(*map(range, owners[: self.lead]))
        first, *across = owners[self.lead :]
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
    """Return parts of `side` blocks of an axis. The last part may have fewer."""
    return [slice(i, min(i + side, count)) for i in range(0, count, side)]


def table_of(box: Box, computed: BoxValues) -> Values:
    """Return the table of an image and its labels, each (1, *spatial)."""
    ids, values = computed.of_regions(*(array[0] for array in box))
    return np.concatenate([ids.astype(np.int64)[:, None], values], axis=1)


def without_missing(image: Array, labels: Array, nan: str) -> Box:
    """Return an image and its labels, checked. Omitted NaN get label 0 and value 0."""
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
    """Return the curves of given labels, zero for labels that the table does not have."""
    if table.shape[0] == 0:
        return np.zeros_like(table, shape=(ids.size, table.shape[1] - 1))
    wanted = np.asarray(ids.astype(np.int64), like=table)
    at = np.minimum(np.searchsorted(table[:, 0], wanted), len(table) - 1)
    return np.where((table[at, 0] == wanted)[:, None], table[at, 1:], 0)
