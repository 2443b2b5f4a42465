"""The arguments of functions of dask arrays, checked and rechunked as the image is."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import adapter_of, given_on_host
from ecc_core._arrays.adapters.base import is_brain_float
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request, layout_of, thresholds_named
from ecc_core._dask import graph
from ecc_core._dask.graph import da
from ecc_core._request.boundary import COMPLEXES, check_boundary, check_window
from ecc_core._request.filtration import Direction
from ecc_core._request.image import check_image_dtype, check_same_shape
from ecc_core._request.labels import check_label_type
from ecc_core._request.masks import check_mask, without_masked
from ecc_core._request.options import ImageOptions
from ecc_core._request.resources import check_unused
from ecc_core._request.spatial_axes import Geometry, all_axes
from ecc_core._request.thresholds import Thresholds, parse_thresholds

Array = NDArray[Any]

Axes = SupportsIndex | Sequence[SupportsIndex] | None


def check_dask_image(image: Any, name: str = "image") -> Any:
    """Return a dask array of real numbers with known chunk sizes and without empty chunks."""
    if not isinstance(image, da.Array):
        raise TypeError(f"`{name}` must be a dask array, got {type(image).__name__}")
    if not (adapter := adapter_of(image._meta)).chunks:
        raise TypeError(
            f"`{name}` must have chunks of NumPy or CuPy arrays, got those of {adapter.name}"
        )
    if is_brain_float(image):
        image = image.astype(np.float32)
    check_image_dtype(image.dtype, name)
    if any(math.isnan(n) for n in image.shape):
        raise ValueError(
            f"`{name}` must have chunks of known sizes (call {name}.compute_chunk_sizes() first), "
            f"got shape {image.shape}"
        )
    return graph.without_empty_chunks(image)


def lazy_request(
    image: Any,
    thresholds: Any,
    options: ImageOptions,
    *,
    name: str = "image",
    labels: Any = None,
) -> Request:
    """Check the arguments of a public function for a dask array, as `Request.of` does for others.

    The image and its mask of the request have the same chunks and all batch axes. A directional
    term has been added to the image.
    """
    check_no_workers(options.workers)
    image = check_dask_image(image, name)
    mask = options.mask
    geometry, filtration = layout_of(image.shape, options, name)
    levels = _levels(thresholds, options.range, thresholds_named(name))
    origin = origin_of(image, name)
    if labels is not None:
        geometry.check_single()
        labels = without_masked(labels)
        if not isinstance(labels, da.Array):
            labels = origin_of(labels, "labels").unwrap(labels, "labels")
        check_label_type(labels.dtype, tuple(labels.shape), image.shape)
        labels = _chunked_alike(labels, image, "labels")
    if mask is not None or labels is not None:
        check_window(filtration.boundary)
    window = None
    is_window = filtration.boundary.is_window
    if is_window and mask is not None:
        window = chunked_mask(mask, image, geometry).transpose(geometry.order)
        mask = None
    image, mask = split_masked_chunks(image, mask, geometry)
    if mask is not None and labels is not None and not is_window:
        labels = np.where(mask, labels, labels.dtype.type(0))
        mask = None
    if mask is not None:
        mask = mask.transpose(geometry.order)
    image = image.transpose(geometry.order)
    if filtration.direction is not None:
        meta = image._meta.astype(np.float64)
        image = image.map_blocks(_directed, direction=filtration.direction, meta=meta)
    if labels is not None:
        alone = (0,) * len(geometry.batch)
        image = image[alone]
        labels = labels.transpose(geometry.order)[alone]
        mask = None if mask is None else mask[alone]
    return Request(
        name=name,
        origin=origin,
        geometry=geometry,
        filtration=filtration,
        levels=levels,
        images=image,
        mask=mask,
        labels=labels,
        workers=None,
        window=window,
    )


class SingleImage(NamedTuple):
    """A dask array without batch axes, and the request for it."""

    request: Request
    values: Any
    """A dask array without batch axes."""
    mask: Any
    """An array of the same chunks, or None."""


def single_image(image: Any, options: ImageOptions) -> SingleImage:
    """Check the arguments of a function of one image. By default all of its axes are spatial."""
    check_boundary(options.boundary, COMPLEXES)
    if options.axis is None:
        options = options._replace(axis=all_axes(image))
    request = lazy_request(image, (), options)
    request.geometry.check_single()
    alone = (0,) * len(request.geometry.batch)
    mask = None if request.mask is None else request.mask[alone]
    return SingleImage(request, request.images[alone], mask)


def check_no_workers(workers: int | None) -> None:
    check_unused("for a dask array, whose scheduler controls the threads", workers=workers)


def given_thresholds(thresholds: ArrayLike, bounds: tuple[float, float] | None) -> Array:
    """Return checked thresholds, which must not depend on the values of the image."""
    return _levels(thresholds, bounds, "thresholds").over(lambda: (None, None), ())


def _levels(thresholds: ArrayLike, bounds: Any, name: str) -> Thresholds:
    levels = parse_thresholds(
        given_on_host(thresholds), bounds, name=name, no_exact=" for a dask array"
    )
    if levels.needs_range:
        raise ValueError(
            f"`{levels.range_name}` must be given with `{name}` {levels.count} for a dask array, "
            "which is not read to find its values, got None"
        )
    return levels


def _checked_image(image: Any, name: str) -> Any:
    if isinstance(image, da.Array):
        return check_dask_image(image, name)
    return origin_of(image, name).image(image, name)


def paired(first: Any, second: Any) -> tuple[Any, Any]:
    """Return two images, at least one of them a dask array, as dask arrays of the same chunks."""
    first = _checked_image(first, "first")
    second = _checked_image(second, "second")
    check_same_shape(first.shape, second.shape)
    if isinstance(first, da.Array):
        return first, _chunked_alike(second, first, "second")
    return _chunked_alike(first, second, "first"), second


def _chunked_alike(array: Any, image: Any, name: str) -> Any:
    """Return an array of the image's shape with its chunks and their array library."""
    if not isinstance(array, da.Array):
        array = da.from_array(array, chunks=image.chunks)
    elif array.chunks != image.chunks:
        array = graph.without_empty_chunks(array).rechunk(image.chunks)
    own, other = (adapter_of(one._meta).name for one in (image, array))
    if own != other:
        raise ValueError(
            f"`{name}` must have chunks of the image's library, {own}, got those of {other}"
        )
    return array


