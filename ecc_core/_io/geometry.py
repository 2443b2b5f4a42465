"""Units of length, distances of points, and where images lie in the world."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

UNITS = {
    "kilometer": (1e3, "km kilometers kilometre kilometres"),
    "meter": (1.0, "m meters metre metres"),
    "centimeter": (1e-2, "cm centimeters centimetre centimetres"),
    "millimeter": (1e-3, "mm millimeters millimetre millimetres"),
    "micrometer": (
        1e-6,
        "um micrometers micrometre micrometres micron microns \u00b5m \u03bcm \\u00b5m",
    ),
    "nanometer": (1e-9, "nm nanometers nanometre nanometres"),
    "angstrom": (1e-10, "angstroms \u00e5 \u212b a\u030a"),
    "picometer": (1e-12, "pm picometers picometre picometres"),
    "inch": (0.0254, "in inches"),
}
"""Meters in each unit, and its other names."""
NAMES = {name: unit for unit, (_, names) in UNITS.items() for name in (unit, *names.split())}
TIMES = {
    "second": "s sec secs seconds",
    "millisecond": "ms msec milliseconds",
    "microsecond": "us usec microseconds \u00b5s \u03bcs",
    "minute": "min minutes",
    "hour": "h hours",
}
"""Units of time, and their other names."""
NAMES |= {name: unit for unit, names in TIMES.items() for name in (unit, *names.split())}
UNKNOWN = (
    *("", "?", "unknown", "none", "null", "reference frame"),
    *("pixel", "pixels", "px", "voxel"),
)
DIGITS = 12
PERPENDICULAR = 1e-3
"""Largest cosine of an angle that is taken for a right one: headers are rounded."""

Distances = tuple[Mapping[str, float], str]
"""Positive distances of points along those of the axes Z, Y and X where it is known; their unit."""

TOLERANCE = 0.1
"""Points by which a corner may be displaced: headers are rounded, quaternions to 0.001 degrees."""
ROUNDED = 0.005
"""Part of a spacing that it may be off, where a header says nothing else of the place."""
SPACES = {
    "right-anterior-superior": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
}
"""Signs of the coordinates of anatomical spaces, in the first of them."""
for _name, _signs in tuple(SPACES.items()):
    SPACES["".join(word[0] for word in _name.split("-"))] = _signs  # such as "ras"
ANATOMICAL = "right-anterior-superior"


def unit_named(name: str) -> str:
    """Return the usual name of a unit; "" for none, and an unusual name as it is."""
    word = name.strip().lower()
    return "" if word in UNKNOWN else NAMES.get(word, name.strip())


def calibrated(steps: Mapping[str, Any], units: Mapping[str, str] | str) -> Distances:
    """Return the distances of points along the axes Z, Y and X, and their unit.

    `units` are those of each axis, or that of all. If the axes have different ones, distances are
    converted to that of the last axis, and axes whose unit is unknown are left out. What is not a
    positive number is ignored.
    """
    found = {axis: number_of(steps[axis]) for axis in "ZYX" if axis in steps}
    found = {axis: step for axis, step in found.items() if 0 < step < math.inf}
    if isinstance(units, str):
        named = dict.fromkeys(found, unit_named(units))
    else:
        named = {axis: unit_named(units.get(axis, "")) for axis in found}
    known = [name for name in named.values() if name]
    unit = known[-1] if known else ""
    spacing = {
        axis: converted(step, named[axis], unit)
        for axis, step in found.items()
        if named[axis] == unit or {named[axis], unit} <= UNITS.keys()
    }
    return spacing, unit


def converted(length: float, unit: str, to: str) -> float:
    """Return a length in another unit; raise KeyError if the ratio of the units is unknown."""
    if unit == to:
        return length
    # the nearest number of 12 digits: 0.1 mm are 100 um and not 100.00000000000001
    return float(f"{length * UNITS[unit][0] / UNITS[to][0]:.{DIGITS}g}")


def number_of(value: Any) -> float:
    """Return a number of a header, or NaN. Of single precision: the shortest that is stored so."""
    try:
        if getattr(value, "dtype", "") == "f4":
            return float(str(np.float32(value)))
        return float(value)
    except (TypeError, ValueError):
        return math.nan


@dataclass(frozen=True)
class Affine:
    """The places of the points of an image, in coordinates x, y and z."""

    steps: Mapping[str, NDArray[np.float64]]  # from a point to the next along each axis Z, Y and X
    origin: NDArray[np.float64]  # place of the first point
    space: str = ANATOMICAL  # name of the coordinates; those of different ones cannot be compared
    unit: str = ""  # of the coordinates, "" if unknown

    @classmethod
    def of_space(cls, steps: Mapping[str, Any], origin: Any, space: str) -> Self:
        """Return an affine in the usual coordinates, from those of another anatomical space."""
        name = space.lower().removesuffix("-time")
        signs = np.array(SPACES.get(name, (1, 1, 1)), np.float64)
        flipped = {axis: signs * step for axis, step in steps.items()}
        return cls(flipped, signs * origin, ANATOMICAL if name in SPACES else name)

    def shear(self) -> float:
        """Return the largest cosine between two axes, or 0 if all are perpendicular."""
        unit = [step / np.linalg.norm(step) for step in self.steps.values() if np.any(step)]
        pairs = itertools.combinations(unit, 2)
        cosines = [abs(float(one @ other)) for one, other in pairs]
        largest = max(cosines, default=0.0)
        return largest if largest > PERPENDICULAR else 0.0

    def notes(self, spacing: Mapping[str, float]) -> tuple[str, ...]:
        """Return what to say of axes that are not perpendicular, which lengths take them for."""
        axes = [axis for axis in "ZYX" if axis in self.steps and axis in spacing]
        if not self.shear() or len(axes) < 2:
            return ()
        vectors = np.stack([self.steps[axis] for axis in axes])
        squared = float(np.linalg.det(vectors @ vectors.T))
        size = math.sqrt(max(0.0, squared))
        ratio = size / math.prod(spacing[axis] for axis in axes)
        words = "its axes are sheared, and lengths take them as perpendicular"
        first, *others = axes
        shifts = []
        for axis in others:
            shift = self._shift(first, axis)
            if abs(shift) > TOLERANCE:
                shifts.append(f"{shift:.3g} points along {axis}")
        if shifts:
            words += f"; from {first} to {first} they are shifted by {' and '.join(shifts)}"
        if abs(ratio - 1) > PERPENDICULAR:
            words += f"; a true size is {ratio:.4g} of that by the spacing"
        return (words,)

    def matrix(self, axes: Sequence[str]) -> NDArray[np.float64]:
        """Return the steps along axes as the columns of a matrix."""
        return np.stack([self.steps[axis] for axis in axes], axis=1)

    def _shift(self, along: str, axis: str) -> float:
        """Return by how many points of an axis a step along another one moves along it."""
        step = self.steps[axis]
        return float(self.steps[along] @ step / (step @ step))

    def moved(self, start: Mapping[str, int]) -> Self:
        """Return the affine of a part that begins at a point given by its indices."""
        shifts = [i * self.steps[axis] for axis, i in start.items() if axis in self.steps]
        return replace(self, origin=self.origin + sum(shifts))


def check_place(
    name: str, region: Affine | None, image: Affine | None, shape: Mapping[str, int]
) -> None:
    """Raise ValueError if a region of an image lies elsewhere than the image of the same shape.

    Where nothing is known, nothing is compared; axes other than Z, Y and X are ignored.
    """
    if region is None or image is None:
        return
    lengths = {axis: shape[axis] for axis in "ZYX" if axis in shape}
    if {region.unit, image.unit} <= UNITS.keys():
        factor = UNITS[region.unit][0] / UNITS[image.unit][0]
        steps = {axis: factor * step for axis, step in region.steps.items()}
        region = replace(region, steps=steps, origin=factor * region.origin)
    how = _displacement(image, region, lengths)
    if how:
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def check_scale(name: str, region: Distances, image: Distances, shape: Mapping[str, int]) -> None:
    """Raise ValueError if the points of a region of an image lie further apart than the image's.

    Where a spacing is not known, or the ratio of the units, nothing is compared.
    """
    theirs, their_unit = region
    ours, unit = image
    if their_unit != unit and not {their_unit, unit} <= UNITS.keys():
        return
    words = []
    for axis in ours.keys() & theirs.keys() & shape.keys():
        ratio = converted(theirs[axis], their_unit, unit) / ours[axis]
        off = abs(ratio - 1)
        if off > ROUNDED and off * (shape[axis] - 1) > TOLERANCE:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if words:
        how = " and ".join(sorted(words, reverse=True))
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def _displacement(image: Affine, other: Affine, shape: Mapping[str, int]) -> str:
    """Return how another image of the same shape is displaced; "" if it is not, or unknown."""
    axes = list(shape)
    if image.space != other.space or not {*axes} <= image.steps.keys() & other.steps.keys():
        return ""
    ours = image.matrix(axes)
    theirs = other.matrix(axes)
    lengths = np.linalg.norm(ours, axis=0)
    their_lengths = np.linalg.norm(theirs, axis=0)
    if min(np.linalg.matrix_rank(steps) for steps in (ours, theirs)) < len(axes):
        return ""
    most = np.array([n - 1 for n in shape.values()])
    ends = itertools.product((0, 1), repeat=len(axes))
    corners = np.array(list(ends)) * most
    moved = corners @ (theirs - ours).T + other.origin - image.origin
    furthest = np.linalg.norm(moved, axis=1).max() / lengths.min()
    if furthest <= TOLERANCE:
        return ""
    words = _turned(ours / lengths, theirs / their_lengths, axes, most)
    for axis, ratio, n in zip(axes, their_lengths / lengths, most, strict=True):
        if abs(ratio - 1) * n > TOLERANCE:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if not words:
        shifts = np.linalg.pinv(ours) @ (other.origin - image.origin)
        words = [
            f"shifted by {shift:.4g} along {axis}"
            for axis, shift in zip(axes, shifts, strict=True)
            if abs(shift) > TOLERANCE / 2
        ]
    return " and ".join(words) or f"displaced by {furthest:.2g} points"


def _turned(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axes: Sequence[str], most: Any
) -> list[str]:
    """Return how unit vectors along axes are mirrored, exchanged or rotated."""
    cosines = np.linalg.pinv(ours) @ theirs
    whole = np.rint(cosines)
    off = np.linalg.norm(theirs - ours @ whole, axis=0) * most  # of the last points
    if off.max() <= TOLERANCE and (abs(whole).sum(axis=0) == 1).all():
        if (abs(whole) != np.eye(len(axes))).any():
            along = [axes[i] for i in abs(whole).argmax(axis=0)]
            return [f"its axes {', '.join(axes)} lie along {', '.join(along)}"]
        turned = [axis for axis, sign in zip(axes, whole.diagonal(), strict=True) if sign < 0]
        return [f"mirrored along {', '.join(turned)}"] if turned else []
    same_axis = np.sum(ours * theirs, axis=0)
    angles = np.degrees(np.arccos(np.clip(same_axis, -1, 1)))
    return [f"rotated by {angles.max():.3g} degrees"]
