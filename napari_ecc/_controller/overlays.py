"""Layers that show a set and its critical points on top of the image."""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import numpy as np
from napari.utils.colormaps import CyclicLabelColormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import ArrayLike, NDArray
from qtpy.QtCore import QTimer

from napari_ecc._controller.fields import CriticalPoints
from napari_ecc._controller.layers import PLUGIN_KEY, Selection, placement, shown_axes
from napari_ecc._controller.places import converted, data_position, first_point, position_in_view
from napari_ecc._controller.session import Links, read_settings
from napari_ecc._workers import Job, Runner, Step

POLL = 50
"""Milliseconds between two looks whether the job that a hidden layer waits for has ended."""
OUTLINE = "#ff9f43"
SHARED = "#e36bff"
"""Colour of what two channels share."""
CLEAR = (0.0, 0.0, 0.0, 0.0)
RAISES = ("#ffd97d", "#ffb703", "#fb6f00")
LOWERS = ("#f5a8d0", "#e0479e", "#99004d")
"""Colours of points that raise and that lower the Euler characteristic by 1, 2, and more."""


def embedded(
    array: NDArray[Any], layer: Any, selection: Selection, start: ArrayLike = 0
) -> dict[str, Any]:
    """Return the arguments of a layer that is aligned with the selected part of another one.

    `start` is where the array begins, in its own points.
    """
    axes = list(selection.axes)
    step = selection.step
    corner = np.array(first_point(selection.where), dtype=np.float64)
    corner[axes] = np.multiply(start, step) + np.subtract(step, 1) / 2
    shape = np.ones(corner.size, int)
    shape[axes] = array.shape
    scale = np.array(layer.scale)
    scale[axes] *= step
    place, zero = (layer.data_to_world(at) for at in (corner, np.zeros(corner.size)))
    translate = np.asarray(layer.translate) + np.subtract(place, zero)
    where = {**placement(layer), "scale": scale, "translate": translate}
    return {"data": array.reshape(shape), **where}


class Overlay:
    """A layer of the plugin, directly above the one that it describes.

    It follows that layer when layers are added or moved. `removed` is called when the user has
    removed the overlay.
    """

    rank = 1
    """Overlays of lower rank lie below those of higher rank on the same layer."""

    def __init__(self, viewer: Any, removed: Callable[[], None] | None = None) -> None:
        self._viewer = viewer
        self._removed = removed
        self.layer: Any | None = None
        self._described: Any = None
        self._adding = self._ending = self._hidden = False
        self._links = Links()
        events = viewer.layers.events
        # They are connected last: napari must have created the visual of a new layer before.
        self._links.add(self._arrange, events.inserted, events.reordered, position="last")
        self._links.add(self._on_removed, events.removed)

    def close(self) -> None:
        """Remove the layer, and follow layers no longer."""
        self._links.close()
        self.remove()

    def _on_removed(self, event: Any) -> None:
        """Report that the user has removed the overlay, unless its layer is gone, too."""
        if self.layer is None or self.layer != event.value:
            return
        self.layer = None

        def report() -> None:
            if self._removed is not None and self._described in self._viewer.layers:
                self._removed()

        QTimer.singleShot(0, report)

    def remove_soon(self, job: Runner | None = None) -> None:
        """Hide the layer, and remove it unless there is something to show before the job ends.

        Without a job, unless there is something to show before the window is drawn. Removing and
        adding layers takes napari a while, and so does drawing the window without the layer: a job
        that ends sooner shows its result first.
        """
        self._ending = True
        QTimer.singleShot(0 if job is None else POLL, partial(self._end, job))

    def _end(self, job: Runner | None) -> None:
        if not self._ending:
            return
        if job is None or not job.running:
            self.remove()
            return
        if self.layer is not None and self.layer.visible:
            self.layer.visible = False
            self._hidden = True
        QTimer.singleShot(POLL, partial(self._end, job))

    def remove(self) -> None:
        """Remove the layer, if there is one."""
        layer = self.layer
        self.layer = None
        self._hidden = False
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)

    def refresh(self, *_: Any) -> None:
        """Show data that have been changed in place."""
        if self.layer is not None:
            self.layer.refresh()

    def _arrange(self, *_: Any) -> None:
        """Move the layer above the described one and overlays of it of lower or equal rank."""
        layers = list(self._viewer.layers)
        if self.layer not in layers or self._described not in layers:
            return
        now = layers.index(self.layer)
        place = layers.index(self._described) + 1
        while place < len(layers) and layers[place].metadata.get(PLUGIN_KEY, inf) <= self.rank:
            if place == now:
                return
            place += 1
        self._viewer.layers.move(now, place)

    def _show(
        self,
        described: Any,
        add: Callable[..., Any],
        content: dict[str, Any],
        *,
        fits: bool = True,
        **initial: Any,
    ) -> None:
        """Update the layer, or replace it if there is none or it does not fit.

        Nothing is shown of a layer that has been removed. Attributes in `content` that have not
        changed are not set, because napari slices and draws a layer again for each one that is;
        `initial` ones are those of a new layer only. A layer with as many axes as `described` takes
        the content if it `fits`.
        """
        # Adding a layer may move the sliders and call this method again, and so does removing one,
        # before its event is emitted.
        if self._adding or described not in self._viewer.layers:
            return
        self._ending = False
        self._described = described
        if self.layer is None or not fits or self.layer.ndim != described.ndim:
            self.remove()
            self._adding = True
            self.layer = self._add(add, **initial, **content)
            self._adding = False
        else:
            for name, value in content.items():
                if not _is_same(name, getattr(self.layer, name), value):
                    setattr(self.layer, name, value)
            if self._hidden:
                self.layer.visible = True
                self._hidden = False
        self._arrange()

    def _add(self, add: Callable[..., Any], **content: Any) -> Any:
        """Add a layer without selecting it."""
        selection = self._viewer.layers.selection
        selected = set(selection)
        active = selection.active
        layer = add(metadata={PLUGIN_KEY: self.rank}, **content)
        selection.clear()
        selection.update(selected)
        selection.active = active
        return layer


