"""Where images lie in the world, and how the places of two images differ."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.units import UNITS

TOLERANCE = 0.1
"""Points by which a corner may be displaced: headers are rounded, quaternions to 0.001 degrees."""
SPACES = {
    "right-anterior-superior": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
}
"""Signs of the coordinates of anatomical spaces, in the first of them."""
SPACES |= {"".join(word[0] for word in name.split("-")): signs for name, signs in SPACES.items()}
ANATOMICAL = "right-anterior-superior"


@dataclass(frozen=True)
class Affine:
    """The places of the points of an image."""

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

    def moved(self, start: Mapping[str, int]) -> Self:
        """Return the affine of a part that begins at a point given by its indices."""
        shifts = [i * self.steps[axis] for axis, i in start.items() if axis in self.steps]
        return replace(self, origin=self.origin + sum(shifts))

    def in_unit(self, unit: str) -> Self:
        """Return the affine in another unit, if both units are known."""
        if not {self.unit, unit} <= UNITS.keys():
            return self
        factor = UNITS[self.unit][0] / UNITS[unit][0]
        steps = {axis: factor * step for axis, step in self.steps.items()}
        return replace(self, steps=steps, origin=factor * self.origin, unit=unit)


def check_place(
    name: str, region: Affine | None, image: Affine | None, shape: Mapping[str, int]
) -> None:
    """Raise ValueError if a region of an image lies elsewhere than the image of the same shape.

    Where nothing is known, nothing is compared; axes other than Z, Y and X are ignored.
    """
    if region is None or image is None:
        return
    lengths = {axis: shape[axis] for axis in "ZYX" if axis in shape}
    how = _displacement(image, region.in_unit(image.unit), lengths)
    if how:
        raise ValueError(f"{name} must lie where the image does, but its header says it is {how}")


def _displacement(image: Affine, other: Affine, shape: Mapping[str, int]) -> str:
    """Return how another image of the same shape is displaced; "" if it is not, or unknown."""
    axes = list(shape)
    if image.space != other.space or not {*axes} <= image.steps.keys() & other.steps.keys():
        return ""
    ours, theirs = (np.stack([a.steps[axis] for axis in axes], axis=1) for a in (image, other))
    lengths, their_lengths = (np.linalg.norm(steps, axis=0) for steps in (ours, theirs))
    if min(np.linalg.matrix_rank(steps) for steps in (ours, theirs)) < len(axes):
        return ""
    most = np.array([n - 1 for n in shape.values()])
    corners = np.array(list(itertools.product((0, 1), repeat=len(axes)))) * most
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
    angles = np.degrees(np.arccos(np.clip(np.sum(ours * theirs, axis=0), -1, 1)))
    return [f"rotated by {angles.max():.3g} degrees"]
