"""Pictures of a volume seen from above a corner, in parallel projection."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform, map_coordinates

Array = NDArray[Any]
AZIMUTH, ELEVATION = np.deg2rad([36.0, 27.0])
TOWARDS_LIGHT = np.array([-0.80, -0.30, -0.52])
"""Along (z, y, x)."""
SAMPLES = 2.5
"""Samples for each voxel along the line of sight."""


class View(NamedTuple):
    """A volume resampled on a grid whose last axis is the line of sight."""

    volume: Array
    matrix: Array
    """Takes (row, column, depth) of the grid to (z, y, x) of the volume, less `offset`."""
    offset: Array
    values: Array
    """The volume on the grid, infinite outside."""


def look_at(volume: Array, pixels: int = 260) -> View:
    """Resample a volume along the lines of sight of a square picture."""
    flat = np.cos(ELEVATION)
    sight = np.array([np.sin(ELEVATION), flat * np.cos(AZIMUTH), flat * np.sin(AZIMUTH)])
    down = (np.array([1.0, 0.0, 0.0]) - sight[0] * sight) / flat
    right = np.cross(down, sight)
    half = np.array(volume.shape) / 2
    reach = np.linalg.norm(half)
    pixel = 1.9 * reach / pixels
    matrix = np.stack([down * pixel, right * pixel, sight / SAMPLES], axis=1)
    shape = (pixels, pixels, int(2 * reach * SAMPLES))
    offset = half - 0.5 - matrix @ (np.array(shape) - 1) / 2
    values = affine_transform(
        volume, matrix, offset, shape, np.float32, order=1, mode="constant", cval=np.inf
    )
    return View(volume, matrix, offset, values)


def first_hit(view: View, threshold: float) -> tuple[Array, Array]:
    """Return which lines of sight meet the set below a threshold, and where, as (z, y, x)."""
    inside = view.values <= threshold
    depth = inside.argmax(axis=-1)
    grid = np.stack([*np.indices(depth.shape), depth]).reshape(3, -1)
    where = (view.matrix @ grid + view.offset[:, None]).reshape(3, *depth.shape)
    return inside.any(axis=-1), where


def brightness(view: View, where: Array) -> Array:
    """Return how much light falls, from 0 to 1, on the surface of the set at these points."""
    normal = np.stack(
        [map_coordinates(g, where, order=1, mode="nearest") for g in np.gradient(view.volume)]
    )
    for axis in range(3):  # The faces of the box cut the set open.
        face = where[axis] < 0.6
        normal[:, face] = 0
        normal[axis, face] = -1
    length = np.maximum(np.linalg.norm(normal, axis=0), 1e-12)
    return np.clip(np.tensordot(TOWARDS_LIGHT, normal / length, axes=1), 0, 1)


def picture_of_volume(view: View) -> Array:
    """Return the volume's outer faces in gray, from 0 to 1, on white."""
    hit, where = first_hit(view, np.finfo(np.float32).max)
    values = map_coordinates(view.volume, where, order=1, mode="nearest")
    gray = (values - view.volume.min()) / np.ptp(view.volume)
    return np.where(hit, gray * (0.6 + 0.4 * brightness(view, where)), 1.0)


def picture_of_set(view: View, threshold: float) -> Array:
    """Return the set below a threshold: 0 where there is none, darker parts nearer to 1."""
    hit, where = first_hit(view, threshold)
    return np.where(hit, 1.0 - 0.7 * brightness(view, where), 0.0)
