"""What is computed of an image in blocks: how the points of a box count, and how boxes are glued.

A quantity needs of the neighbours of a block only the planes of :mod:`ecc_core._blocks.planes`, and
is the sum of what blocks contribute: their own values, and those of the terms between blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._backends.borders import closed, stretch
from ecc_core._blocks.planes import Array, Box, Face, Place, Term, faces_of, flattened
from ecc_core._request.estimator import Estimator, estimator_of
from ecc_core._request.filtration import Filtration

Values = NDArray[np.int64]
Faces = Sequence[Sequence[Face]]

FIRST = [Face(-2, 0), Face(1, 0, thickness=2)]
LAST = [Face(2, -1), Face(-1, -1, thickness=2)]
"""What the shares of V lack where a half-open window of cubes begins and ends.

They count the faces before the first cube, and not those between the last two cubes, but as if the
last cube were alone. With f(p) for the faces of the points p on one side, the difference is
f(n-1) - f(0), where f(p) is twice the cells of p, of thickness 1, less those of p repeated to a
thickness of 2.
"""


@dataclass(frozen=True)
class Quantity:
    """What is computed of each box of an image, at some thresholds.

    A scheduler runs several tasks at once, so that each of them is one thread.
    """

    thresholds: Any
    filtration: Filtration
    workers: int | None = field(default=1, kw_only=True)

    flat: ClassVar[bool] = True
    """Whether the axes across which a box has a single point may be left out."""

    @property
    def size(self) -> int:
        """Number of values of an image."""
        return int(self.thresholds.size)

    def of_box(self, *box: Array) -> Values:
        """Return the values of each image of a box on its own, (images, size)."""
        raise NotImplementedError

    def of_regions(self, image: Array, labels: Array) -> tuple[Array, Values]:
        """Return labels of a box without a batch axis, and their values, (labels, size)."""
        raise NotImplementedError

    def parts(self) -> Sequence[Quantity]:
        """Return quantities with shares of their own, whose values come one after another."""
        return [self]

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return what the share of a block at a place adds to the block with its next points."""
        return faces_of(place, self.filtration.connectivity)

    def with_terms(
        self, own: Values, place: Place, terms_of: Callable[[Faces], list[Term]]
    ) -> Values:
        """Return the contribution of a block at a place, (images, size).

        `terms_of` returns the terms between the block and its neighbours, given the faces of the
        block.
        """
        values = own.copy()
        for batch in _batches(terms_of(self.faces(place))):
            values += self._signed_sum(batch)
        return values

    def _signed_sum(self, terms: list[Term]) -> Values:
        """Return the signed sum of boxes, computed as one batch, (images, size).

        Boxes are padded to the largest shape by repeating the last plane, which keeps their curves.
        """
        shapes = [box[0].shape for _, box in terms]
        images, *spatial = map(max, zip(*shapes, strict=True))
        parts = range(len(terms[0][1]))
        batch = [
            np.concatenate([stretch(box[part], spatial) for _, box in terms]) for part in parts
        ]
        values = self.of_box(*batch).reshape((len(terms), images, -1))
        signed = [sign * part for (sign, _), part in zip(terms, values, strict=True)]
        return add(signed)


@dataclass(frozen=True)
class Curve(Quantity):
    """Euler characteristic curves."""

    def of_box(self, *box: Array) -> Values:
        """Return the curve of each image of a box on its own."""
        image, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        values: Values = (
            origin_of(image)
            .backend()
            .curve(
                image,
                self.thresholds,
                closed(self.filtration, image.ndim - 1),  # planes have fewer axes
                mask=mask[0] if mask else None,
                workers=1,
            )
        )
        return values

    def of_regions(self, image: Array, labels: Array) -> tuple[Array, Values]:
        """Return labels and their curves."""
        filtration = closed(self.filtration, image.ndim)
        backend = origin_of(image).backend()
        return backend.region_curves(
            image, labels, self.thresholds, filtration, workers=self.workers
        )


@dataclass(frozen=True)
class Surface(Quantity):
    """Surfaces of two images, as curves over all pairs of thresholds in C order.

    `thresholds` are those of both images, `filtration` that of the first one.
    """

    second: Filtration

    @property
    def size(self) -> int:
        """Number of pairs of thresholds."""
        return math.prod(at.size for at in self.thresholds)

    def of_box(self, *box: Array) -> Values:
        """Return the surface of each pair of images of a box on its own."""
        first, second, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        a, b = (one.in_axes(first.ndim - 1) for one in (self.filtration, self.second))
        backend = origin_of(first).surfaces()
        shown = mask[0] if mask else None
        values: Values = backend.surface(
            first, second, self.thresholds, (a, b), mask=shown, workers=1
        )
        return values.reshape((len(first), self.size))


