"""Values of the boxes of an image that add up to those of the whole image.

The value of an image is the sum of the values of its blocks and of the terms between blocks. Of a
block's neighbours, the terms need only the planes of :mod:`ecc_core._blocks.planes`.
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
    """The values to compute of each box of an image, at some thresholds.

    By default `workers` is one thread, because a scheduler computes several boxes at once.
    """

    thresholds: Any
    filtration: Filtration
    workers: int | None = field(default=1, kw_only=True)

    flat: ClassVar[bool] = True
    """Whether axes of length 1 may be left out of a box."""
    windows: ClassVar[bool] = False
    """Whether the image continues beyond its mask and its regions, which are windows of it."""
    lands_on_host: ClassVar[bool] = False
    """Whether values are in host memory even if the image is on a device."""

    @property
    def size(self) -> int:
        """Number of values of an image."""
        return int(self.thresholds.size)

    def of_box(self, *box: Array) -> Values:
        """Return the values of a box on its own, for each image: (images, size)."""
        raise NotImplementedError

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        """Return the labels that occur in a box, and their values, (labels, size).

        The box has no batch axis. If `windows` is True, a mask of the points that may enter can
        follow the labels.
        """
        raise NotImplementedError

    def curves(self, sums: Array) -> Array:
        """Convert sums over the boxes, (..., size), to curves, (..., n) or (..., k, n)."""
        return sums

    def parts(self) -> "Sequence[BoxValues]":
        """Return the quantities whose shares are computed one by one and then concatenated."""
        return [self]

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return the faces of a block at a place (see :mod:`ecc_core._blocks.planes`)."""
        return faces_of(place, self.filtration.connectivity)

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        """Return the sum of a block's values and the given terms, (images, size)."""
        # Boxes of a batch are extended to one shape, so they should be of similar sizes: the number
        # of axes and the thickness tell slabs from planes and from lines.
        batches: dict[tuple[int, bool], list[Term]] = {}
        for sign, box in terms:
            box = flattened(box)
            _, thickness, *others = box[0].shape
            batches.setdefault((len(others), thickness > 2), []).append((sign, box))
        return add([own, *(signed_sum(batch, self.of_box) for batch in batches.values())])


def add(shares: Sequence[Values]) -> Values:
    return sum(shares[1:], start=shares[0])


def differences(curves: Values, *, superlevel: bool) -> Values:
    """Return the change of each curve from one threshold to the next, in the order of entry.

    The first change is from zero.
    """
    changed = curves.copy()
    if superlevel:
        changed[..., :-1] -= curves[..., 1:]
    else:
        changed[..., 1:] -= curves[..., :-1]
    return changed
