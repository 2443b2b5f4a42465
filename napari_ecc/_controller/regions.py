"""Curves and transforms of the objects of a Labels layer."""

import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from napari.layers import Labels
from numpy.typing import ArrayLike, NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QGuiApplication
from skimage.util import map_array

from napari_ecc._controller.choice import labels_at_chosen
from napari_ecc._controller.docks import PLACE_EVENTS, DockController, LayerChoice, call
from napari_ecc._controller.fields import surroundings
from napari_ecc._controller.layers import Part, fitting_level, is_lazy, levels_of, selection_of
from napari_ecc._controller.loading import load, warm
from napari_ecc._controller.measuring import (
    classes_of,
    classified,
    frame_of,
    measure_job,
    named_curves,
    placed,
    rows_of,
)
from napari_ecc._controller.overlays import LabelsOverlay
from napari_ecc._model.compare import Curves
from napari_ecc._model.regions import (
    ALSO,
    RegionModel,
    Regions,
    feature_columns,
    is_of_curve,
    toggled,
)
from napari_ecc._model.words import counted
from napari_ecc._workers import Step

NO_LAYERS = "Open or draw a Labels layer, or use Make Labels in the dock Threshold."
MORE = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
"""Keys with which a choice adds to what is selected."""
STALE = "stale: measure again"
Measured = tuple[Regions, Callable[[], str]]
"""What was measured, and its code."""
MOST_CHECKED = 1 << 24
"""Largest number of points of which changes in place are noticed."""
PICKING_MODES = ("pan_zoom", "pick")
"""Modes of a Labels layer in which a click does not paint."""
SETTINGS = (
    "scope",
    "superlevel",
    "connectivity",
    "n_thresholds",
    "n_directions",
    "n_heights",
    *(f"with_{name}" for name in ALSO),
)


