"""What is under the mouse: an object of the set, and what is chosen, outlined."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from napari.components._viewer_mouse_bindings import double_click_to_zoom

from napari_ecc._controller.choice import find_chosen
from napari_ecc._controller.details import Details, settled
from napari_ecc._controller.fields import Objects, surroundings, without_holes
from napari_ecc._controller.overlays import LabelsOverlay
from napari_ecc._controller.places import data_position
from napari_ecc._controller.session import Links
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._model.levels import formatted
from napari_ecc._workers import Step


class ObjectProbe:
    """Says what is known of the object under the mouse; a double click goes to its merge."""

    def __init__(self, viewer: Any, model: ExplorerModel, details: Details) -> None:
        self._viewer = viewer
        self._model = model
        self._details = details
        self._place: tuple[int, ...] | None = None
        self._outline = LabelsOverlay(viewer, "chosen", outline=True)
        self.runners = [self._outline.runner]
        self._links = Links()
        events = model.events
        self._links.add(self._forget, events.threshold, events.min_persistence, events.classes)
        self._links.add(self._outline_chosen, events.chosen, events.threshold)
        viewer.mouse_move_callbacks.append(self._on_move)
        self._links.callback(viewer.mouse_move_callbacks.remove, self._on_move)
        self._replace(double_click_to_zoom, self._on_double_click)
        self._links.callback(self._replace, self._on_double_click, double_click_to_zoom)

    def close(self) -> None:
        """Disconnect from the viewer."""
        self._links.close()
        self._outline.close()

    def _replace(self, old: Any, new: Any) -> None:
        callbacks = self._viewer.mouse_double_click_callbacks
        if old in callbacks:
            callbacks[callbacks.index(old)] = new

    def _forget(self, *_: Any) -> None:
        self._details.forget_objects()
        self._model.pointed = ""

    def _point(self, event: Any) -> tuple[int, ...] | None:
        """The point of the field under the mouse."""
        source = self._details.source
        field = self._details.field
        if source is None or field is None or self._viewer.dims.ndisplay == 3:
            return None
        found = data_position(source.layer, event.position, self._viewer.dims.units)
        along = found[list(source.selection.axes)]
        point = tuple(np.round(along).astype(int).tolist())
        inside = all(0 <= at < n for at, n in zip(point, field.data.shape, strict=True))
        return point if inside else None

    def _on_move(self, _: Any, event: Any) -> None:
        self._place = self._point(event)
        if self._place is None:
            self._model.pointed = ""
        elif self._model.classes is not None and not self._details.finding.running:
            self._details.find_objects(self._tell)

    def _row(self, objects: Objects | None) -> Any:
        """What is known of the object under the mouse, or None."""
        if objects is None or objects.table is None or self._place is None:
            return None
        label = int(objects.labels[self._place])
        return objects.table.iloc[label - 1] if label else None

    def _tell(self, objects: Objects) -> None:
        row = self._row(objects)
        if row is None or objects.table is None:
            self._model.pointed = ""
            return
        words = f"{int(row['points']):,} points, born at {formatted(row['birth'])}, "
        if math.isinf(row["death"]):
            self._model.pointed = f"{words}never merges"
            return
        older = formatted(objects.table["birth"].iloc[int(row["merges_with"]) - 1])
        merge = formatted(row["death"])
        self._model.pointed = f"{words}merges at {merge} with the one born at {older}"

    def _on_double_click(self, viewer: Any, event: Any) -> None:
        """Move the threshold to where the object merges; elsewhere do what napari does."""
        self._place = self._point(event)
        row = self._row(self._details.objects)
        if row is None:
            double_click_to_zoom(viewer, event)
        elif math.isfinite(row["death"]):
            self._model.threshold = float(row["death"])

    def _outline_chosen(self, *_: Any) -> None:
        """Outline the chosen classes that the set has at the threshold, components from outside.

        A single component that it does not have is outlined as it is just before it merges.
        """
        model = self._model
        field = self._details.field
        source = self._details.source
        classes = model.classes
        threshold = model.threshold
        chosen = model.chosen
        if classes is None or field is None or source is None or not chosen:
            self._outline.clear()
            return
        if not classes.alive(threshold)[list(chosen)].any():
            death = float(classes.deaths[chosen[0]])
            alone = len(chosen) == 1
            if not alone or classes.dimensions[chosen[0]] or not math.isfinite(death):
                self._outline.clear()
                return
            threshold = float(np.nextafter(death, classes.births[chosen[0]]))
        sets = model.sets
        only_components = not classes.dimensions[list(chosen)].any()

        def job() -> Iterator[Step]:
            for step in find_chosen(field, classes, chosen, threshold, **sets):
                found = step.value
                yield Step(None)
            inside = found.labels > 0
            if only_components:  # Lines around the holes of noise would hide what is chosen.
                inside = without_holes(inside)
            yield Step(surroundings(inside.view(np.uint8)))

        self._outline.find(settled(job), source.layer, source.selection)
