"""Curves of the frames of an image with time or channel axes, one by one in the background."""

from functools import partial
from typing import Any

import numpy as np
from pandas import DataFrame
from psygnal import Signal

from ecc_core import EulerCurve
from napari_ecc._controller.curves import compute_curves, request_of
from napari_ecc._controller.docks import DockController, call
from napari_ecc._controller.layers import (
    Part,
    contrast_limits,
    describe,
    levels_of,
    nearest_point,
    problem_with,
)
from napari_ecc._controller.loading import device_name
from napari_ecc._controller.places import axis_name, position_in_view
from napari_ecc._model.series import Index, SeriesModel
from napari_ecc._workers import Step

SETTINGS = ("scope", "axis", "superlevel", "connectivity", "n_thresholds", "range")


class SeriesController(DockController):
    """Computes the missing curves of a `SeriesModel`, and follows the viewer's sliders."""

    layer_changed = Signal()  # another layer, or other frames of it
    sample = "drops"
    model: SeriesModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "series", "Euler curves of frames")
        explorer = self.session.explorer
        self.model = SeriesModel(**explorer.sets)
        events = self.model.events
        self._links.add(self._change_layer, explorer.events.image)
        self._links.add(self.request, *(getattr(events, name) for name in SETTINGS))
        self._change_layer()

    def axis_names(self) -> list[str]:
        """Return the names and lengths of the axes of possible series."""
        layer = self.layer
        if layer is None:
            return []
        return [f"{axis_name(layer, axis)} ({n})" for axis, n in enumerate(self.model.shape)]

    def take_contrast_limits(self) -> None:
        """Set the range of the thresholds to the layer's contrast limits."""
        if self.layer is not None and not problem_with(self.layer):
            self.model.range = contrast_limits(self.layer)

    def _start(self) -> None:
        """Determine the frames, and compute those that are missing."""
        layer = self.checked_layer()
        model = self.model
        ndim = self._frame_ndim
        if layer.ndim <= ndim:
            one = "image" if layer.ndim == 2 else "volume"
            planes = ", or choose Planes for its slices" if layer.ndim == 3 else ""
            raise ValueError(
                f"“{layer.name}” is one {one}. Series needs several, such as those of a time "
                f"lapse: open one{planes}."
            )
        full = levels_of(layer)[0]
        shape = tuple(full.shape[:-ndim])
        model.whole = full.dtype.kind in "biu"
        if shape != model.shape:
            with model.events.blocked():
                model.shape, model.axis = shape, min(model.axis, len(shape) - 1)
                model.index = self._index(layer)
            self.layer_changed.emit()
        wanted = {
            model.key(frame): request_of(layer, self._part_at(frame), **model.options)
            for frame in model.missing()
        }
        if wanted:
            self.runner.submit(partial(compute_curves, wanted), self._on_step)
        else:
            self.runner.cancel()
        self._tell()

    def _on_step(self, step: Step) -> None:
        self.model.store({key: curve.values for key, curve in step.value.items()})
        self._tell()

    def show_frame(self, frame: float) -> None:
        """Move the viewer's slider."""
        layer = self.layer
        if layer is not None and self.model.shape:
            missing = self.viewer.dims.ndim - layer.ndim
            self.viewer.dims.set_current_step(self.model.axis + missing, round(frame))

    def _statements(self) -> list[str]:
        model = self.model
        if not model.shape:
            return []
        options = {"axis": model.axis, "part": self._part_at(model.index), **model.options}
        return [call("t, chi", "frame_curves", self.layer, **options)]

    def table(self) -> DataFrame:
        """A row for each known frame and threshold; ``complete`` is false if frames are missing."""
        table = self.model.table()
        frames = np.flatnonzero(~np.isnan(table).any(axis=1))
        if frames.size == 0:
            raise ValueError("There is no curve yet.")
        curves = EulerCurve(self.model.thresholds, table[frames].astype(np.int64)).to_pandas()
        curves.insert(0, "frame", frames[curves.pop("batch_0")])
        return curves.assign(complete=frames.size == len(table))

    @property
    def _frame_ndim(self) -> int:
        return 2 if self.model.scope == "slice" else 3

    def _part_at(self, frame: Index) -> Part:
        return (*frame, *(slice(None),) * self._frame_ndim)

    def _known(self) -> str:
        return f"{self.model.length - len(self.model.missing())} of {self.model.length} frames"

    def _tell(self) -> None:
        shape = levels_of(self.layer)[0].shape[-self._frame_ndim :]
        state = "Partial: " if self.model.missing() else ""
        self._show_frame_in_view()
        where = device_name() or "CPU"
        self.model.status = f"{state}{self._known()} of {describe(shape)} · {where}"

    def _show_frame_in_view(self) -> None:
        state = f"{self._known()} known" if self.model.missing() else "complete"
        self.show_part(self.layer, self._part_at(self.model.index), state)

    def _on_failed(self, message: str) -> None:
        self.model.status = message

    def _change_layer(self, *_: Any) -> None:
        self._watch()
        with self.model.events.blocked():
            self.take_contrast_limits()
        self.refresh()

    def refresh(self, *_: Any) -> None:
        """Compute all curves again."""
        with self.model.events.blocked():
            self.model.shape = ()
        self.model.forget()
        self.request()

    def _index(self, layer: Any) -> Index:
        """Return the position of the viewer's sliders."""
        position = position_in_view(self.viewer, layer)
        return tuple(nearest_point(layer, position)[: len(self.model.shape)])

    def _on_dims(self, *_: Any) -> None:
        """Move the cursor, and update the frames if another axis has moved."""
        if self.layer is None or not self.model.shape:
            return
        index = self._index(self.layer)
        if index != self.model.index:
            self.model.index = index
            self._show_frame_in_view()
            if self.model.missing():
                self.request()

    def _clear(self) -> None:
        with self.model.events.blocked():
            self.model.shape = ()
            self.model.index = ()
            self.model.axis = 0
        self.layer_changed.emit()
