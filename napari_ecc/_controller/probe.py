"""The object under the mouse, and the one that is chosen in the diagram of births and deaths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from napari.components._viewer_mouse_bindings import double_click_to_zoom
from numpy.typing import NDArray

from napari_ecc._controller.details import Details
from napari_ecc._controller.fields import Field, surroundings
from napari_ecc._controller.links import Links
from napari_ecc._controller.overlays import LabelsOverlay
from napari_ecc._controller.persistence import Objects, find_objects
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._model.levels import formatted
from napari_ecc._workers import Step


class ObjectProbe:
    """Says what is known of the object under the mouse; a double click goes to its merge."""

    def __init__(self, viewer: Any, model: ExplorerModel, details: Details) -> None:
        self._viewer, self._model, self._details = viewer, model, details
        self._place: tuple[int, ...] | None = None
        self._outline = LabelsOverlay(viewer, "chosen component", outline=True)
        self.runners = [self._outline.runner]
        self._links = Links()
        events = model.events
        self._links.add(self._forget, events.threshold, events.min_persistence, events.classes)
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
        self._outline.clear()

    def _point(self, event: Any) -> tuple[int, ...] | None:
        """The point of the field under the mouse."""
        source, field = self._details.source, self._details.field
        if source is None or field is None or self._viewer.dims.ndisplay == 3:
            return None
        found = np.asarray(source.layer.world_to_data(event.position), dtype=float)
        point = tuple(np.round(found[list(source.selection.axes)]).astype(int).tolist())
        inside = all(0 <= at < n for at, n in zip(point, field.data.shape, strict=True))
        return point if inside else None

    def _on_move(self, _: Any, event: Any) -> None:
        self._place = self._point(event)
        if self._place is None:
            self._model.pointed = ""
        elif self._model.classes is not None and not self._details.finding:
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

    def outline_objects(self, *labels: int) -> None:
        """Outline objects of the set, by their labels."""
        objects, source = self._details.objects, self._details.source
        if objects is not None and source is not None:
            chosen = np.isin(objects.labels, labels).view(np.uint8)
            self._outline.find(
                lambda: iter([Step(surroundings(chosen))]), source.layer, source.selection
            )

    def outline(self, *indices: int) -> None:
        """Outline components of the diagram.

        A single one is that just before it merges with an older one; several are those that the
        set has at the threshold.
        """
        classes, field, source = self._model.classes, self._details.field, self._details.source
        if classes is None or field is None or source is None:
            return
        threshold = self._model.threshold
        chosen = np.array([k for k in indices if k >= 0 and not classes.dimensions[k]], dtype=int)
        if chosen.size != 1:
            chosen = chosen[classes.alive(threshold)[chosen]]
        elif math.isfinite(death := float(classes.deaths[chosen[0]])):
            threshold = float(np.nextafter(death, classes.births[chosen[0]]))
        if not chosen.size:
            self._outline.clear()
            return
        least = min(self._model.min_persistence, float(classes.persistence[chosen].min()))
        points = classes.birth_points[chosen]
        job = partial(_outlined, field, threshold, least, points, **self._details.sets)
        self._outline.find(job, source.layer, source.selection)


def _outlined(
    field: Field, threshold: float, least: float, points: NDArray[np.int64], **sets: Any
) -> Iterator[Step]:
    for step in find_objects(field, threshold, least, **sets):
        found = step.value
        yield Step(None)
    chosen = np.isin(found.labels, found.labels[tuple(points.T)])
    yield Step(surroundings(chosen.view(np.uint8)))
