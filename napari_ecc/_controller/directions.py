"""Directional curves and transforms of a layer, as the direction, the set or the slice changes."""

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Points, Surface
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame
from psygnal import Signal
from superqt.utils import qthrottled

import ecc_core as ecc
from napari_ecc._controller.direction_overlays import DirectionArrow, HeightMarker
from napari_ecc._controller.direction_sweep import Cache, Sweep, compute_sweep, sweep_of
from napari_ecc._controller.docks import DockController, LayerChoice, call
from napari_ecc._controller.fields import Field
from napari_ecc._controller.layers import (
    Selection,
    contrast_limits,
    describe,
    levels_of,
    problem_with,
)
from napari_ecc._controller.loading import warm
from napari_ecc._controller.set_overlay import SetOverlay
from napari_ecc._controller.shapes import Shape, compute_shape, shape_of
from napari_ecc._model.directions import DirectionModel
from napari_ecc._model.levels import stepped
from napari_ecc._workers import Step

Floats = NDArray[np.float64]
ARROW_EVERY = 30
"""Milliseconds between two moves of the arrow, so that the curve is redrawn first."""


class Limits(NamedTuple):
    """Properties of an image that the controls need."""

    low: float = 0.0
    high: float = 1.0
    whole: bool = False
    """Its values are integers."""
    diameter: float = 1.0
    """The diameter of the displayed plane, in world units."""


