"""State of the direction explorer.

Directions are unit vectors in world units along the image's last two or three axes. The azimuth
turns from the last but one axis (0 degrees, down in the canvas) to the last (90 degrees, right), as
`ecc_core.sample_directions` does; the elevation leads from their plane to the axis before.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from psygnal import Signal, SignalGroupDescriptor

import ecc_core as ecc

Floats = NDArray[np.float64]
Filtration = Literal["height", "plane"]
DIGITS = 15
"""So many digits round sines and cosines of right angles to exact zeros."""


def unit_vector(azimuth: float, elevation: float = 0.0, ndim: int = 2) -> Floats:
    """Return the direction of two angles in degrees, (ndim,)."""
    around, up = np.deg2rad([azimuth, elevation if ndim == 3 else 0.0])
    vector = np.array([np.sin(up), np.cos(up) * np.cos(around), np.cos(up) * np.sin(around)])
    return np.round(vector[3 - ndim :], DIGITS) + 0.0


def angles(vector: ArrayLike) -> tuple[float, float]:
    """Return azimuth (0 to 360) and elevation (-90 to 90) in degrees of a direction."""
    *up, down, right = np.asarray(vector, dtype=np.float64).tolist()
    azimuth = float(np.rad2deg(np.arctan2(right, down))) % 360.0
    height = up[0] if up else 0.0
    return azimuth, float(np.rad2deg(np.arctan2(height, np.hypot(down, right))))


def circle(count: int, elevation: float = 0.0, ndim: int = 2) -> Floats:
    """Return `count` directions of one elevation, from azimuth 0 in even steps, (count, ndim)."""
    plane = ecc.sample_directions(count, 2)
    if ndim == 2:
        return plane
    up, *_, along = unit_vector(90.0, elevation, 3)
    return np.column_stack([np.full(count, up), along * plane])


def direction_from_ray(offset: ArrayLike, towards: ArrayLike, radius: float) -> Floats:
    """Return the direction from the centre of a sphere to where the mouse is, in 3-D.

    The mouse is a ray through `offset` from the centre. It meets the near side of the sphere
    (`towards` points away from the viewer), or passes it.
    """
    ray = np.asarray(towards, dtype=np.float64)
    ray = ray / np.linalg.norm(ray)
    across = np.asarray(offset, dtype=np.float64)
    across = across - np.dot(across, ray) * ray
    depth = radius**2 - np.dot(across, across)
    place = across - np.sqrt(max(depth, 0.0)) * ray
    found: Floats = place / np.linalg.norm(place)
    return found


@dataclass
class DirectionModel:
    """Settings and results of the direction explorer.

    The image layer, the threshold and which set is meant are those of the dock Threshold.
    """

    shape: str = ""
    """The name of a Surface or Points layer that is swept, or "": the image."""
    ndim: int = 2
    """The number of axes of the image."""
    azimuth: float = 0.0
    """The azimuth in degrees."""
    elevation: float = 0.0
    """The elevation in degrees."""
    filtration: Filtration = "height"
    """The height of the points of the set at the threshold, or the image plus a plane."""
    slope: float = 0.0
    """The slope of the plane, in values of the image per world unit."""
    n_directions: int = 64
    """Rows of the transform."""
    n_heights: int = 128
    """Columns of the transform, which are thresholds with "plane"."""
    height: float = math.nan
    """The height that is marked in the canvas and in the curve; NaN for none."""
    show_arrow: bool = True
    """Whether the layer of the arrow is wanted."""
    curve: ecc.EulerCurve | None = None
    """The exact curve of the current direction."""
    transform: ecc.EulerTransform | None = None
    """All directions of the current elevation, float64; NaN where not yet known."""
    status: str = ""
    """One line for the user."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()
    turned: ClassVar[Signal] = Signal()
    """Azimuth or elevation has changed, or both."""

    @property
    def direction(self) -> Floats:
        """The current direction, (ndim,)."""
        return unit_vector(self.azimuth, self.elevation, self.ndim)

    @property
    def directions(self) -> Floats:
        """The directions of the transform, (n_directions, ndim)."""
        return circle(self.n_directions, self.elevation, self.ndim)

    def turn(self, azimuth: float, elevation: float | None = None) -> None:
        """Set the angles, wrapped to 0 to 360 and -90 to 90 degrees."""
        before = self.azimuth, self.elevation
        self.azimuth = float(azimuth) % 360.0
        if elevation is not None:
            self.elevation = min(max(float(elevation), -90.0), 90.0)
        if (self.azimuth, self.elevation) != before:
            self.turned.emit()

    def point(self, vector: ArrayLike) -> None:
        """Set the direction from a vector; at the poles the azimuth is kept."""
        azimuth, elevation = angles(vector)
        at_pole = self.ndim == 3 and abs(elevation) == 90.0
        self.turn(self.azimuth if at_pole else azimuth, elevation if self.ndim == 3 else None)
