"""Checks of arguments, each with one message: the argument, what it must be, and what came."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "as_count",
    "check_connectivity",
    "check_devices",
    "check_direction",
    "check_image_dtype",
    "check_label_type",
    "check_label_values",
    "check_labels",
    "check_mask",
    "check_nan",
    "check_range",
    "check_scale",
    "check_spacing",
    "check_threshold_array",
    "check_workers",
    "spatial_axes",
    "split_masked",
]

Array = NDArray[Any]


def split_masked(image: Any, mask: Any) -> tuple[Any, Any]:
    """An image and its mask; the mask of a ``numpy.ma`` array is honoured."""
    if not isinstance(image, np.ma.MaskedArray):
        return image, mask
    shown = ~np.ma.getmaskarray(image)
    if mask is not None:
        array = np.asarray(mask)
        check_mask(array.shape, array.dtype, image.shape, image.shape)
        shown = shown & array
    return image.data, shown


def check_image_dtype(dtype: np.dtype[Any], name: str = "image") -> None:
    """Real numbers of at most 64 bits."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise TypeError(
            f"`{name}` must be of booleans, integers or real floats of at most 64 bits, got {dtype}"
        )


def spatial_axes(
    shape: tuple[int, ...], axis: SupportsIndex | Sequence[SupportsIndex] | None
) -> tuple[int, ...]:
    """The spatial axes, non-negative: all of a 1-D to 3-D image, or the given ones."""
    if axis is None:
        if not 1 <= len(shape) <= 3:
            raise ValueError(
                f"`image` must have 1 to 3 axes (or name 1 to 3 spatial ones in `axis`), "
                f"got shape {shape}"
            )
        return tuple(range(len(shape)))
    try:
        given: Any = axis if np.ndim(axis) else (axis,)  # type: ignore[arg-type]
        axes = tuple(operator.index(a) for a in given)
    except TypeError:
        raise TypeError(f"`axis` must be an int or a tuple of ints, got {axis!r}") from None
    positive = tuple(a + len(shape) if a < 0 else a for a in axes)
    if (
        not 1 <= len(axes) <= 3
        or len(set(positive)) < len(axes)
        or any(not 0 <= a < len(shape) for a in positive)
    ):
        raise ValueError(
            f"`axis` must be 1 to 3 distinct axes of an image of shape {shape}, got {axis}"
        )
    return positive


def check_connectivity(connectivity: int | None, ndim: int) -> int:
    """1 or `ndim`, which is the default."""
    if connectivity is None:
        return ndim
    if isinstance(connectivity, bool) or connectivity not in (1, ndim):
        allowed = f"1 or {ndim}" if ndim > 1 else "1"
        raise ValueError(
            f"`connectivity` must be {allowed} for a {ndim}-D image, got {connectivity}"
        )
    return int(connectivity)


def check_mask(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    image_shape: tuple[int, ...],
    spatial: tuple[int, ...],
) -> None:
    """Booleans of the image's shape, or of its spatial shape."""
    if dtype != np.bool_:
        raise TypeError(f"`mask` must be of booleans (True: keep the point), got {dtype}")
    if shape not in (image_shape, spatial):
        expected = f"{image_shape}" if image_shape == spatial else f"{image_shape} or {spatial}"
        raise ValueError(f"`mask` must have the image's shape {expected}, got {shape}")


def check_nan(nan: str) -> None:
    if nan not in ("raise", "omit"):
        raise ValueError(f'`nan` must be "raise" or "omit", got {nan!r}')


def check_workers(workers: int | None) -> int | None:
    if workers is None:
        return None
    if isinstance(workers, bool) or not hasattr(workers, "__index__"):
        raise TypeError(f"`workers` must be a positive int or None, got {workers!r}")
    if (count := operator.index(workers)) < 1:
        raise ValueError(f"`workers` must be a positive int or None, got {workers}")
    return count


def check_devices(devices: Any) -> list[int]:
    """Distinct numbers of devices, at least one."""
    try:
        numbers = [operator.index(number) for number in devices]
    except TypeError:
        raise TypeError(f"`devices` must be a sequence of ints, got {devices!r}") from None
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise ValueError(f"`devices` must be distinct numbers from 0 on, got {devices!r}")
    return numbers


