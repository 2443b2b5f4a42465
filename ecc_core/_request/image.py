"""Checks of images, masks and labels, and the spatial and batch axes of an image."""

import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.filtration import as_numbers
from ecc_core.errors import NAN_MESSAGE, nan_message, warn_caller

MOST_CHANNELS = 4
"""The largest length of an axis that probably holds colours, channels or images."""


class Geometry(NamedTuple):
    """The axes of an image."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    """The spatial axes."""
    order: tuple[int, ...]
    """All axes, first those of the batch and then the spatial ones."""
    batch: tuple[int, ...]
    """The lengths of the batch axes."""
    spatial: tuple[int, ...]
    """The lengths of the spatial axes."""

    @property
    def ndim(self) -> int:
        return len(self.axes)

    def check_single(self) -> None:
        if math.prod(self.batch) != 1:
            raise ValueError(f"`axis` must leave axes of length 1 only, got lengths {self.batch}")

    def stack(self, array: Any) -> Any:
        """Reshape an array of the image's shape to (images, *spatial)."""
        if not self.batch:
            if self.order != tuple(sorted(self.order)):
                array = _permute(array, self.order)
            return array[None, ...]
        array = _permute(array, self.order)
        if len(self.batch) == 1:
            return array
        return reshaped(array, (math.prod(self.batch), *self.spatial))

    def unstack(self, array: Any) -> Any:
        """Reshape the only image of a stack to the image's shape."""
        return _permute(
            reshaped(array, self.batch + self.spatial), tuple(np.argsort(self.order).tolist())
        )

    def spread(self, mask: Any) -> Any:
        """Broadcast a mask of the spatial shape to the image's shape."""
        if tuple(mask.shape) == self.shape:
            return mask
        # The axes of the mask have the order in which the spatial axes were named.
        mask = _permute(mask, tuple(np.argsort(self.axes).tolist()))
        index: list[slice | None] = [None] * len(self.shape)
        for axis in self.axes:
            index[axis] = slice(None)
        mask = mask[tuple(index)]
        if hasattr(mask, "broadcast_to"):
            return mask.broadcast_to(self.shape)
        if hasattr(mask, "__array_namespace__"):
            return mask.__array_namespace__().broadcast_to(mask, self.shape)
        return np.broadcast_to(mask, self.shape)


def _permute(array: Any, order: tuple[int, ...]) -> Any:
    if hasattr(array, "permute"):
        return array.permute(order)
    if hasattr(array, "transpose"):
        return array.transpose(order)
    return array.__array_namespace__().permute_dims(array, order)


def reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of any library in another shape."""
    if hasattr(array, "reshape"):
        return array.reshape(shape)
    return array.__array_namespace__().reshape(array, shape)


def geometry_of(
    shape: Sequence[int],
    axis: SupportsIndex | Sequence[SupportsIndex] | None = None,
    name: str = "image",
) -> Geometry:
    """Return the axes of an image of the given shape; by default all of 1 to 3 axes are spatial."""
    shape = tuple(shape)
    return _geometry(shape, spatial_axes(shape, axis, name))


def geometry_by_axis(
    shape: Sequence[int],
    axis: SupportsIndex | Sequence[SupportsIndex] | None,
    name: str = "image",
) -> Geometry:
    """Return `geometry_of` an argument `axis`, and warn if it is probably missing."""
    if axis is None:
        warn_of_missing_axis(shape, name)
    return geometry_of(shape, axis, name)


def warn_of_missing_axis(shape: Sequence[int], name: str = "image") -> None:
    advice = "name the two spatial axes in `axis`, or all three for a volume"
    warn_of_thin_volume(shape, advice, name)


def all_axes(image: Any) -> tuple[int, ...] | None:
    """Return an argument `axis` with which an image of three axes is a volume without a warning."""
    return (0, 1, 2) if getattr(image, "ndim", 0) == 3 else None


def looks_thin(shape: Sequence[int]) -> bool:
    """Whether there are three axes, the first or last of which is probably not spatial."""
    if len(shape) != 3:
        return False
    middle = sorted(shape)[1]
    return min(shape[0], shape[2]) <= MOST_CHANNELS < middle


def warn_of_thin_volume(shape: Sequence[int], advice: str, name: str = "image") -> None:
    if looks_thin(shape):
        warn_caller(f"`{name}` of shape {tuple(shape)} is taken for a volume: {advice}")


@lru_cache(maxsize=256)
def _geometry(shape: tuple[int, ...], axes: tuple[int, ...]) -> Geometry:
    every_axis = range(len(shape))
    lead = tuple(axis for axis in every_axis if axis not in axes)
    batch = tuple(shape[a] for a in lead)
    spatial = tuple(shape[a] for a in axes)
    return Geometry(shape=shape, axes=axes, order=lead + axes, batch=batch, spatial=spatial)


def spatial_axes(
    shape: tuple[int, ...],
    axis: SupportsIndex | Sequence[SupportsIndex] | None,
    name: str = "image",
) -> tuple[int, ...]:
    """Return the spatial axes as non-negative numbers."""
    if axis is None:
        if not 1 <= len(shape) <= 3:
            hint = " (or name 1 to 3 spatial ones in `axis`)" if name != "shards" else ""
            raise ValueError(f"`{name}` must have 1 to 3 axes{hint}, got shape {shape}")
        return tuple(range(len(shape)))
    try:
        given: Any = axis if np.ndim(axis) else (axis,)  # type: ignore[arg-type]
        axes = tuple(operator.index(a) for a in given)
    except (TypeError, ValueError):
        raise TypeError(f"`axis` must be an int or a tuple of ints, got {axis!r}") from None
    ndim = len(shape)
    positive = [a + ndim if a < 0 else a for a in axes]
    is_distinct = len(set(positive)) == len(axes)
    exists = set(positive).issubset(range(ndim))
    if not (1 <= len(axes) <= 3 and is_distinct and exists):
        raise ValueError(
            f"`axis` must be 1 to 3 distinct axes of an image of shape {shape}, got {axis}"
        )
    return tuple(positive)


def check_image_dtype(dtype: np.dtype[Any], name: str = "image") -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TypeError(
            f"`{name}` must have a boolean, integer or real floating dtype of at most 64 bits, "
            f"got {dtype_in_words(dtype)}"
        )


@contextmanager
def image_named(name: str) -> Iterator[None]:
    """Replace `image` in a backend's error for NaN by the name of the argument."""
    try:
        yield
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError(nan_message(name)) from None


