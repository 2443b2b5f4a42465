"""Totals over the groups of blocks of an image, added in any order and in several runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._blocks.glued import GluedWork, JoinedBoxes
from ecc_core._blocks.work import Group, Work
from ecc_core._partition import Index, Ranges

Values = NDArray[np.int64]


class Key(NamedTuple):
    """The blocks to which an array of a total belongs."""

    images: Index
    """Index of the blocks along the batch axes."""
    box: Ranges | None
    """The box of blocks along the spatial axes of a piece; None for a sum."""


class Total:
    """The sum of groups for each index of the blocks along the batch axes."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.sums: dict[Index, Values] = {}

    def add(self, group: Group, values: Values) -> None:
        """Add the values of a group, which `Work.sum` returns."""
        self.add_array(Key(group.images, None), values)

    def add_array(self, key: Key, values: Values) -> None:
        """Add an array of another total of the same work."""
        if key.images in self.sums:
            values = self.work.sum([self.sums[key.images], values])
        self.sums[key.images] = values

    def arrays(self) -> Iterator[tuple[Key, Values]]:
        """Yield the arrays of the total."""
        for images, values in self.sums.items():
            yield Key(images, None), values


class JoinedTotal(Total):
    """The pieces for each index of the blocks along the batch axes, joined as they come."""

    work: GluedWork

    def __init__(self, work: GluedWork) -> None:
        super().__init__(work)
        self.images: dict[Index, JoinedBoxes] = {}

    def add(self, group: Group, values: Values) -> None:
        box = tuple((part.start, part.stop) for part in group.column)
        self.add_array(Key(group.images, box), values)

    def add_array(self, key: Key, values: Values) -> None:
        assert key.box is not None
        if key.images not in self.images:
            self.images[key.images] = JoinedBoxes(self.work)
        self.images[key.images].add_packed(key.box, values)

    def arrays(self) -> Iterator[tuple[Key, Values]]:
        for images, joined in self.images.items():
            for box, piece in joined.pieces.items():
                yield Key(images, box), self.work.computed.backend.pack_piece(piece)

    def pieces(self) -> Iterator[tuple[Index, Any]]:
        """Yield the index and the piece of each whole image that has points."""
        for images, joined in self.images.items():
            (piece,) = joined.pieces.values()
            yield images, piece


def total_of(work: Work) -> Total:
    """Return an empty total of a work."""
    return JoinedTotal(work) if isinstance(work, GluedWork) else Total(work)