def as_count(number: Any, name: str) -> int | None:
    """The int of an argument that is an int or an array; None for an array."""
    if isinstance(number, bool | np.bool_) or np.ndim(number) > 0:
        return None
    if not hasattr(number, "__index__"):
        raise TypeError(f"`{name}` must be an int or an array, got {number!r}")
    if (count := operator.index(number)) < 0:
        raise ValueError(f"`{name}` must not be negative, got {count}")
    return count


def check_threshold_array(thresholds: ArrayLike, name: str = "thresholds") -> Array:
    """Real, one-dimensional, not decreasing, without NaN."""
    array = np.asarray(thresholds)
    if array.size == 0 and array.ndim == 1:
        return array if array.dtype.kind in "biuf" else array.astype(np.float64)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"`{name}` must be real numbers of at most 64 bits, got {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"`{name}` must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind == "f" and bool(np.isnan(array).any()):
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    falls = np.flatnonzero(array[1:] < array[:-1])
    if falls.size:
        i = int(falls[0])
        raise ValueError(f"`{name}` must be increasing, got {array[i]} before {array[i + 1]}")
    return array


def check_range(bounds: Any) -> tuple[float, float]:
    """Two finite numbers in order."""
    try:
        low, high = bounds
        finite = math.isfinite(low) and math.isfinite(high)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"`range` must be two numbers (low, high), got {bounds!r}") from None
    if not finite or low > high:
        raise ValueError(f"`range` must be finite with low <= high, got {bounds!r}")
    return low, high


def check_direction(direction: ArrayLike, ndim: int) -> NDArray[np.float64]:
    """A unit vector with one component for each spatial axis."""
    array = np.asarray(direction)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`direction` must be real numbers, got {array.dtype}")
    if array.shape != (ndim,):
        raise ValueError(f"`direction` must have shape ({ndim},), got {array.shape}")
    vector = array.astype(np.float64)
    if not np.isfinite(vector).all() or not vector.any():
        raise ValueError(f"`direction` must be finite and not zero, got {array}")
    vector = vector / np.abs(vector).max()  # so that squares neither overflow nor vanish
    unit: NDArray[np.float64] = vector / np.sqrt(np.sum(vector * vector))
    return unit


def check_scale(scale: float) -> float:
    if isinstance(scale, str | complex) or not np.isreal(scale) or np.ndim(scale):
        raise TypeError(f"`direction_scale` must be a real number, got {scale!r}")
    if not math.isfinite(scale):
        raise ValueError(f"`direction_scale` must be finite, got {scale}")
    return float(scale)


def check_spacing(spacing: ArrayLike | None, ndim: int) -> NDArray[np.float64]:
    """Positive distances of neighbouring points along each axis; 1 by default."""
    if spacing is None:
        return np.ones(ndim)
    array = np.asarray(spacing)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"`spacing` must be real numbers, got {array.dtype}")
    if array.shape not in ((), (ndim,)):
        raise ValueError(f"`spacing` must be one number or {ndim} of them, got {spacing}")
    if not np.isfinite(array).all() or (array <= 0).any():
        raise ValueError(f"`spacing` must be positive and finite, got {spacing}")
    return np.broadcast_to(array, (ndim,)).astype(np.float64)


def check_labels(labels: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Integers of the image's shape, 0 for the background, none negative."""
    check_label_type(dtype, tuple(labels.shape), shape)
    check_label_values(labels, dtype)


def check_label_type(
    dtype: np.dtype[Any], shape: tuple[int, ...], image_shape: tuple[int, ...]
) -> None:
    """Integers of the image's shape."""
    if dtype.kind not in "biu":
        raise TypeError(f"`labels` must be of integers, got {dtype}")
    if shape != image_shape:
        raise ValueError(f"`labels` must have the image's shape {image_shape}, got {shape}")


def check_label_values(labels: Any, dtype: np.dtype[Any]) -> None:
    """None negative."""
    if dtype.kind == "i" and 0 not in labels.shape and (least := int(labels.min())) < 0:
        raise ValueError(f"`labels` must not be negative, got {least}")
