"""Regions of interest from Shapes and Labels layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from napari.layers import Shapes
from numpy.typing import NDArray

from napari_ecc._controller.layers import (
    Selection,
    nearest_point,
    problem_with,
    selection_of,
    snapshot,
    values_of,
)
from napari_ecc._controller.loading import describe, fitting_level

CORNERS = 64
"""Number of corners of the polygon that approximates an ellipse."""

Mask = NDArray[np.bool_]
ReadMask = Callable[[], Mask]


def region_mask(image: Any, selection: Selection, region: Any) -> ReadMask:
    """Prepare the mask of a region of interest: the inside of shapes, or all labels.

    Shapes go through all planes of a volume. Returns a function that makes the mask of the shape of
    the selection, in any thread; what the user draws afterwards does not change it. A ValueError
    says that a Labels layer has another shape than the image, or that there are no shapes.
    """
    shape = tuple(selection.full.shape)
    if isinstance(region, Shapes):
        polygons = _polygons(image, selection, region)
        if not polygons:
            raise ValueError(f"“{region.name}” has no shapes yet. Draw one.")
        return lambda: np.broadcast_to(_filled(polygons, shape[-2:]), shape)
    labels = corresponding(image, selection, region).full
    if tuple(labels.shape) != shape:
        raise ValueError(
            f"“{region.name}” must have the shape of “{image.name}” to restrict it, {shape}, "
            f"got {tuple(labels.shape)}."
        )
    held = snapshot(labels)
    return lambda: np.asarray(held) > 0


def corresponding(layer: Any, selection: Selection, other: Any) -> Selection:
    """The part of another layer that lies where the selection of a layer does."""
    corner = [0 if isinstance(at, slice) else at for at in selection.where]
    world = np.asarray(layer.data_to_world(corner), dtype=float)
    missing = max(other.ndim - world.size, 0)
    where = nearest_point(other, np.pad(world, (missing, 0))[-other.ndim :])
    kept = [axis - layer.ndim for axis in selection.axes]
    part = tuple(
        slice(None) if axis - other.ndim in kept else where[axis] for axis in range(other.ndim)
    )
    return selection_of(other, part)


def matching_level(layer: Any, selection: Selection, level: Selection, other: Any) -> Selection:
    """The part of another layer that lies where the selection of a layer does, at its resolution.

    A ValueError says that it has no curve, or another shape.
    """
    problem = problem_with(other)
    if problem:
        raise ValueError(problem)
    found = values_of(other, corresponding(layer, selection, other))
    shapes = tuple(selection.full.shape), tuple(found.full.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"“{layer.name}” must have the shape of “{other.name}”, "
            f"{describe(shapes[1])}, got {describe(shapes[0])}."
        )
    result = fitting_level(found, other.name)
    if result.full.shape != level.full.shape:
        raise ValueError(f"“{layer.name}” and “{other.name}” must have the same levels.")
    return result


def _polygons(image: Any, selection: Selection, shapes: Any) -> list[NDArray[np.float64]]:
    """Corners of the shapes in points of the last two selected axes."""
    result = []
    for corners, kind in zip(shapes.data, shapes.shape_type, strict=True):
        if kind in ("line", "path") or len(corners) < 3:
            continue
        outline = _ellipse(corners) if kind == "ellipse" else np.asarray(corners)
        world = np.array([shapes.data_to_world(corner) for corner in outline])
        missing = image.ndim - world.shape[1]
        world = np.pad(world, ((0, 0), (max(0, missing), 0)))[:, -image.ndim :]
        points = np.array([image.world_to_data(at) for at in world])
        result.append(points[:, list(selection.axes[-2:])])
    return result


def _ellipse(box: NDArray[np.float64]) -> NDArray[np.float64]:
    """A polygon for the ellipse in a box that is given by its four corners."""
    centre = np.mean(box, axis=0)
    along, across = (box[1] - box[0]) / 2, (box[3] - box[0]) / 2
    angle = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)[:, None]
    polygon: NDArray[np.float64] = centre + np.cos(angle) * along + np.sin(angle) * across
    return polygon


def _filled(polygons: list[NDArray[np.float64]], shape: tuple[int, ...]) -> Mask:
    from skimage.draw import polygon2mask

    mask = np.zeros(shape, dtype=np.bool_)
    for polygon in polygons:
        mask |= polygon2mask(shape, polygon)
    return mask
