"""Windows of any shape: a mask, or each region, of an image whose boundary is "half-open".

The curve of a window is the sum of the coefficients of its points, which are those of the image
without the mask. Each point has its own, so that blocks simply add up.

Lengths, areas and volumes are those of the cells whose lowest corner is a point of the window. They
are counted in the image without the mask, since points outside a window complete its cells. So the
number of cells of a box, whose own points alone complete them, is additive: boxes are glued as
those of the V-construction in :mod:`ecc_core._blocks.planes`, whatever the construction. Behind the
last points of an axis there is nothing that completes cells, so windows do not have these.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._backends.borders import closed
from ecc_core._blocks.boxes import BoxValues, add
from ecc_core._blocks.planes import Array, Face, Place, Term, faces_of
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes

Values = NDArray[np.int64]


class OfWindows(BoxValues):
    """What is computed of images and windows, masks or the regions of labels, of the same shape.

    Both may be followed by a mask of the points that may enter.
    """

    flat: ClassVar[bool] = False  # the lowest corner of a cell depends on the axes
    windows: ClassVar[bool] = True

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        return faces_of(place, 1)

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        return add([own, *(sign * self.of_box(*box) for sign, box in terms)])


class WindowMeasures(OfWindows):
    """What is measured of windows, the last of which is the Euler characteristic."""

    @property
    def rows(self) -> int:
        """Number of measures."""
        raise NotImplementedError

    def sizes(self, sums: Array) -> Array:
        """Return the lengths, areas or volumes of windows, (...), from sums (..., size)."""
        raise NotImplementedError

    def with_euler(self, sums: Array, euler: Array) -> Array:
        """Return measures (..., rows, n) from sums and Euler characteristics (..., n)."""
        return np.concatenate([self.curves(sums)[..., :-1, :], euler[..., None, :]], axis=-2)


@dataclass(frozen=True)
class WindowCounts(OfWindows):
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
class WindowPoints(OfWindows):
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
class WindowCurve(BoxValues):
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


def curves_of_regions(request: Request, at: Array) -> tuple[Array, Values]:
    """Return the increasing ids of the regions of an image in memory, and their curves (ids, n)."""
    curve = WindowCurve(at, closed_filtration(request.filtration))
    coefficients = coefficients_of_images(request)[0]
    return curve.of_regions(request.images[0], request.labels, coefficients)
