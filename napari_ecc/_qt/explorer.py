"""The dock "Euler explorer"."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from magicgui.widgets import FloatSpinBox, Slider
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QHBoxLayout, QLabel, QSizePolicy

from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._controller.overlays import LOWERS, RAISES
from napari_ecc._qt import form
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import BETTI_COLOURS, CurvePlot, Line, betti_lines
from napari_ecc._qt.saving import Saver

__all__ = ["EulerExplorer"]

CHOICES = {
    "Image": (form.choice("image", "The Image or Labels layer to explore"), form.SCOPE),
    "Objects": (form.SUPERLEVEL, form.CONNECTIVITY),
}
SETTINGS = {
    "Within": (form.choice("roi", "Restrict the image to a Shapes or Labels layer"),),
    "Draw": (
        form.check("show_betti", "Betti curves", "Components, holes or tunnels, and cavities"),
        form.check("show_histogram", "Histogram", "Of the values, as square roots of the counts"),
    ),
    "Thresholds": (
        form.whole_number("bins", "Number of thresholds", 2, 65536),
        "Smoothing",
        form.number("sigma", "Gaussian smoothing before the curve, in pixels", 0, 50, 0.5),
    ),
}
OVERLAYS = {
    "": (
        form.check("show_set", "Show set", "Overlay of the points in the set at the threshold"),
        form.check(
            "show_changes",
            "What changes here",
            "Points that change the Euler characteristic near the threshold: "
            "amber raises it when it enters, pink lowers it",
        ),
        form.number("window_percent", "Half width of the window, % of the range", 0.1, 50, 0.5),
    ),
}


class EulerExplorer(Panel):
    """Drag a threshold over the Euler characteristic curve, and see the set and its topology."""

    dock = ExplorerController
    about = "Components and holes at every threshold."
    guide = """\
