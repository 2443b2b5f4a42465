"""The checked label images of the frames of a movie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays.adapters.array_likes import check_array_like
from ecc_core._request.masks import without_masked

LARGEST_LABEL = np.iinfo(np.int64).max


def label_images(labels: Iterable[ArrayLike]) -> Iterator[NDArray[np.integer[Any]]]:
    """Yield label images of one shape."""
    shape: tuple[int, ...] | None = None
    for number, frame in enumerate(frames_of(labels, "labels")):
        image = integers_of(frame, "labels", number)
        if image.ndim == 0:
            raise ValueError("`labels` must have an axis of frames and others, got one axis")
        if shape is not None and image.shape != shape:
            raise ValueError(
                f"`labels` must have frames of one shape, got {shape} and, in frame {number}, "
                f"{image.shape}"
            )
        if image.dtype.kind == "i" and image.min(initial=0) < 0:
            raise ValueError(f"`labels` must not be negative, got {image.min()} in frame {number}")
        if image.dtype == np.uint64 and image.max(initial=0) > LARGEST_LABEL:
            raise ValueError(
                f"`labels` must be less than 2**63, got {image.max()} in frame {number}"
            )
        shape = image.shape
        yield image


def frames_of(given: Iterable[ArrayLike], name: str) -> Iterator[ArrayLike]:
    """Return an iterator over the arrays of all frames."""
    try:
        return iter(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(f"`{name}` must be an iterable of arrays, got {kind}") from None


def integers_of(given: ArrayLike, name: str, number: int) -> NDArray[np.integer[Any]]:
    """Return the array of a frame, whose values must be integers or booleans."""
    check_array_like(given, name)
    try:
        array = np.asarray(without_masked(given))
    except ValueError:
        raise ValueError(
            f"`{name}` must be arrays, got rows of different lengths in frame {number}"
        ) from None
    if array.size and array.dtype.kind not in "biu":
        raise TypeError(f"`{name}` must be integers, got {array.dtype} in frame {number}")
    return array
