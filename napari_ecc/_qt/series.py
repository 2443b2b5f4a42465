"""The dock "Euler series"."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QFormLayout, QHBoxLayout, QLabel

from napari_ecc._controller.series import SeriesController
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.panel import (
    Panel,
    button,
    choice,
    fill,
    form_of,
    number,
    sets_choices,
    side_by_side,
    whole_number,
)
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.progress import WorkLine
from napari_ecc._qt.saving import TABLES, ask_and_save, copy_code, save
from napari_ecc._qt.theme import PlotColours, follow_theme

__all__ = ["SeriesExplorer"]


class SeriesExplorer(Panel):
    """See how the curve changes in time, over channels or through a stack.

    Parameters
    ----------
    napari_viewer : napari.viewer.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.controller = SeriesController(napari_viewer)
        self.until_closed(self.controller.close)
        self.model = self.controller.model
        self.explorer = self.controller.session.explorer
        self.plot = CurvePlot("threshold t", "χ")
        self.map = HeatMap("threshold t", "frame")
        self.work = WorkLine(self.controller.runner)
        layout = self.stack()
        layout.addLayout(self._choices())
        layout.addWidget(self.plot, stretch=2)
        layout.addWidget(self.map, stretch=3)
        layout.addLayout(self._actions())
        layout.addWidget(self.work)
        self._connect()
        self.until_closed(follow_theme(napari_viewer, self._set_colours))

    def _choices(self) -> QFormLayout:
        self.image = choice({}, "The Image layer, the same as in the Euler explorer")
        self.scope = choice(
            {"slice": "Frames are planes", "volume": "Frames are volumes"},
            "The last two or three axes of the image are a frame's",
        )
        self.axis = choice({}, "The axis that the frames follow one another along")
        self.superlevel, self.diagonals = sets_choices()
        self.thresholds = whole_number(2, 4096, "Number of thresholds")
        self.low = number(-1e300, 1e300, 1, "First threshold", decimals=4)
        self.high = number(-1e300, 1e300, 1, "Last threshold", decimals=4)
        limits = button(
            "From contrast",
            "Let the thresholds run between the layer's contrast limits",
            self.controller.take_contrast_limits,
        )
        return form_of(
            {
                "Image": self.image,
                "Along": side_by_side(self.axis, self.scope),
                "Sets": side_by_side(self.superlevel, self.diagonals),
                "Thresholds": side_by_side(self.thresholds, limits),
                "between": side_by_side(self.low, QLabel("and"), self.high),
            }
        )

    def _actions(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(button("Save…", "Table as CSV or Parquet, map as PNG", self._save))
        row.addWidget(button("Copy Python", "The calls that give the map", self.copy_python))
        return row

    def _connect(self) -> None:
        model, events = self.model, self.model.events
        self._fill_choices()
        self.tie(self.image, self.explorer, "image")
        for name in ("scope", "axis", "superlevel", "diagonals"):
            self.tie(getattr(self, name), model, name)
        self.tie(self.thresholds, model, "n_thresholds")
        for field in (self.low, self.high):
            field.valueChanged.connect(self._set_range)
        self.listen(self.controller.images.names_changed, self._fill_choices)
        self.listen(self.controller.layer_changed, self._show_layer)
        self.listen(model.stored, self._show_curves)
        self.listen(events.index, self._show_cursor)
        self.listen(events.range, self._show_range)
        self.listen(events.status, self._show_status)
        for name in ("axis", "superlevel", "diagonals", "n_thresholds", "range"):
            self.listen(getattr(events, name), self._show_curves)
        self.map.picked.connect(self.controller.show_frame)
        self._show_layer()

    def _fill_choices(self) -> None:
        fill(self.image, self.controller.images.names, self.explorer.image)

    def _set_colours(self, colours: PlotColours) -> None:
        self.plot.set_colours(colours)
        self.map.set_colours(colours)

    def _set_range(self, *_: Any) -> None:
        low, high = self.low.value(), self.high.value()
        if low <= high:
            self.model.range = low, high

    def _show_layer(self) -> None:
        names = self.controller.axis_names()
        with QSignalBlocker(self.axis):
            self.axis.clear()
            for k, name in enumerate(names):
                self.axis.addItem(name, k)
            self.axis.setCurrentIndex(self.model.axis if names else -1)
        self._show_range()
        self._show_curves()
        self._show_status()

    def _show_range(self, *_: Any) -> None:
        low, high = self.model.range
        for field, value in ((self.low, low), (self.high, high)):
            with QSignalBlocker(field):
                field.setSingleStep((high - low) / 100 or 1.0)
                field.setValue(value)

    def _show_curves(self, *_: Any) -> None:
        model = self.model
        frames = np.arange(model.length, dtype=np.float64)
        self.map.set_labels("threshold t", self._axis_name())
        if model.shape:
            self.map.set_values(model.table(), model.thresholds, frames)
        else:
            self.map.set_values(np.zeros((0, 0)), np.zeros(0), frames)
        self._show_cursor()

    def _axis_name(self) -> str:
        names = self.controller.axis_names()
        return names[self.model.axis].rpartition(" ")[0] if names else "frame"

    def _show_cursor(self, *_: Any) -> None:
        """The frame in view: a line across the map, and its curve."""
        model = self.model
        self.map.set_marker(float(model.cursor) if model.shape else None)
        values = model.rows.get(model.key(model.index)) if model.shape else None
        if values is None:
            self.plot.set_lines([], model.status)
        else:
            style = "step-left" if model.superlevel else "step-right"
            self.plot.set_lines([Line(model.thresholds, values, style)])

    def _show_status(self, *_: Any) -> None:
        self.work.set_text(self.model.status)
        if not self.model.shape:
            self.plot.set_lines([], self.model.status)

    def copy_python(self) -> None:
        """Put the calls that give the map on the clipboard."""
        copy_code(self.controller.python_call())

    def _save(self) -> None:
        ask_and_save(self, "Save the series", "series.csv", (*TABLES, ".png"), self.save)

    def save(self, path: str) -> None:
        """Write the table as CSV or Parquet, or the map as PNG; the suffix decides."""
        save(path, self.map.save if path.lower().endswith(".png") else self.controller.save_table)