def _is_same(name: str, known: Any, wanted: Any) -> bool:
    """Whether an attribute of a layer has a value already; data are compared by identity."""
    if name == "data":
        pairs = zip(known, wanted, strict=True) if isinstance(wanted, list) else [(known, wanted)]
        return len(known) == len(wanted) and all(a is b for a, b in pairs)
    if name == "features":
        return False
    known = getattr(known, "__wrapped__", known)  # It may be wrapped in a proxy of napari.
    return bool(np.array_equal(getattr(known, "affine_matrix", known), wanted))


def label_colours(*colours: str) -> CyclicLabelColormap:
    """Return the colormap of labels from 1 on, which have these colours.

    For a `DirectLabelColormap`, napari compiles a table once in each session, for a second.
    """
    return CyclicLabelColormap(colors=transform_color(["transparent", *colours]))


def look_of_sets() -> dict[str, Any]:
    """Return colour and opacity of sets in the canvas, by the user's settings."""
    settings = read_settings("overlay")
    defaults = {"colour": "#00d1b2", "opacity": 0.45}
    return {name: settings.get(name, default) for name, default in defaults.items()}


class LabelsOverlay(Overlay):
    """Points of a selection that a job finds, as a Labels layer of one colour.

    They are those of a set, or an `outline` of sets.
    """

    def __init__(self, viewer: Any, name: str, *, outline: bool) -> None:
        super().__init__(viewer)
        self._name = name
        self._outline = outline
        self.runner = Runner(name)

    def clear(self) -> None:
        """Find and show nothing."""
        self.runner.cancel()
        self.remove_soon()

    def find(self, job: Job, layer: Any, selection: Selection) -> None:
        """Show what a job finds: where a bool array begins, see `embedded`, and the array.

        If boxes of its points follow, see `surroundings`, they are brought into view.
        """

        def show(step: Step) -> None:
            if step.value is None:
                return
            start, inside, *boxes = step.value
            look: dict[str, Any] = {"colour": OUTLINE, "opacity": 0.9}
            if not self._outline:
                look = {**look_of_sets(), "colour": SHARED}
            self._show(
                layer,
                self._viewer.add_labels,
                embedded(inside.astype(np.uint8), layer, selection, start),
                name=self._name,
                opacity=look["opacity"],
                blending="translucent_no_depth",
                colormap=label_colours(look["colour"]),
            )
            for found in boxes:
                self._bring_into_view(found - start[:, None], selection.axes)

        self.runner.submit(job, show)

    def _bring_into_view(self, boxes: NDArray[Any], axes: tuple[int, ...]) -> None:
        """Move sliders and camera to boxes of the layer's data, see `surroundings`.

        In two dimensions they stay where the displayed slice has one, and the view some of each.
        """
        layer = self.layer
        viewer = self._viewer
        if layer is None or not len(boxes):
            return
        dims = viewer.dims
        camera = viewer.scene.camera
        own = shown_axes(viewer, layer)
        here = np.round(position_in_view(viewer, layer))
        away = (here[list(axes)] < boxes[..., 0]) | (here[list(axes)] >= boxes[..., 1])
        here[list(axes)] = boxes[-1, :, 2]
        units = dims.units or layer.units
        middle = converted(layer.data_to_world(here), layer.units, units)[-layer.ndim :]
        if dims.ndisplay == 3:
            camera.center = middle[own]
            return
        hidden = [place for place, axis in enumerate(axes) if axis not in own]
        if away[:, hidden].any(axis=1).all():
            for place in hidden:
                dims.set_point(axes[place] + dims.ndim - layer.ndim, middle[axes[place]])
        shown = list(dims.displayed)
        zoom = camera.zoom
        half = np.divide(viewer.canvas.size, 2 * camera.zoom)
        ends = np.tile(np.asarray(viewer.dims.point, dtype=float), (2, 1))
        ends[:, shown] = camera.center[-2:] + np.stack([-half, half])
        corners = [data_position(layer, end, dims.units) for end in ends]
        low, high = np.sort(corners, axis=0)[:, axes]
        seen = (boxes[..., 0] <= high) & (boxes[..., 1] > low)
        if not seen[:, np.isin(axes, own)].all():
            viewer.fit_to_view(layers=[layer], margin=0.2)
            camera.zoom = min(zoom, camera.zoom)


class PointsOverlay(Overlay):
    """Critical points, coloured by whether they raise or lower the Euler characteristic."""

    def show(self, image: Any, selection: Selection, found: CriticalPoints) -> None:
        """Show points of a selection of an image."""
        points = np.zeros((len(found.points), len(selection.where)))
        for axis, at in enumerate(selection.where):
            points[:, axis] = 0 if isinstance(at, slice) else at
        points[:, list(selection.axes)] = found.points
        effects = found.effects
        size = np.minimum(np.abs(found.effects), 4)
        strength = np.clip(size, 1, 3) - 1
        colours = np.where(effects > 0, np.array(RAISES)[strength], np.array(LOWERS)[strength])
        content = {
            "data": points,
            "features": {"effect": effects, "value": found.values},
            "face_color": colours if len(points) else RAISES[0],
            "size": 2.0 + size,
            **placement(image),
        }
        self._show(
            image,
            self._viewer.add_points,
            content,
            name="changes at t",
            border_width=0,
            blending="translucent_no_depth",
            canvas_size_limits=(5, 16),
            out_of_slice_display=False,
        )
