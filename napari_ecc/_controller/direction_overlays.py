"""Directions in the canvas: an arrow that can be dragged, and the swept height."""

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_ecc._controller.layers import Selection, placement, shown_axes
from napari_ecc._controller.overlays import OUTLINE, Overlay
from napari_ecc._controller.places import data_position, position_in_view
from napari_ecc._model.directions import direction_from_ray

Floats = NDArray[np.float64]
GRAB = 14
"""Distance in canvas pixels from which the arrow is grabbed."""
LENGTH = 0.42
"""Length as a share of the shortest displayed side of the image."""
HEAD = 0.12
"""Length of the head of the arrow, as a share of the arrow's."""
WIDTH = 0.004
"""Width as a share of the longest side."""
NAME = "Euler direction"
HEIGHT_COLOUR = "#6cc5ff"
HEIGHT_NAME = "Euler height"
FACES = np.array([[0, 1, 2], [0, 2, 3]])


def _ends_of_head(direction: Floats) -> list[Floats]:
    """Return where the two lines of an arrow's head end that begin at the tip of a unit vector."""
    axis = np.zeros(direction.size)
    axis[np.abs(direction).argmin()] = 1.0
    beside = axis - np.dot(axis, direction) * direction
    beside /= np.linalg.norm(beside)
    return [(1 - HEAD) * direction + side * HEAD / 2 * beside for side in (-1, 1)]


class DirectionArrow(Overlay):
    """A Vectors layer with a vector from the middle of an image, and the head of an arrow.

    `moved` is called with the direction that the user drags the arrow to.
    """

    def __init__(
        self, viewer: Any, moved: Callable[[Floats], None], removed: Callable[[], None]
    ) -> None:
        super().__init__(viewer, removed)
        self._moved = moved
        self._shown: tuple[Any, Selection, Floats, Floats, float] | None = None
        """What `show` was called with, the foot in the layer's points, and the length."""
        viewer.mouse_drag_callbacks.append(self._on_press)
        self._links.callback(viewer.mouse_drag_callbacks.remove, self._on_press)

    def remove(self) -> None:
        """Remove the arrow."""
        self._shown = None
        super().remove()

    def show(self, layer: Any, selection: Selection, direction: Floats) -> None:
        """Draw the arrow on a layer."""
        shape = np.array(selection.full.shape)
        axes = list(selection.axes)
        centre = np.round(position_in_view(self._viewer, layer))
        centre[axes] = (shape - 1) / 2
        sides = shape * selection.spacing
        length = LENGTH * sides[-2:].min()

        def place(offset: Floats) -> Floats:
            """Return where a point is in the world, given where it lies from the middle."""
            at = centre.copy()
            at[axes] += length * offset / selection.spacing
            return np.asarray(layer.data_to_world(at))

        foot, tip = place(np.zeros(len(axes))), place(direction)
        head = [place(end) - tip for end in _ends_of_head(direction)]
        vectors = np.array([[foot, tip - foot], *([tip, along] for along in head)])
        # One scale along displayed axes, to avoid distortion, and slider steps elsewhere: the steps
        # of a slider in napari are the smallest ones of all layers, and must not be too many.
        scale = np.array(layer.scale, dtype=np.float64)
        shown = shown_axes(self._viewer, layer)
        scale[shown] = unit = np.abs(scale[shown]).min()
        self._show(
            layer,
            self._viewer.add_vectors,
            {"scale": scale, "data": vectors / scale},
            name=NAME,
            vector_style="line",
            edge_width=float(WIDTH * sides.max() / unit),
            edge_color=OUTLINE,
            opacity=1.0,
            blending="translucent_no_depth",
            units=layer.units,
            axis_labels=layer.axis_labels,
        )
        self._shown = layer, selection, direction, centre, length

    def _on_press(self, viewer: Any, event: Any) -> Generator[None, None, None]:
        """Turn the arrow while the mouse button is down."""
        if self.layer is None:
            return
        camera = self._viewer.scene.camera
        shown = shown_axes(self._viewer, self.layer)
        tip = self.layer.data[0].sum(axis=0) * self.layer.scale
        gap = (np.asarray(event.position)[-tip.size :] - tip)[shown]
        if event.view_direction is not None:
            ray = np.asarray(event.view_direction)[-tip.size :][shown]
            gap = gap - np.dot(gap, ray) * ray
        if np.linalg.norm(gap) * camera.zoom > GRAB:
            return
        camera.mouse_pan = False
        yield
        while event.type == "mouse_move":
            self._follow(event)
            yield
        camera.mouse_pan = True

    def _follow(self, event: Any) -> None:
        """Point to the mouse; in 2-D, keep the component normal to the plane."""
        if self._shown is None:
            return
        layer, selection, direction, centre, length = self._shown
        axes = list(selection.axes)
        spacing = selection.spacing
        units = self._viewer.dims.units
        at = data_position(layer, event.position, units)
        offset = (at - centre)[axes] * spacing
        if event.view_direction is None:
            flat = np.isin(axes, shown_axes(self._viewer, layer))
            distance = np.linalg.norm(offset[flat])
            if distance == 0:
                return
            found = direction.copy()
            found[flat] = offset[flat] * ((np.linalg.norm(direction[flat]) or 1.0) / distance)
        else:
            ahead = np.asarray(event.position) + np.asarray(event.view_direction)
            ray = (data_position(layer, ahead, units) - at)[axes] * spacing
            found = direction_from_ray(offset, ray, length)
        self._moved(found)


class HeightMarker(Overlay):
    """A Vectors layer with a line, or a Surface layer with a plane."""

    def show(self, layer: Any, selection: Selection, direction: Floats, height: float) -> None:
        """Mark the points of a height along a direction; NaN marks none."""
        if math.isnan(height):
            self.remove()
            return
        # The ends of the line, or the corners of the plane, in points of the layer.
        shape = np.array(selection.full.shape)
        axes = list(selection.axes)
        reach = float(np.linalg.norm(shape * selection.spacing) / 2)
        across = np.linalg.svd(direction[None])[2][1:]
        signs = [[-1], [1]] if len(across) == 1 else [[-1, -1], [-1, 1], [1, 1], [1, -1]]
        world = height * direction + reach * np.array(signs) @ across
        point = np.round(position_in_view(self._viewer, layer))
        corners = np.repeat(point[None], len(world), axis=0)
        corners[:, axes] = (shape - 1) / 2 + world / selection.spacing
        if len(corners) == 4:
            add = self._viewer.add_surface
            data: Any = (corners, FACES, np.ones(4))
            look = {
                "colormap": ["black", HEIGHT_COLOUR],
                "contrast_limits": (0, 1),
                "opacity": 0.4,
                "shading": "none",
            }
        else:
            add = self._viewer.add_vectors
            data = np.array([[corners[0], corners[1] - corners[0]]])
            look = {
                "vector_style": "line",
                "edge_color": HEIGHT_COLOUR,
                "edge_width": max(1.0, 0.006 * max(selection.full.shape)),
                "blending": "translucent_no_depth",
            }
        fits = hasattr(self.layer, "vertices") == (len(corners) == 4)
        content = {"data": data, **placement(layer)}
        self._show(layer, add, content, fits=fits, name=HEIGHT_NAME, **look)
