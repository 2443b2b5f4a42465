"""The spatial and batch axes of an image."""

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from ecc_core.errors import warn_caller

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
