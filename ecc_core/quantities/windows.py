"""Windows of any shape: a mask, or each region, of an image whose boundary is "half-open".

The curve of a window is the sum of the coefficients of its points, in the image without the mask:
that of the cells that its points own. Which point owns a cell depends on the points of that cell
only, so the values of boxes are joined as those of whole images.

Lengths, areas and volumes are those of the cells whose lowest corner is a point of the window. They
are counted in the image without the mask, because points outside a window complete its cells.
Within a box, cells are completed by the points of the box alone, and the numbers of boxes are
joined as in the V-construction (:mod:`ecc_core._blocks.planes`), whatever the construction. No
points complete the cells of the last points along an axis, so windows do not include these points.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request
from ecc_core._backends.borders import closed
from ecc_core._backends.signed_boxes import Term
from ecc_core._blocks.boxes import BoxValues, add
from ecc_core._blocks.planes import Array, Face, faces_of
from ecc_core._partition import Place
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import changes

Values = NDArray[np.int64]


class OfWindows(BoxValues):
    """Values of the boxes of an image that is cut into windows.

    A box is an image and an array of its shape, a mask or labels, that has the windows. A mask of
    the points that may enter can follow.
    """

    # The owner of a cell depends on the order of axes, so none may be left out.
    flat: ClassVar[bool] = False
    windows: ClassVar[bool] = True

    def with_terms(self, own: Values, terms: list[Term]) -> Values:
        of_terms = [sign * self.of_box(*box) for sign, box in terms]
        return add([own, *of_terms])


class OfLowestCorners(OfWindows):
    """Values of windows from the cells whose lowest corners are points of them."""

    def faces(self, place: Place) -> tuple[list[Face], ...]:
        return faces_of(place, 1)


class WindowMeasures(OfLowestCorners):
    """Measures of windows, of which the last one is the Euler characteristic."""

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
class WindowCounts(OfLowestCorners):
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
        return count(
            image,
            windows,
            self.thresholds,
            self.cells,
            flat,
            mask=shown[0] if shown else None,
            workers=self.workers,
        )


@dataclass(frozen=True)
class WindowPoints(OfLowestCorners):
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
class WindowCurve(OfWindows):
    """Euler characteristic curves of windows.

    `filtration` is that of the image without its windows, whose boundary is closed.
    """

    def of_box(self, *box: Array) -> Values:
        image, windows, *shown = box
        return self.of_coefficients(image, windows, self._coefficients(image, *shown))

    def of_regions(self, image: Array, labels: Array, *shown: Array) -> tuple[Array, Values]:
        (coefficients,) = self._coefficients(image[None], *(mask[None] for mask in shown))
        add_up = origin_of(image).cell_counts().region_window_sums
        ids, values = add_up(image, coefficients, labels, self.thresholds, self.filtration)
        return on_host(ids), values

    def of_coefficients(self, images: Array, windows: Array, coefficients: Array) -> Values:
        """Return the curves of windows, (images, n), from the coefficients of the images."""
        add_up = origin_of(images).cell_counts().window_sums
        values: Values = add_up(images, coefficients, windows, self.thresholds, self.filtration)
        return values

    def _coefficients(self, images: Array, *shown: Array) -> Array:
        """Return the coefficients of images. NaN never enters."""
        compute = origin_of(images).backend().coefficients
        omitted = replace(self.filtration, nan="omit")
        mask = shown[0] if shown else None
        found: Array = compute(images, omitted, mask=mask, workers=self.workers)
        return found


def joined_tables(curves: Values, cells: Values) -> Values:
    """Return the table `curves` with the values of the table `cells` appended to each row.

    They are zero for regions that `cells` does not have.
    """
    ids = cells[:, 0]
    order = np.argsort(ids)
    rows = np.zeros((len(curves), cells.shape[1] - 1), np.int64)
    at = np.searchsorted(ids[order], curves[:, 0])
    near = np.minimum(at, max(len(ids) - 1, 0))
    known = np.zeros(len(curves), bool) if not len(ids) else ids[order][near] == curves[:, 0]
    rows[known] = cells[order][near[known], 1:]
    return np.concatenate([curves, rows], axis=1)


def own_points(windows: Any, filtration: Filtration) -> Any:
    """Return a view of windows (..., *spatial) without points whose cells are incomplete.

    These are the last points along axes whose border is half-open.
    """
    lengths = windows.shape[windows.ndim - filtration.ndim :]
    pairs = zip(lengths, filtration.boundary.missing, strict=True)
    own = (slice(0, max(length - missing, 0)) for length, missing in pairs)
    return windows[(..., *own)]


def closed_filtration(filtration: Filtration) -> Filtration:
    """Return the filtration of the image without its windows, whose boundary is closed."""
    return closed(filtration, filtration.ndim)


def window_curve(request: Request, given: Any) -> tuple[Any, Any]:
    """Return the thresholds, and the curves of the windows of images in memory.

    `given` is the argument of the public function, returned if it is an array.
    """
    filtration = closed_filtration(request.filtration)
    origin = request.origin
    images = request.images
    window = request.window
    omitted = replace(filtration, nan="omit")
    coefficients = origin.backend().coefficients(images, omitted, **request.options)
    if not request.levels.exact:
        at = request.thresholds()
        values = WindowCurve(at, filtration).of_coefficients(images, window, coefficients)
        request.warn_if_missed(at, values)
        return origin.thresholds(given, at), request.spread(values, at.size)
    levels = on_host(origin.cell_counts().window_levels(images, coefficients, window))
    curve = WindowCurve(levels, filtration)
    values = on_host(curve.of_coefficients(images, window, coefficients))[0]
    at, changed = changes(levels, values, filtration.superlevel)
    return origin.wrap(at), origin.wrap(changed)


def curves_of_regions(request: Request, at: Array) -> tuple[Array, Values]:
    """Return the increasing ids of the regions of an image in memory, and their curves (ids, n)."""
    filtration = closed_filtration(request.filtration)
    shown = () if request.mask is None else (request.mask[0],)
    curve = WindowCurve(at, filtration, workers=request.workers)
    return curve.of_regions(request.images[0], request.labels, *shown)
