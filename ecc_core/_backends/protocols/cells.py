"""Numbers of cells by dimension and orientation."""

from typing import Protocol

from ecc_core._backends.protocols.arrays import Counts, DeviceArray, Levels
from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Filtration


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
        """Return the ids (k,) of regions and their numbers of cells, (k, kinds, n)."""

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
        """Return the ids (k,) of the regions of one image, and the sums for each, (k, n)."""

    def window_levels(
        self, images: DeviceArray, coefficients: DeviceArray, windows: DeviceArray, /
    ) -> DeviceArray:
        """Return the distinct values of the points that have a coefficient, increasing."""


class WindowCellCounts(CellCounts, Protocol):
    """Counts with those that only the host has: of cells whose lowest corner is in a window.

    Images are closed. Windows may have fewer points than images at the ends of axes. With `signs`,
    the signed sum of all kinds takes their place.
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
        """Return the numbers of cells of each image, (images, kinds, n)."""

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
        """Return the ids (k,) of the regions of one image, and their numbers (k, kinds, n).

        Regions may have points that the mask excludes.
        """

    def region_sizes(self, labels: DeviceArray, /) -> tuple[DeviceArray, Counts]:
        """Return the ids (k,) of regions, and their numbers of points, (k,)."""
