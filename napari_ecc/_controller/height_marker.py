"""The swept height in the canvas: a line across a plane, a plane through a volume."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_ecc._controller.layers import Selection, placement
from napari_ecc._controller.overlays import Overlay

__all__ = ["HeightMarker"]

Floats = NDArray[np.float64]

COLOUR = "#6cc5ff"
NAME = "Euler height"
FACES = np.array([[0, 1, 2], [0, 2, 3]])


class HeightMarker(Overlay):
    """A Vectors layer with a line, or a Surface layer with a plane."""

    def show(self, layer: Any, selection: Selection, direction: Floats, height: float) -> None:
        """Mark the points of a height along a direction; NaN marks none."""
        if math.isnan(height):
            self.remove()
            return
        corners = self._corners(layer, selection, direction, height)
        if len(corners) == 4:
            add = self._viewer.add_surface
            data: Any = (corners, FACES, np.ones(4))
            look = {
                "colormap": ["black", COLOUR],
                "contrast_limits": (0, 1),
                "opacity": 0.4,
                "shading": "none",
            }
        else:
            add = self._viewer.add_vectors
            data = np.array([[corners[0], corners[1] - corners[0]]])
            look = {
                "vector_style": "line",
                "edge_color": COLOUR,
                "edge_width": max(1.0, 0.006 * max(selection.full.shape)),
                "blending": "translucent_no_depth",
            }
        fits = hasattr(self.layer, "vertices") == (len(corners) == 4)
        content = {"data": data, **placement(layer)}
        self._show(layer, add, content, fits=fits, name=NAME, **look)

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
