"""Volumes that are stored separately, such as channels and time points, as one array."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ecc_core._io.lazy import Array, Box, Lazy


def joined_volumes(
    counts: tuple[int, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    volume: Callable[[tuple[int, ...]], Any],
) -> Lazy:
    """Return an array whose first axes number volumes, which are read when they are needed.

    Parameters
    ----------
    counts : tuple of int
        Number of volumes along each of the first axes.
    shape : tuple of int
        Shape of each volume, which may be stored with more points at the end of each axis.
    dtype : numpy.dtype
        Dtype of the result. Stored values are reinterpreted as it, so it must have their size.
    volume : callable
        Takes the indices along the first axes, and returns a volume that is indexed with slices.
    """
    lead = len(counts)

    def read(box: Box) -> Array:
        values = np.empty([part.stop - part.start for part in box], dtype)
        numbers = (range(part.start, part.stop) for part in box[:lead])
        for index in itertools.product(*numbers):
            place = tuple(i - part.start for i, part in zip(index, box[:lead], strict=True))
            stored = np.asarray(volume(index)[box[lead:]])
            values[place] = stored if stored.dtype == dtype else stored.view(dtype)
        return values

    return Lazy((*counts, *shape), dtype, read)