<p>The curve is the Euler characteristic χ of the set at every threshold: in 2-D components
minus holes, in 3-D components minus tunnels plus cavities.</p>
<p>Drag the line, click in the plot, or press the arrow keys, Home and End (Shift: larger
steps). The overlay in the canvas is the set at the threshold. Mouse wheel: stretch the
vertical axis; double click: show all of it.</p>
<p>A dashed curve is not complete: it is that of a coarse level or of the blocks read so
far.</p>"""

    def _fill(self) -> None:
        self.plot = CurvePlot("threshold t", "Euler characteristic χ")
        self.changes = QLabel()
        self.changes.setWordWrap(True)
        self.save = Saver(self, "curve.csv", self.controller.save_table, self.plot)
        self.actions = self._actions()
        self.form = self.add_form(CHOICES, self.model)
        title = "Region, Betti curves, histogram, thresholds, smoothing"
        self.settings = self.add_form(SETTINGS, self.model, title=title)
        self.add(self.plot, stretch=1)
        self.add(self._threshold_row())
        self.add(self._readout())
        self.add(self._jumps())
        self.overlays = self.add_form(OVERLAYS, self.model)
        window = self.overlays["window_percent"].native
        window.setDecimals(1)
        window.setPrefix("± ")
        window.setSuffix(" %")
        self.add(self.changes)
        self.add(self.actions)

    def _threshold_row(self) -> QHBoxLayout:
        self.slider = Slider(min=0, max=1, readout=False, tooltip="Threshold")
        self.value = FloatSpinBox(min=-1e300, max=1e300, tooltip="Type a threshold")
        self.value.native.setKeyboardTracking(False)
        self.value.native.setSpecialValueText("none")
        self.value.native.setFixedWidth(120)
        row = QHBoxLayout()
        row.addWidget(QLabel("t"))
        row.addWidget(self.slider.native, stretch=1)
        row.addWidget(self.value.native)
        return row

    def _readout(self) -> QLabel:
        self.readout = QLabel()
        self.readout.setTextFormat(Qt.TextFormat.RichText)
        self.readout.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.readout.setFixedHeight(self.readout.fontMetrics().height() + 10)
        # A fixed size, because a new layout of the window at every move is slow
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        return self.readout

    def _jumps(self) -> Any:
        jump = self.controller.jump
        self.jumps = form.buttons(
            extremum_below=("◀", "Extremum below", lambda: jump("extremum", -1)),
            extremum_above=("Extrema ▶", "Extremum above", lambda: jump("extremum", 1)),
            zero_below=("◀", "Zero below", lambda: jump("zero", -1)),
            zero_above=("Zeros ▶", "Zero above", lambda: jump("zero", 1)),
            otsu=("Otsu", "Otsu's threshold of the values", self.controller.go_to_otsu),
        )
        return self.jumps

    def _actions(self) -> Any:
        history = self.controller.session.history
        labels_tip = "A Labels layer of the components of the set"
        recompute_tip = "Compute the curve again, after a change of the data in place"
        save_tip = "The curve as CSV, Parquet, PNG or SVG"
        return form.buttons(
            make_labels=("Make Labels", labels_tip, self.controller.make_labels),
            undo=("Undo", "Undo the last change to layers", history.undo),
            recompute=("Recompute", recompute_tip, self.controller.refresh),
            save=("Save…", save_tip, self.save.ask),
            copy=("Copy Python", "The call that gives this curve", self.copy_python),
        )

    def _connect(self) -> None:
        controller, events = self.controller, self.model.events
        self.offer(self.form, "image", controller.images)
        self.offer(self.settings, "roi", controller.regions, **{"all of it": ""})
        self.show(self._show_curve, events.curve)
        self.show(self._show_threshold, events.threshold)
        self.show(self._show_lines, events.betti, events.show_betti)
        self.show(self._show_readout, events.betti, events.show_betti)
        self.show(self._show_histogram, events.histogram)
        self.show(self._show_changes, events.changes, events.show_changes, events.window)
        self.show(self._show_undo, controller.session.history.changed)
        self.plot.threshold_moved.connect(controller.snap)
        self.plot.stepped.connect(controller.step)
        self.slider.changed.connect(self._slide)
        self.value.changed.connect(partial(setattr, self.model, "threshold"))
        self.overlays["window_percent"].changed.connect(self._set_window)

    def _show_curve(self) -> None:
        curve = self.model.curve
        if curve is None:
            self.plot.set_lines([])
            self._show_threshold()
            return
        self._show_lines()
        span = float(curve.thresholds[-1] - curve.thresholds[0])
        with self.slider.changed.blocked(), self.value.changed.blocked():
            self.slider.max = max(1, curve.thresholds.size - 1)
            whole = np.array_equal(curve.thresholds, np.round(curve.thresholds))
            digits = 0 if whole else max(0, 3 - math.floor(math.log10(span or 1)))
            self.value.native.setDecimals(digits)
            self.value.native.setSingleStep(span / max(1, curve.thresholds.size - 1) or 1)
        self._show_threshold()
        self.plot.repaint()  # at once, before napari draws the layers

    def _show_lines(self) -> None:
        """Draw the curve and, behind it, the Betti curves if they are wanted."""
        curve, betti = self.model.curve, self.model.betti
        if curve is None:
            return
        incomplete = not curve.complete
        line = Line(curve.thresholds, curve.values, curve.superlevel, dashed=incomplete)
        if betti is None or not self.model.show_betti:
            self.plot.set_lines([line])
            return
        self.plot.set_lines([*betti_lines(betti), line._replace(label="χ")])

    def _show_threshold(self) -> None:
        curve, threshold = self.model.curve, self.model.threshold
        known = curve is not None and not math.isnan(threshold)
        self.plot.set_threshold(threshold if known else None)
        self.plot.set_band(self.controller.closer.window())
        for widget in (self.slider, self.value):
            widget.enabled = known
        with self.slider.changed.blocked(), self.value.changed.blocked():
            self.slider.value = 0 if curve is None or not known else curve.index_of(threshold)
            self.value.value = threshold if known else self.value.min
        self._show_readout()

    def _show_histogram(self) -> None:
        self.plot.set_bars(self.model.histogram)

    def _show_readout(self) -> None:
        curve, counts = self.model.curve, self.model.counts
        if curve is None or math.isnan(self.model.threshold):
            self.readout.setText("")
            return
        euler = curve.value_at(self.model.threshold) if counts is None else counts.euler
        tag = "b" if curve.complete else "i"
        text = f"<{tag} style='font-size: large'>χ = {_signed(euler)}</{tag}>"
        if counts is not None:
            colours = BETTI_COLOURS if self.model.show_betti else ()
            text += f"&nbsp;&nbsp; {counts.in_words(colours)}"
        self.readout.setText(text)

    def _show_changes(self) -> None:
        shown, total = self.model.changes
        self.overlays.display("window_percent", 100 * self.model.window)
        self.changes.setVisible(self.model.show_changes)
        of_all = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
        legend = "&nbsp; ".join(
            f"<span style='color: {colour}'>●</span> {sign}{step}{'' if step < 3 else ' or more'}"
            for sign, colours in (("+", RAISES), ("\N{MINUS SIGN}", LOWERS))
            for step, colour in enumerate(colours, 1)
        )
        self.changes.setText(f"{of_all} critical points in the window<br>{legend}")
        self.plot.set_band(self.controller.closer.window())

    def _show_undo(self) -> None:
        newest = self.controller.session.history.newest
        self.actions["undo"].enabled = bool(newest)
        self.actions["undo"].tooltip = f"Undo: {newest}" if newest else "Nothing to undo"

    def _slide(self, index: int) -> None:
        if self.model.curve is not None and index < self.model.curve.thresholds.size:
            self.model.threshold = float(self.model.curve.thresholds[index])

    def _set_window(self, percent: float) -> None:
        self.model.window = percent / 100


def _signed(value: int) -> str:
    return f"{value:,}".replace("-", "\N{MINUS SIGN}")
