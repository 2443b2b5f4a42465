"""The dock "Series"."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from qtpy.QtWidgets import QTabWidget

from napari_ecc._controller.series import SeriesController
from napari_ecc._model.explorer import BETTI_NAMES
from napari_ecc._model.levels import decimals, distance_of, formatted
from napari_ecc._qt import form
from napari_ecc._qt.heatmap import HeatMap
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import BETTI_COLOURS, CurvePlot, Line
from napari_ecc._qt.saving import Saver

CHOICES: form.Rows = {
    "Image": form.choice("image", "The Image layer, the same as in the dock Threshold"),
    "Along": (
        form.choice("axis", "The axis that the frames follow one another along"),
        form.choice(
            "scope",
            "The last two or three axes of the image are a frame's",
            {"Planes": "slice", "Volumes": "volume"},
        ),
    ),
}
LOWEST_TAB = 150
"""Minimum height of the plots in tabs, so that the map is in view in a window of 800 pixels."""
WIDE = 4.0
"""Width of χ over time, which is seen behind the number of components where both are equal."""
NARROW = 1.6
ACCEPT_TIP = "Count only what lasts, in all frames, or all again"
LEVELS: form.Rows = {
    "Threshold": form.number(
        "t",
        "The threshold of the numbers, and of Follow",
        -form.LARGEST_NUMBER,
        form.LARGEST_NUMBER,
    ),
    "Lasts at least": form.number(
        "min_persistence",
        "Leave out what has less persistence, as in the dock Threshold; 0 counts all",
        0,
        form.LARGEST_NUMBER,
    ),
}
SETTINGS = {
    "Smoothing": form.number(
        "sigma", "Width of a Gaussian filter, as in the dock Threshold", 0, 100, step=0.5
    ),
    "Sets": form.SUPERLEVEL,
    "Connect": form.CONNECTIVITY,
    "Thresholds": form.whole_number("n_thresholds", "Number of thresholds", 2, 4096),
    "First": form.number(
        "low", "First threshold", -form.LARGEST_NUMBER, form.LARGEST_NUMBER, step=1
    ),
    "Last": form.number(
        "high", "Last threshold", -form.LARGEST_NUMBER, form.LARGEST_NUMBER, step=1
    ),
}


class SeriesExplorer(Panel):
    """See how the curve changes in time, over channels or through a stack."""

    dock = SeriesController
    title = "Series"
    more_settings: ClassVar = {"range": form.checked_range}
    about = "The curve of each frame, and what is followed."

    def _fill(self) -> None:
        model = self.model
        controller = self.controller
        events = self.model.events
        self.form = self.add_form(CHOICES, model, self.explorer)
        self.settings = self.add_settings(SETTINGS, model)
        self.tabs = self.add(QTabWidget(), stretch=2)
        for part in (self.tabs, self.tabs.tabBar()):
            part.setAccessibleName("Numbers over time, or the curve of a frame")
        self.times = CurvePlot("frame", "number")
        self.plot = CurvePlot("threshold t", "χ")
        for plot in (self.times, self.plot):
            plot.setMinimumHeight(LOWEST_TAB)
        self.tabs.addTab(self.times, "Over time")
        self.tabs.addTab(self.plot, "Curve of the frame")
        self.readout = self.add_line()
        self.readout.setAccessibleName("Numbers of the frame at the threshold")
        self.offer_least = self.add(form.buttons(accept=("", ACCEPT_TIP, controller.accept)))
        self.levels = self.add_form(LEVELS, model)
        self.map = self.add(HeatMap("threshold t", "frame"), stretch=3)
        self.save = Saver(self, "series.csv", controller.table, self.map)
        self.save_events = Saver(self, "events.csv", controller.follower.events, self.times)
        limits_tip = "Let the thresholds run between the layer's contrast limits"
        follow_tip = (
            "Link the components of consecutive frames that overlap: tracks with their splits and "
            "merges, and labels of them"
        )
        self.actions = self.add_actions(
            follow=("Follow", follow_tip, controller.follower.follow),
            undo=self.undo_button,
            limits=("Contrast range", limits_tip, controller.take_contrast_limits),
        )
        self.outputs = self.add_actions(
            save=self.save.button(),
            events=self.save_events.button("Save events…"),
            copy=self.copy_button,
        )
        for name in ("low", "high"):
            self.settings[name].changed.connect(self._set_range)
        self.levels["t"].changed.connect(controller.move)
        self.offer(self.form, "image", controller.images)
        self.show(self._show_layer, controller.layer_changed)
        self.show(self._show_cursor, events.index)
        self.show(self._show_range, events.range, events.sigma)
        shown = ("axis", "superlevel", "connectivity", "n_thresholds", "range", "sigma")
        self.show(self._show_curves, model.stored, *(getattr(events, name) for name in shown))
        self.show(self._show_threshold, events.threshold)
        self.show(self._show_undo, controller.session.history.changed)
        self.show(self._show_followed, controller.session.history.changed, controller.layer_changed)
        self.show(self._show_numbers, controller.counting.busy)
        self.map.placed.connect(controller.point_at)
        self.plot.threshold_moved.connect(controller.move)
        self.plot.stepped.connect(controller.step)
        self.times.threshold_moved.connect(controller.show_frame)
        self.times.stepped.connect(controller.step_frames)

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

    def _show_followed(self) -> None:
        """Let events be saved once there are some."""
        followed = self.controller.follower.found is not None
        self.enable(self.outputs, "events", on=followed)

    def _show_range(self) -> None:
        low, high = self.model.range
        integers = self.model.whole and not self.model.sigma
        digits = 0 if integers else decimals(low, high)
        for name, value in (
            ("t", self.model.threshold),
            ("min_persistence", self.model.min_persistence),
        ):
            self.levels.set_decimals(name, digits)
            if not math.isnan(value):
                self.levels.display(name, value)
        for name, value in (("low", low), ("high", high)):
            self.settings.set_decimals(name, digits)
            self.settings[name].native.setSingleStep((high - low) / 100 or 1.0)
            self.settings.display(name, value)

    def _show_curves(self) -> None:
        model = self.model
        self.enable(self.actions, "follow", "limits", on=bool(model.shape))
        self.enable(self.outputs, "save", "copy", on=bool(model.shape))
        names = self.controller.axis_names()
        for part in (self.tabs, self.levels):
            part.setVisible(bool(names))  # A single image has only the line that says what to do.
        axis = names[model.axis].rpartition(" ")[0] if names else "frame"
        self.map.set_labels("threshold t", axis)
        if model.shape:
            frames = np.arange(model.length, dtype=np.float64)
            self.map.set_values(model.table(), model.thresholds, frames)
        else:
            self.map.show_nothing()
        self.times.set_x_label(axis)
        self._show_times()
        self._show_cursor()

    def _show_cursor(self) -> None:
        """Mark the displayed frame, and show its curve and its numbers."""
        model = self.model
        values = model.curve(model.index) if model.shape else None
        lines = [] if values is None else [Line(model.thresholds, values, model.superlevel)]
        self.plot.set_lines(lines)
        self.times.set_threshold(float(model.cursor) if model.shape else None)
        self._mark()
        self._show_numbers()

    def _show_threshold(self) -> None:
        """Show the threshold, and the numbers there."""
        model = self.model
        self.levels["t"].enabled = model.place is not None
        if model.place is not None:
            self.levels["t"].native.setSingleStep(distance_of(model.thresholds))
            self.levels.display("t", model.threshold)
        self._mark()
        self._show_times()
        self._show_numbers()

    def _mark(self) -> None:
        """Mark the displayed frame and the threshold on the map and in the curve."""
        model = self.model
        threshold = None if model.place is None else model.threshold
        self.map.set_marker(float(model.cursor) if model.shape else None, threshold)
        self.plot.set_threshold(threshold)

    def _show_times(self) -> None:
        """Draw the numbers at the threshold against time, of the frames that are known."""
        model = self.model
        place = model.place
        if place is None or not model.shape:
            self.times.set_lines([])
            return
        frames = list(model.frames())
        counts = [model.numbers(frame) for frame in frames]
        curves = [model.curve(frame) for frame in frames]
        names = BETTI_NAMES[2 if model.scope == "slice" else 3]
        lines = []
        for k, (_, plural) in enumerate(names):
            numbers = [None if at is None else at.numbers[k] for at in counts]
            lines.append(_over_time(numbers, plural, BETTI_COLOURS[k]))
        found = [None if at is None else at[place] for at in curves]
        euler = [None if number is None else int(number) for number in found]
        below = _over_time(euler, "χ", "curve", width=WIDE)
        self.times.set_lines([below, *lines])

    def _show_numbers(self) -> None:
        """Say what the displayed frame has, and offer to count what lasts alone."""
        model = self.model
        place = model.place
        button = self.offer_least["accept"]
        known = model.counted(model.index) if model.shape else None
        curve = model.curve(model.index) if model.shape else None
        offered = None if known is None else known.offer
        button.visible = place is not None and bool(model.min_persistence or offered)
        button.text = (
            "Count all again"
            if model.min_persistence
            else f"Count only what lasts at least {formatted(offered or 0.0)}"
        )
        self.readout.setText("")
        if place is None:
            return
        counts = model.numbers(model.index)
        if counts is not None:
            text = f"<b>χ = {formatted(counts.euler)}</b> &nbsp; {counts.in_html(BETTI_COLOURS)}"
        elif curve is not None:
            text = f"<b>χ = {formatted(int(curve[place]))}</b>"
        else:
            text = ""
        if counts is None and self.controller.counting.running:
            text += " &nbsp; counting …"
        self.readout.setText(text)
        self.readout.setToolTip("" if known is None else known.unpaired)


def _over_time(
    values: Sequence[int | None], label: str, colour: str, width: float = NARROW
) -> Line:
    """A curve over frames, of those whose value is known."""
    frames = [frame for frame, value in enumerate(values) if value is not None]
    known = [value for value in values if value is not None]
    return Line(
        np.array(frames), np.array(known), colour=colour, width=width, label=label, name=label
    )
