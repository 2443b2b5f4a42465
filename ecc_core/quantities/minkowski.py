"""Minkowski functionals: area and perimeter, or volume, surface and mean breadth."""

import math
from argparse import Namespace
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import given_on_host, on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._backends.borders import closed
from ecc_core._backends.signed_boxes import Term
from ecc_core._blocks.boxes import BoxValues, Values, add
from ecc_core._blocks.planes import Array, Face, faces_of
from ecc_core._partition import Place
from ecc_core._request.estimator import MEASURES, Estimator, estimator_of
from ecc_core._request.filtration import Filtration
from ecc_core.errors import BackendError
from ecc_core.quantities._base import EULER_NUMBER, CurveQuantity, Function, Joins, Option
from ecc_core.quantities.euler import HostCurveValues
from ecc_core.quantities.windows import (
    WindowCounts,
    WindowMeasures,
    WindowPoints,
    curves_of_regions,
    own_points,
    window_curve,
)
from ecc_core.results import MinkowskiCurves, RegionMinkowski, minkowski_facts

AT_FIRST_BLOCK = [Face(-2, 0), Face(1, 0, thickness=2)]
AT_LAST_BLOCK = [Face(2, -1), Face(-1, -1, thickness=2)]
"""Correction terms for the faces that cube counts miss at both ends of a half-open window.

Without them the shares count the faces before the first cube, and count those between the last two
cubes as if the last cube were alone. With f(p) for the faces on one side of the plane p of points,
the correction is f(n-1) - f(0). f(p) is twice the number of cells of p, of thickness 1, less that
of p repeated to a thickness of 2.
"""


@dataclass(frozen=True)
class CellValues(BoxValues):
    """Numbers of the cells of an estimator."""

    estimator: Estimator

    flat = False  # Cells of a box of thickness 1 differ from those of a box without the axis.

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
        of_terms = [sign * self.of_box(*box) for sign, box in terms]
        return add([own, *of_terms])

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        """Return the faces of the V-construction, which give the counts of T and of points, too.

        Only half-open windows of cubes need additional faces.
        """
        faces = faces_of(place, 1)
        if self.estimator.cells.every:
            return faces
        extended = []
        for axis, border in enumerate(self.filtration.boundary.axes):
            own = list(faces[axis])
            if border.missing and place.first[axis]:
                own += AT_FIRST_BLOCK
            if border.missing and place.last[axis]:
                own += AT_LAST_BLOCK
            extended.append(own)
        return tuple(extended)


@dataclass(frozen=True)
class FunctionalValues(BoxValues):
    """Numbers of the cells of an estimator, then the Euler characteristic if it is not exact.

    The cells of an estimator that is not exact do not give the Euler characteristic.
    """

    estimator: Estimator

    lands_on_host = True

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts())

    def parts(self) -> Sequence[BoxValues]:
        given: Any = {"workers": self.workers}
        cells = CellValues(self.thresholds, self.filtration, self.estimator, **given)
        if self.estimator.exact:
            return [cells]
        return [cells, HostCurveValues(self.thresholds, self.filtration, **given)]

    def of_box(self, *box: Array) -> Values:
        return np.concatenate([part.of_box(*box) for part in self.parts()], axis=1)

    def of_regions(self, image: Array, labels: Array, *_: Array) -> tuple[Array, Values]:
        found = [part.of_regions(image, labels) for part in self.parts()]
        return found[0][0], np.concatenate([values for _, values in found], axis=1)

    def curves(self, sums: Array) -> Array:
        """Return the functionals, (..., measures, n)."""
        kinds = len(self.estimator.cells.groups)
        n = self.thresholds.size
        counts = sums[..., : kinds * n].reshape((*sums.shape[:-1], kinds, n))
        values = self.estimator.functionals(counts)
        if not self.estimator.exact:
            values[..., -1, :] = sums[..., kinds * n :]
        return values


@dataclass(frozen=True)
class WindowFunctionals(WindowMeasures, FunctionalValues):
    """Numbers of the cells of an estimator, and the number of points of each window.

    The last functional of `curves` is not the Euler characteristic; `with_euler` replaces it.
    """

    def parts(self) -> Sequence[BoxValues]:
        given: Any = {"workers": self.workers}
        counts = WindowCounts(self.thresholds, self.filtration, self.estimator.cells, **given)
        return [counts, WindowPoints(self.thresholds, self.filtration, **given)]

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        found = [part.of_regions(image, labels, *shown) for part in self.parts()]
        return found[0][0], np.concatenate([values for _, values in found], axis=1)

    def curves(self, sums: Array) -> Array:
        kinds = len(self.estimator.cells.groups)
        counts = sums[..., :-1].reshape((*sums.shape[:-1], kinds, self.thresholds.size))
        return self.estimator.functionals(counts)

    @property
    def rows(self) -> int:
        return len(self.estimator.weights)

    def sizes(self, sums: Array) -> Array:
        return sums[..., -1] * math.prod(self.estimator.spacing)


