"""Layers that show a set and its critical points on top of the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from napari.utils.colormaps import Colormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import ArrayLike, NDArray
from qtpy.QtCore import QTimer

from napari_ecc._controller.critical import CriticalPoints
from napari_ecc._controller.curves import Field
from napari_ecc._controller.layers import PLUGIN_KEY, Selection, levels_of, placement
from napari_ecc._settings import read_settings

__all__ = [
    "LOWERS",
    "RAISES",
    "Overlay",
    "PointsOverlay",
    "SetOverlay",
    "colours_of_effects",
    "embedded",
    "keep_selection",
]

CLEAR = (0.0, 0.0, 0.0, 0.0)
RAISES = ("#ffd97d", "#ffb703", "#fb6f00")
LOWERS = ("#f5a8d0", "#e0479e", "#99004d")
"""Colours of points that raise and that lower the Euler characteristic by 1, 2, and more."""


def keep_selection(viewer: Any, add: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Add a layer without selecting it."""
    selected = set(viewer.layers.selection)
    active = viewer.layers.selection.active
    layer = add(*args, metadata={PLUGIN_KEY: True}, **kwargs)
    viewer.layers.selection.clear()
    viewer.layers.selection.update(selected)
    viewer.layers.selection.active = active
    return layer


def embedded(
    array: NDArray[Any],
    layer: Any,
    selection: Selection,
    start: ArrayLike = 0,
    step: ArrayLike = 1,
) -> dict[str, Any]:
    """Return the arguments of a layer that is aligned with the selected part.

    Parameters
    ----------
    array : array
        With the axes of the selection.
    layer : napari layer
        That the selection is of.
    selection : Selection
    start, step : (d,) array or number, default 0 and 1
        Where the array begins in the selection, and the distance of its points.

    Returns
    -------
    dict
        ``data`` with the axes of `layer`, and where it is.
    """
    axes = list(selection.axes)
    corner = np.array([0 if isinstance(at, slice) else at for at in selection.where], float)
    corner[axes] = start
    shape = np.ones(corner.size, int)
    shape[axes] = array.shape
    scale = np.array(layer.scale)
    scale[axes] *= step
    place, zero = (layer.data_to_world(at) for at in (corner, np.zeros(corner.size)))
    translate = np.asarray(layer.translate) + np.subtract(place, zero)
    where = {**placement(layer), "scale": scale, "translate": translate}
    return {"data": array.reshape(shape), **where}


class Overlay:
    """A layer of the plugin, which the user may remove."""

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self.layer: Any | None = None
        self._hiding = False

    def is_shown_by(self, layer: Any) -> bool:
        """Whether this is the overlay's layer."""
        return self.layer is not None and self.layer == layer

    def forget(self) -> None:
        """Handle the removal of the layer by the user."""
        self.layer = None

    def hide(self) -> None:
        """Show nothing, unless there is something to show before the window is drawn.

        The layer is kept: removing one takes napari a while.
        """
        self._hiding = True
        QTimer.singleShot(0, self._hide)

    def _hide(self) -> None:
        if self.layer is not None and self._hiding:
            self.layer.visible = False

    def remove(self) -> None:
        """Remove the layer, if there is one."""
        layer, self.layer = self.layer, None
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)

    def refresh(self, *_: Any) -> None:
        """Show data that have been changed in place."""
        if self.layer is not None:
            self.layer.refresh()

    def _show(
        self, add: Callable[..., Any], content: dict[str, Any], *, fits: bool, **initial: Any
    ) -> None:
        """Update the layer, or replace it if there is none or it does not fit.

        Parameters
        ----------
        add : callable
            Adds a layer to the viewer.
        content : dict
            Attributes of the layer. Those that have not changed are not set, because napari slices
            and draws a layer again for each one that is.
        fits : bool
            Whether the layer, if there is one, can take the content.
        **initial
            Attributes of a new layer only.
        """
        self._hiding = False
        if self.layer is not None and fits:
            for name, value in {**content, "visible": True}.items():
                if not _is_same(name, getattr(self.layer, name), value):
                    setattr(self.layer, name, value)
            return
        self.remove()
        self.layer = keep_selection(self._viewer, add, **initial, **content)


def _is_same(name: str, known: Any, wanted: Any) -> bool:
    """Whether an attribute of a layer has a value already; data are compared by identity."""
    if name == "data":
        pairs = zip(known, wanted, strict=True) if isinstance(wanted, list) else [(known, wanted)]
        return len(known) == len(wanted) and all(a is b for a, b in pairs)
    if name == "features":
        return False
    known = getattr(known, "__wrapped__", known)  # napari's proxy
    return bool(np.array_equal(getattr(known, "affine_matrix", known), wanted))


