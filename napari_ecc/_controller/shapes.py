"""Surfaces and points, swept along directions in world coordinates."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Points, Surface
from numpy.typing import NDArray

import ecc_core as ecc
from napari_ecc._model.words import counted
from napari_ecc._workers import Step

Floats = NDArray[np.float64]
ROWS_AT_ONCE = 8
"""Directions of a transform in one call: a job can be cancelled between calls."""


class Shape(NamedTuple):
    """The vertices of a layer in the world, and its triangles."""

    points: Floats
    """Points (n, d), from the middle of their box."""
    triangles: NDArray[np.int64]
    """Triangles (m, 3); none of a Points layer."""

    @property
    def reach(self) -> float:
        """The largest distance of a point from the middle: heights run from -reach to reach."""
        return float(np.linalg.norm(self.points, axis=1).max())

    def in_words(self) -> str:
        """Say how large it is."""
        points = counted(len(self.points), "point")
        if not len(self.triangles):
            return points
        return f"{points}, {counted(len(self.triangles), 'triangle')}"


def shape_of(layer: Any) -> Shape:
    """Return the shape of a Surface or Points layer; a ValueError says why there is none."""
    if not isinstance(layer, Points | Surface):
        raise ValueError(f"`layer` must be a Surface or Points layer, got {type(layer).__name__}.")
    of_surface = isinstance(layer, Surface)
    vertices = np.asarray(layer.data[0] if of_surface else layer.data, np.float64)
    triangles = np.asarray(layer.data[1] if of_surface else np.zeros((0, 3)), np.int64)
    if vertices.ndim != 2 or vertices.shape[1] not in (2, 3):
        axes = vertices.shape[-1]
        raise ValueError(f"“{layer.name}” must have 2 or 3 axes to be swept, got {axes}.")
    if not len(vertices):
        raise ValueError(f"“{layer.name}” has no points yet.")
    if not np.isfinite(vertices).all():
        raise ValueError(f"“{layer.name}” must have finite coordinates, got NaN or infinity.")
    ndim = vertices.shape[1]
    origin = np.array(layer.data_to_world(np.zeros(ndim)))
    axes_in_world = [np.array(layer.data_to_world(unit)) - origin for unit in np.eye(ndim)]
    points = vertices @ np.array(axes_in_world)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    return Shape(points - middle, triangles)


def shape_curves(shape: Shape, directions: Floats, heights: int) -> ecc.EulerTransform:
    """Return the exact curves of directions, at heights from the middle of the box."""
    reach = shape.reach or 1.0
    return ecc.simplicial_transform(
        shape.points,
        shape.triangles,
        directions,
        heights,
        range=(-reach, reach),
        complete=True,
    )


def compute_shape(shape: Shape, direction: Floats, circle: Floats, rows: Floats) -> Iterator[Step]:
    """Compute the curve of a direction first, then the missing rows of the transform.

    The value of a step is as that of `compute_sweep`.
    """
    _, levels, (values,) = shape_curves(shape, direction[None], rows.shape[1])
    curve = ecc.EulerCurve(levels, values)
    missing = np.flatnonzero(np.isnan(rows).any(axis=1))
    yield Step((curve, None), 0, missing.size)
    for start in range(0, missing.size, ROWS_AT_ONCE):
        part = missing[start : start + ROWS_AT_ONCE]
        rows[part] = shape_curves(shape, circle[part], rows.shape[1]).values
        yield Step((curve, rows.copy()), start + part.size, missing.size)
