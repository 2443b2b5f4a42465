"""What is written of an image: its values, read in parts, and where its points lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.geometry import ANATOMICAL, UNITS, Affine, converted
from ecc_core._partition import whole_box

Box = tuple[slice, ...]
LPS = np.array([-1.0, -1.0, 1.0])
"""Signs of the coordinates left, posterior and superior in those of right, anterior, superior."""

ROUNDING = 1e-6
"""Part of a step by which rounded headers may turn it."""

INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32) for sign in ("", "u"))
FLOATS = ("float32", "float64")
DTYPES = (*INTEGERS, "int64", "uint64", *FLOATS)
"""Types of values that most formats have."""


class Source(Protocol):
    """An array that is read by boxes: of NumPy, of dask, or `Padded`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, box: Box, /) -> Any: ...


@dataclass(frozen=True)
class Padded:
    """An array inside a larger one that is 0 elsewhere, and that is not held in memory."""

    values: Source
    start: tuple[int, ...]  # index of the first value in the larger array
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
    """The axes of an image and where its points lie.

    The place is given by `affine` where a file says how the image lies in the world, and otherwise
    by `origin`, the distance of the first point from that of the image it is a part of.
    """

    axes: str  # Z, Y and X, or the last of them
    spacing: Mapping[str, float] = field(default_factory=dict)  # along the axes where it is known
    unit: str = ""
    origin: Mapping[str, float] = field(default_factory=dict)  # points where there is no spacing
    affine: Affine | None = None

    def steps(self) -> dict[str, float]:
        """Return the distance of points along each axis, 1 where it is unknown."""
        return {axis: self.spacing.get(axis, 1.0) for axis in self.axes}

    def along_axes(self) -> dict[str, float] | None:
        """Return the place of the first point along each axis.

        None if the axes are mirrored, rotated or sheared: Z, Y and X lie along z, y and x neither
        of the coordinates nor, for an anatomical space, of those that DICOM and ITK use.
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
        """Return the place in the coordinates x, y and z, of which nothing else may be known."""
        if self.affine is not None:
            return self.affine
        steps = {axis: step * np.eye(3)["XYZ".index(axis)] for axis, step in self.steps().items()}
        origin = np.array([self.origin.get(axis, 0.0) for axis in "XYZ"])
        return Affine(steps, origin, space="", unit=self.unit)

    def in_unit(self, unit: str) -> "Grid":
        """Return the same place in another unit, whose ratio to this one is known."""
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
    """Whether a step leads along an axis of the coordinates, upwards and up to rounding."""
    across = np.delete(step, axis)
    return bool(step[axis] > 0 and np.abs(across).max() <= ROUNDING * step[axis])


def signs_of(affine: Affine, space: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the signs that take an affine to an anatomical space; 1 if it is in none."""
    return space if affine.space == ANATOMICAL else np.ones(3)


def slabs(values: Source) -> Iterator[NDArray[Any]]:
    """Yield parts of an array along its first axis that are efficient to read."""
    chunks = getattr(values, "chunks", None)  # of dask
    if isinstance(values, np.ndarray):
        yield values
        return
    lengths = chunks[0] if chunks else (1,) * values.shape[0]
    rest = whole_box(values.shape[1:])
    start = 0
    for length in lengths:
        yield np.asarray(values[(slice(start, start + length), *rest)])
        start += length