def chunked_mask(mask: Any, image: Any, geometry: Geometry, name: str = "mask") -> Any:
    """Return a mask, checked and in the chunks of the image."""
    mask = without_masked(mask)
    if not isinstance(mask, da.Array):
        mask = origin_of(mask, name).unwrap(mask, name)
    check_mask(mask.shape, mask.dtype, image_shape=image.shape, spatial=geometry.spatial, name=name)
    if mask.shape != image.shape:
        mask = geometry.spread(da.asarray(mask))
    return _chunked_alike(mask, image, name)


def split_masked_chunks(image: Any, mask: Any | None, geometry: Geometry) -> tuple[Any, Any | None]:
    """Return an image without ``numpy.ma`` masks, and its mask combined with these, or None."""
    if mask is not None:
        mask = chunked_mask(mask, image, geometry)
    if not isinstance(image._meta, np.ma.MaskedArray):
        return image, mask
    # The dtypes are given, because dask would infer them by calls that may raise NumPy warnings.
    empty = (0,) * image.ndim
    shown = ~image.map_blocks(np.ma.getmaskarray, dtype=bool, meta=np.empty(empty, bool))
    values = image.map_blocks(np.ma.getdata, dtype=image.dtype, meta=np.empty(empty, image.dtype))
    return values, shown if mask is None else shown & mask


def _directed(block: Array, direction: Direction, block_info: Any) -> Array:
    place = block_info[0]["array-location"][-len(direction.shape) :]
    return direction.add(block, tuple(start for start, _ in place))