def window_functionals(
    request: Request, estimator: Estimator, given: Any
) -> tuple[Any, Any, Array]:
    """Return the thresholds, the functionals (*batch, k, n) and the size of each window."""
    _check_host(request, "minkowski_curves")
    at = request.thresholds()
    workers = request.workers
    _, curves = window_curve(request, given)
    filtration = replace(request.filtration, nan="omit")
    quantity = WindowFunctionals(at, filtration, estimator, workers=workers)
    shown = () if request.mask is None else (request.mask,)
    sums = quantity.of_box(request.images, own_points(request.window, filtration), *shown)
    found = quantity.with_euler(sums, on_host(curves).reshape(len(sums), at.size))
    spread = request.spread(found, *found.shape[1:])
    return request.origin.thresholds(given, at), spread, quantity.sizes(sums)


def functionals_of_regions(
    request: Request, at: Array, estimator: Estimator
) -> tuple[Array, Array, Array]:
    """Return ids, functionals (ids, k, n) and sizes of the regions of an image in memory."""
    _check_host(request, "region_minkowski")
    ids, curves = curves_of_regions(request, at)
    filtration = replace(request.filtration, nan="omit")
    quantity = WindowFunctionals(at, filtration, estimator, workers=request.workers)
    shown = () if request.mask is None else (request.mask[0],)
    inside = own_points(request.labels, filtration)
    found, own = quantity.of_regions(request.images[0], inside, *shown)
    # Regions without a complete cell were not found and keep zeros.
    sums = np.zeros((ids.size, quantity.size), np.int64)
    sums[np.searchsorted(ids, found)] = own
    return ids, quantity.with_euler(sums, curves), quantity.sizes(sums)


def _check_host(request: Request, name: str) -> None:
    if not request.origin.on_host:
        raise BackendError(
            f'`boundary` must not be "half-open" with a mask or labels in `{name}` of an array on '
            f"a device, got one on {request.origin.place} (copy the arrays to the host)"
        )


class MinkowskiOptions(NamedTuple):
    """The options of Minkowski functionals."""

    spacing: Any = None
    estimator: Any = "exact"

    def chosen(self, filtration: Filtration) -> Estimator:
        """Return the checked estimator."""
        return estimator_of(self.estimator, given_on_host(self.spacing), filtration)


class Minkowski(CurveQuantity[MinkowskiOptions]):
    name = "minkowski"
    position = 3
    title = "Minkowski functionals"
    about = "area and perimeter, or volume, surface and mean breadth, in world units"
    columns = ("length", "area", "perimeter", "volume", "surface", "mean_breadth")
    joins = Joins("add")
    functions = (
        Function("minkowski_curves", lazy=True),
        Function("region_minkowski", lazy=True),
    )
    of_image = "minkowski_curves"
    result = MinkowskiCurves
    of_regions = "region_minkowski"
    region_result = RegionMinkowski
    has_lengths = True
    option = Option(
        "add area and perimeter, or volume, surface and mean breadth. For natural objects, whose "
        "surface is smooth, use crofton-4 (2-D) or crofton-13 (3-D), which estimate from 4 or 13 "
        "directions; crofton-2 and crofton-3 use only those of the axes. exact, the default, "
        "measures the pixels or voxels as they are: steps make the perimeter of a disk 4/pi and "
        "the surface of a ball 3/2 times too large",
        choices=("exact", "crofton-2", "crofton-4", "crofton-3", "crofton-13"),
        usual="exact",
        note="perimeters and surfaces of smooth objects are up to 3/2 times too large; crofton-4 "
        "(2-D) or crofton-13 (3-D) suits these",
        column="estimator",
    )
    own_options = ("density",)

    def boxes(
        self, at: Array, filtration: Filtration, own: MinkowskiOptions, **given: Any
    ) -> FunctionalValues:
        chosen = own.chosen(filtration)
        return FunctionalValues(at, filtration, chosen, workers=given.get("workers", 1))

    def own_of(self, arguments: Namespace, spacing: Any) -> MinkowskiOptions:
        return MinkowskiOptions(spacing, arguments.minkowski)

    def facts(self, filtration: Filtration, own: MinkowskiOptions) -> dict[str, Any]:
        return minkowski_facts(filtration, own.chosen(filtration))

    def window_size(
        self, shape: tuple[int, ...], filtration: Filtration, own: MinkowskiOptions
    ) -> float:
        return own.chosen(filtration).size(shape, filtration)

    def window_boxes(
        self, at: Array, filtration: Filtration, own: MinkowskiOptions
    ) -> WindowFunctionals:
        omitting = replace(filtration, nan="omit")
        return WindowFunctionals(at, omitting, own.chosen(filtration))

    def of_windowed_regions(
        self, request: Request, at: Array, own: MinkowskiOptions
    ) -> tuple[Array, Array, dict[str, Any]]:
        ids, values, sizes = functionals_of_regions(request, at, own.chosen(request.filtration))
        return ids, values, {"window": sizes}

    def columns_among(self, columns: Set[str]) -> tuple[str, ...]:
        for names in MEASURES.values():
            own = (*names[:-1], EULER_NUMBER)
            if names[0] in columns:
                return own if columns >= {*own} else ()
        return ()

    def ndim_of(self, columns: Sequence[str]) -> int:
        return len(columns) - 1


MINKOWSKI = Minkowski()
