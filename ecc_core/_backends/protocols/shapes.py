"""Transforms of images, and curves and transforms of simplicial complexes."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ecc_core._backends.protocols.arrays import DeviceArray, Floats
from ecc_core._request.levels import Levels as RoundedLevels


class Transforms(Protocol):
    """Transforms of images without a batch axis.

    Directions are unit vectors (k, d), heights (m,), and spacing (d,).
    """

    def numbers(self, array: DeviceArray, /) -> AbstractContextManager[Any]:
        """Yield an array that NumPy's functions accept, while its device and stream are current."""

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
        """Return the curves of an image of weights along directions, (k, m) in their dtype."""

    def find_regions(self, labels: DeviceArray, spacing: Floats, connectivity: int, /) -> Any:
        """Return the regions of a label image, an object with attributes `labels` and `radii`.

        ValueError if a label is negative; labels on the host were checked before.
        """

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


Complex = Any
"""What a backend's `make_complex` returns: a sequence of the edges, the triangles and so on."""


class SimplicialComplexes(Protocol):
    """Curves and transforms of simplicial complexes.

    Arrays are those that :meth:`Transforms.numbers` gives, on the current device.
    """

    def place(self, array: DeviceArray, /) -> DeviceArray:
        """Return an array of the device, or a NumPy array, as NumPy's functions take it."""

    def make_complex(self, given: Sequence[DeviceArray], points: int, complete: bool, /) -> Complex:
        """Return the edges, triangles and so on of a complex, by dimension.

        `given` are int64 arrays of increasing width, at most one of each width. With `complete`,
        missing faces are added; otherwise they are an error.
        """

    def value_curves(
        self,
        values: DeviceArray,
        levels: RoundedLevels,
        simplices: Complex,
        /,
        *,
        workers: int | None = None,
    ) -> DeviceArray:
        """Return the curves (orders, thresholds) of values (orders, points) without NaN, int64."""

    def simplicial_transform(
        self,
        points: DeviceArray,
        simplices: Complex,
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

        Components that die at the value at which they are born are left out. Values have no NaN.
        """
