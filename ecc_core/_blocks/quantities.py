"""What is computed of an image in blocks: how the points of a box count, and how boxes are glued.

A quantity needs of the neighbours of a block only the planes of :mod:`ecc_core._blocks.planes`, and
is the sum of what blocks contribute: their own values, and those of the terms between blocks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._backends.borders import closed, signed_sum
from ecc_core._blocks.planes import Array, Face, Place, Term, faces_of, flattened
from ecc_core._request.estimator import Estimator, estimator_of
from ecc_core._request.filtration import Filtration
from ecc_core.results import EulerCurve, MinkowskiCurves, curve_facts, minkowski_facts

Values = NDArray[np.int64]

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
    result: ClassVar[Any] = EulerCurve
    windows: ClassVar[bool] = False
    """Whether masks and regions are windows of the image, not all that there is of it."""
    crosses: ClassVar[bool] = True
    """Whether something counts that lies in several boxes; else those of boxes simply add up."""
    lands_on_host: ClassVar[bool] = False
    """Whether values are in host memory, wherever the image is."""

    @classmethod
    def of(cls, thresholds: Array, filtration: Filtration, *_: Any, **options: Any) -> Self:
        """Return the quantity, given an estimator and the spacing in case it has lengths."""
        return cls(thresholds, filtration, **options)

    @property
    def facts(self) -> dict[str, Any]:
        """What results say of how they were computed."""
        return curve_facts(self.filtration)

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

    def parts(self) -> "Sequence[Quantity]":
        """Return quantities with shares of their own, whose values come one after another."""
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


@dataclass(frozen=True)
class Curve(Quantity):
    """Euler characteristic curves."""

    def of_box(self, *box: Array) -> Values:
        image, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        curve = origin_of(image).backend().curve
        flat = closed(self.filtration, image.ndim - 1)  # planes have fewer axes
        shown = mask[0] if mask else None
        values: Values = curve(image, self.thresholds, flat, mask=shown, workers=1)
        return on_host(values) if self.lands_on_host else values

    def of_regions(self, image: Array, labels: Array, *_: Array) -> tuple[Array, Values]:
        flat = closed(self.filtration, image.ndim)
        curves = origin_of(image).backend().region_curves
        found = curves(image, labels, self.thresholds, flat, workers=self.workers)
        return (on_host(found[0]), on_host(found[1])) if self.lands_on_host else found


@dataclass(frozen=True)
class Surface(Quantity):
    """Surfaces of two images, as curves over all pairs of thresholds in C order.

    `thresholds` are those of both images, `filtration` that of the first one.
    """

    second: Filtration

    @property
    def size(self) -> int:
        return math.prod(at.size for at in self.thresholds)

    def of_box(self, *box: Array) -> Values:
        first, second, *mask = (array if array.ndim > 1 else array[:, None] for array in box)
        a, b = (one.in_axes(first.ndim - 1) for one in (self.filtration, self.second))
        backend = origin_of(first).surfaces()
        shown = mask[0] if mask else None
        values = backend.surface(first, second, self.thresholds, (a, b), mask=shown, workers=1)
        return values.reshape((len(first), self.size))


@dataclass(frozen=True)
class CellCounts(Quantity):
    """Numbers of the cells of an estimator."""

    estimator: Estimator

    flat = False  # boxes of thickness 1 have cells without extent across it

    @property
    def size(self) -> int:
        return len(self.estimator.cells.groups) * int(self.thresholds.size)

    def of_box(self, *box: Array) -> Values:
        image, *mask = box
        shown = mask[0] if mask else None
        counts: Values = self._counts("cell_counts", image, mask=shown, workers=1)
        return counts.reshape((len(image), self.size))

    def of_regions(self, image: Array, labels: Array, *_: Array) -> tuple[Array, Values]:
        ids, counts = self._counts("region_cell_counts", image, labels, workers=self.workers)
        return on_host(ids), counts.reshape((len(counts), self.size))

    def _counts(self, name: str, *arrays: Array, **options: Any) -> Any:
        flat = closed(self.filtration, self.filtration.ndim)
        count = getattr(origin_of(arrays[0]).cell_counts(), name)
        return count(*arrays, self.thresholds, self.estimator.cells, flat, **options)

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        return add([own, *(sign * self.of_box(*box) for sign, box in terms)])

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return what the share adds: that of V serves T and groups of points too.

        Only half-open windows of cubes need additional faces.
        """
        faces = faces_of(place, 1)
        if self.estimator.cells.every:
            return faces
        borders = self.filtration.boundary.axes
        along = zip(faces, place.first, place.last, borders, strict=True)
        return tuple(
            [*own, *FIRST * first, *LAST * last] if border.missing else own
            for own, first, last, border in along
        )


class HostCurve(Curve):
    """Euler characteristic curves in host memory, where numbers of cells are."""

    lands_on_host = True


@dataclass(frozen=True)
class Functionals(Quantity):
    """Numbers of the cells of an estimator, and of one that is not exact the curve."""

    estimator: Estimator

    result, lands_on_host = MinkowskiCurves, True

    @classmethod
    def of(
        cls, thresholds: Array, filtration: Filtration, estimator: str, spacing: Any, **options: Any
    ) -> Self:
        return cls(thresholds, filtration, estimator_of(estimator, spacing, filtration), **options)

    @property
    def facts(self) -> dict[str, Any]:
        return minkowski_facts(self.filtration, self.estimator)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts())

    def parts(self) -> Sequence[Quantity]:
        given: Any = {"workers": self.workers}
        cells = CellCounts(self.thresholds, self.filtration, self.estimator, **given)
        if self.estimator.exact:
            return [cells]
        return [cells, HostCurve(self.thresholds, self.filtration, **given)]

    def of_box(self, *box: Array) -> Values:
        return np.concatenate([part.of_box(*box) for part in self.parts()], axis=1)

    def of_regions(self, image: Array, labels: Array, *_: Array) -> tuple[Array, Values]:
        found = [part.of_regions(image, labels) for part in self.parts()]
        return found[0][0], np.concatenate([values for _, values in found], axis=1)

    def curves(self, sums: Array) -> Array:
        """Return the functionals, (..., measures, n)."""
        kinds, n = len(self.estimator.cells.groups), self.thresholds.size
        counts = sums[..., : kinds * n].reshape((*sums.shape[:-1], kinds, n))
        values = self.estimator.functionals(counts)
        if not self.estimator.exact:
            values[..., -1, :] = sums[..., kinds * n :]
        return values


QUANTITIES: dict[str, type[Quantity]] = {"euler": Curve, "minkowski": Functionals}
"""The `STATISTICS` whose values for blocks add up."""


def coefficients_of(image: Array, *mask: Array, quantity: Curve) -> NDArray[np.int8]:
    """Return the coefficients of a block that is padded by the nearest points of its neighbours."""
    kept = mask[0][None] if mask else None
    compute = origin_of(image).backend().coefficients
    return compute(image[None], quantity.filtration, mask=kept, workers=1)[0]


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
