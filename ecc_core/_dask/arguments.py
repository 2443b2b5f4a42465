"""Arguments of functions of dask arrays: checked, and in the chunks of the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _checks
from ecc_core._dask import graph
from ecc_core._dask.graph import da
from ecc_core._request.filtration import Direction
from ecc_core._thresholds import even_thresholds

__all__ = [
    "Axes",
    "aligned",
    "check_dask_image",
    "check_no_workers",
    "directed",
    "given_thresholds",
    "labelled",
    "split_masked",
]

Array = NDArray[Any]

Axes = SupportsIndex | Sequence[SupportsIndex] | None

LIBRARIES = ("numpy", "cupy")


def check_dask_image(image: Any) -> Any:
    """A dask array of real numbers in chunks of known sizes, none of them empty."""
    if not isinstance(image, da.Array):
        raise TypeError(f"`image` must be a dask array, got {type(image).__name__}")
    _checks.check_image_dtype(image.dtype)
    if (library := _library(image)) not in LIBRARIES:
        raise TypeError(f"`image` must have chunks of NumPy or CuPy arrays, got those of {library}")
    if any(math.isnan(n) for n in image.shape):
        raise ValueError(
            "`image` must have chunks of known sizes (call image.compute_chunk_sizes() first), "
            f"got shape {image.shape}"
        )
    return graph.without_empty_chunks(image)


def _library(array: Any) -> str:
    """Which array library the chunks are of."""
    return type(array._meta).__module__.partition(".")[0]


def check_no_workers(workers: int | None) -> None:
    if workers is not None:
        raise ValueError(
            "`workers` must be None for a dask array, whose scheduler has the threads, "
            f"got {workers!r}"
        )


def given_thresholds(thresholds: ArrayLike, bounds: tuple[float, float] | None) -> Array:
    """The thresholds; none of them may depend on the values of the image."""
    if isinstance(thresholds, str):
        raise ValueError(
            f"`thresholds` must be an int or an array for a dask array, got {thresholds!r}"
        )
    count = _checks.as_count(thresholds, "thresholds")
    if count is None:
        if bounds is not None:
            raise ValueError("`range` must be None where `thresholds` is an array, got both")
        return _checks.check_threshold_array(thresholds)
    if bounds is None:
        raise ValueError(
            f"`range` must be given with `thresholds` {count} for a dask array, which is not read "
            "to find its values, got None"
        )
    return even_thresholds(*_checks.check_range(bounds), count)


def aligned(mask: Any | None, image: Any, axes: tuple[int, ...]) -> Any | None:
    """A mask of the image's shape and chunks."""
    if mask is None:
        return None
    if not isinstance(mask, da.Array):
        mask = np.asarray(mask)
    spatial = tuple(image.shape[a] for a in axes)
    _checks.check_mask(mask.shape, mask.dtype, image.shape, spatial)
    if mask.shape != image.shape:
        # spatial axes come in the order in which they were named
        mask = mask.transpose(np.argsort(axes).tolist())
        where = tuple(slice(None) if a in axes else None for a in np.arange(image.ndim).tolist())
        mask = da.broadcast_to(da.asarray(mask)[where], image.shape)
    return _chunked_alike(mask, image, "mask")


def labelled(labels: Any, image: Any) -> Any:
    """Labels in the image's chunks."""
    if not isinstance(labels, da.Array):
        labels = np.asarray(labels)
    _checks.check_label_type(labels.dtype, tuple(labels.shape), image.shape)
    return _chunked_alike(labels, image, "labels")


def _chunked_alike(array: Any, image: Any, name: str) -> Any:
    """An array of the image's shape, in its chunks and of their library."""
    if not isinstance(array, da.Array):
        array = da.from_array(array, chunks=image.chunks)
    elif array.chunks != image.chunks:
        array = graph.without_empty_chunks(array).rechunk(image.chunks)
    if _library(array) != _library(image):
        raise ValueError(
            f"`{name}` must have chunks of the image's library, {_library(image)}, "
            f"got those of {_library(array)}"
        )
    return array


def split_masked(image: Any, mask: Any | None) -> tuple[Any, Any | None]:
    """An image and its mask; the masks of ``numpy.ma`` chunks are honoured."""
    if not isinstance(image._meta, np.ma.MaskedArray):
        return image, mask
    shown = ~da.ma.getmaskarray(image)
    return da.ma.getdata(image), shown if mask is None else shown & mask


def directed(
    image: Any,
    axis: Axes,
    direction: ArrayLike,
    scale: float,
    spacing: ArrayLike | None,
) -> tuple[Any, Direction]:
    """An image with the term of a direction added, and this direction."""
    image = check_dask_image(image)
    axes = _checks.spatial_axes(image.shape, axis)
    unit = _checks.check_direction(direction, len(axes))
    steps = _checks.check_spacing(spacing, len(axes))
    spatial = tuple(image.shape[a] for a in axes)
    added = Direction(tuple(unit), _checks.check_scale(scale), tuple(steps), spatial)
    height: Any = None
    for along, terms in zip(axes, added.terms, strict=True):
        shape = [1] * image.ndim
        shape[along] = terms.size
        chunks = tuple(c if i == along else 1 for i, c in enumerate(image.chunks))
        term = np.asarray(terms.reshape(shape), like=image._meta)
        term = da.from_array(term, chunks=chunks, asarray=False)
        height = term if height is None else height + term
    return image.astype(np.float64) + added.scale * height, added
