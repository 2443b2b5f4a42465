"""Quantities of images whose boxes are glued: the pieces of boxes, and how they are joined.

The box of all blocks is halved until single blocks are left, and their pieces are joined in the
opposite order. A piece takes memory in proportion to its open sides, so all pieces that wait to be
joined take about as much as the largest cross-section of the image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._backends import betti_numbers
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.planes import Array
from ecc_core._blocks.work import Group, Span, Work
from ecc_core._partition import Index, Ranges, Side, block_count, with_range

if TYPE_CHECKING:
    from ecc_core._backends.protocols import BettiPieces, HostBettiNumbers, SizePieces

MOST_BLOCKS = 64  # The pieces of all blocks of a group are in memory at the same time.
# The peak of memory while pieces are joined, in pieces with the open side of a cross-section. It
# was measured with blocks of whole pages.
PIECES_AT_PEAK = 14
# Bytes of a piece for each point of an open side, measured with noise, which is the worst case.
# Betti numbers alone take 17.
PIECE_BYTES = 24

Values = NDArray[np.int64]


@dataclass(frozen=True)
class BoxPieces(BoxValues):
    """A quantity of an image that is computed from the pieces of its blocks."""

    dtype: np.dtype[Any]
    """The dtype of the image."""
    masked: bool

    @property
    def rows(self) -> int:
        """Number of curves of an image, such as one for each Betti number."""
        raise NotImplementedError

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the backend's functions."""
        return {}

    def of_backend(self, backend: HostBettiNumbers) -> BettiPieces | SizePieces:
        """Return the functions of a backend that make, join and count pieces."""
        raise NotImplementedError

    @property
    def backend(self) -> BettiPieces | SizePieces:
        """The functions of the host's backend, because pieces are in host memory."""
        return self.of_backend(betti_numbers("cpu"))

    def pieces(
        self, image: Array, mask: Array | None, sides: tuple[Side, ...], *ends: Array | None
    ) -> list[Any]:
        """Return the pieces of a block, one for each image along its batch axes.

        `ends` are the points of an inlet and of an outlet, if the quantity has them.
        """
        ndim = self.filtration.ndim
        piece_of = self.of_backend(origin_of(image).betti_numbers()).piece_of
        images = image.reshape((-1, *image.shape[image.ndim - ndim :]))
        of_each = [_for_each(array, images) for array in (mask, *ends)]
        found = []
        for one, shown, *own in zip(images, *of_each, strict=True):
            options = self.options if not own else {**self.options, "ends": tuple(own)}
            piece = piece_of(
                one, self.thresholds, self.filtration, sides, mask=shown, workers=1, **options
            )
            found.append(piece)
        return found

    def joined(self, low: list[Any], high: list[Any], axis: int) -> list[Any]:
        """Return the pieces of two boxes that touch across a spatial axis."""
        return [
            self.backend.join_pieces(
                one,
                other,
                axis,
                self.dtype,
                self.thresholds,
                self.filtration,
                masked=self.masked,
                **self.options,
            )
            for one, other in zip(low, high, strict=True)
        ]

    def numbers(self, pieces: list[Any], batch: tuple[int, ...] = (1,)) -> Values:
        """Return the curves of whole images, batch + (rows, n)."""
        found = [
            self.backend.numbers_of(
                piece,
                self.dtype,
                self.thresholds,
                self.filtration,
                masked=self.masked,
                **self.options,
            )
            for piece in pieces
        ]
        return np.reshape(found, (*batch, self.rows, self.thresholds.size))


def piece_bytes(block: Sequence[int], shape: Sequence[int]) -> int:
    """Return the approximate size of the piece of a block, in bytes."""
    points = math.prod(block)
    on_sides = 0
    for length, whole in zip(block, shape, strict=True):
        if length < whole:  # The block has two open sides across this axis.
            on_sides += 2 * points // length
    return PIECE_BYTES * on_sides


def _for_each(array: Array | None, images: Array) -> Sequence[Array | None]:
    """Return the part of an array that belongs to each of some images."""
    if array is None:
        return [None] * len(images)
    return list(array.reshape(images.shape))


def joining_bytes(block: Sequence[int], shape: Sequence[int]) -> int:
    """Return the approximate memory, in bytes, for all pieces that wait or are being joined.

    They have the open sides of cross-sections of the image, across its longest axis that is cut.
    """
    lengths = [whole for n, whole in zip(block, shape, strict=True) if n < whole]
    if not lengths:
        return 0
    cross_section = math.prod(shape) // max(lengths)
    return PIECES_AT_PEAK * PIECE_BYTES * cross_section


