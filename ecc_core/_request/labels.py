"""Checks of label images and of lists of labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.filtration import as_numbers


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