class DirectionController(DockController):
    """Keeps a `DirectionModel` up to date with the viewer.

    A change of the direction alone computes one curve; a change of the set, the slice or the
    elevation computes the transform, too, after the curve. Both are exact.
    """

    limits_changed = Signal()
    """Another layer, or other data, are swept."""
    model: DirectionModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "directions", "Euler transform")
        warm(("sweep", "uint8", 2))
        self.model = DirectionModel()
        self.shapes = LayerChoice(viewer, self.model, "shape", Surface, Points, optional=True)
        self._shape: Shape | None = None
        explorer = self.session.explorer
        model = self.model
        self.arrow = DirectionArrow(
            viewer, model.point, partial(setattr, model, "show_arrow", False)
        )
        self.marker = HeightMarker(viewer, partial(setattr, model, "height", math.nan))
        self._set = SetOverlay(viewer, partial(setattr, explorer, "show_set", False))
        self._place_arrow = qthrottled(self._draw_arrow, timeout=ARROW_EVERY, leading=False)
        self._links.callback(self._place_arrow.cancel)
        self._cache: Cache = {}
        self._version = 0
        self._layer: Any = None
        self._sweep: Sweep | None = None
        self._rows_key: tuple[Any, ...] = ()
        self._rows: Floats = np.zeros((0, 0))
        self._owned += [self.shapes, self.arrow, self.marker, self._set]
        events = explorer.events
        settings = ("filtration", "slope", "n_directions", "n_heights", "show_arrow")
        self._links.add(self._change_layer, events.image)
        self._links.add(self._change_shape, model.events.shape)
        self._links.add(self._on_shapes, self.shapes.names_changed)
        self._links.add(
            self.request,
            events.show_set,
            events.contour,
            events.scope,
            events.threshold,
            events.superlevel,
            events.connectivity,
            model.turned,
        )
        self._links.add(self.request, *(getattr(model.events, name) for name in settings))
        self._links.add(lambda: self._place_arrow(), model.events.height)
        self._change_layer()

    def _start(self) -> None:
        if self.shapes.layer is not None:
            self._start_shape()
            return
        if self.layer is None and self.shapes.names:
            first = self.shapes.names[0]
            raise ValueError(f"Choose “{first}” as the shape that is swept, or open an image.")
        layer = self.checked_layer()
        explorer = self.session.explorer
        model = self.model
        by_height = model.filtration == "height"
        sweep = sweep_of(
            layer,
            self.part_in_view(layer),
            self._version,
            heights=model.n_heights,
            threshold=explorer.threshold if by_height else None,
            slope=None if by_height else model.slope,
            **explorer.sets,
        )
        selection = sweep.selection
        if math.isnan(explorer.threshold):
            if "explorer" in self.session.controllers:
                raise ValueError("There is no threshold yet: see the dock Threshold.")
            middle = float(np.mean(contrast_limits(layer)))
            explorer.threshold = math.ceil(middle) if layer.dtype.kind in "biu" else middle
            return
        self._sweep = sweep
        self._part = selection.where
        model.ndim = len(selection.axes)
        circle = model.directions
        rows_key = (*sweep.key, *circle.ravel().tolist())
        if rows_key != self._rows_key:
            self._rows_key = rows_key
            self._rows = np.full((len(circle), sweep.heights), np.nan)
        if isinstance(selection.full, np.ndarray):  # Lazy data are shown once they are read.
            self._show_set(selection)
        kind = None if self.runner.running or self._missing() else sweep.key
        rows = self._rows.copy()
        job = partial(compute_sweep, sweep, self._cache, model.direction, circle, rows)
        self.runner.submit(job, partial(self._on_step, circle), kind)
        self._place_arrow()

    def _start_shape(self) -> None:
        """Sweep a surface or points, instead of the image."""
        layer = self.shapes.layer
        model = self.model
        if self._shape is None:
            self._shape = shape_of(layer)
        shape = self._shape
        self._sweep = None
        self._part = None
        model.ndim = shape.points.shape[1]
        circle = model.directions
        key = (self._version, model.shape, model.n_heights, *circle.ravel().tolist())
        if key != self._rows_key:
            self._rows_key = key
            self._rows = np.full((len(circle), model.n_heights), np.nan)
        for overlay in (self.arrow, self.marker):
            overlay.remove()
        self._set.remove_soon()
        job = partial(compute_shape, shape, model.direction, circle, self._rows.copy())
        self.runner.submit(job, partial(self._on_step, circle))

    def _on_shapes(self) -> None:
        """Say that there is a shape to choose, where there is no image."""
        if self.layer is None and self.shapes.layer is None:
            self.request()

    def _change_shape(self, *_: Any) -> None:
        """Sweep another surface or other points, or the image again."""
        self._shape = None
        self._of_layers.close()
        shape = self.shapes.layer
        if shape is None:
            self._change_layer()
            return
        names = ("data", "scale", "translate", "rotate", "shear", "affine")
        self._of_layers.add(self._forget_shape, *(shape.events[name] for name in names))
        self._forget_shape()

    def _forget_shape(self, *_: Any) -> None:
        """Compute everything again, as the shape has changed."""
        self._shape = None
        self._version += 1
        self.limits_changed.emit()
        self.request()

    def _show_set(self, selection: Selection) -> None:
        """Show the set that is swept, unless the explorer does."""
        explorer = self.session.explorer
        shown = explorer.show_set and "explorer" not in self.session.controllers
        if self.model.filtration != "height" or not shown:
            self._set.remove_soon()
        else:
            settings = replace(explorer, sigma=0.0)
            self._set.show(self._layer, selection, Field(selection.full, None), settings)

    def limits(self) -> Limits:
        """Return the bounds of the values, and the size."""
        layer = self._layer
        if layer is None or problem_with(layer):
            return Limits()
        low, high = getattr(layer, "contrast_limits_range", contrast_limits(layer))
        sides = np.array(levels_of(layer)[0].shape[-2:]) * np.abs(layer.scale[-2:])
        whole = layer.dtype.kind in "iu"
        return Limits(float(low), float(high), whole, float(np.linalg.norm(sides)))

    @property
    def unit(self) -> str:
        """The unit of lengths of what is swept."""
        layer = self._layer if self.shapes.layer is None else self.shapes.layer
        return "pixel" if layer is None else str(layer.units[-1])

    def _statements(self) -> list[str]:
        sweep = self._sweep
        model = self.model
        if self._shape is not None and model.curve is not None:
            return [
                call(
                    "transform",
                    "shape_transform",
                    self.shapes.layer,
                    model.n_directions,
                    heights=model.n_heights,
                    elevation=model.elevation,
                )
            ]
        if sweep is None or model.curve is None:
            return []
        options = {"part": sweep.selection.where, **sweep.options}
        return [
            call(
                "_, levels, (chi,)",
                "layer_transform",
                self._layer,
                directions=[model.direction],
                **options,
            ),
            call(
                "transform",
                "layer_transform",
                self._layer,
                directions=model.n_directions,
                elevation=model.elevation,
                **options,
            ),
        ]

    def curve_table(self) -> dict[str, ArrayLike]:
        """Columns of the curve."""
        curve = self.model.curve
        if curve is None:
            raise ValueError("There is no curve yet.")
        return {self._level: curve.thresholds, "euler_number": curve.values}

    def transform_table(self) -> DataFrame:
        """A row for each direction and height."""
        transform = self.model.transform
        if transform is None or self._missing():
            raise ValueError("The transform is not complete yet.")
        whole = replace(transform, values=transform.values.astype(np.int64))
        return whole.to_pandas().rename(columns={"height": self._level})

    @property
    def _level(self) -> str:
        of_shape = self._shape is not None
        return "height" if of_shape or self.model.filtration == "height" else "threshold"

    def _on_step(self, circle: Floats, step: Step) -> None:
        if step.value is None:
            return
        curve, rows = step.value
        self.model.curve = curve
        if rows is not None:
            self._rows = rows
            self.model.transform = ecc.EulerTransform(circle, curve.thresholds, rows)
        if self._shape is not None:
            missing = self._missing()
            words = f"{self._shape.in_words()} · CPU"
            self.model.status = f"Partial: {self._known()} …" if missing else words
            self.subject = self.model.shape
            self.state = f"{missing} directions missing" if missing else "complete"
            self.subject_changed.emit()
            return
        if self._sweep is None:
            return
        selection = self._sweep.selection
        level = self._sweep.level
        missing = self._missing()
        size = describe(level.full.shape)
        coarser = len(selection.levels) - len(level.levels)
        if coarser:
            size = f"level {coarser}, {size} of {describe(selection.full.shape)}"
        whole = f"{size}, {level.full.dtype} · CPU"
        self.model.status = f"Partial: {self._known()} …" if missing else whole
        state = f"{missing} directions missing" if missing else "complete"
        self.show_part(self._layer, selection.where, state)
        if not isinstance(selection.full, np.ndarray):
            self._show_set(selection)

    def _missing(self) -> int:
        """Return the number of missing rows of the transform."""
        return int(np.isnan(self._rows).any(axis=1).sum())

    def _known(self) -> str:
        return f"{len(self._rows) - self._missing()} of {len(self._rows)} directions"

    def _clear(self) -> None:
        self._sweep = None
        self._rows_key = ()
        self.arrow.remove()
        self.marker.remove()
        self._set.remove_soon(self.runner)
        self.model.curve = self.model.transform = None

    def _change_layer(self, *_: Any) -> None:
        """Follow the explorer to another layer or to no layer."""
        if self.shapes.layer is not None:
            return
        if self.layer != self._layer:
            self.show_nothing()
        self._layer = self.layer
        self._watch()
        self.refresh()

    def refresh(self, *_: Any) -> None:
        """Compute everything again."""
        self._version += 1
        self._set.refresh()
        self.limits_changed.emit()
        self.request()

    def _on_dims(self, *_: Any) -> None:
        """Follow the sliders, also of axes that the layer does not have."""
        super()._on_dims()
        self._place_arrow()

    def _draw_arrow(self) -> None:
        if self._sweep is None:
            return
        model = self.model
        place = (self._layer, self._sweep.selection, self.model.direction)
        self.marker.show(*place, model.height if model.filtration == "height" else math.nan)
        if model.show_arrow:
            self.arrow.show(*place)
        else:
            self.arrow.remove()

    def mark(self, height: float, count: int = 0) -> None:
        """Mark the nearest height of the curve, or one some steps further."""
        curve = self.model.curve
        if curve is None or math.isnan(height) or self.model.filtration != "height":
            return
        self.model.height = stepped(curve.thresholds, height, count)

    def step(self, count: int) -> None:
        """Move the marked height by a number of steps of the curve."""
        self.mark(self.model.height, count)
