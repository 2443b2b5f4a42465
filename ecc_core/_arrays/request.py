"""A call of a public function with arrays in memory: arguments checked, arrays unwrapped."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from ecc_core._arrays import given_on_host, is_lazy
from ecc_core._arrays.origin import Origin, kept_points, origin_of, region_labels
from ecc_core._request.filtration import Filtration, direction_of, filtration_of
from ecc_core._request.image import Geometry, geometry_by_axis, image_named, split_masked
from ecc_core._request.thresholds import Thresholds, parse_thresholds


def check_eager(array: Any, name: str = "image") -> None:
    """Refuse a dask array where a function needs the whole image."""
    if is_lazy(array):
        raise TypeError(f"`{name}` must be in memory, got a dask array: compute it first")


class Request(NamedTuple):
    """What a backend computes.

    Attributes
    ----------
    name : str
        As messages call the image.
    origin : Origin
    geometry : Geometry
    filtration : Filtration
    levels : Thresholds
    images : array of shape (images, *spatial)
    mask : array of the same shape, or None
    labels : array of the spatial shape, or None
        0 where the image is masked.
    workers : int or None
    """

    name: str
    origin: Origin
    geometry: Geometry
    filtration: Filtration
    levels: Thresholds
    images: Any
    mask: Any
    labels: Any
    workers: int | None

    @classmethod
    def of(
        cls,
        image: Any,
        thresholds: Any = 0,
        *,
        name: str = "image",
        like: Origin | None = None,
        range: Any = None,
        no_exact: str | None = "",
        mask: Any = None,
        labels: Any = None,
        workers: Any = None,
        **options: Any,
    ) -> Request:
        """Check the arguments of a public function.

        Parameters
        ----------
        like : Origin, optional
            Where the image must be, if there is another one.
        no_exact : str or None
            Ends the message where "exact" is refused; None: it is not, except with batch axes.
        **options
            As for `layout_of`.
        """
        image, mask = split_masked(image, mask)
        origin = like or origin_of(image, name)
        array = origin.image(image, name)
        geometry, filtration = layout_of(array.shape, name, **options)
        if no_exact is None and geometry.batch:
            no_exact = " together with batch axes"
        which = "thresholds" if name == "image" else f"thresholds_{name}"
        levels = parse_thresholds(given_on_host(thresholds), range, name=which, no_exact=no_exact)
        threads = origin.workers(workers)
        if labels is not None:
            geometry.check_single()
            mask = None if mask is None else geometry.spread(mask)
            labels = geometry.stack(region_labels(origin, labels, mask, geometry.shape))[0]
            mask = None
        if mask is not None:
            mask = geometry.stack(kept_points(origin, mask, geometry))
        images = geometry.stack(array)
        return cls(name, origin, geometry, filtration, levels, images, mask, labels, threads)

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of a backend's functions of images."""
        return {"mask": self.mask, "workers": self.workers}

    def find_range(self) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value, of labelled points if there are."""
        mask = self.mask
        if self.labels is not None:
            mask = (self.labels != 0)[None]
        find = self.origin.backend().value_range
        with image_named(self.name):
            return find(self.images, self.filtration, mask=mask, workers=self.workers)

    def thresholds(self) -> NDArray[Any]:
        """Return the thresholds on the host."""
        return self.levels.over(self.find_range, self.geometry.spatial)

    def warn_if_missed(self, at: NDArray[Any], values: NDArray[Any]) -> None:
        """Warn if hardly any threshold lies among the values of an image on the host."""
        if self.origin.on_host:
            self.levels.warn_if_missed(at, values, self.find_range, self.name)

    def spread(self, values: Any, *shape: int) -> Any:
        """Return values (images, ...) with the batch axes of the image, and `shape` behind them."""
        return self.origin.wrap(values.reshape((*self.geometry.batch, *shape)))


def layout_of(
    shape: tuple[int, ...],
    name: str = "image",
    *,
    connectivity: Any = None,
    superlevel: Any = False,
    nan: Any = "raise",
    axis: Any = None,
    direction: Any = None,
    direction_scale: Any = None,
    spacing: Any = None,
    boundary: Any = "closed",
) -> tuple[Geometry, Filtration]:
    """Return which axes of an image are spatial, and its filtration."""
    geometry = geometry_by_axis(shape, axis, name)
    added = direction_of(given_on_host(direction), direction_scale, spacing, geometry.spatial)
    return geometry, filtration_of(geometry.ndim, connectivity, superlevel, nan, added, boundary)
