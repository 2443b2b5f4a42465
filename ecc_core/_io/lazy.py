"""Arrays whose values are read and decoded when they are indexed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.description import Missing

LONGEST_ROW = 4096

Array = NDArray[Any]
Box = tuple[slice, ...]


@dataclass(frozen=True)
class Lazy:
    """An array whose boxes are read when it is indexed."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[Box], Array]

    def __getitem__(self, box: Box) -> Array:
        return self.read(box)


def nan_where_missing(array: Any, missing: Missing | None) -> Any:
    """Return a floating-point array in which missing values are NaN.

    Other arrays are returned unchanged, and so are those in which only NaN is missing.
    """
    if missing is None or array.dtype.kind != "f":
        return array
    ranges = [pair for pair in missing.ranges if not np.isnan(pair).any()]
    if not ranges:
        return array

    def read(box: Box) -> Array:
        values = np.array(array[box])
        for low, high in ranges:
            values[(values >= low) & (values <= high)] = np.nan
        return values

    return Lazy(tuple(map(int, array.shape)), np.dtype(array.dtype), read)


def rows_of(array: Any) -> tuple[int, ...]:
    """Return chunks for a contiguous array: rows along the fastest axis, or parts of long rows."""
    chunks = [1] * len(array.shape)
    if chunks:
        steps = getattr(array, "strides", range(len(chunks), 0, -1))
        fastest = min(reversed(range(len(chunks))), key=lambda axis: abs(steps[axis]))
        chunks[fastest] = max(1, min(int(array.shape[fastest]), LONGEST_ROW))
    return tuple(chunks)
