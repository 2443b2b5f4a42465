"""The Euler explorer: from a layer to its curve, and from a threshold to its set."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Image, Labels, Shapes
from napari.utils.notifications import show_info
from psygnal import Signal

from napari_ecc._controller.closer import CloserLook
from napari_ecc._controller.curves import Field, Request, compute_curve
from napari_ecc._controller.devices import device_name
from napari_ecc._controller.labels import LabelsMaker
from napari_ecc._controller.layers import (
    Selection,
    is_lazy,
    layer_named,
    names_of,
    problem_with,
    select,
)
from napari_ecc._controller.output import write_columns
from napari_ecc._controller.overlays import SetOverlay
from napari_ecc._controller.roi import Roi, read_roi
from napari_ecc._controller.session import session_of
from napari_ecc._controller.snippet import python_call
from napari_ecc._controller.warming import warm
from napari_ecc._model.explorer import Curve, ExplorerModel
from napari_ecc._model.levels import extrema, following, zero_crossings
from napari_ecc._workers import Runner, Step

__all__ = ["ExplorerController"]

CURVE_FIELDS = ("superlevel", "diagonals", "bins", "sigma", "scope")
OUTDATED = "The curve is that of earlier settings."
TIMES = "\N{MULTIPLICATION SIGN}"
DATA_EVENTS = ("data", "paint", "labels_update", "scale", "translate", "rotate", "shear", "affine")


class Source(NamedTuple):
    """What a curve is computed of: a layer, its selected part, the request, the region."""

    layer: Any
    selection: Selection
    request: Request
    roi: Roi | None


class ExplorerController:
    """Keeps the model, the layers of a viewer and the overlays in step.

    Parameters
    ----------
    viewer : napari.viewer.Viewer

    Attributes
    ----------
    model : ExplorerModel
    layers_changed : Signal
        Layers that can be chosen came, went or were renamed.
    curves : Runner
        Computes curves.
    closer : CloserLook
        Counts components and finds critical points.
    """

    layers_changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self.session = session_of(viewer)
        self.session.controllers["explorer"] = self
        self.model: ExplorerModel = self.session.explorer
        self.curves = Runner("Euler curve")
        self.closer = CloserLook(viewer, self.model)
        self._labels = LabelsMaker(viewer, self.session.history)
        self._set = SetOverlay(viewer)
        self._wanted: Source | None = None
        self._shown: Source | None = None
        self._field: Field | None = None
        self._explored: Any = None
        self._watched: list[Any] = []
        self._started = 0.0
        self._connect()
        warm()
        self.pick_layer()

    @property
    def image(self) -> Any | None:
        """The layer that is explored."""
        return layer_named(self.viewer, self.model.image)

    @property
    def running(self) -> bool:
        """Whether anything is being computed."""
        return any(runner.running for runner in self._runners)

    @property
    def _runners(self) -> tuple[Runner, ...]:
        return self.curves, *self.closer.runners, self._labels.runner

    def image_choices(self) -> list[str]:
        """Names of the Image layers."""
        return names_of(self.viewer, Image)

    def roi_choices(self) -> list[str]:
        """Names of the layers that can restrict the image."""
        return names_of(self.viewer, Labels, Shapes)

    def pick_layer(self) -> None:
        """Choose the viewer's active image, or its last one, unless one is chosen."""
        if self.image is None:
            active = self.viewer.layers.selection.active
            names = self.image_choices()
            chosen = active.name if active is not None and active.name in names else ""
            self.model.image = chosen or (names[-1] if names else "")
        if self.image is not None:
            self._on_image()

    def close(self) -> None:
        """Stop all work and take the overlays away."""
        for runner in self._runners:
            runner.close()
        self._watch()
        for layer in self.viewer.layers:
            layer.events.name.disconnect(self._on_renamed)
        for emitter, callback in self._viewer_events():
            emitter.disconnect(callback)
        for signal, callback in self._model_events():
            signal.disconnect(callback)
        self.layers_changed.disconnect()
        self._set.remove()
        self.closer.points.remove()

    def _viewer_events(self) -> list[tuple[Any, Any]]:
        layers, dims = self.viewer.layers.events, self.viewer.dims.events
        return [
            (layers.inserted, self._on_inserted),
            (layers.removed, self._on_removed),
            (dims.current_step, self._on_dims),
            (dims.order, self._on_dims),
            (dims.ndisplay, self._on_dims),
        ]

    def _model_events(self) -> list[tuple[Any, Any]]:
        events: Any = self.model.events
        return [
            (events.image, self._on_image),
            (events.threshold, self._on_threshold),
            (events.window, self.closer.locate),
            (events.show_set, self._on_show_set),
            (events.show_changes, self.closer.locate),
            (events.roi, self._on_roi),
            *[(getattr(events, name), self.request_curve) for name in CURVE_FIELDS],
            (self.curves.stopped, self._on_stopped),
            (self.curves.failed, self._on_failed),
        ]

    def _connect(self) -> None:
        for emitter, callback in self._viewer_events() + self._model_events():
            emitter.connect(callback)
        for layer in self.viewer.layers:
            layer.events.name.connect(self._on_renamed)

    def _on_inserted(self, event: Any) -> None:
        event.value.events.name.connect(self._on_renamed)
        self.layers_changed.emit()
        if not self.model.image:
            self.pick_layer()

    def _on_renamed(self, event: Any) -> None:
        names = self.image_choices() + self.roi_choices()
        for field in ("image", "roi"):
            if getattr(self.model, field) and getattr(self.model, field) not in names:
                setattr(self.model, field, event.source.name)
        self.layers_changed.emit()

    def _on_removed(self, event: Any) -> None:
        event.value.events.name.disconnect(self._on_renamed)
        if self._set.is_shown_by(event.value):
            self._set.forget()
            self.model.show_set = False
        if self.closer.points.is_shown_by(event.value):
            self.closer.points.forget()
            self.model.show_changes = False
        gone = event.value.name
        if gone == self.model.roi:
            self.model.roi = ""
        if gone == self.model.image:
            self.model.image = next(iter(self.image_choices()), "")
        self.layers_changed.emit()

    def _on_image(self) -> None:
        """Another layer is chosen."""
        if self.image is None or self.image != self._explored:
            self._forget_curve()
        self._explored = self.image
        self._watch(self.image, layer_named(self.viewer, self.model.roi))
        if self.image is None:
            self.model.status = "Open an image, or a sample: File, Open Sample, napari-ecc."
        else:
            self.request_curve()

    def _on_roi(self) -> None:
        """Another region of interest is chosen."""
        self._watch(self.image, layer_named(self.viewer, self.model.roi))
        self.request_curve()

    def _watch(self, *layers: Any) -> None:
        """Compute anew when the data of these layers change, and of no others."""
        for emitter in self._watched:
            emitter.disconnect(self.request_curve)
        self._watched = [
            getattr(layer.events, name)
            for layer in layers
            if layer is not None
            for name in DATA_EVENTS
            if name in layer.events.emitters
        ]
        for emitter in self._watched:
            emitter.connect(self.request_curve)

    def _forget_curve(self) -> None:
        self.curves.cancel()
        self.closer.forget()
        self._set.hide()
        self._field = self._wanted = self._shown = None
        self.model.curve = None
        self.model.counts = None
        self.model.threshold = math.nan

    def _on_dims(self) -> None:
        layer = self.image
        if layer is None or self._wanted is None:
            return
        if select(self.viewer, layer, self.model.scope).where != self._wanted.selection.where:
            self.request_curve()

    def request_curve(self) -> None:
        """Compute the curve anew, in the background."""
        layer = self.image
        if layer is None:
            return
        problem = problem_with(layer)
        if problem:
            self._forget_curve()
            self.model.status = problem
            return
        try:
            self._wanted = source = self._source(layer)
        except ValueError as error:
            self.curves.cancel()
            self.model.status = str(error)
            return
        self.closer.cancel()
        self._started = time.perf_counter()

        def job() -> Iterator[Step]:
            roi = source.roi
            yield from compute_curve(
                source.request if roi is None else source.request.restricted(roi.read())
            )

        self.curves.submit(job, lambda step: self._on_curve(step, source))

    def _source(self, layer: Any) -> Source:
        """Say what is to be computed, of the layers as they are now."""
        model = self.model
        selection = select(self.viewer, layer, model.scope)
        region = layer_named(self.viewer, model.roi)
        roi = None
        if region is not None:
            roi = read_roi(self.viewer, layer, selection, region, model.scope)
        finest = float(selection.spacing.min())
        request = Request(
            levels=selection.levels,
            mask=None,
            bounds=_bounds(layer, selection),
            bins=model.bins,
            superlevel=model.superlevel,
            diagonals=model.diagonals,
            sigma=tuple((model.sigma * finest / selection.spacing).tolist()),
        )
        return Source(layer, selection, request, roi)

    def _on_curve(self, step: Step, source: Source) -> None:
        curve, field = step.value
        layer, selection = source.layer, source.selection
        self._shown, self._field = source, field
        if field is None:
            self.closer.forget()
        else:
            self.closer.take(layer, selection, field)
        model = self.model
        model.counts = None
        model.curve = curve
        if math.isnan(model.threshold) and curve.thresholds.size:
            model.threshold = _first_threshold(curve, layer)
        model.status = f"{curve.in_words().capitalize()} …"
        if field is None:
            return
        model.status = self._result_line(field)
        if model.show_set:
            self._set.show(layer, selection, field, model)
        self.closer.look()

    def _on_stopped(self) -> None:
        """The user has cancelled the curve."""
        curve = self.model.curve
        if curve is None:
            self.model.status = "Cancelled."
        elif not curve.complete:
            self.model.curve = curve.stopped()
            self.model.status = f"{self.model.curve.in_words().capitalize()}."
        else:
            self.model.status = f"Cancelled. {OUTDATED}"

    def _on_failed(self, message: str) -> None:
        """The curve could not be computed."""
        self.model.curve = None
        self.model.status = message

    def _result_line(self, field: Field) -> str:
        shape = f" {TIMES} ".join(str(n) for n in field.data.shape)
        seconds = time.perf_counter() - self._started
        spent = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
        return f"{shape}, {field.data.dtype} · {spent} · {device_name() or 'CPU'}"

    def _on_threshold(self) -> None:
        self._set.move(self.model.threshold)
        self.model.counts = None
        self.closer.look()

    def _on_show_set(self) -> None:
        shown = self._shown
        if not self.model.show_set:
            self._set.remove()
        elif shown is not None and self._field is not None:
            self._set.show(shown.layer, shown.selection, self._field, self.model)

    def snap(self, threshold: float) -> None:
        """Move the threshold to the nearest one of the curve."""
        if self.model.curve is not None:
            self.model.threshold = self.model.curve.nearest(threshold)

    def jump(self, kind: str, step: int) -> None:
        """Move the threshold to a landmark of the curve.

        Parameters
        ----------
        kind : {"extremum", "zero"}
        step : {1, -1}
            To the next above, or below.
        """
        curve = self.model.curve
        if curve is None:
            return
        find = extrema if kind == "extremum" else zero_crossings
        place = following(find(curve.values), curve.thresholds, self.model.threshold, step)
        if place is None:
            show_info(f"The curve has no {'extrema' if kind == 'extremum' else 'zero crossings'}.")
        else:
            self.model.threshold = place

    def make_labels(self) -> None:
        """Add a Labels layer of the components at the threshold; it can be undone."""
        shown = self._shown
        if shown is None or self._field is None:
            show_info("There is no curve yet.")
            return
        self._labels.make(shown.layer, shown.selection, self._field, self.model)

    def python_call(self) -> str:
        """The `ecc_core` call that gives this curve; "" if there is none."""
        shown, curve = self._shown, self.model.curve
        if shown is None or curve is None:
            return ""
        code = "" if shown.roi is None else shown.roi.code
        return python_call(shown.layer, shown.selection, shown.request, curve, code)

    def save_table(self, path: str) -> None:
        """Write the curve as CSV or Parquet.

        Parameters
        ----------
        path : str
            Its suffix decides.

        Raises
        ------
        ValueError, OSError
            For another suffix, or if it cannot be written.
        """
        curve = self.model.curve
        if curve is None:
            raise ValueError("There is no curve yet.")
        write_columns(
            path,
            {
                "threshold": curve.thresholds,
                "euler_characteristic": curve.values,
                "complete": np.full(curve.thresholds.size, curve.complete),
            },
        )


def _bounds(layer: Any, selection: Selection) -> tuple[float, float] | None:
    """Range of the thresholds where the values are not in memory."""
    full = selection.full
    if full.dtype.kind == "b":
        return 0.0, 1.0
    if len(selection.levels) == 1 and not is_lazy(full):
        return None
    if full.dtype.itemsize == 1:
        info = np.iinfo(full.dtype)
        return float(info.min), float(info.max)
    low, high = layer.contrast_limits_range
    return float(low), float(high)


def _first_threshold(curve: Curve, layer: Any) -> float:
    """The middle of the contrast limits, which is where the eye divides the image."""
    low, high = layer.contrast_limits
    return curve.nearest((low + high) / 2)