class SetOverlay(Overlay):
    """The set at a threshold, as a second view of the image's own data.

    The graphics card compares with the threshold, so that nothing is computed when it moves: the
    colormap has a step in its middle, and the contrast limits put the threshold there.
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer)
        self._dtype = np.dtype(bool)
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
        self._superlevel = model.superlevel
        self._dtype = field.data.dtype
        settings = {"colour": "#00d1b2", "opacity": 0.45, **read_settings("overlay")}
        content = {
            **self._data(image, selection, field, model),
            "name": f"{image.name} {'≥' if model.superlevel else '≤'} t",
            "colormap": _step(settings["colour"], model.superlevel),
            "rendering": "mip" if model.superlevel else "minip",
            "contrast_limits": self._limits(model.threshold),
        }
        multiscale = isinstance(content["data"], list)
        shown = self.layer
        self._show(
            self._viewer.add_image,
            content,
            fits=shown is not None and (shown.ndim, shown.multiscale) == (image.ndim, multiscale),
            opacity=settings["opacity"],
            blending="translucent_no_depth",
            interpolation2d="nearest",
            multiscale=multiscale,
        )

    def _data(self, image: Any, selection: Selection, field: Field, model: Any) -> dict[str, Any]:
        if field.mask is None and not model.sigma:
            levels = levels_of(image)
            return {"data": levels if len(levels) > 1 else levels[0], **placement(image)}
        values = np.asarray(field.data, dtype=np.float32)
        if field.mask is not None:
            values = np.where(field.mask, values, np.nan)
        return embedded(values, image, selection)

    def move(self, threshold: float) -> None:
        """Show the set at another threshold."""
        if self.layer is not None:
            self.layer.contrast_limits = self._limits(threshold)

    def _limits(self, threshold: float) -> tuple[float, float]:
        """Return contrast limits whose middle separates the values of the two sides.

        They are 511 of the smallest steps of the values apart (napari rescales the data where it is
        less than 256), 256 below the least value on the upper side: 256/511 is more than a half,
        255/511 less.
        """
        t = 0.0 if math.isnan(threshold) else threshold
        if self._dtype.kind in "biu":
            upper = float(math.ceil(t) if self._superlevel else math.floor(t) + 1)
            step = max(1.0, float(np.spacing(np.float32(abs(upper)))))
        else:
            # napari shows float64 as float32, so the threshold is rounded as they are
            t = float(np.float32(t)) if self._dtype.itemsize == 8 else t
            upper = _upper_single(t, self._superlevel)
            step = float(np.spacing(np.float32(abs(upper))))
        return upper - 256 * step, upper + 255 * step


def _upper_single(t: float, superlevel: bool) -> float:
    """Return the smallest float32 above the change at a threshold."""
    single = np.float32(t)
    if superlevel:
        return float(single if single >= t else np.nextafter(single, np.float32(np.inf)))
    return float(single if single > t else np.nextafter(single, np.float32(np.inf)))


def _step(colour: str, superlevel: bool) -> Colormap:
    """Return a colormap that is transparent on one side and coloured on the other."""
    inside = transform_color(colour)[0]
    sides = [CLEAR, inside] if superlevel else [inside, CLEAR]
    return Colormap(sides, name="ecc-set", interpolation="zero", controls=[0, 0.5, 1])


def colours_of_effects(effects: NDArray[np.int64]) -> NDArray[Any]:
    """Return the colours of critical points by how much they change the Euler characteristic."""
    place = np.clip(np.abs(effects), 1, 3) - 1
    colours: NDArray[Any] = np.where(effects > 0, np.array(RAISES)[place], np.array(LOWERS)[place])
    return colours


class PointsOverlay(Overlay):
    """Critical points, coloured by whether they raise or lower the Euler characteristic."""

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
            "face_color": colours_of_effects(found.effects) if len(points) else RAISES[0],
            "size": 2.0 + np.minimum(np.abs(found.effects), 4),
            **placement(image),
        }
        self._show(
            self._viewer.add_points,
            content,
            fits=self.layer is not None and self.layer.ndim == points.shape[1],
            name="changes at t",
            border_width=0,
            blending="translucent_no_depth",
            canvas_size_limits=(5, 16),
            out_of_slice_display=False,
        )
