"""Checks of masks, and their use."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.dtypes import dtype_in_words


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