def check_same_shape(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    if tuple(first) != tuple(second):
        raise ValueError(
            f"`first` and `second` must have the same shape, got {tuple(first)} and {tuple(second)}"
        )


def split_masked(image: Any, mask: Any) -> tuple[Any, Any]:
    """Return an image and its mask, which includes the mask of a ``numpy.ma`` array."""
    if not isinstance(image, np.ma.MaskedArray):
        return image, mask
    shown = ~np.ma.getmaskarray(image)
    if mask is not None:
        array = np.asarray(without_masked(mask))
        check_mask(array.shape, array.dtype, image.shape, image.shape)
        shown = shown & as_booleans(array)
    return image.data, shown


def without_masked(array: Any) -> Any:
    """Return labels or a mask with 0 or False for the masked elements of a ``numpy.ma`` array.

    In a dask array, the chunks may be such arrays.
    """
    chunk = getattr(array, "_meta", None)
    if isinstance(chunk, np.ma.MaskedArray):
        return array.map_blocks(without_masked, dtype=array.dtype, meta=chunk.filled(0))
    return array.filled(0) if isinstance(array, np.ma.MaskedArray) else array


def check_mask(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    image_shape: tuple[int, ...],
    spatial: tuple[int, ...],
    name: str = "mask",
    stored: Any = None,
) -> None:
    """Check that a mask is boolean and has the image's shape or its spatial shape.

    `stored` is the dtype that it had before it was converted, for messages.
    """
    if dtype != np.bool_:
        meaning = " (True: keep the point)" if name == "mask" else ""
        found = dtype if stored is None else stored
        raise TypeError(f"`{name}` must be boolean{meaning}, got {dtype_in_words(found)}")
    if shape not in (image_shape, spatial):
        expected = f"{image_shape}" if image_shape == spatial else f"{image_shape} or {spatial}"
        raise ValueError(f"`{name}` must have the image's shape {expected}, got {shape}")


def as_booleans(array: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a boolean array in which True is stored as 1, as NumPy's functions assume."""
    data = array.view(np.uint8)
    return array if array.size == 0 or data.max() <= 1 else data != 0


def grown(inside: Any, shape: tuple[int, ...]) -> Any:
    """Return booleans (*lead, *shape) of the corners of the cubes whose lowest corner is inside.

    `inside` is (*lead, ...), and may have fewer points at the end of an axis than `shape`.
    """
    lead = inside.ndim - len(shape)
    larger = np.zeros_like(inside, shape=(*inside.shape[:lead], *shape), dtype=bool)
    larger[tuple(slice(0, length) for length in inside.shape)] = inside
    for axis in range(lead, inside.ndim):
        before = (slice(None),) * axis
        # Without a copy, the result would be read while it is written.
        larger[(*before, slice(1, None))] |= larger[(*before, slice(None, -1))].copy()
    return larger


def check_label_type(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    image_shape: tuple[int, ...],
    stored: Any = None,
) -> None:
    """Check the dtype and the shape of labels; `stored` is their dtype before a conversion."""
    if dtype.kind not in "biu":
        found = dtype if stored is None else stored
        raise TypeError(f"`labels` must have an integer dtype, got {dtype_in_words(found)}")
    if shape != image_shape:
        raise ValueError(f"`labels` must have the image's shape {image_shape}, got {shape}")


def check_label_values(labels: Any, dtype: np.dtype[Any]) -> None:
    if dtype.kind != "i" or 0 in labels.shape:
        return
    least = int(labels.min())
    if least < 0:
        raise ValueError(f"`labels` must not be negative, got {least}")


def check_ids(ids: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return distinct positive labels in the dtype of the label image."""
    array = as_numbers(ids, "ids")
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"`ids` must be integers, got {array.dtype}")
    if array.ndim != 1 or np.unique(array).size < array.size or (array < 1).any():
        raise ValueError(f"`ids` must be a list of different positive labels, got {ids!r}")
    cast = array.astype(dtype)
    if (cast != array).any():
        raise ValueError(f"`ids` must be labels of {dtype}, got {ids!r}")
    return cast


def check_window(window: Any, ndim: int) -> tuple[int, ...]:
    """Return the lengths of a tile along each axis."""
    sizes = as_numbers(window, "window")
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"`window` must be an int or {ndim} ints, got {window!r}")
    if sizes.shape not in ((), (ndim,)) or (sizes < 1).any():
        raise ValueError(f"`window` must be a positive int or {ndim} of them, got {window!r}")
    return tuple(np.broadcast_to(sizes, (ndim,)).tolist())
