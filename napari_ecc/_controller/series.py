"""Curves of the frames of an image with time or channel axes, one by one in the background."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from napari.layers import Labels
from numpy.typing import NDArray
from psygnal import Signal

import ecc_core as ecc
from napari_ecc._controller.code import call
from napari_ecc._controller.docks import DockController
from napari_ecc._controller.layers import (
    Part,
    as_indexable,
    axis_name,
    contrast_limits,
    levels_of,
    nearest_point,
    problem_with,
    selection_of,
)
from napari_ecc._controller.loading import (
    describe,
    device_name,
    fitting_level,
    to_device,
    to_host,
)
from napari_ecc._controller.output import long_columns, write_columns
from napari_ecc._model.series import Index, Key, SeriesModel
from napari_ecc._workers import Step

__all__ = ["SeriesController"]

SETTINGS = ("scope", "axis", "superlevel", "connectivity", "n_thresholds", "range")


class Frames(NamedTuple):
    """The arguments of a series."""

    data: Any
    wanted: list[tuple[Key, Index]]
    n_thresholds: int
    options: dict[str, Any]


Found = list[tuple[Key, NDArray[np.int64]]]


def compute_frames(frames: Frames) -> Iterator[Step]:
    """Compute the curves one by one; each step yields all curves found so far."""
    found: Found = []
    for key, index in frames.wanted:
        frame = np.asarray(frames.data[index])
        image, axes = to_device(frame), range(frame.ndim)
        values = ecc.euler_curve(image, frames.n_thresholds, axis=axes, **frames.options).values
        found.append((key, to_host(values)))
        yield Step(found, len(found), len(frames.wanted))


def fitting_frames(layer: Any, frame: Part) -> Any:
    """Return the data of a layer at the finest level whose frames fit in memory."""
    level = fitting_level(selection_of(layer, frame), layer.name).number
    data = as_indexable(levels_of(layer)[level])
    return data != 0 if isinstance(layer, Labels) else data


class SeriesController(DockController):
    """Computes the missing curves of a `SeriesModel`, and follows the viewer's sliders."""

    layer_changed = Signal()  # another layer, or other frames of it
    sample = "drops"
    model: SeriesModel

    def __init__(self, viewer: Any) -> None:
        super().__init__(viewer, "series", "Euler curves of frames")
        explorer = self.session.explorer
        self.model = SeriesModel(superlevel=explorer.superlevel, connectivity=explorer.connectivity)
        self._layer: Any = None
        events = self.model.events
        self._links.add(self._change_layer, explorer.events.image)
        self._links.add(self.request, *(getattr(events, name) for name in SETTINGS))
        self._change_layer()

    def axis_names(self) -> list[str]:
        """Return the names and lengths of the axes of possible series."""
        if self._layer is None:
            return []
        lengths = enumerate(self.model.shape)
        return [f"{axis_name(self._layer, axis)} ({length})" for axis, length in lengths]

    def take_contrast_limits(self) -> None:
        """Set the range of the thresholds to the layer's contrast limits."""
        if self._layer is not None and not problem_with(self._layer):
            self.model.range = contrast_limits(self._layer)

    def _start(self) -> None:
        model = self.model
        self._reshape()
        wanted = [(model.key(index), index) for index in model.missing()]
        if not wanted:
            self.runner.cancel()
            self._tell()
            return
        taken = 0

        def on_step(step: Step) -> None:
            nonlocal taken
            if step.value is not None:
                model.store(step.value[taken : step.done])
                taken = step.done
                self._tell()

        data = fitting_frames(self._layer, self._frame)
        frames = Frames(data, wanted, model.n_thresholds, self._options())
        self.runner.submit(lambda: compute_frames(frames), on_step)
        self._tell()

    def show_frame(self, frame: float) -> None:
        """Move the viewer's slider."""
        if self._layer is not None and self.model.shape:
            missing = self.viewer.dims.ndim - self._layer.ndim
            self.viewer.dims.set_current_step(self.model.axis + missing, round(frame))

    def _statements(self) -> list[str]:
        model = self.model
        if not model.shape:
            return []
        options = {**self._options(), "nan": None}
        options |= {"axis": model.axis, "part": self._frame, "thresholds": model.n_thresholds}
        return [call("t, chi", "frame_curves", self._layer, **options)]

    def save_table(self, path: str) -> None:
        """Write a row for each known frame and threshold; see `write_columns`.

        The column ``complete`` is false where frames are missing.
        """
        table = self.model.table()
        frames = np.flatnonzero(~np.isnan(table).any(axis=1))
        if frames.size == 0:
            raise ValueError("There is no curve yet.")
        rows = {"frame": frames}
        columns = long_columns(rows, "threshold", self.model.thresholds, table[frames])
        columns["complete"] = np.full(table[frames].size, frames.size == len(table))
        write_columns(path, columns, self.facts)

    @property
    def _frame_ndim(self) -> int:
        return 2 if self.model.scope == "slice" else 3

    @property
    def _frame(self) -> Part:
        """The frame in view."""
        return (*self.model.index, *(slice(None),) * self._frame_ndim)

    def _options(self) -> dict[str, Any]:
        return {
            "range": self.model.range,
            "connectivity": self.model.connectivity,
            "superlevel": self.model.superlevel,
            "nan": "omit",
        }

    def _known(self) -> str:
        return f"{self.model.length - len(self.model.missing())} of {self.model.length} frames"

    def _tell(self) -> None:
        where = device_name() or "CPU"
        shape = levels_of(self._layer)[0].shape[-self._frame_ndim :]
        state = "Partial: " if self.model.missing() else ""
        self._show_frame_in_view()
        self.model.status = f"{state}{self._known()} of {describe(shape)} · {where}"

    def _show_frame_in_view(self) -> None:
        state = f"{self._known()} known" if self.model.missing() else "complete"
        self.show_part(self._layer, self._frame, state)

    def _on_failed(self, message: str) -> None:
        self.model.status = message

    def _change_layer(self, *_: Any) -> None:
        self._layer = self.layer
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

    def _reshape(self) -> None:
        """Determine the frames."""
        layer, model = self.checked_layer(), self.model
        if layer.ndim <= self._frame_ndim:
            frame = "planes" if model.scope == "slice" else "volumes"
            raise ValueError(
                f"“{layer.name}” must have an axis of time, channels or the like besides those of "
                f"its {frame}, got {layer.ndim} axes."
            )
        shape = tuple(levels_of(layer)[0].shape[: -self._frame_ndim])
        if shape != model.shape:
            with model.events.blocked():
                model.shape, model.axis = shape, min(model.axis, len(shape) - 1)
                model.index = self._index()
            self.layer_changed.emit()

    def _index(self) -> Index:
        """Return the position of the viewer's sliders."""
        point = nearest_point(self._layer, self.viewer.dims.point)
        return tuple(point[: len(self.model.shape)])

    def _on_dims(self, *_: Any) -> None:
        """Move the cursor, and update the frames if another axis has moved."""
        if self._layer is None or not self.model.shape:
            return
        index = self._index()
        if index != self.model.index:
            self.model.index = index
            self._show_frame_in_view()
            if self.model.missing():
                self.request()

    def _clear(self) -> None:
        with self.model.events.blocked():
            self.model.shape, self.model.index, self.model.axis = (), (), 0
        self.layer_changed.emit()
