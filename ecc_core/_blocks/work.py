"""The blocks of an image, and the tasks of each of them.

A block emits its own values or table and copies of its outermost planes. The terms between a block
and its later neighbours need nothing else, and are added to it: this is the *share* of the block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._arrays.xarray import value_units
from ecc_core._blocks.planes import (
    Array,
    BlockSums,
    Box,
    Place,
    crossing_terms,
    neighbours,
    outermost,
    place_of,
)
from ecc_core._blocks.quantities import Quantity, add
from ecc_core._blocks.regions import (
    add_tables,
    labels_of,
    table_of,
    table_with_terms,
    values_of,
    without_missing,
)
from ecc_core._request.filtration import Boundary, check_boundary
from ecc_core.errors import BackendError

Index = tuple[int, ...]
Values = NDArray[np.int64]
RegionT = TypeVar("RegionT")


class Group(NamedTuple):
    """Consecutive blocks of a column, whose contributions are added.

    Attributes
    ----------
    images : tuple of int
        Index of the blocks along the batch axes.
    column : tuple of slice
        Which blocks the column has along the spatial axes.
    first, stop : int
        The group's blocks in the C order of the column.
    """

    images: Index
    column: tuple[slice, ...]
    first: int
    stop: int

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

    Parameters
    ----------
    read : callable
        Takes a box, a slice for each axis, and returns its points and their labels, if there are.
        None where blocks come from elsewhere.
    chunks : tuple of tuple of int
        Lengths of the blocks along each axis, batch axes first; those of labelled images have
        length 1 along batch axes.
    quantity : Quantity, or what a subclass takes instead
        If the boundary is not closed, every block has a neighbour along each axis. Behind the last
        one this is the first point of a periodic image, or the last point of a half-open window.
    regions : bool
        Whether there are labels.
    """

    def __init__(
        self,
        read: Callable[[tuple[slice, ...]], tuple[Array, ...]] | None,
        chunks: tuple[tuple[int, ...], ...],
        quantity: Any,
        *,
        regions: bool = False,
    ) -> None:
        self.read: Any = read
        self.quantity, self.regions = quantity, regions
        self.lead = len(chunks) - quantity.filtration.ndim
        self.shape = tuple(map(sum, chunks))
        boundary = check_boundary(quantity.filtration.boundary, "blocks")
        self.open = not boundary.is_closed
        if self.open:
            spatial = (_with_end(lengths, boundary) for lengths in chunks[self.lead :])
            chunks = (*chunks[: self.lead], *spatial)
        self.chunks, self.counts = chunks, tuple(map(len, chunks))
        self.edges = [np.cumsum([0, *lengths]).tolist() for lengths in chunks]

    @property
    def owners(self) -> tuple[int, ...]:
        """Numbers of blocks along each axis, without those behind the last one."""
        spatial = (max(0, n - self.open) for n in self.counts[self.lead :])
        return (*self.counts[: self.lead], *spatial)

    def box(self, block: Index) -> tuple[slice, ...]:
        """Return the place of a block along as many axes as its index has."""
        parts = zip(self.edges, self.shape, block, strict=False)
        return tuple(
            slice(edges[i], edges[i + 1]) if edges[i] < length else slice(0, 1)
            for edges, length, i in parts
        )

    def place(self, block: Index) -> Place:
        """Return where a block is along each axis."""
        return place_of(block[self.lead :], self.owners[self.lead :], goes_on=self.open)

    def near(self, block: Index) -> list[Index]:
        """Return a block and its later neighbours."""
        images, at = block[: self.lead], block[self.lead :]
        return [(*images, *other) for other in neighbours(at, self.counts[self.lead :])]

    def emit(self, block: Index) -> BlockSums:
        """Read a block and return what its neighbours need."""
        return self.emitted(self.read(self.box(block)))

    def emitted(self, arrays: Sequence[Array]) -> BlockSums:
        """Return what the neighbours of a block need."""
        batch: Index = ()
        if self.regions:
            image, labels = (array.reshape(array.shape[self.lead :]) for array in arrays)
            box: Box = tuple(
                array[None]
                for array in without_missing(image, labels, self.quantity.filtration.nan)
            )
            own = table_of(box, self.quantity)
        else:
            batch = arrays[0].shape[: self.lead]
            box = tuple(a.reshape((math.prod(batch), *a.shape[self.lead :])) for a in arrays)
            own = self.quantity.of_box(*box)
        return BlockSums(batch, own, outermost(box, slice(0, 1)), outermost(box, slice(-1, None)))

    def share(self, block: Index, emitted: Sequence[BlockSums]) -> Values:
        """Return the contribution of a block: a table, or values of shape (*batch, size).

        `emitted` are the block and all its later neighbours, the last axis running fastest.
        """
        own, place = emitted[0], self.place(block)
        if self.regions:
            parts = self.quantity.parts()
            stops = np.cumsum([1, *(part.size for part in parts)]).tolist()
            tables = []
            for part, (start, stop) in zip(parts, itertools.pairwise(stops), strict=True):
                terms = crossing_terms(emitted, place.after, part.faces(place))
                columns = own.own[:, [0, *range(start, stop)]]
                tables.append(table_with_terms(columns, terms, part))
            first, *others = tables
            return np.concatenate([first, *(table[:, 1:] for table in others)], axis=1)
        terms_of = partial(crossing_terms, emitted, place.after)
        values: Values = self.quantity.with_terms(own.own, place, terms_of)
        return values.reshape((*own.batch, values.shape[-1]))

    def sum(self, shares: Sequence[Values]) -> Values:
        """Return the sum of shares."""
        return add_tables(shares) if self.regions else add(shares)

    def groups(self, size: int, side: int) -> list[Group]:
        """All blocks, in groups of at most `size` in columns of `side` blocks across."""
        images = itertools.product(*map(range, self.counts[: self.lead]))
        first, *across = self.owners[self.lead :]
        parts = [[slice(i, min(i + side, n)) for i in range(0, n, side)] for n in across]
        columns = list(itertools.product([slice(0, first)], *parts))
        groups = []
        for at, column in itertools.product(images, columns):
            count = math.prod(part.stop - part.start for part in column)
            starts = range(0, count, size)
            groups += [Group(at, column, i, min(i + size, count)) for i in starts]
        return groups


