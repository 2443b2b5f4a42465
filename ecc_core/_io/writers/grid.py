"""Images to be written: arrays that are read in parts, and the grid of their points."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import ANATOMICAL, Affine
from ecc_core._io.units import UNITS, converted
from ecc_core._partition import whole_box

Box = tuple[slice, ...]
LPS = np.array([-1.0, -1.0, 1.0])
"""The factors that convert right, anterior, superior to left, posterior, superior coordinates."""

MOST_ROUNDING = 1e-6
"""The largest sine of the angle by which rounding in headers may rotate a step."""

INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32) for sign in ("", "u"))
FLOATS = ("float32", "float64")
DTYPES = (*INTEGERS, "int64", "uint64", *FLOATS)
"""The dtypes that most formats support."""


class Source(Protocol):
    """An array that is read by boxes: of NumPy, of dask, or `Padded`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, box: Box, /) -> Any: ...


@dataclass(frozen=True)
class Padded:
    """An array padded by zeros to a larger shape, without holding the zeros in memory."""

    values: Source
    start: tuple[int, ...]  # The index of the first value in the larger array.
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __getitem__(self, box: Box) -> NDArray[Any]:
        whole = np.zeros([part.stop - part.start for part in box], self.dtype)
        inside = []
        here = []
        for part, start, n in zip(box, self.start, self.values.shape, strict=True):
            first = max(part.start, start)
            last = min(part.stop, start + n)
            if first >= last:
                return whole
            inside.append(slice(first - start, last - start))
            here.append(slice(first - part.start, last - part.start))
        whole[tuple(here)] = self.values[tuple(inside)]
        return whole


@dataclass(frozen=True)
class Grid:
    """The axes of an image and the places of its points.

    The place is `affine` if the file of the image has one. Otherwise it is `origin`, the distance
    of the first point from that of the whole image, of which this may be a part.
    """

    axes: str  # Z, Y and X, or the last of them.
    spacing: Mapping[str, float] = field(default_factory=dict)  # Without axes where it is unknown.
    unit: str = ""
    origin: Mapping[str, float] = field(default_factory=dict)  # In points along axes without one.
    affine: Affine | None = None

    def steps(self) -> dict[str, float]:
        """Return the distance between points along each axis, 1 if it is unknown."""
        return {axis: self.spacing.get(axis, 1.0) for axis in self.axes}

    def along_axes(self) -> dict[str, float] | None:
        """Return the place of the first point along each axis, if axes are parallel to coordinates.

        None if the axes are mirrored, rotated or sheared. In an anatomical space they may also be
        parallel to the coordinates of DICOM and ITK, which the place then has.
        """
        affine = self.affine
        if affine is None:
            return {axis: self.origin.get(axis, 0.0) for axis in self.axes}
        for signs in (np.ones(3), signs_of(affine, LPS)):
            steps = {axis: signs * affine.steps[axis] for axis in self.axes}
            along = [_is_along(step, "XYZ".index(axis)) for axis, step in steps.items()]
            if all(along):
                place = signs * affine.origin
                return {axis: float(place["XYZ".index(axis)]) for axis in self.axes}
        return None

    @property
    def is_placed(self) -> bool:
        """Whether anything is known of the place."""
        return self.affine is not None or any(self.origin.values())

    def world(self) -> Affine:
        """Return the place as an affine, in a space without a name if the file has none."""
        if self.affine is not None:
            return self.affine
        steps = {axis: step * np.eye(3)["XYZ".index(axis)] for axis, step in self.steps().items()}
        origin = np.array([self.origin.get(axis, 0.0) for axis in "XYZ"])
        return Affine(steps, origin, space="", unit=self.unit)

    def in_unit(self, unit: str) -> "Grid":
        """Return the same grid in another unit. Both must be units of length."""
        if unit == self.unit:
            return self
        factor = UNITS[self.unit][0] / UNITS[unit][0]
        affine = self.affine
        if affine is not None:
            steps = {axis: factor * step for axis, step in affine.steps.items()}
            affine = Affine(steps, factor * affine.origin, affine.space, unit)
        spacing = {axis: converted(step, self.unit, unit) for axis, step in self.spacing.items()}
        origin = {
            axis: converted(at, self.unit, unit) if axis in self.spacing else at
            for axis, at in self.origin.items()
        }
        return Grid(axes=self.axes, spacing=spacing, unit=unit, origin=origin, affine=affine)


def _is_along(step: NDArray[np.float64], axis: int) -> bool:
    """Whether a step has the direction of an axis of the coordinates, up to rounding."""
    across = np.delete(step, axis)
    return bool(step[axis] > 0 and np.abs(across).max() <= MOST_ROUNDING * step[axis])


def signs_of(affine: Affine, space: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factors that convert an affine to an anatomical space, 1 if it is in none."""
    return space if affine.space == ANATOMICAL else np.ones(3)


def slabs(values: Source) -> Iterator[NDArray[Any]]:
    """Yield parts of an array along its first axis that are efficient to read."""
    chunks = getattr(values, "chunks", None)  # A dask array has them.
    if isinstance(values, np.ndarray):
        yield values
        return
    lengths = chunks[0] if chunks else (1,) * values.shape[0]
    rest = whole_box(values.shape[1:])
    start = 0
    for length in lengths:
        yield np.asarray(values[(slice(start, start + length), *rest)])
        start += length
