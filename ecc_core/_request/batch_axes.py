"""Batch axes of images whose axes have names and coordinates."""

import math
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray


class BatchAxis(NamedTuple):
    """The name and the coordinates of a batch axis, in types that can be compared and saved."""

    name: str
    dtype: str | None = None
    """The dtype of the coordinates; None without coordinates."""
    coordinates: tuple[Any, ...] = ()
    """Numbers or text. Times are integers; NaN, infinity and numbers of extended precision, text.
    """
    units: str | None = None

    @classmethod
    def of(cls, name: str, coordinates: NDArray[Any], units: str | None = None) -> Self:
        """Return an axis with these coordinates; objects such as dates are kept as text."""
        if coordinates.dtype.kind not in "biufmMU":
            coordinates = np.array([str(value) for value in coordinates])
        native = coordinates.astype(coordinates.dtype.newbyteorder("="), copy=False)
        plain_numbers = native.view(np.int64) if native.dtype.kind in "mM" else native
        plain = tuple(_plain(value) for value in plain_numbers.tolist())
        return cls(name, native.dtype.str, plain, units)

    @property
    def values(self) -> NDArray[Any] | None:
        """The coordinates, or None if there are none."""
        if self.dtype is None:
            return None
        if np.dtype(self.dtype).kind in "mM":
            return np.array(self.coordinates, np.int64).view(self.dtype)
        return np.array(self.coordinates, self.dtype)


def _plain(value: Any) -> Any:
    """Return a number as text if JSON cannot hold it; NumPy converts it to the same number.

    JSON has no NaN, which also equals nothing, no infinity, and no numbers of extended precision.
    """
    if isinstance(value, np.longdouble):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def as_batch_axes(axes: Any) -> tuple[BatchAxis, ...]:
    """Return batch axes, given as such or as the lists that a file has of them."""
    return tuple(_as_batch_axis(axis) for axis in axes)


def _as_batch_axis(axis: Any) -> BatchAxis:
    if not isinstance(axis, list):
        return cast("BatchAxis", axis)
    name, dtype, coordinates, units = axis
    return BatchAxis(name, dtype, tuple(coordinates), units)
