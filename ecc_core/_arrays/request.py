"""The checked arguments of a function of images in memory, with arrays as a backend takes them."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import given_on_host, is_lazy
from ecc_core._arrays.origin import Origin, kept_points, origin_of, region_labels
from ecc_core._request.boundary import COMPLEXES, check_boundary, check_window
from ecc_core._request.filtration import Filtration, direction_of, filtration_of
from ecc_core._request.image import image_named
from ecc_core._request.masks import split_masked
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import (
    Geometry,
    all_axes,
    geometry_by_axis,
    reshaped,
)
from ecc_core._request.thresholds import Thresholds, parse_thresholds

DEFAULTS = ImageOptions()


def check_eager(array: Any, name: str = "image") -> None:
    """Refuse a dask array where a function needs the whole image."""
    if is_lazy(array):
        raise TypeError(f"`{name}` must be in memory, got a dask array: compute it first")


def check_given(array: Any, name: str) -> None:
    """Refuse None where a function needs an array."""
    if array is None:
        raise TypeError(f"`{name}` must be an array, got None")


class Request(NamedTuple):
    """The checked arguments of a call, as a backend takes them."""

    name: str
    """The name of the image in messages."""
    origin: Origin
    geometry: Geometry
    filtration: Filtration
    levels: Thresholds
    images: Any
    """The images, (images, *spatial)."""
    mask: Any
    """A mask of the same shape, or None."""
    labels: Any
    """Labels of the spatial shape, 0 where the image is masked, or None."""
    workers: int | None
    window: Any = None
    """If the boundary is half-open, the argument `mask` as points of the images' shape, or None.

    The attribute `mask` then has only the elements that a ``numpy.ma`` array masks, which never
    enter, even within regions.
    """

    @classmethod
    def of(
        cls,
        image: Any,
        thresholds: Any = 0,
        options: ImageOptions = DEFAULTS,
        *,
        name: str = "image",
        like: Origin | None = None,
        no_exact: str | None = "",
        labels: Any = None,
    ) -> Self:
        """Check the arguments of a public function.

        The image must be on the device of the origin `like`, if there is one. The thresholds
        "exact" are refused by a message that ends with `no_exact`. If `no_exact` is None, they are
        refused only together with batch axes.
        """
        given = image
        window = options.mask
        image, mask = split_masked(image, options.mask)
        origin = like or origin_of(image, name)
        array = origin.image(image, name)
        geometry, filtration = layout_of(array.shape, options, name)
        if no_exact is None and geometry.batch:
            no_exact = " together with batch axes"
        levels = parse_thresholds(
            given_on_host(thresholds),
            options.range,
            name=thresholds_named(name),
            no_exact=no_exact,
        )
        threads = origin.workers(options.workers)
        if window is not None or labels is not None:
            check_window(filtration.boundary)
        is_window = filtration.boundary.is_window
        if is_window and window is not None:
            _, mask = split_masked(given, None)
            window = geometry.stack(kept_points(origin, window, geometry))
        else:
            window = None
        if labels is not None:
            geometry.check_single()
            shown = None if mask is None else geometry.spread(mask)
            standing = None if is_window else shown
            labels = geometry.stack(region_labels(origin, labels, standing, geometry.shape))[0, ...]
            mask = shown if is_window else None
        if mask is not None:
            mask = geometry.stack(kept_points(origin, mask, geometry))
        images = geometry.stack(array)
        return cls(
            name=name,
            origin=origin,
            geometry=geometry,
            filtration=filtration,
            levels=levels,
            images=images,
            mask=mask,
            labels=labels,
            workers=threads,
            window=window,
        )

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of a backend's functions of images."""
        return {"mask": self.mask, "workers": self.workers}

    def find_range(self) -> tuple[Any, Any]:
        """Return the smallest and the largest finite value of the points.

        With labels, only labelled points count; with a window, only those of the window.
        """
        mask = self.mask
        window = self.window
        if self.labels is not None:
            window = (self.labels != 0)[None, ...]
        if window is not None:
            mask = window if mask is None else mask & window
        find = self.origin.backend().value_range
        with image_named(self.name):
            return find(self.images, self.filtration, mask=mask, workers=self.workers)

    def thresholds(self) -> NDArray[Any]:
        """Return the thresholds on the host."""
        return self.levels.over(self.find_range, self.geometry.spatial)

    def points(self, name: str, mask: Any) -> Any:
        """Return another mask as the backend takes it, (images, *spatial), or None."""
        if mask is None:
            return None
        return self.geometry.stack(kept_points(self.origin, mask, self.geometry, name))

    def kept(self) -> Any:
        """Return the number of points of each image that are neither masked nor omitted as NaN.

        The numbers are a tuple of int. Of a dask array with a mask or omitted NaN, they are a 1-D
        dask array.
        """
        if self.origin.on_host or is_lazy(self.images):
            return self._kept(self.images, self.mask)
        numbers = self.origin.transforms().numbers
        with numbers(self.images) as images:
            if self.mask is None:
                return self._kept(images, None)
            with numbers(self.mask) as shown:
                return self._kept(images, shown)

    def _kept(self, images: Any, shown: Any) -> Any:
        geometry = self.geometry
        count = math.prod(geometry.batch)
        if images.dtype.kind == "f" and self.filtration.nan == "omit":
            shown = ~np.isnan(images) if shown is None else shown & ~np.isnan(images)
        if shown is None or count == 0:
            return (math.prod(geometry.spatial),) * count
        if self.origin.on_host or is_lazy(images):
            counts = shown.sum(axis=tuple(range(-geometry.ndim, 0))).ravel()
            return counts if is_lazy(images) else tuple(counts.tolist())
        # CuPy sums a whole array in a hundredth of the time that it takes along axes.
        of_each = shown.reshape(count, math.prod(geometry.spatial))
        counts = [points.sum() for points in of_each]
        return tuple(map(int, counts))

    def topology(self, name: str) -> Any:
        """Return the backend's function of Betti numbers that has a name."""
        return getattr(self.origin.betti_numbers(), name)

    def warn_if_missed(self, at: NDArray[Any], values: NDArray[Any]) -> None:
        """Warn if hardly any threshold lies among the values of an image on the host."""
        if self.origin.on_host:
            self.levels.warn_if_missed(at, values, self.find_range, self.name)

    def curves(self, compute: Callable[..., Any], given: Any) -> tuple[Any, Any]:
        """Return the thresholds of a result, and the curves that a function computes at them.

        `given` is the argument of the public function, returned if it is an array.
        """
        at = self.thresholds()
        filtration = self.filtration
        if self.levels.needs_range:
            filtration = self.origin.backend().after_range(filtration)
        values = compute(self.images, at, filtration, **self.options)
        self.warn_if_missed(at, values)
        return self.origin.thresholds(given, at), self.spread(values, *values.shape[1:])

    def spread(self, values: Any, *shape: int) -> Any:
        """Return values (images, ...), reshaped to the batch axes of the image, then `shape`."""
        return self.origin.wrap(reshaped(values, (*self.geometry.batch, *shape)))


