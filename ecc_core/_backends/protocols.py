"""What a backend is: the functions that it has, in parts, of which only `Backend` is required.

Parts are modules or other objects; mypy checks that those of this package have these signatures.
Arguments have been checked. Images are (images, *spatial) with 1 to 3 spatial axes, in the arrays
that the adapter unwraps; results may be NumPy arrays or arrays of the device. Masks have the
image's shape. Thresholds are sorted NumPy arrays of real numbers. `workers` is a number of threads
or None, and may be ignored. NaN raises ValueError with ``errors.NAN_MESSAGE`` where
``filtration.nan`` is "raise". Points are numbered in C order.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.pairs import PairOptions, Pairs
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import Geometry
from ecc_core._request.levels import Levels as RoundedLevels
from ecc_core._request.thresholds import Thresholds

DeviceArray = Any
"""An array that the adapter of a library unwraps, or a NumPy array."""
Levels = NDArray[Any]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Side = tuple[int, int]
"""An axis, and its low (0) or high (1) end."""


class Backend(Protocol):
    """Curves and coefficients."""

    def curve(
        self,
        images: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the Euler characteristic of every image at every threshold, (images, n) int64."""

    def exact_curve(
        self,
        images: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the levels at which the curve of the only image changes, and the curve there."""

    def coefficients(
        self,
        images: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the coefficient of every point, int8 of the images' shape."""

    def region_curves(
        self,
        image: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        workers: int | None = None,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the ids (k,) of regions and their curves (k, n) int64.

        The image and the labels have no batch axis.
        """

    def number(
        self,
        images: DeviceArray,
        level: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> int:
        """Return the Euler characteristic of the only image at one level, (1,)."""

    def value_range(
        self,
        images: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value; (None, None) if there is none."""

    def after_range(self, filtration: Filtration, /) -> Filtration:
        """Return the filtration for images whose range was found, so that they have no NaN.

        A backend need not look for NaN again.
        """


class Planner(Protocol):
    """What a backend may have besides: plans of calls that come again."""

    def plan(
        self,
        kind: str,
        images: DeviceArray,
        labels: DeviceArray | None,
        levels: Thresholds,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        geometry: Geometry,
    ) -> Callable[..., Any] | None:
        """Return a function of an image, and labels or a mask, of the same layout; or None.

        `kind` is "curve", "number", "coefficients" or "region_curves"; see ``cuda/plans.py``.
        """


class Shards(Protocol):
    """Curves of images in parts."""

    def curve(
        self, shards: Sequence[DeviceArray], thresholds: Levels, filtration: Filtration, /
    ) -> DeviceArray:
        """Return the curve of the image, (n,) int64."""


class BettiNumbers(Protocol):
    """Betti curves, persistence pairs, sizes of components and their regions, of closed images.

    With `least` only classes count that last for at least that much.
    """

    def betti_curves(
        self,
        images: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> DeviceArray:
        """Return Betti numbers, (images, classes, n) int64."""

    def exact_betti_curves(
        self,
        images: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the levels at which a number of the only image changes, and the numbers."""

    def region_betti_curves(
        self,
        image: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        workers: int | None = None,
        least: float = 0,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return ids (k,) and Betti numbers (k, classes, n), each region counted alone."""

    def persistence_pairs(
        self,
        images: DeviceArray,
        dimensions: Sequence[int],
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> list[tuple[DeviceArray, DeviceArray]]:
        """Return the points of birth and death for each dimension, -1 for classes that last."""

    def component_curves(
        self,
        images: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        ends: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
    ) -> DeviceArray:
        """Return points, those of the largest component, and components that touch both ends.

        They are (images, 2 + pairs, n) int64. `ends` are masks of the inlet and the outlet. None
        for the first or the last slice along each axis that has points: then there is a pair of
        ends for each axis.
        """

    def persistent_regions(
        self,
        image: DeviceArray,
        shown: DeviceArray,
        least: float,
        threshold: Any,
        filtration: Filtration,
        /,
        *,
        rel_height: float | None = None,
        workers: int | None = None,
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray]:
        """Return labels of the components that last, and births, deaths and elders of each.

        The image has no batch axis. Labels end at this share of the way from birth to death.
        """


class HostBettiNumbers(BettiNumbers, Protocol):
    """What only the host computes: of periodic images, by boxes, and what matches."""

    betti_pieces: "BettiPieces"
    """Boxes of an image for Betti numbers, (ndim, n) of a whole image."""
    pair_pieces: "PairPieces"
    """Boxes of an image for pairs of birth and death."""
    size_pieces: "SizePieces"
    """Boxes of an image for component curves, (pairs + 2, n) of a whole image."""

    def persistence_pairs(
        self,
        images: DeviceArray,
        dimensions: Sequence[int],
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> list[tuple[DeviceArray, DeviceArray]]:
        """Return the points of birth and death for each dimension, -1 for classes that last.

        Only of classes that last for at least `least`.
        """

    def betti_matching(
        self,
        predictions: DeviceArray,
        targets: DeviceArray,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        sets: bool = False,
    ) -> Sequence[Sequence[Any]]:
        """Return for each pair of images and dimension what matches, and all classes of both.

        These are points of birth and death, -1 for classes that never die, of either image, and
        numbers of classes that match, (m, 2). Of `sets` only points that enter first join
        components.
        """


class BettiPieces(Protocol):
    """Boxes of an image, reduced to what other boxes can change, and how they are joined.

    The image has no batch axis. `open_sides` are those beyond which it goes on. A piece is any
    object. In 1-D and 2-D, `least` is that of `HostBettiNumbers`.
    """

    def piece_of(
        self,
        image: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        open_sides: tuple[Side, ...],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        least: float = 0,
    ) -> Any:
        """Return the piece of a box."""

    def join_pieces(
        self,
        low: Any,
        high: Any,
        axis: int,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
        least: float = 0,
    ) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def numbers_of(
        self,
        piece: Any,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
        least: float = 0,
    ) -> Counts:
        """Return the numbers of a whole image, from its piece."""

    def pack_piece(self, piece: Any, /) -> Counts:
        """Return a piece as one array."""

    def unpack_piece(self, values: Counts, /) -> Any:
        """Return the piece of such an array."""


class PairPieces(Protocol):
    """Boxes of an image, from which its pairs of birth and death follow.

    The image has no batch axis. A piece is any object.
    """

    def piece_of(
        self,
        image: DeviceArray,
        options: PairOptions,
        start: Sequence[int],
        whole: Sequence[int],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> Any:
        """Return the piece of a box that begins at `start`; the image has the shape `whole`."""

    def join_pieces(self, low: Any, high: Any, axis: int, options: PairOptions, /) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def pairs_of(self, piece: Any, options: PairOptions, /) -> Pairs:
        """Return the pairs of a whole image, by birth, then by the places of birth and death."""


class SizePieces(Protocol):
    """The same for sizes of components, with the `ends` of `component_curves`."""

    def piece_of(
        self,
        image: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        open_sides: tuple[Side, ...],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
        ends: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
    ) -> Any:
        """Return the piece of a box."""

    def join_pieces(
        self,
        low: Any,
        high: Any,
        axis: int,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
    ) -> Any:
        """Return the piece of two boxes that touch across an axis."""

    def numbers_of(
        self,
        piece: Any,
        dtype: np.dtype[Any],
        thresholds: Levels,
        filtration: Filtration,
        /,
        *,
        masked: bool,
    ) -> Counts:
        """Return the numbers of a whole image, from its piece."""

    def pack_piece(self, piece: Any, /) -> Counts:
        """Return a piece as one array."""

    def unpack_piece(self, values: Counts, /) -> Any:
        """Return the piece of such an array."""


class Surfaces(Protocol):
    """Surfaces of pairs of images."""

    def surface(
        self,
        first: DeviceArray,
        second: DeviceArray,
        thresholds: tuple[Levels, Levels],
        filtrations: tuple[Filtration, Filtration],
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the Euler characteristics of intersections, (images, n, m) int64."""


class SimplicialComplexes(Protocol):
    """Curves and transforms of simplicial complexes.

    Arrays are those that :meth:`Transforms.numbers` gives, on the current device.
    """

    def place(self, array: DeviceArray, /) -> DeviceArray:
        """Return an array of the device, or a NumPy array, as NumPy's functions take it."""

    def make_complex(
        self, given: Sequence[DeviceArray], points: int, complete: bool, /
    ) -> Sequence[DeviceArray]:
        """Return the edges, triangles and so on of a complex, by dimension.

        `given` are int64 arrays of increasing width, not more than one of each. With `complete`
        faces that are missing are added, otherwise they are an error.
        """

    def value_curves(
        self,
        values: DeviceArray,
        levels: RoundedLevels,
        simplices: Sequence[DeviceArray],
        /,
        *,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the curves (orders, thresholds) of values (orders, points) without NaN, int64."""

    def simplicial_transform(
        self,
        points: DeviceArray,
        simplices: Sequence[DeviceArray],
        weights: DeviceArray | None,
        directions: Floats,
        heights: Floats,
        /,
        *,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the transform (directions, heights), int64 or in the dtype of the weights.

        Weights (points,) are int64 or float64. A simplex weighs as much as its heaviest point.
        """


class HostSimplicialComplexes(SimplicialComplexes, Protocol):
    """What only the host computes."""

    def component_pairs(
        self, values: DeviceArray, edges: DeviceArray, superlevel: bool, /
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the points of birth and death of components, oldest first; -1 for no death.

        Without those that die at the value at which they are born. Values have no NaN.
        """


class CellCounts(Protocol):
    """Numbers of cells, from which Minkowski functionals follow, and sums over windows."""

    def cell_counts(
        self,
        images: DeviceArray,
        thresholds: Levels,
        cells: Cells,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        workers: int | None = None,
    ) -> Counts:
        """Return the number of each kind of cells in the sets, (images, kinds, n), on the host."""

    def region_cell_counts(
        self,
        image: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        cells: Cells,
        filtration: Filtration,
        /,
        *,
        workers: int | None = None,
    ) -> tuple[DeviceArray, Counts]:
        """Return the ids (k,) of regions and their numbers (k, kinds, n)."""

    def window_sums(
        self,
        images: DeviceArray,
        coefficients: DeviceArray,
        windows: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
    ) -> DeviceArray:
        """Return the sums of the coefficients of the points of windows that have entered.

        They are (images, n) int64. Windows are booleans of the images' shape.
        """

    def region_window_sums(
        self,
        image: DeviceArray,
        coefficients: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        filtration: Filtration,
        /,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the same for the regions of one image: ids (k,) and (k, n)."""

    def window_levels(
        self, images: DeviceArray, coefficients: DeviceArray, windows: DeviceArray, /
    ) -> DeviceArray:
        """Return the distinct values of the points that have a coefficient, increasing."""


class WindowCellCounts(CellCounts, Protocol):
    """What the host counts besides: cells whose lowest corner is a point of a window.

    Images are closed. Windows may have fewer points at the ends of axes. With `signs` of the kinds
    there is their sum in place of them.
    """

    def window_counts(
        self,
        images: DeviceArray,
        windows: DeviceArray,
        thresholds: Levels,
        cells: Cells,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        signs: Counts | None = None,
        workers: int | None = None,
    ) -> Counts:
        """Return the numbers of each image, (images, kinds, n)."""

    def region_window_counts(
        self,
        image: DeviceArray,
        labels: DeviceArray,
        thresholds: Levels,
        cells: Cells,
        filtration: Filtration,
        /,
        *,
        mask: DeviceArray | None = None,
        signs: Counts | None = None,
        workers: int | None = None,
    ) -> tuple[DeviceArray, Counts]:
        """Return the ids of the regions of one image, and their numbers (k, kinds, n).

        Regions may have points that the mask excludes.
        """

    def region_sizes(self, labels: DeviceArray, /) -> tuple[DeviceArray, Counts]:
        """Return the same ids, and the numbers of points, (k,)."""


class Transforms(Protocol):
    """Transforms of images without a batch axis.

    Directions are unit vectors (k, d), heights (m,), and spacing (d,).
    """

    def numbers(self, array: DeviceArray, /) -> AbstractContextManager[Any]:
        """Give an array as NumPy's functions take it, with its device and stream current."""

    def mask_transform(
        self,
        mask: DeviceArray,
        directions: Floats,
        heights: Floats,
        spacing: Floats,
        connectivity: int,
        /,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the curves of a binary image along directions, (k, m) int64."""

    def weighted_transform(
        self,
        weights: DeviceArray,
        directions: Floats,
        heights: Floats,
        spacing: Floats,
        connectivity: int,
        /,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the same for weights, in their dtype."""

    def find_regions(self, labels: DeviceArray, spacing: Floats, connectivity: int, /) -> Any:
        """Return the regions of a label image, with `labels` and `radii`."""

    def region_transforms(
        self,
        regions: Any,
        directions: Floats,
        heights: Floats,
        scales: Floats | None,
        /,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the curves of regions, (regions, k, m); heights are in units of `scales`."""
