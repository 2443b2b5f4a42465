"""Checks of images, and of the window of local curves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.filtration import as_numbers
from ecc_core.errors import NAN_MESSAGE, nan_message


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


def check_window(window: Any, ndim: int) -> tuple[int, ...]:
    """Return the lengths of a tile along each axis."""
    sizes = as_numbers(window, "window")
    if sizes.dtype.kind not in "iu":
        raise TypeError(f"`window` must be an int or {ndim} ints, got {window!r}")
    if sizes.shape not in ((), (ndim,)) or (sizes < 1).any():
        raise ValueError(f"`window` must be a positive int or {ndim} of them, got {window!r}")
    return tuple(np.broadcast_to(sizes, (ndim,)).tolist())
