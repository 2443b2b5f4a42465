"""The places of the points of images in the world."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MOST_COSINE = 1e-3
"""The largest cosine of two axes that are taken as perpendicular, because headers are rounded."""
MOST_DISPLACEMENT = 0.1
"""The largest displacement of a corner, in points, of images that are taken to lie in one place.

Headers are rounded, and quaternions are exact to 0.001 degrees.
"""
SPACES = {
    "right-anterior-superior": (1, 1, 1),
    "left-anterior-superior": (-1, 1, 1),
    "left-posterior-superior": (-1, -1, 1),
}
"""The factor of each coordinate that converts an anatomical space to the first of these."""
for _name, _signs in tuple(SPACES.items()):
    SPACES["".join(word[0] for word in _name.split("-"))] = _signs  # Its short name, as "ras".
ANATOMICAL = "right-anterior-superior"


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
