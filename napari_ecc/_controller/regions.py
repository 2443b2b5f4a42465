"""Curves and transforms of the objects of a Labels layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Labels
from numpy.typing import ArrayLike, NDArray

import ecc_core as ecc
from napari_ecc._controller.code import call, script
from napari_ecc._controller.docks import DockController
from napari_ecc._controller.history import change_features
from napari_ecc._controller.layer_choice import LayerChoice
from napari_ecc._controller.layers import (
    Part,
    Selection,
    part_of,
    problem_with,
    selection_of,
    snapshot,
)
from napari_ecc._controller.loading import Level, describe, fitting_level, load
from napari_ecc._controller.output import write_columns
from napari_ecc._controller.region_features import merged
from napari_ecc._controller.region_masks import corresponding
from napari_ecc._controller.region_picking import LabelPicker
from napari_ecc._model.regions import (
    Basis,
    Components,
    RegionModel,
    Regions,
    feature_columns,
    principal_components,
)
from napari_ecc._workers import Step

__all__ = ["RegionController"]

MOST_OBJECTS = 100_000
NO_LAYERS = "Choose a Labels layer."
STALE = "The objects have changed: measure again."
SETTINGS = ("scope", "superlevel", "connectivity", "n_thresholds", "n_directions", "n_heights")


class Measure(NamedTuple):
    """All that a measurement depends on."""

    image: Level | None
    labels: Level
    name: str
    frame: int | None
    superlevel: bool
    connectivity: int | None
    n_thresholds: int
    n_directions: int
    n_heights: int


def measure_of(
    labels: Any,
    image: Any,
    *,
    part: Part,
    thresholds: int,
    directions: int,
    heights: int,
    superlevel: bool,
    connectivity: int | None,
) -> Measure:
    """What is to be measured of layers as they are now; see `napari_ecc.actions.region_table`."""
    objects = selection_of(labels, part)
    found = _copied(fitting_level(objects, labels.name))
    places = [at for at in part if not isinstance(at, slice)]
    return Measure(
        image=None if image is None else _pixels(labels, objects, found, image),
        labels=found,
        name=labels.name,
        frame=places[0] if len(places) == 1 else None,
        superlevel=superlevel,
        connectivity=connectivity,
        n_thresholds=thresholds,
        n_directions=directions,
        n_heights=heights,
    )


def _pixels(labels: Any, objects: Selection, found: Level, image: Any) -> Level:
    """The image where the objects are."""
    problem = problem_with(image)
    if problem:
        raise ValueError(problem)
    pixels = corresponding(labels, objects, image)
    shapes = tuple(objects.full.shape), tuple(pixels.full.shape)
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"“{labels.name}” must have the shape of “{image.name}”, "
            f"{describe(shapes[1])}, got {describe(shapes[0])}."
        )
    level = _copied(fitting_level(pixels, image.name))
    if level.array.shape != found.array.shape:
        raise ValueError(f"“{labels.name}” and “{image.name}” must have the same levels.")
    return level


def _copied(level: Level) -> Level:
    """The same with a copy of the array, which the user cannot paint on."""
    return level._replace(array=snapshot(level.array))


def measure(what: Measure, features: Any) -> Iterator[Step]:
    """Curves, then transforms, then components.

    The value of the last step is a pair: a `Regions`, and the features with those of its objects.
    """
    labels = yield from load(what.labels.array)
    if not labels.any():
        raise ValueError(f"“{what.name}” has no objects here.")
    curves = None
    if what.image is not None:
        image = yield from load(what.image.array)
        curves = ecc.region_curves(
            image,
            labels,
            what.n_thresholds,
            superlevel=what.superlevel,
            connectivity=what.connectivity,
        )
    count = len(np.unique(labels)) - int(not labels.all())
    if count > MOST_OBJECTS:
        raise ValueError(f"“{what.name}” must have at most {MOST_OBJECTS:,} objects, got {count:,}")
    yield Step(None, 1, 3)
    transforms = ecc.region_transforms(
        labels,
        what.n_directions,
        what.n_heights,
        connectivity=what.connectivity,
        spacing=what.labels.spacing,
        normalize="radius",
    )
    yield Step(None, 2, 3)
    of_transforms = principal_components(transforms.values.reshape(count, -1))
    components: dict[Basis, Components] = {"transforms": of_transforms}
    if curves is not None:
        components = {"curves": principal_components(curves.values), **components}
    regions = Regions(curves, transforms, components)
    columns = feature_columns(regions)
    yield Step((regions, merged(features, regions.labels, columns, what.frame)), 3, 3)


class RegionController(DockController):
    """Measures objects, and keeps the selected one the same everywhere.

    Parameters
    ----------
    viewer : napari.viewer.Viewer

    Attributes
    ----------
    model : RegionModel
    objects : LayerChoice
        Of the labels.
    """

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "regions", "Euler curves of regions")
        explorer = self.session.explorer
        self.model = RegionModel(superlevel=explorer.superlevel, connectivity=explorer.connectivity)
        self.objects = LayerChoice(viewer, self.model, "labels", Labels)
        self._picker = LabelPicker(viewer, lambda: self.objects.layer, self.pick)
        self._frames: dict[str, tuple[Regions, str]] = {}
        """By part, what has been measured since layers or settings changed, and its code."""
        self._seen: Part = ()
        self._changed = False
        events = self.model.events
        self._links.add(self._on_other_layer, explorer.events.image, events.labels)
        self._links.add(self._select_in_layer, events.selected)
        self._links.add(self._on_dims, viewer.dims.events.current_step, viewer.dims.events.order)
        self._links.add(self._on_stale, *(getattr(events, name) for name in SETTINGS))
        self._on_other_layer()

    def close(self) -> None:
        """Stop, and disconnect from the viewer."""
        super().close()
        self._picker.close()
        self.objects.close()

    def measure(self) -> None:
        """Measure all objects in the background; the results become features of their layer."""
        image, labels = self.images.layer, self.objects.layer
        try:
            what, code = self._prepare(image, labels)
        except ValueError as error:
            self._forget(str(error))
            return
        self.model.status = "Measuring …"
        self._changed = False
        assert labels is not None
        part = self._seen = self._part(labels)
        features = labels.features
        self.runner.submit(
            lambda: measure(what, features), lambda step: self._on_step(step, labels, code, part)
        )

    def resume(self) -> None:
        """Measure again."""
        self.measure()

    def pick(self, label: int) -> None:
        """Select an object; what is not one selects none."""
        regions = self.model.regions
        known = regions is not None and regions.row(label) is not None
        self.model.selected = label if known else 0

    def colours(self) -> NDArray[np.float64]:
        """Colours of the objects in the canvas, (n, 4), from 0 to 1."""
        layer, regions = self.objects.layer, self.model.regions
        if layer is None or regions is None:
            return np.zeros((0, 4))
        return np.asarray(layer.colormap.map(np.asarray(regions.labels)), dtype=np.float64)

    def python_call(self) -> str:
        """The call that gives the table; "" if there is none."""
        labels = self.objects.layer
        known = None if labels is None else self._frames.get(str(self._part(labels)))
        return "" if known is None else known[1]

    def save_table(self, path: str) -> None:
        """Write a row for each object as CSV or Parquet; see `write_columns`."""
        regions = self.model.regions
        if regions is None:
            raise ValueError("Nothing has been measured yet.")
        columns: dict[str, ArrayLike] = {"label": regions.labels, **feature_columns(regions)}
        write_columns(path, columns, self.facts)

    def _prepare(self, image: Any, labels: Any) -> tuple[Measure, str]:
        """What to measure, and the same as Python."""
        model = self.model
        if labels is None:
            raise ValueError(NO_LAYERS)
        image = None if isinstance(image, Labels) else image
        options: dict[str, Any] = {
            "part": part_of(self.viewer, labels, model.scope),
            "thresholds": model.n_thresholds,
            "directions": model.n_directions,
            "heights": model.n_heights,
            "superlevel": model.superlevel,
            "connectivity": model.connectivity,
        }
        what = measure_of(labels, image, **options)
        images = () if image is None else (image,)
        return what, script(call("table", "region_table", labels, *images, **options))

    def _on_stopped(self) -> None:
        kept = "the objects are those of the last measurement."
        nothing = "nothing has been measured."
        self.model.status = f"Cancelled: {nothing if self.model.regions is None else kept}"

    def _on_failed(self, message: str) -> None:
        self._forget(message)

    def _on_step(self, step: Step, labels: Any, code: str, part: Part) -> None:
        if step.value is None:
            return
        regions, features = step.value
        self._frames[str(part)] = regions, code
        self._show_frame(labels)
        if self._changed:
            self.model.status = STALE
        if labels in self.viewer.layers:
            change_features(self.session.history, labels, features)

    def _part(self, labels: Any) -> Part:
        """The part of the labels that is meant now."""
        return part_of(self.viewer, labels, self.model.scope)

    def _show_frame(self, labels: Any) -> None:
        """Show the objects of the frame in view, if they have been measured."""
        part = self._part(labels)
        known = self._frames.get(str(part))
        self.model.selected = 0
        self.model.regions = None if known is None else known[0]
        if known is None:
            self.show_part(labels, part, "not measured")
            self.model.status = "This frame has not been measured: press Measure."
            return
        count = len(known[0].labels)
        self.show_part(labels, part, "complete")
        self.model.status = f"{count:,} object{'s' if count != 1 else ''} · CPU"

    def _on_dims(self, *_: Any) -> None:
        """Show the objects of another frame."""
        labels = self.objects.layer
        if labels is not None and self._frames and self._part(labels) != self._seen:
            self._seen = self._part(labels)
            self._show_frame(labels)

    def _select_in_layer(self, label: int) -> None:
        layer = self.objects.layer
        if layer is not None and label and layer.selected_label != label:
            layer.selected_label = label

    def _on_selected_label(self, event: Any) -> None:
        self.pick(int(event.source.selected_label))

    def _on_other_layer(self, *_: Any) -> None:
        self._of_layer.close()
        layer = self.objects.layer
        if layer is None:
            self._forget(NO_LAYERS)
            return
        self._of_layer.add(self._on_selected_label, layer.events.selected_label)
        self._of_layer.add(self._on_stale, layer.events.data, layer.events.paint)
        if self.images.layer is not None:
            self._of_layer.add(self._on_stale, self.images.layer.events.data)
        self._forget("Press Measure.")

    def _on_stale(self, *_: Any) -> None:
        self._changed = True
        self._frames.clear()
        if self.model.regions is not None:
            self.model.status = STALE

    def _forget(self, why: str) -> None:
        self.runner.cancel()
        self._frames.clear()
        self.model.regions = None
        self.model.selected = 0
        self.model.status = why
        self.show_part()
