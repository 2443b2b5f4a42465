"""Curves of images and of their shards, surfaces, and plans of calls that come again."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ecc_core._backends.protocols.arrays import DeviceArray, Levels
from ecc_core._request.filtration import Filtration
from ecc_core._request.spatial_axes import Geometry
from ecc_core._request.thresholds import Thresholds


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
    """A part that a backend may have: plans of calls for arrays of the same layout."""

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
        workers: int | None = None,
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