def _with_end(lengths: tuple[int, ...], boundary: Boundary) -> tuple[int, ...]:
    """The lengths of blocks along an axis, and behind them a point of the block after the last."""
    if not lengths:
        return ()
    return tuple(filter(None, (*lengths[:-1], lengths[-1] - boundary.missing, 1)))


def region_result(
    kind: Callable[..., RegionT],
    computed: type[Quantity],
    request: Request,
    image: Any,
    thresholds: Any,
    estimator: str = "exact",
    spacing: Any = None,
    **facts: Any,
) -> RegionT:
    """Return the result of a quantity for the regions of an image in memory."""
    origin, at = request.origin, request.thresholds()
    quantity = computed.of(at, request.filtration, estimator, spacing, workers=request.workers)
    ids, sums = _values_of_regions(request.images[0], request.labels, quantity)
    values = quantity.curves(sums)
    request.warn_if_missed(at, values)
    found = origin.wrap(ids), origin.thresholds(thresholds, at), origin.wrap(values)
    return kind(*found, **quantity.facts, units=value_units(image), **facts)


def _values_of_regions(image: Array, labels: Array, quantity: Quantity) -> tuple[Array, Values]:
    """Return the ids of regions of an image in memory, increasing, and their values, (ids, size).

    If the image is not closed, it is the only block, with neighbours as `Work` describes them.
    """
    boundary, origin = quantity.filtration.boundary, origin_of(image)
    if boundary.is_closed:
        return quantity.of_regions(image, labels)
    if not origin.on_host:
        raise BackendError(
            f'`boundary` must be "closed" for regions on {origin.device}, got "{boundary.name}": '
            "copy the arrays to the host"
        )
    chunks = tuple((length,) for length in image.shape)
    work = Work(lambda box: (image[box], labels[box]), chunks, quantity, regions=True)
    dtype, block = labels.dtype.newbyteorder("="), (0,) * image.ndim
    if 0 in work.owners:
        ids = np.unique(labels[labels != 0]).astype(dtype)
        return ids, np.zeros((ids.size, quantity.size), np.int64)
    table = work.share(block, [work.emit(near) for near in work.near(block)])
    return labels_of(table, order=dtype), values_of(table, order=dtype)
