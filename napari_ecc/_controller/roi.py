"""Regions of interest from Shapes and Labels layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Shapes
from numpy.typing import NDArray

from napari_ecc._controller.layers import Selection, index_code, select, snapshot

__all__ = ["Roi", "read_roi"]

CORNERS = 64
"""Of the polygon that stands for an ellipse."""

DECIMALS = 3
"""Of the corners of polygons, so that they can be written down."""

Mask = NDArray[np.bool_]


class Roi(NamedTuple):
    """A region of interest.

    Attributes
    ----------
    read : callable
        Without arguments; makes the mask of the shape of the selection, in any thread.
    code : str
        Lines of Python that make `mask` for `image`.
    """

    read: Callable[[], Mask]
    code: str


def read_roi(viewer: Any, image: Any, selection: Selection, roi: Any, scope: str) -> Roi:
    """Prepare the mask of a region of interest.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    image : napari Image layer
    selection : Selection
        Of the image.
    roi : napari Shapes or Labels layer
        The inside of shapes, through all planes of a volume; or all labels.
    scope : {"slice", "volume"}

    Returns
    -------
    Roi

    Raises
    ------
    ValueError
        If a Labels layer has another shape than the image, or there are no shapes.
    """
    shape = tuple(selection.full.shape)
    if isinstance(roi, Shapes):
        polygons = _polygons(image, selection, roi)
        if not polygons:
            raise ValueError(f"“{roi.name}” has no shapes yet. Draw one.")
        return Roi(lambda: np.broadcast_to(_filled(polygons, shape[-2:]), shape), _code(polygons))
    chosen = select(viewer, roi, scope)
    labels = chosen.full
    if tuple(labels.shape) != shape:
        raise ValueError(
            f"“{roi.name}” must have the shape of “{image.name}” to restrict it, {shape}, "
            f"got {tuple(labels.shape)}."
        )
    code = f"mask = np.asarray(viewer.layers[{roi.name!r}].data{index_code(chosen)}) > 0"
    held = snapshot(labels)
    return Roi(lambda: np.asarray(held) > 0, code)


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
        result.append(np.round(points[:, list(selection.axes[-2:])], DECIMALS))
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


def _code(polygons: list[NDArray[np.float64]]) -> str:
    lines = ["from skimage.draw import polygon2mask", "", "mask = np.zeros(image.shape[-2:], bool)"]
    lines += [f"mask |= polygon2mask(mask.shape, {polygon.tolist()!r})" for polygon in polygons]
    return "\n".join([*lines, "mask = np.broadcast_to(mask, image.shape)"])
