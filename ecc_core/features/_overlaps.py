"""The regions of label images, and the points that those of consecutive frames share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Frame(NamedTuple):
    """The regions of a frame, by increasing label."""

    labels: Integers
    points: Integers
    centroids: NDArray[np.float64]


class Numbered(NamedTuple):
    """A frame whose regions are numbered from 1 to `n_regions`."""

    image: NDArray[np.intp]
    n_regions: int


class Overlaps(NamedTuple):
    """Pairs of regions of consecutive frames, and the numbers of points that they share."""

    first: Integers
    second: Integers
    shared: Integers

    def moved(self, first_row: int, second_row: int) -> Overlaps:
        """Return the pairs with the first row of each frame added to their numbers."""
        return Overlaps(self.first + first_row, self.second + second_row, self.shared)


def measured(image: NDArray[np.integer[Any]]) -> tuple[Frame, Numbered]:
    """Return the regions of a label image, and the image with labels numbered consecutively."""
    places = np.nonzero(image)
    labels, numbers = np.unique(image[places], return_inverse=True)
    points = np.bincount(numbers, minlength=labels.size)
    sums = [np.bincount(numbers, weights=at, minlength=labels.size) for at in places]
    numbered = np.zeros(image.shape, np.intp)
    numbered[places] = numbers + 1
    frame = Frame(labels.astype(np.int64), points, np.stack(sums, axis=1) / points[:, None])
    return frame, Numbered(numbered, labels.size)


def overlaps_of(before: Numbered, after: Numbered) -> Overlaps:
    """Return the pairs of regions of two frames that share points, numbered from 0."""
    both = (before.image > 0) & (after.image > 0)
    pairs = (before.image[both] - 1) * after.n_regions + (after.image[both] - 1)
    codes, shared = np.unique(pairs, return_counts=True)
    first, second = np.divmod(codes, max(after.n_regions, 1))
    return Overlaps(first, second, shared)


def joined(overlaps: list[Overlaps]) -> Overlaps:
    """Return the pairs of all frames."""
    none = np.zeros(0, np.int64)
    columns = zip(Overlaps(none, none, none), *overlaps, strict=True)
    return Overlaps(*[np.concatenate(column) for column in columns])
