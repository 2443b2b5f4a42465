"""The dock "Series"."""

from typing import Any, ClassVar

import numpy as np

from napari_ecc._controller.series import SeriesController
from napari_ecc._qt import form
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.saving import Saver

CHOICES = {
    "Image": form.choice("image", "The Image layer, the same as in the dock Threshold"),
    "Along": form.choice("axis", "The axis that the frames follow one another along"),
    "Frames": form.choice(
        "scope",
        "The last two or three axes of the image are a frame's",
        {"Planes": "slice", "Volumes": "volume"},
    ),
}
SETTINGS = {
    "Sets": form.SUPERLEVEL,
    "Connect": form.CONNECTIVITY,
    "Thresholds": form.whole_number("n_thresholds", "Number of thresholds", 2, 4096),
    "First": form.number("low", "First threshold", -1e300, 1e300, step=1),
    "Last": form.number("high", "Last threshold", -1e300, 1e300, step=1),
}


class SeriesExplorer(Panel):
    """See how the curve changes in time, over channels or through a stack."""

    dock = SeriesController
    title = "Series"
    more_settings: ClassVar = {"range": form.checked_range}
    about = "The curve of every frame."

    def _fill(self) -> None:
        model = self.model
        controller = self.controller
        events = self.model.events
        self.form = self.add_form(CHOICES, model, self.explorer)
        self.settings = self.add_settings(SETTINGS, model)
        self.plot = self.add(CurvePlot("threshold t", "χ"), stretch=2)
        self.map = self.add(HeatMap("threshold t", "frame"), stretch=3)
        self.save = Saver(self, "series.csv", controller.table, self.map)
        limits_tip = "Let the thresholds run between the layer's contrast limits"
        self.add_actions(
            limits=("Contrast range", limits_tip, controller.take_contrast_limits),
            save=self.save.button(),
            copy=self.copy_button,
        )
        for name in ("low", "high"):
            self.settings[name].native.setDecimals(4)
            self.settings[name].changed.connect(self._set_range)
        self.offer(self.form, "image", controller.images)
        self.show(self._show_layer, controller.layer_changed)
        self.show(self._show_cursor, events.index)
        self.show(self._show_range, events.range)
        shown = ("axis", "superlevel", "connectivity", "n_thresholds", "range")
        self.show(self._show_curves, model.stored, *(getattr(events, name) for name in shown))
        self.map.placed.connect(lambda _, row: controller.show_frame(row))

    def _set_range(self, *_: Any) -> None:
        low = self.settings["low"].value
        high = self.settings["high"].value
        if low < high:
            self.model.range = low, high

    def _show_layer(self) -> None:
        """Update axes, range and curves for another layer."""
        names = self.controller.axis_names()
        self.form.offer("axis", {name: k for k, name in enumerate(names)}, self.model.axis)
        self._show_range()
        self._show_curves()

    def _show_range(self) -> None:
        low, high = self.model.range
        for name, value in (("low", low), ("high", high)):
            self.settings[name].native.setSingleStep((high - low) / 100 or 1.0)
            self.settings.display(name, value)

    def _show_curves(self) -> None:
        model = self.model
        names = self.controller.axis_names()
        axis = names[model.axis].rpartition(" ")[0] if names else "frame"
        self.map.set_labels("threshold t", axis)
        if model.shape:
            frames = np.arange(model.length, dtype=np.float64)
            self.map.set_values(model.table(), model.thresholds, frames)
        else:
            self.map.show_nothing()
        self._show_cursor()

    def _show_cursor(self) -> None:
        """Mark the displayed frame on the map, and show its curve."""
        model = self.model
        self.map.set_marker(float(model.cursor) if model.shape else None)
        values = model.rows.get(model.key(model.index)) if model.shape else None
        lines = [] if values is None else [Line(model.thresholds, values, model.superlevel)]
        self.plot.set_lines(lines)