@dataclass(frozen=True)
class CellCounts(Quantity):
    """Numbers of cells of all kinds, those of one estimator after those of another."""

    estimators: tuple[Estimator, ...]

    flat = False  # boxes of thickness 1 have cells without extent across it

    @classmethod
    def of(cls, thresholds: Array, filtration: Filtration, name: str, spacing: Any) -> CellCounts:
        """Return those of an estimator, and of the exact one for the Euler characteristic."""
        chosen = estimator_of(name, spacing, filtration)
        others = () if chosen.exact else (estimator_of("exact", spacing, filtration),)
        return cls(thresholds, filtration, (chosen, *others))

    @property
    def sizes(self) -> list[int]:
        """Values of each estimator."""
        return [len(one.cells.groups) * self.thresholds.size for one in self.estimators]

    @property
    def size(self) -> int:
        """Values of an image, or of a label."""
        return sum(self.sizes)

    def of_box(self, *box: Array) -> Values:
        """Return the numbers of cells of each image of a box on its own."""
        return np.concatenate([self._counts(box, one) for one in self.estimators], axis=1)

    def of_regions(self, image: Array, labels: Array) -> tuple[Array, Values]:
        """Return labels and their numbers of cells."""
        backend = origin_of(image).cell_counts()
        found = [
            backend.region_cell_counts(
                image,
                labels,
                self.thresholds,
                one.cells,
                closed(self.filtration, self.filtration.ndim),
                workers=self.workers,
            )
            for one in self.estimators
        ]
        rows = [
            counts.reshape((len(counts), n))
            for (_, counts), n in zip(found, self.sizes, strict=True)
        ]
        values = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)
        return on_host(found[0][0]), values

    def with_terms(
        self, own: Values, place: Place, terms_of: Callable[[Faces], list[Term]]
    ) -> Values:
        """Return the contribution of a block."""
        parts = np.split(own, np.cumsum(self.sizes)[:-1], axis=1)
        for i, one in enumerate(self.parts()):
            for sign, box in terms_of(one.faces(place)):
                parts[i] = parts[i] + sign * one.of_box(*box)
        return np.concatenate(parts, axis=1)

    def parts(self) -> list[CellCounts]:
        """Return those of each estimator."""
        return [replace(self, estimators=(one,)) for one in self.estimators]

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return what the share of one estimator adds: that of V serves T and groups of points too.

        Only half-open windows of cubes need additional faces.
        """
        faces = faces_of(place, 1)
        if self.filtration.boundary.missing and not self.estimators[0].cells.every:
            ends = zip(faces, place.first, place.last, strict=True)
            faces = tuple([*f, *FIRST * first, *LAST * last] for f, first, last in ends)
        return faces

    def _counts(self, box: Box, estimator: Estimator) -> Values:
        """Return the values of one estimator."""
        image, *mask = box
        counts: Values = (
            origin_of(image)
            .cell_counts()
            .cell_counts(
                image,
                self.thresholds,
                estimator.cells,
                closed(self.filtration, self.filtration.ndim),
                mask=mask[0] if mask else None,
                workers=1,
            )
        )
        return counts.reshape((len(image), counts.shape[1] * counts.shape[2]))


def coefficients_of(image: Array, *mask: Array, quantity: Curve) -> NDArray[np.int8]:
    """Return the coefficients of a block that is padded by the nearest points of its neighbours."""
    kept = mask[0][None] if mask else None
    values: NDArray[np.int8] = (
        origin_of(image)
        .backend()
        .coefficients(image[None], quantity.filtration, mask=kept, workers=1)[0]
    )
    return values


def _batches(terms: list[Term]) -> list[list[Term]]:
    """Terms to be computed at once: slabs, planes, and all that is smaller."""
    batches: dict[tuple[int, bool], list[Term]] = {}
    for sign, box in terms:
        box = flattened(box)
        _, thickness, *others = box[0].shape
        batches.setdefault((len(others), thickness > 2), []).append((sign, box))
    return list(batches.values())


def add(shares: Sequence[Values]) -> Values:
    """Return the sum of shares."""
    summed: Values = sum(shares[1:], start=shares[0])
    return summed


def differences(curves: Values, *, superlevel: bool) -> Values:
    """Signed histograms: what enters at each threshold, in the order of entry."""
    changed = curves.copy()
    if superlevel:
        changed[..., :-1] -= curves[..., 1:]
    else:
        changed[..., 1:] -= curves[..., :-1]
    return changed