def thresholds_named(image: str) -> str:
    """Return the argument for the thresholds of an image, by the image's own argument."""
    return "thresholds" if image == "image" else f"thresholds_{image}"


def layout_of(
    shape: tuple[int, ...], options: ImageOptions, name: str = "image"
) -> tuple[Geometry, Filtration]:
    """Return which axes of an image are spatial, and its filtration."""
    geometry = geometry_by_axis(shape, options.axis, name)
    added = direction_of(
        given_on_host(options.direction),
        options.direction_scale,
        options.spacing,
        geometry.spatial,
    )
    filtration = filtration_of(
        geometry.ndim,
        options.connectivity,
        superlevel=options.superlevel,
        nan=options.nan,
        direction=added,
        boundary=options.boundary,
    )
    return geometry, filtration


def shown_in_both(first: Request, second: Request) -> Any:
    """Return the points that neither of two images of one shape masks, None without masks."""
    if first.mask is None:
        return second.mask
    if second.mask is None:
        return first.mask
    return first.mask & second.mask


def single_request(
    image: Any, options: ImageOptions, thresholds: Any = 0, *, labels: Any = None
) -> Request:
    """Check the arguments of a function of one image in memory, closed or periodic."""
    check_eager(image)
    check_boundary(options.boundary, COMPLEXES)
    if options.axis is None:
        options = options._replace(axis=all_axes(image))
    request = Request.of(image, thresholds, options, labels=labels)
    request.geometry.check_single()
    return request


def indices_of(points: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the indices (k, d) of points that are numbered in C order. A point of -1 gets -1."""
    if type(points) is not np.ndarray:
        from ecc_core._backends.cuda import gathering

        on_device: NDArray[np.int64] = gathering.indices_of(points, shape)
        return on_device
    from ecc_core._backends.cpu.gathering import write_indices

    found = np.empty((points.size, len(shape)), np.int64)
    write_indices(np.ascontiguousarray(points), shape, found)
    return found