class RegionController(DockController):
    """Measures objects, and keeps the selected ones the same everywhere."""

    sample = "labelled_coins"
    model: RegionModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "regions", "Euler curves of regions")
        warm(("shapes", "int32", 2), ("objects", "uint8", 2))
        explorer = self.session.explorer
        self.model = RegionModel(**explorer.sets)
        self.objects = self.choice = LayerChoice(viewer, self.model, "labels", Labels)
        self._marker = LabelsOverlay(viewer, "selected objects", outline=True)
        self._owned += [self.objects, self._marker]
        self.runners.append(self._marker.runner)
        self._frames: dict[str, Measured] = {}
        """What has been measured since layers or settings changed, and its code, by part."""
        self._changed = False
        self._checksums: list[int] = []
        """Checksums of what has been measured."""
        events = self.model.events
        self._links.add(self._on_other_layer, explorer.events.image, events.labels)
        self._links.add(self._take_chosen, explorer.events.chosen)
        self._links.add(self._select_in_layer, events.selected)
        self._links.add(self._on_stale, *(getattr(events, name) for name in SETTINGS))
        viewer.mouse_drag_callbacks.append(self._on_press)
        self._links.callback(viewer.mouse_drag_callbacks.remove, self._on_press)
        self._on_other_layer()

    @property
    def scope(self) -> str:
        """Which part of the labels is meant."""
        return self.model.scope

    def _start(self) -> None:
        """Measure all objects; numbers of them become features of their layer."""
        labels = self.layer
        image = self.images.layer
        model = self.model
        if labels is None:
            raise ValueError(NO_LAYERS)
        images = () if image is None or isinstance(image, Labels) else (image,)
        part = self._part = self.part_in_view(labels)
        options: dict[str, Any] = {
            "part": part,
            "thresholds": model.n_thresholds,
            "directions": model.n_directions,
            "heights": model.n_heights,
            **{name: getattr(model, f"with_{name}") for name in ALSO},
            "superlevel": model.superlevel,
            "connectivity": model.connectivity,
        }
        job = measure_job(labels, *images, features=labels.features, **options)
        code = partial(call, "table", "region_table", labels, *images, **options)
        self._changed = False
        self._checksums = self._checked()

        def on_step(step: Step) -> None:
            if step.value is None:
                return
            regions, features = step.value
            before = self._frames.get(str(part))
            self._frames[str(part)] = regions, code
            self._show_frame(labels)
            if labels in self.viewer.layers:
                undone = partial(self._show_before, labels, part, before)
                # The status bar of napari shows all features of an object: curves would fill it.
                few = features[[name for name in features if not is_of_curve(name)]]
                self.session.history.change_features(labels, placed(few), undone)

        self.runner.submit(job, on_step)

    def refresh(self, *_: Any) -> None:
        """Notice changes of the data in place, which napari draws, as it does for other reasons."""
        if self._checksums != self._checked():
            self._on_stale()

    def _checked(self) -> list[int]:
        """Return checksums of the labels and of the image."""
        return [_checksum(layer) for layer in (self.layer, self.images.layer) if layer is not None]

    def _show_before(self, labels: Any, part: Part, before: Measured | None) -> None:
        """Show what was measured before a measurement that has been undone, if anything was."""
        if before is None:
            self._frames.pop(str(part), None)
        else:
            self._frames[str(part)] = before
        if labels == self.layer:
            self._show_frame(labels)

    def _on_press(self, viewer: Any, event: Any) -> Generator[None, None, None]:
        """Select the object that is clicked in the canvas, whichever layer is active.

        With Ctrl or Shift it is added to what was selected before napari handled the click.
        """
        layer = self.layer
        if layer is None or not layer.visible or layer.mode not in PICKING_MODES:
            return
        before = self.model.selected if {"Control", "Shift"} & set(event.modifiers) else None
        yield
        if event.type == "mouse_move":
            return  # The canvas was dragged.
        value = layer.get_value(
            event.position,
            view_direction=event.view_direction,
            dims_displayed=list(event.dims_displayed),
            world=True,
        )
        if isinstance(value, tuple):  # A multiscale layer gives the level, too.
            value = value[1]
        if value is not None:
            self.pick(int(value), before)

    def pick(self, label: int, before: tuple[int, ...] | None = None) -> None:
        """Select an object, or none if the label is not one of the measured objects.

        It is added to those of `before`, or taken from them, unless that is None.
        """
        regions = self.model.regions
        found = (label,) if regions is not None and regions.rows([label]) else ()
        self.model.selected = found if before is None else toggled(before, found)

    def _take_chosen(self, *_: Any) -> None:
        """Select the objects that lie where components or holes are chosen in the dock Threshold.

        That nothing is chosen there leaves the selection as it is.
        """
        explorer = self.session.explorer
        shown = getattr(self.session.controllers.get("explorer"), "details", None)
        layer = self.layer
        if shown is None or shown.source is None or explorer.classes is None:
            return
        if layer is None or self.model.regions is None or not explorer.chosen:
            return
        image, selection = shown.source[:2]
        part, found = labels_at_chosen(image, selection, explorer.classes, explorer.chosen, layer)
        if found and part == self.part_in_view(layer):
            self.model.selected = found

    def classify(self) -> None:
        """Put the selected objects into the present class.

        That is a column of the features, which can be undone.
        """
        layer = self.layer
        labels = self.model.selected
        if layer is None or not labels:
            self.model.status = "Choose objects first: draw around their points."
            return
        try:
            features = classified(
                layer.features, labels, self.model.class_name, frame_of(self.part_in_view(layer))
            )
        except ValueError as error:
            self.model.status = str(error)
            return
        self.session.history.change_features(layer, features)
        title = f"class “{self.model.class_name}”" if self.model.class_name else "no class"
        self.model.status = f"{counted(len(labels), 'object')} put in {title}"

    def _read_classes(self, *_: Any) -> None:
        layer = self.layer
        regions = self.model.regions
        if layer is None or regions is None:
            self.model.classes = ()
        else:
            frame = frame_of(self.part_in_view(layer))
            self.model.classes = tuple(classes_of(layer.features, regions.labels, frame))

    def colours(self) -> NDArray[np.float64]:
        """Colours of the objects in the canvas, (n, 4), from 0 to 1."""
        layer = self.layer
        regions = self.model.regions
        if layer is None or regions is None:
            return np.zeros((0, 4))
        return np.asarray(layer.colormap.map(np.asarray(regions.labels)), dtype=np.float64)

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """Return the numbers that are known of the objects in view, by the names of columns."""
        layer = self.layer
        regions = self.model.regions
        if layer is None or regions is None:
            return {}
        rows = rows_of(layer.features, regions.labels, frame_of(self.part_in_view(layer)))
        others = pd.DataFrame(rows).select_dtypes("number")
        found = {str(name): values.to_numpy(np.float64) for name, values in others.items()}
        own = feature_columns(regions)
        return found | {name: np.asarray(values, np.float64) for name, values in own.items()}

    def shown_curves(self) -> tuple[Curves, dict[str, dict[str, Any]], str] | None:
        """Curves and features of the objects in view by name, and their code; None without any."""
        layer = self.layer
        regions = self.model.regions
        image = self.images.layer
        if layer is None or regions is None or regions.curves is None or image is None:
            return None
        part = self.part_in_view(layer)
        frame = frame_of(part)
        curves = named_curves(regions.curves, layer.name, frame)
        rows = zip(curves, rows_of(layer.features, regions.labels, frame), strict=True)
        features = {name: {"layer": layer.name, **row} for name, row in rows}
        statement = call(
            "curves",
            "object_curves",
            layer,
            image,
            part=part,
            thresholds=regions.curves.thresholds.size,
            superlevel=regions.curves.superlevel,
            connectivity=self.model.connectivity,
        )
        return curves, features, statement

    def _statements(self) -> list[str]:
        labels = self.layer
        if labels is None:
            return []
        known = self._frames.get(str(self.part_in_view(labels)))
        return [] if known is None else [known[1]()]

    def table(self) -> dict[str, ArrayLike]:
        """Columns with a row for each object."""
        regions = self.model.regions
        if regions is None:
            raise ValueError("Nothing has been measured yet.")
        return {"label": regions.labels, **feature_columns(regions)}

    def _known(self) -> str:
        if self.model.regions is None:
            return "nothing has been measured"
        return "the objects are those of the last measurement"

    def _show_frame(self, labels: Any) -> None:
        """Show the objects of the frame in view, if they have been measured."""
        part = self.part_in_view(labels)
        known = self._frames.get(str(part))
        self.model.selected = ()
        self.model.regions = None if known is None else known[0]
        self._read_classes()
        if known is None:
            self.show_part(labels, part, "not measured")
            self.model.status = "This frame has not been measured: press Measure."
            return
        count = len(known[0].labels)
        self.show_part(labels, part, STALE if self._changed else "complete")
        words = f"{counted(count, 'object')} · CPU"
        problem = known[0].problem
        self.model.status = f"{words}. Shapes may be distorted: {problem}" if problem else words
        self._take_chosen()

    def _on_dims(self, *_: Any) -> None:
        """Show the objects of another frame."""
        labels = self.layer
        if labels is not None and self._frames and self._part != self.part_in_view(labels):
            self._part = self.part_in_view(labels)
            self._show_frame(labels)

    def _select_in_layer(self, labels: tuple[int, ...], before: tuple[int, ...]) -> None:
        layer = self.layer
        regions = self.model.regions
        found: tuple[int, ...] = ()
        if regions is not None:
            rows = regions.rows(labels)
            found = tuple(regions.labels[rows].tolist())
        if found != labels:
            self.model.selected = found
            return
        if layer is None or not labels:
            self._marker.clear()
            return
        level = fitting_level(selection_of(layer, self.part_in_view(layer)), layer.name)
        fresh = set(labels).difference(before)  # Those brought into view.
        ordered = sorted(labels, key=fresh.__contains__, reverse=True)

        def outline() -> Iterator[Step]:
            objects = yield from load(level.full)
            numbers = np.arange(1, len(ordered) + 1, dtype=np.int32)
            numbered = map_array(objects, np.array(ordered, objects.dtype), numbers)
            around = surroundings(numbered)
            if around is None:
                yield Step(None)
                return
            low, inside, boxes = around
            yield Step((low, inside, boxes[: len(fresh)]))

        self._marker.find(outline, layer, level)
        layer.selected_label = labels[-1]

    def _on_selected_label(self, event: Any) -> None:
        label = int(event.source.selected_label)
        before = self.model.selected
        if label not in before[-1:]:  # The user has chosen it in napari.
            self.pick(label, before if QGuiApplication.keyboardModifiers() & MORE else None)

    def _on_other_layer(self, *_: Any) -> None:
        self._of_layers.close()
        self._marker.remove()
        layer = self.layer
        if layer is None:
            self.show_nothing(NO_LAYERS)
            return
        self._of_layers.add(self._on_selected_label, layer.events.selected_label)
        self._of_layers.add(self._read_classes, layer.events.features)
        self._of_layers.add(self._on_stale, layer.events.paint)
        for own in filter(None, (layer, self.images.layer)):
            self._of_layers.add(self._on_stale, own.events.data)
            self._of_layers.add(self._on_stale, *(own.events[name] for name in PLACE_EVENTS))
            self._watch_drawing(own)
        self.show_nothing("Press Measure.")

    def _on_stale(self, *_: Any) -> None:
        self._changed = True
        self._frames.clear()
        if self.model.regions is not None and self.layer is not None:
            self.show_part(self.layer, self.part_in_view(self.layer), STALE)

    def _clear(self) -> None:
        self._frames.clear()
        self.model.regions = None
        self.model.selected = ()


def _checksum(layer: Any) -> int:
    """Return a checksum of the data of a layer; 0 if that would take long."""
    data = levels_of(layer)[0]
    if getattr(layer, "multiscale", False) or is_lazy(data) or data.size > MOST_CHECKED:
        return 0
    return zlib.crc32(np.ascontiguousarray(data).view(np.uint8).data)