class GluedWork(Work):
    """Computes pieces of an image that is read by blocks. Each group is a box of blocks."""

    def __init__(self, read: Any, chunks: Any, computed: BoxPieces) -> None:
        super().__init__(read, chunks, computed)
        self.image = self.partition.spatial
        """The partition of one image, without batch axes."""
        cut_axes = [axis for axis, meets in enumerate(self.image.crossed) if meets]
        self.row = cut_axes[0] if len(cut_axes) == 1 else None
        """The only axis along which the image is cut, or None if there are others or none."""

    def near(self, block: Index) -> list[Index]:
        return [block]  # The piece of a block depends on no other block.

    def process(self, block: Index) -> Any:
        sides = self.partition.open_sides(block)
        image, *mask = self.read(self.partition.box(block))
        (piece,) = self.computed.pieces(image, mask[0] if mask else None, sides)
        return piece

    def share(self, block: Index, processed: Sequence[Any]) -> Any:
        """Return a block as a box of blocks, and its piece."""
        return tuple((i, i + 1) for i in block[self.lead :]), processed[0]

    def sum(self, shares: Sequence[Any]) -> Values:
        """Return the piece of a group as one array."""
        group = JoinedBoxes(self)
        for box, piece in shares:
            group.add(box, piece)
        (piece,) = group.pieces.values()
        found: Values = self.computed.backend.pack_piece(piece)
        return found

    def groups(self, size: int, side: int, span: Span | None = None) -> list[Group]:
        """Return boxes of at most `size` blocks, in the order in which they are joined.

        Blocks are numbered in this order. A `span` of numbers restricts the groups to them.
        """
        if self.partition.size == 0:
            return []
        size = min(size, MOST_BLOCKS)
        count = self.image.size
        begin, end = span or (0, self.blocks)
        groups = []
        batch = itertools.product(*map(range, self.partition.counts[: self.lead]))
        for number, images in enumerate(batch):
            own = begin - number * count, end - number * count
            for box in self._boxes(self.image.whole, size, own):
                column = tuple(slice(start, stop) for start, stop in box)
                groups.append(Group(images, column, 0, block_count(box)))
        return groups

    def _boxes(self, box: Ranges, size: int, numbers: Span) -> Iterator[Ranges]:
        """Yield boxes of at most `size` blocks: those blocks of `box` that have the given numbers.

        `numbers` count from the first block of `box`.
        """
        count = block_count(box)
        first = max(numbers[0], 0)
        stop = min(numbers[1], count)
        if first >= stop:
            return
        if self.row is not None:
            for i in range(first, stop, size):
                yield with_range(self.image.whole, self.row, (i, min(i + size, stop)))
            return
        cut = self.image.halves(box)
        if cut is None or (stop - first == count <= size):
            yield box
            return
        number = 0
        for half in cut[1:]:
            yield from self._boxes(half, size, (first - number, stop - number))
            number += block_count(half)


def _lies_in(box: Ranges, other: Ranges) -> bool:
    """Whether a box lies in another, given that both begin at the same block or later ones.

    It does if it does not end behind the other along any axis.
    """
    return all(stop <= end for (_, stop), (_, end) in zip(box, other, strict=True))


class JoinedBoxes:
    """The pieces of boxes, which are joined as soon as both halves of a larger box are there.

    If the image is cut along one axis only, any two boxes that touch are joined. Boxes that come in
    order are then joined at once, and their piece has a single open side.
    """

    def __init__(self, work: GluedWork) -> None:
        self.work = work
        self.pieces: dict[Ranges, Any] = {}

    def add_packed(self, box: Ranges, values: Values) -> None:
        """Add the piece of a box as `GluedWork.sum` returns it."""
        self.add(box, self.work.computed.backend.unpack_piece(values))

    def add(self, box: Ranges, piece: Any) -> None:
        self.pieces[box] = piece
        while joined := self._joined(box):
            box, low, high = joined
            ends_differ = [a != b for a, b in zip(low, high, strict=True)]
            axis = ends_differ.index(True)
            (self.pieces[box],) = self.work.computed.joined(
                [self.pieces.pop(low)], [self.pieces.pop(high)], axis
            )

    def _joined(self, box: Ranges) -> tuple[Ranges, Ranges, Ranges] | None:
        """Return a larger box and its halves if one half is `box` and both have pieces."""
        if self.work.row is not None:
            return self._joined_in_row(box, self.work.row)
        image = self.work.image
        parent = image.whole
        while parent != box and (cut := image.halves(parent)):
            _, low, high = cut
            if box in (low, high):
                both = low in self.pieces and high in self.pieces
                return (parent, low, high) if both else None
            parent = low if _lies_in(box, low) else high
        return None

    def _joined_in_row(self, box: Ranges, axis: int) -> tuple[Ranges, Ranges, Ranges] | None:
        for other in self.pieces:
            low, high = sorted((box, other), key=lambda part: part[axis])
            if low[axis][1] == high[axis][0]:
                both = (low[axis][0], high[axis][1])
                return with_range(self.work.image.whole, axis, both), low, high
        return None
