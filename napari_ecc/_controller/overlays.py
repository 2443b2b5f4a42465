"""Layers that show a set and its critical points on top of the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from napari.utils.colormaps import Colormap
from numpy.typing import NDArray

from napari_ecc._controller.critical import CriticalPoints
from napari_ecc._controller.curves import Field
from napari_ecc._controller.layers import PLUGIN_KEY, Selection, levels_of, placement
from napari_ecc._settings import read_settings

__all__ = ["PointsOverlay", "SetOverlay", "embedded", "keep_selection"]

CLEAR = (0.0, 0.0, 0.0, 0.0)
RAISES, LOWERS = "#ffb703", "#e0479e"
"""Colours of points that raise and that lower the Euler characteristic."""


def keep_selection(viewer: Any, add: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Add a layer without selecting it."""
    selected = set(viewer.layers.selection)
    active = viewer.layers.selection.active
    layer = add(*args, metadata={PLUGIN_KEY: True}, **kwargs)
    viewer.layers.selection.clear()
    viewer.layers.selection.update(selected)
    viewer.layers.selection.active = active
    return layer


def embedded(array: NDArray[Any], layer: Any, selection: Selection) -> dict[str, Any]:
    """Arguments of a layer that shows an array of the selected part at its place.

    Parameters
    ----------
    array : array of the shape of the selection
    layer : napari layer
        That the selection is of.
    selection : Selection

    Returns
    -------
    dict
        ``data`` with the axes of `layer`, and where it is.
    """
    corner = [0 if isinstance(at, slice) else at for at in selection.where]
    shape = [1] * len(corner)
    for axis, length in zip(selection.axes, array.shape, strict=True):
        shape[axis] = length
    where = placement(layer)
    start, zero = (layer.data_to_world(at) for at in (corner, [0] * len(corner)))
    where["translate"] = np.asarray(layer.translate) + np.subtract(start, zero)
    return {"data": array.reshape(shape), **where}


class _Overlay:
    """A layer of the plugin that the user may remove at any time."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self.layer: Any | None = None

    def is_shown_by(self, layer: Any) -> bool:
        """Whether this is the overlay's layer."""
        return self.layer is not None and self.layer == layer

    def forget(self) -> None:
        """The layer has been removed by the user."""
        self.layer = None

    def remove(self) -> None:
        """Remove the layer, if there is one."""
        layer, self.layer = self.layer, None
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)


class SetOverlay(_Overlay):
    """The set at a threshold, as a second view of the image's own data.

    The graphics card compares with the threshold, so that nothing is computed when it moves.
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self._whole = True
        self._superlevel = True

    def show(self, image: Any, selection: Selection, field: Field, model: Any) -> None:
        """Show the set at the model's threshold.

        Parameters
        ----------
        image : napari Image layer
        selection : Selection
        field : Field
            That the curve was computed of.
        model : ExplorerModel
        """
        self.remove()
        self._superlevel = model.superlevel
        self._whole = field.data.dtype.kind in "biu"
        settings = {"colour": "#00d1b2", "opacity": 0.45, **read_settings("overlay")}
        colours = [CLEAR, settings["colour"]]
        shown = self._data(image, selection, field, model)
        self.layer = keep_selection(
            self._viewer,
            self._viewer.add_image,
            name=f"{image.name} {'≥' if model.superlevel else '≤'} t",
            colormap=Colormap(colours if model.superlevel else colours[::-1], name="ecc-set"),
            contrast_limits=self._limits(model.threshold),
            opacity=settings["opacity"],
            blending="translucent_no_depth",
            interpolation2d="nearest",
            rendering="mip" if model.superlevel else "minip",
            **shown,
        )

    def _data(self, image: Any, selection: Selection, field: Field, model: Any) -> dict[str, Any]:
        if field.mask is None and not model.sigma:
            levels = levels_of(image)
            data = levels if len(levels) > 1 else levels[0]
            return {"data": data, "multiscale": len(levels) > 1, **placement(image)}
        values = np.asarray(field.data, dtype=np.float32)
        if field.mask is not None:
            values = np.where(field.mask, values, np.nan)
        return embedded(values, image, selection)

    def move(self, threshold: float) -> None:
        """Show the set at another threshold."""
        if self.layer is not None:
            self.layer.contrast_limits = self._limits(threshold)

    def _limits(self, threshold: float) -> tuple[float, float]:
        """Contrast limits between the values that are in the set and those that are not."""
        t = 0.0 if math.isnan(threshold) else threshold
        if self._whole:
            below = math.ceil(t) - 1 if self._superlevel else math.floor(t)
            return below + 0.25, below + 0.75
        single = np.float32(t)
        if self._superlevel:
            single = single if single >= t else np.nextafter(single, np.float32(np.inf))
            return float(np.nextafter(single, np.float32(-np.inf))), float(single)
        single = single if single <= t else np.nextafter(single, np.float32(-np.inf))
        return float(single), float(np.nextafter(single, np.float32(np.inf)))


class PointsOverlay(_Overlay):
    """Critical points: their colour says whether they raise or lower the Euler characteristic."""

    def show(self, image: Any, selection: Selection, found: CriticalPoints) -> None:
        """Show these points.

        Parameters
        ----------
        image : napari Image layer
        selection : Selection
        found : CriticalPoints
            In points of the selection.
        """
        points = np.zeros((len(found.points), len(selection.where)))
        for axis, at in enumerate(selection.where):
            points[:, axis] = 0 if isinstance(at, slice) else at
        points[:, list(selection.axes)] = found.points
        content = {
            "data": points,
            "features": {"effect": found.effects, "value": found.values},
            "face_color": np.where(found.effects > 0, RAISES, LOWERS) if len(points) else RAISES,
            "size": 2.0 + np.abs(found.effects),
        }
        if self.layer is not None:
            self.layer.data = content["data"]
            self.layer.features = content["features"]
            self.layer.face_color = content["face_color"]
            self.layer.size = content["size"]
            return
        self.layer = keep_selection(
            self._viewer,
            self._viewer.add_points,
            name="changes at t",
            border_color="black",
            border_width=0.15,
            blending="translucent_no_depth",
            canvas_size_limits=(7, 18),
            out_of_slice_display=False,
            **content,
            **placement(image),
        )
