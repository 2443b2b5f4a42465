"""Values of the boxes of an image that add up to those of the whole image.

Such values need of the neighbours of a block only the planes of :mod:`ecc_core._blocks.planes`, and
are the sum of what blocks contribute: their own values, and those of the terms between blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.signed_boxes import Term, signed_sum
from ecc_core._blocks.planes import Array, Face, faces_of, flattened
from ecc_core._partition import Place
from ecc_core._request.filtration import Filtration

Values = NDArray[np.int64]


@dataclass(frozen=True)
class BoxValues:
    """What is computed of each box of an image, at some thresholds.

    A scheduler runs several tasks at once, so that each of them is one thread.
    """

    thresholds: Any
    filtration: Filtration
    workers: int | None = field(default=1, kw_only=True)

    flat: ClassVar[bool] = True
    """Whether the axes across which a box has a single point may be left out."""
    windows: ClassVar[bool] = False
    """Whether masks and regions are windows of the image, not all that there is of it."""
    lands_on_host: ClassVar[bool] = False
    """Whether values are in host memory, wherever the image is."""

    @property
    def size(self) -> int:
        """Number of values of an image."""
        return int(self.thresholds.size)

    def of_box(self, *box: Array) -> Values:
        """Return the values of each image of a box on its own, (images, size)."""
        raise NotImplementedError

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        """Return labels of a box without a batch axis, and their values, (labels, size).

        In `windows`, a mask of the points that may enter can follow the labels.
        """
        raise NotImplementedError

    def curves(self, sums: Array) -> Array:
        """Return the values of results, (..., n) or (..., k, n), from sums (..., size)."""
        return sums

    def parts(self) -> "Sequence[BoxValues]":
        """Return those with shares of their own, whose values come one after another."""
        return [self]

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return what the share of a block at a place adds to the block with its next points."""
        return faces_of(place, self.filtration.connectivity)

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        """Return the sum of a block's values and the given terms, (images, size)."""
        batches: dict[tuple[int, bool], list[Term]] = {}  # slabs, planes, and all that is smaller
        for sign, box in terms:
            box = flattened(box)
            _, thickness, *others = box[0].shape
            batches.setdefault((len(others), thickness > 2), []).append((sign, box))
        return add([own, *(signed_sum(batch, self.of_box) for batch in batches.values())])


def add(shares: Sequence[Values]) -> Values:
    return sum(shares[1:], start=shares[0])


def differences(curves: Values, *, superlevel: bool) -> Values:
    """Signed histograms: what enters at each threshold, in the order of entry."""
    changed = curves.copy()
    if superlevel:
        changed[..., :-1] -= curves[..., 1:]
    else:
        changed[..., 1:] -= curves[..., :-1]
    return changed
