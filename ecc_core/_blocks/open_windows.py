"""Windows of any shape: a mask, or each region, of an image whose boundary is "half-open".

The curve of a window is the sum of the coefficients of its points, which are those of the image
without the mask. Each point has its own, so that blocks simply add up.

Lengths, areas and volumes are those of the cells whose lowest corner is a point of the window. They
are counted in the image without the mask, since points outside a window complete its cells. So the
number of cells of a box, whose own points alone complete them, is additive: boxes are glued as
those of the V-construction in :mod:`ecc_core._blocks.planes`, whatever the construction. Behind the
last points of an axis there is nothing that completes cells, so windows do not have these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._backends.borders import closed
from ecc_core._blocks.planes import Array, Face, Place, Term, faces_of
from ecc_core._blocks.quantities import Functionals, Quantity, add
from ecc_core._request.estimator import Cells, Estimator
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes
from ecc_core.errors import BackendError

Values = NDArray[np.int64]


class _OfWindows(Quantity):
    """What is computed of images and windows, masks or the regions of labels, of the same shape.

    Both may be followed by a mask of the points that may enter.
    """

    flat: ClassVar[bool] = False  # the lowest corner of a cell depends on the axes
    windows: ClassVar[bool] = True

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        return faces_of(place, 1)

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        return add([own, *(sign * self.of_box(*box) for sign, box in terms)])


@dataclass(frozen=True)
class _Counts(_OfWindows):
    """Numbers of cells."""

    cells: Cells

    lands_on_host = True

    @property
    def kinds(self) -> int:
        return len(self.cells.groups)

    @property
    def size(self) -> int:
        return self.kinds * int(self.thresholds.size)

    def of_box(self, *box: Array) -> Values:
        counts: Values = self._counted("window_counts", *box)
        return counts.reshape((len(counts), self.size))

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        ids, counts = self._counted("region_window_counts", image, labels, *shown)
        return on_host(ids), counts.reshape((len(counts), self.size))

    def _counted(self, name: str, image: Array, windows: Array, *shown: Array) -> Any:
        count = getattr(origin_of(image).cell_counts(), name)
        flat = closed(self.filtration, self.filtration.ndim)
        options: Any = {"mask": shown[0] if shown else None, "workers": self.workers}
        return count(image, windows, self.thresholds, self.cells, flat, **options)


@dataclass(frozen=True)
class _Points(_OfWindows):
    """Numbers of the points of windows."""

    lands_on_host = True

    @property
    def size(self) -> int:
        return 1

    def of_box(self, *box: Array) -> Values:
        window = box[1]
        points = window.sum(axis=tuple(range(1, window.ndim)))
        return on_host(points).astype(np.int64).reshape((len(window), 1))

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        ids, points = origin_of(image).cell_counts().region_sizes(labels)
        return on_host(ids), points[:, None]


@dataclass(frozen=True)
class WindowCurve(Quantity):
    """Euler characteristic curves of windows, whose boxes have coefficients behind the windows.

    The filtration is that of the image without the windows, which is closed.
    """

    windows: ClassVar[bool] = True
    crosses: ClassVar[bool] = False

    def of_box(self, *box: Array) -> Values:
        image, windows, coefficients = box
        add_up = origin_of(image).cell_counts().window_sums
        values: Values = add_up(image, coefficients, windows, self.thresholds, self.filtration)
        return values

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        (coefficients,) = shown
        add_up = origin_of(image).cell_counts().region_window_sums
        ids, values = add_up(image, coefficients, labels, self.thresholds, self.filtration)
        return on_host(ids), values


@dataclass(frozen=True)
class WindowFunctionals(_OfWindows, Functionals):
    """Numbers of the cells of an estimator, and the number of points of each window.

    The last functional is not that of the coefficients: :func:`with_curves` puts it in its place.
    """

    def parts(self) -> Sequence[Quantity]:
        given: Any = {"workers": self.workers}
        counts = _Counts(self.thresholds, self.filtration, self.estimator.cells, **given)
        return [counts, _Points(self.thresholds, self.filtration, **given)]

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        found = [part.of_regions(image, labels, *shown) for part in self.parts()]
        return found[0][0], np.concatenate([values for _, values in found], axis=1)

    def curves(self, sums: Array) -> Array:
        cells = sums[..., :-1].reshape((*sums.shape[:-1], -1, self.thresholds.size))
        return self.estimator.functionals(cells)

    def sizes(self, sums: Array) -> Array:
        """Return the lengths, areas or volumes of windows, (...), from sums (..., size)."""
        return sums[..., -1] * math.prod(self.estimator.spacing)


def with_curves(functionals: Array, curves: Array) -> Array:
    """Return functionals (..., k, n) whose last one, the Euler characteristic, is that given."""
    return np.concatenate([functionals[..., :-1, :], curves[..., None, :]], axis=-2)


def own_points(windows: Any, filtration: Filtration) -> Any:
    """Return windows (..., *spatial) without the last points of axes, whose cells are incomplete.

    It is a view.
    """
    lengths = windows.shape[windows.ndim - filtration.ndim :]
    pairs = zip(lengths, filtration.boundary.missing, strict=True)
    own = (slice(0, max(length - missing, 0)) for length, missing in pairs)
    return windows[(..., *own)]


def closed_filtration(filtration: Filtration) -> Filtration:
    """Return the filtration of the image without its windows."""
    return closed(filtration, filtration.ndim)


def omitting(filtration: Filtration) -> Filtration:
    """Return the filtration of the image without its windows, in which NaN never enters."""
    return replace(closed_filtration(filtration), nan="omit")


def coefficients_of_images(request: Request) -> Array:
    """Return the coefficients of images in memory, whose windows do not matter."""
    compute = request.origin.backend().coefficients
    return compute(request.images, omitting(request.filtration), **request.options)


def window_curve(request: Request, given: Any) -> tuple[Any, Any]:
    """Return thresholds, which were `given`, and the curves of the windows of images in memory."""
    filtration, origin = closed_filtration(request.filtration), request.origin
    coefficients = coefficients_of_images(request)
    box = request.images, request.window, coefficients
    if not request.levels.exact:
        at = request.thresholds()
        values = WindowCurve(at, filtration).of_box(*box)
        request.warn_if_missed(at, values)
        return origin.thresholds(given, at), request.spread(values, at.size)
    found = origin.cell_counts().window_levels(request.images, coefficients, request.window)
    levels = on_host(found)
    values = on_host(WindowCurve(levels, filtration).of_box(*box))[0]
    at, changed = changes(levels, values, filtration.superlevel)
    return origin.wrap(at), origin.wrap(changed)


def window_functionals(
    request: Request, estimator: Estimator, given: Any
) -> tuple[Any, Any, float | tuple[float, ...]]:
    """Return thresholds, functionals as `window_curve` does, and sizes of the windows.

    There is one size if windows have the same one, otherwise one for each image.
    """
    _check_host(request, "minkowski_curves")
    at, workers = request.thresholds(), request.workers
    _, curves = window_curve(request, given)
    filtration = replace(request.filtration, nan="omit")
    quantity = WindowFunctionals(at, filtration, estimator, workers=workers)
    shown = () if request.mask is None else (request.mask,)
    sums = quantity.of_box(request.images, own_points(request.window, filtration), *shown)
    values = quantity.curves(sums)
    found = with_curves(values, on_host(curves).reshape(len(values), -1))
    sizes = quantity.sizes(sums).tolist()
    window = sizes[0] if len(set(sizes)) == 1 else tuple(sizes)
    spread = request.spread(found, *found.shape[1:])
    return request.origin.thresholds(given, at), spread, window


def curves_of_regions(request: Request, at: Array) -> tuple[Array, Values]:
    """Return the increasing ids of the regions of an image in memory, and their curves (ids, n)."""
    curve = WindowCurve(at, closed_filtration(request.filtration))
    coefficients = coefficients_of_images(request)[0]
    return curve.of_regions(request.images[0], request.labels, coefficients)


def functionals_of_regions(
    request: Request, at: Array, estimator: str, spacing: Any
) -> tuple[Array, Array, Array]:
    """Return ids, functionals (ids, k, n) and sizes of the regions of an image in memory."""
    _check_host(request, "region_minkowski")
    ids, curves = curves_of_regions(request, at)
    filtration = replace(request.filtration, nan="omit")
    quantity = WindowFunctionals.of(at, filtration, estimator, spacing, workers=request.workers)
    shown = () if request.mask is None else (request.mask[0],)
    inside = own_points(request.labels, filtration)
    found, own = quantity.of_regions(request.images[0], inside, *shown)
    sums = np.zeros((ids.size, quantity.size), np.int64)  # also of regions without a complete cell
    sums[np.searchsorted(ids, found)] = own
    return ids, with_curves(quantity.curves(sums), curves), quantity.sizes(sums)


def _check_host(request: Request, name: str) -> None:
    if not request.origin.on_host:
        raise BackendError(
            f'`boundary` must not be "half-open" with a mask or labels in `{name}` of an array on '
            f"a device, got one on {request.origin.place} (copy the arrays to the host)"
        )
