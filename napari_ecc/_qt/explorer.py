"""The dock "Euler explorer"."""

from __future__ import annotations

import math
from typing import Any

from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QSlider,
)

from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._qt.panel import (
    Panel,
    button,
    choice,
    fill,
    number,
    side_by_side,
    whole_number,
)
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.progress import WorkLine
from napari_ecc._qt.saving import PICTURES, TABLES, ask_path, copy_code, save
from napari_ecc._qt.theme import follow_theme

__all__ = ["EulerExplorer"]


class EulerExplorer(Panel):
    """Drag a threshold over the Euler characteristic curve, and see the set and its topology.

    Parameters
    ----------
    napari_viewer : napari.viewer.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.controller = ExplorerController(napari_viewer)
        self.model = self.controller.model
        self.until_closed(self.controller.close)
        self.plot = CurvePlot("threshold t", "Euler characteristic χ")
        self.work = WorkLine(self.controller.curves)
        layout = self.stack()
        layout.addLayout(self._choices())
        layout.addWidget(self.plot, stretch=1)
        layout.addLayout(self._threshold_row())
        layout.addWidget(self._readout())
        layout.addLayout(self._jumps())
        layout.addLayout(self._overlay_row())
        layout.addLayout(self._actions())
        layout.addWidget(self.work)
        self._connect()
        self.until_closed(follow_theme(napari_viewer, self.plot.set_colours))

    def _choices(self) -> QFormLayout:
        self.image = choice({}, "The Image layer to explore")
        self.roi = choice({}, "Restrict the image to a Shapes or Labels layer")
        self.scope = choice(
            {"slice": "Slice", "volume": "Volume"},
            "The plane on the screen, or the last three axes of the image",
        )
        self.superlevel = choice(
            {True: "Bright ≥ t", False: "Dark ≤ t"},
            "Sets of values of at least t (superlevel), or of at most t (sublevel)",
        )
        self.diagonals = choice(
            {True: "Diagonals", False: "Sides only"},
            "What connects points: 8 or 4 neighbours in 2-D, 26 or 6 in 3-D",
        )
        self.bins = whole_number(2, 65536, "Number of thresholds")
        self.sigma = number(0, 50, 0.5, "Gaussian smoothing before the curve, in pixels")
        form = QFormLayout()
        form.setSpacing(4)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.addRow("Image", self.image)
        form.addRow("Part", side_by_side(self.scope, self.roi))
        form.addRow("Objects", side_by_side(self.superlevel, self.diagonals))
        form.addRow("Thresholds", side_by_side(self.bins, QLabel("Smoothing"), self.sigma))
        return form

    def _threshold_row(self) -> QHBoxLayout:
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setToolTip("Threshold; drag the line in the plot as well")
        self.value = number(-1e300, 1e300, 1, "Type a threshold", decimals=4)
        self.value.setFixedWidth(120)
        row = QHBoxLayout()
        row.addWidget(QLabel("t"))
        row.addWidget(self.slider, stretch=1)
        row.addWidget(self.value)
        return row

    def _readout(self) -> QLabel:
        self.readout = QLabel()
        self.readout.setTextFormat(Qt.TextFormat.RichText)
        self.readout.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.readout.setFixedHeight(self.readout.fontMetrics().height() + 10)
        # Numbers that change with every move must not lay out the window anew
        self.readout.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.readout.linkActivated.connect(lambda _: self.controller.closer.count())
        return self.readout

    def _jumps(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        for kind, plural in (("extremum", "Extrema"), ("zero", "Zeros")):
            row.addWidget(QLabel(plural))
            for step, text in ((-1, "◀"), (1, "▶")):
                side = "next below" if step < 0 else "next above"
                arrow = button(text, f"Threshold to the {kind} {side}", self._jump(kind, step))
                arrow.setObjectName(f"{kind}{step:+d}")
                arrow.setFixedWidth(36)
                row.addWidget(arrow)
            row.addStretch(1)
        return row

    def _jump(self, kind: str, step: int) -> Any:
        return lambda: self.controller.jump(kind, step)

    def _overlay_row(self) -> QGridLayout:
        self.show_set = QCheckBox("Show set")
        self.show_set.setToolTip("Overlay of the points in the set at the threshold")
        self.show_changes = QCheckBox("What changes here")
        self.show_changes.setToolTip(
            "Points that change the Euler characteristic near the threshold: "
            "amber raises it when it enters, pink lowers it"
        )
        self.window_percent = number(0.1, 50, 0.5, "Half width of the window, % of the range", 1)
        self.window_percent.setPrefix("± ")
        self.window_percent.setSuffix(" %")
        self.changes = QLabel()
        grid = QGridLayout()
        grid.addWidget(self.show_set, 0, 0)
        grid.addWidget(self.show_changes, 0, 1)
        grid.addWidget(self.window_percent, 0, 2)
        grid.addWidget(self.changes, 1, 0, 1, 3)
        grid.setColumnStretch(1, 1)
        return grid

    def _actions(self) -> QHBoxLayout:
        self.undo = button("Undo", "Undo the last change to layers", self._undo)
        row = QHBoxLayout()
        row.setSpacing(4)
        labels_tip = "A Labels layer of the components of the set"
        row.addWidget(button("Make Labels", labels_tip, self.controller.make_labels))
        row.addWidget(self.undo)
        save_tip = "The curve as CSV, Parquet, PNG or SVG"
        row.addWidget(button("Save…", save_tip, self.ask_where_to_save))
        row.addWidget(button("Copy Python", "The call that gives this curve", self.copy_python))
        return row

    def _connect(self) -> None:
        model, events = self.model, self.model.events
        self._fill_choices()
        for name in ("image", "roi", "scope", "superlevel", "diagonals", "bins", "sigma"):
            self.tie(getattr(self, name), model, name)
        self.tie(self.show_set, model, "show_set")
        self.tie(self.show_changes, model, "show_changes")
        self.window_percent.valueChanged.connect(self._set_window)
        self.listen(self.controller.layers_changed, self._fill_choices)
        self.listen(events.curve, self._show_curve)
        self.listen(events.threshold, self._show_threshold)
        self.listen(events.counts, self._show_readout)
        self.listen(events.status, self._show_status)
        self.listen(events.changes, self._show_changes)
        self.listen(events.show_changes, self._show_changes)
        self.listen(events.window, self._show_changes)
        self.listen(self.controller.session.history.changed, self._show_undo)
        self.plot.threshold_moved.connect(self.controller.snap)
        self.slider.valueChanged.connect(self._slide)
        self.value.valueChanged.connect(self._type)
        self._show_undo(self.controller.session.history.newest)
        self._show_status()
        self._show_changes()
        self._show_curve()

    def _fill_choices(self) -> None:
        fill(self.image, self.controller.image_choices(), self.model.image)
        fill(self.roi, self.controller.roi_choices(), self.model.roi, none="No region")

    def _show_curve(self) -> None:
        curve = self.model.curve
        if curve is None:
            self.plot.set_lines([], self.model.status)
            self._show_threshold()
            return
        style = "step-left" if curve.superlevel else "step-right"
        line = Line(curve.thresholds, curve.values, style, dashed=not curve.complete)
        self.plot.set_lines([line], note=curve.in_words())
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, curve.thresholds.size - 1)
        span = float(curve.thresholds[-1] - curve.thresholds[0])
        with QSignalBlocker(self.value):
            whole = curve.thresholds.size == span + 1
            self.value.setDecimals(0 if whole else max(0, 3 - math.floor(math.log10(span or 1))))
            self.value.setSingleStep(span / max(1, curve.thresholds.size - 1) or 1)
        self._show_threshold()
        self.plot.repaint()  # now, before the layers are drawn

    def _show_threshold(self) -> None:
        curve, threshold = self.model.curve, self.model.threshold
        known = curve is not None and not math.isnan(threshold)
        self.plot.set_threshold(threshold if known else None)
        self.plot.set_band(self.controller.closer.window())
        for widget in (self.slider, self.value):
            widget.setEnabled(known)
        if known and curve is not None:
            with QSignalBlocker(self.slider), QSignalBlocker(self.value):
                self.slider.setValue(curve.index_of(threshold))
                self.value.setValue(threshold)
        self._show_readout()

    def _show_readout(self) -> None:
        curve, counts = self.model.curve, self.model.counts
        if curve is None or math.isnan(self.model.threshold):
            self.readout.setText("")
            return
        euler = curve.value_at(self.model.threshold) if counts is None else counts.euler
        if curve.complete:
            text = f"<b style='font-size: large'>χ = {_signed(euler)}</b>"
        else:
            text = f"<i>χ = {_signed(euler)} ({curve.in_words()})</i>"
        if counts is not None:
            text += f"&nbsp;&nbsp; {counts.in_words()}"
        elif curve.complete and self.controller.closer.counts_on_demand:
            text += "&nbsp;&nbsp; <a href='#'>count components</a>"
        self.readout.setText(text)

    def _show_status(self) -> None:
        self.work.set_text(self.model.status)
        if self.model.curve is None:
            self.plot.set_lines([], self.model.status)

    def _show_changes(self) -> None:
        shown, total = self.model.changes
        with QSignalBlocker(self.window_percent):
            self.window_percent.setValue(100 * self.model.window)
        self.changes.setVisible(self.model.show_changes)
        of_all = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
        self.changes.setText(f"{of_all} critical points in the window")
        self.plot.set_band(self.controller.closer.window())

    def _show_undo(self, newest: str) -> None:
        self.undo.setEnabled(bool(newest))
        self.undo.setToolTip(f"Undo: {newest}" if newest else "Nothing to undo")

    def _slide(self, index: int) -> None:
        if self.model.curve is not None:
            self.model.threshold = float(self.model.curve.thresholds[index])

    def _type(self, threshold: float) -> None:
        self.model.threshold = threshold

    def _set_window(self, percent: float) -> None:
        self.model.window = percent / 100

    def _undo(self) -> None:
        self.controller.session.history.undo()

    def copy_python(self) -> None:
        """Put the call that gives this curve on the clipboard."""
        copy_code(self.controller.python_call())

    def ask_where_to_save(self) -> None:
        """Save where the user says."""
        path = ask_path(self, "Save the curve", "curve.csv", TABLES + PICTURES)
        if path:
            self.save(path)

    def save(self, path: str) -> None:
        """Write the curve as CSV, Parquet, PNG or SVG; what goes wrong becomes a notification.

        Parameters
        ----------
        path : str
            Its suffix decides.
        """
        picture = path.lower().endswith(PICTURES)
        save(path, self.plot.save if picture else self.controller.save_table)


def _signed(value: int) -> str:
    return f"{value:,}".replace("-", "\N{MINUS SIGN}")
