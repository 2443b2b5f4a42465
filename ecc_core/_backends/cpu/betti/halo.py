"""Halos of one point around images that are periodic, and the places that they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def home_of(shape: tuple[int, ...], wraps: Sequence[bool]) -> Array:
    """Return the place that each place of an image with a halo of one point stands for.

    Along axes that do not wrap, places in the halo stand for themselves.
    """
    halo = [n + 2 for n in shape]
    places = np.arange(math.prod(halo), dtype=index_type(math.prod(halo))).reshape(halo)
    return wrap_halo(places, wraps).reshape(-1)


def wrap_halo(padded: Array, wraps: Sequence[bool]) -> Array:
    """Fill the halo of one point with the opposite sides of the image, along axes that wrap."""
    for axis, touch in enumerate(wraps):
        if touch:
            along = np.moveaxis(padded, axis, 0)
            along[0] = along[-2]
            along[-1] = along[1]
    return padded


def index_type(places: int) -> type[np.int32 | np.int64]:
    """Return a dtype for the numbers of so many places."""
    return np.int32 if places < 1 << 31 else np.int64
