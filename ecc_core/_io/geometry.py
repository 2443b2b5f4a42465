"""Units of length, distances between points, and the places of images in the world."""

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
"""The length of each unit in meters, and its other names."""
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
"""Significant digits of lengths that are converted to another unit."""
MOST_COSINE = 1e-3
"""The largest cosine of two axes that are taken as perpendicular, because headers are rounded."""

Distances = tuple[Mapping[str, float], str]
"""Positive distances between points along Z, Y and X where they are known, and their unit."""

MOST_DISPLACEMENT = 0.1
"""The largest displacement of a corner, in points, of images that are taken to lie in one place.

Headers are rounded, and quaternions are exact to 0.001 degrees.
"""
MOST_SCALING = 0.005
"""The largest relative difference of two spacings that are taken as equal if no place is known."""
SPACES = {
    "right-anterior-superior": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
}
"""The factor of each coordinate that converts an anatomical space to the first of these."""
for _name, _signs in tuple(SPACES.items()):
    SPACES["".join(word[0] for word in _name.split("-"))] = _signs  # Its short name, as "ras".
ANATOMICAL = "right-anterior-superior"


def unit_named(name: str) -> str:
    """Return the usual name of a unit, "" if there is none, or the name itself if unknown."""
    word = name.strip().lower()
    return "" if word in UNKNOWN else NAMES.get(word, name.strip())


def calibrated(steps: Mapping[str, Any], units: Mapping[str, str] | str) -> Distances:
    """Return the distances between points along the axes Z, Y and X, and their unit.

    `units` are those of each axis, or one for all. If they differ, distances are converted to the
    unit of the last axis, and axes whose unit is unknown are left out. Steps that are not positive
    numbers are ignored.
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
    # Rounding makes 0.1 mm 100 um, not 100.00000000000001 um.
    return float(f"{length * UNITS[unit][0] / UNITS[to][0]:.{DIGITS}g}")


def number_of(value: Any) -> float:
    """Return a number of a header as float, NaN if it is none.

    A float32 becomes the number with the fewest digits that rounds to it, such as 0.1.
    """
    try:
        if getattr(value, "dtype", "") == "f4":
            return float(str(np.float32(value)))
        return float(value)
    except (TypeError, ValueError):
        return math.nan


@dataclass(frozen=True)
class Affine:
    """The places of the points of an image, in coordinates x, y and z."""

    steps: Mapping[str, NDArray[np.float64]]
    """The vector from a point to the next along each of the axes Z, Y and X."""
    origin: NDArray[np.float64]
    """The place of the first point."""
    space: str = ANATOMICAL
    """The name of the coordinates. Places in different spaces cannot be compared."""
    unit: str = ""
    """The unit of the coordinates, "" if unknown."""

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
        return largest if largest > MOST_COSINE else 0.0

    def notes(self, spacing: Mapping[str, float]) -> tuple[str, ...]:
        """Return notes on axes that are not perpendicular, though measures take them so."""
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
            if abs(shift) > MOST_DISPLACEMENT:
                shifts.append(f"{shift:.3g} points along {axis}")
        if shifts:
            words += f"; from {first} to {first} they are shifted by {' and '.join(shifts)}"
        if abs(ratio - 1) > MOST_COSINE:
            words += f"; a true size is {ratio:.4g} of that by the spacing"
        return (words,)

    def matrix(self, axes: Sequence[str]) -> NDArray[np.float64]:
        """Return the steps along axes as the columns of a matrix."""
        return np.stack([self.steps[axis] for axis in axes], axis=1)

    def _shift(self, along: str, axis: str) -> float:
        """Return how many points along `axis` a step along the axis `along` moves."""
        step = self.steps[axis]
        return float(self.steps[along] @ step / (step @ step))

    def moved(self, start: Mapping[str, int]) -> Self:
        """Return the affine of a part that begins at a point given by its indices."""
        shifts = [i * self.steps[axis] for axis, i in start.items() if axis in self.steps]
        return replace(self, origin=self.origin + sum(shifts))


def check_place(
    name: str, region: Affine | None, image: Affine | None, shape: Mapping[str, int]
) -> None:
    """Raise ValueError if a region image lies elsewhere than the image of the same shape.

    Places that are not known are not compared. Axes other than Z, Y and X are ignored.
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
    """Raise ValueError if the spacing of a region image differs from that of the image.

    Spacings that are not known, or whose units have no known ratio, are not compared.
    """
    theirs, their_unit = region
    ours, unit = image
    if their_unit != unit and not {their_unit, unit} <= UNITS.keys():
        return
    words = []
    for axis in ours.keys() & theirs.keys() & shape.keys():
        ratio = converted(theirs[axis], their_unit, unit) / ours[axis]
        off = abs(ratio - 1)
        if off > MOST_SCALING and off * (shape[axis] - 1) > MOST_DISPLACEMENT:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if words:
        how = " and ".join(sorted(words, reverse=True))
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def _displacement(image: Affine, other: Affine, shape: Mapping[str, int]) -> str:
    """Return how another image of the same shape is displaced, "" if it is not or is unknown."""
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
    if furthest <= MOST_DISPLACEMENT:
        return ""
    words = _turned(ours / lengths, theirs / their_lengths, axes, most)
    for axis, ratio, n in zip(axes, their_lengths / lengths, most, strict=True):
        if abs(ratio - 1) * n > MOST_DISPLACEMENT:
            words.append(f"scaled by {ratio:.4g} along {axis}")
    if not words:
        shifts = np.linalg.pinv(ours) @ (other.origin - image.origin)
        words = [
            f"shifted by {shift:.4g} along {axis}"
            for axis, shift in zip(axes, shifts, strict=True)
            if abs(shift) > MOST_DISPLACEMENT / 2
        ]
    return " and ".join(words) or f"displaced by {furthest:.2g} points"


def _turned(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], axes: Sequence[str], most: Any
) -> list[str]:
    """Return how unit vectors along axes are mirrored, exchanged or rotated."""
    cosines = np.linalg.pinv(ours) @ theirs
    whole = np.rint(cosines)
    # The displacement of the last point along each axis, in points, if axes are only exchanged.
    off = np.linalg.norm(theirs - ours @ whole, axis=0) * most
    if off.max() <= MOST_DISPLACEMENT and (abs(whole).sum(axis=0) == 1).all():
        if (abs(whole) != np.eye(len(axes))).any():
            along = [axes[i] for i in abs(whole).argmax(axis=0)]
            return [f"its axes {', '.join(axes)} lie along {', '.join(along)}"]
        turned = [axis for axis, sign in zip(axes, whole.diagonal(), strict=True) if sign < 0]
        return [f"mirrored along {', '.join(turned)}"] if turned else []
    same_axis = np.sum(ours * theirs, axis=0)
    angles = np.degrees(np.arccos(np.clip(same_axis, -1, 1)))
    return [f"rotated by {angles.max():.3g} degrees"]
