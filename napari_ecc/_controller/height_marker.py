"""The swept height in the canvas: a line across a plane, a plane through a volume."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_ecc._controller.layers import Selection, placement
from napari_ecc._controller.overlays import keep_selection

__all__ = ["HeightMarker"]

Floats = NDArray[np.float64]

COLOUR = "#6cc5ff"
NAME = "Euler height"
FACES = np.array([[0, 1, 2], [0, 2, 3]])


class HeightMarker:
    """A Vectors layer with a line, or a Surface layer with a plane.

    Parameters
    ----------
    viewer : napari.viewer.Viewer

    Attributes
    ----------
    layer : napari layer or None
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self.layer: Any = None
        self._adding = False

    def hide(self) -> None:
        """Remove the marker."""
        layer, self.layer = self.layer, None
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)

    def show(self, layer: Any, selection: Selection, direction: Floats, height: float) -> None:
        """Mark the points of a height along a direction; NaN marks none."""
        if self._adding:  # the new layer has moved the sliders
            return
        if math.isnan(height):
            self.hide()
            return
        corners = self._corners(layer, selection, direction, height)
        solid = len(corners) == 4
        if self._fits(corners.shape[1], solid):
            self.layer.data = (corners, FACES) if solid else _vector(corners)
            return
        self.hide()
        self._adding = True
        where = placement(layer)
        if solid:
            self.layer = keep_selection(
                self._viewer,
                self._viewer.add_surface,
                (corners, FACES, np.ones(4)),
                name=NAME,
                colormap=["black", COLOUR],
                contrast_limits=(0, 1),
                opacity=0.4,
                shading="none",
                **where,
            )
        else:
            self.layer = keep_selection(
                self._viewer,
                self._viewer.add_vectors,
                _vector(corners),
                vector_style="line",
                name=NAME,
                edge_color=COLOUR,
                edge_width=max(1.0, 0.006 * max(selection.full.shape)),
                blending="translucent_no_depth",
                **where,
            )
        self._adding = False

    def _fits(self, ndim: int, solid: bool) -> bool:
        layer = self.layer
        if layer is None or layer not in self._viewer.layers:
            return False
        return bool(layer.ndim == ndim and hasattr(layer, "vertices") == solid)

    def _corners(
        self, layer: Any, selection: Selection, direction: Floats, height: float
    ) -> Floats:
        """Return the ends of the line or the corners of the plane, in points of the layer."""
        shape = np.array(selection.full.shape)
        reach = float(np.linalg.norm(shape * selection.spacing) / 2)
        across = np.linalg.svd(direction[None])[2][1:]
        signs = [[-1], [1]] if len(across) == 1 else [[-1, -1], [-1, 1], [1, 1], [1, -1]]
        world = height * direction + reach * np.array(signs) @ across
        point = np.round(np.asarray(layer.world_to_data(self._viewer.dims.point), dtype=float))
        corners = np.repeat(point[None], len(world), axis=0)
        axes = list(selection.axes)
        corners[:, axes] = (shape - 1) / 2 + world / selection.spacing
        return corners


def _vector(ends: Floats) -> Floats:
    """Return the start and the extent of a vector between two points, (1, 2, ndim)."""
    return np.array([[ends[0], ends[1] - ends[0]]])
