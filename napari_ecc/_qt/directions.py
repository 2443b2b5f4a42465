"""The dock "Euler directions"."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import QCheckBox, QFormLayout, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout
from superqt import QDoubleSlider

from napari_ecc._controller.directions import DirectionController
from napari_ecc._qt.direction_dial import DirectionDial
from napari_ecc._qt.direction_slider import NumberRow
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
from napari_ecc._qt.saving import PICTURES, TABLES, ask_and_save, copy_code, save
from napari_ecc._qt.theme import PlotColours, follow_theme

__all__ = ["DirectionExplorer"]

QUARTERS = (0.0, 90.0, 180.0, 270.0)
STEEPEST = 2.0
"""Rise of the plane across the image, in ranges of its values, at the end of the slider."""


class DirectionExplorer(Panel):
    """Turn a direction, and see the curve of an object swept along it.

    Parameters
    ----------
    napari_viewer : napari.viewer.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.controller = DirectionController(napari_viewer)
        self.until_closed(self.controller.close)
        self.model = self.controller.model
        self.explorer = self.controller.session.explorer
        self.plot = CurvePlot("height", "χ")
        self.map = HeatMap("height", "azimuth °")
        self.dial = DirectionDial()
        self.work = WorkLine(self.controller.runner)
        layout = self.stack()
        layout.addLayout(self._choices())
        layout.addLayout(self._level_rows())
        layout.addLayout(self._direction_row())
        layout.addWidget(self.plot, stretch=1)
        layout.addWidget(self.map, stretch=1)
        layout.addLayout(self._actions())
        layout.addWidget(self.work)
        self._connect()
        self.until_closed(follow_theme(napari_viewer, self._set_colours))

    def _choices(self) -> QFormLayout:
        self.image = choice({}, "The Image layer, the same as in the Euler explorer")
        self.scope = choice(
            {"slice": "Displayed slice", "volume": "Whole volume"},
            "The plane on the screen, or the last three axes of the image",
        )
        self.superlevel, self.diagonals = sets_choices()
        self.filtration = choice(
            {"height": "Height of the object", "tilt": "Image plus a plane"},
            "Sweep the object at the threshold along the direction, "
            "or add a plane that rises in the direction to the image",
        )
        return form_of(
            {
                "Image": side_by_side(self.image, self.scope),
                "Objects": side_by_side(self.superlevel, self.diagonals),
                "Filter by": self.filtration,
            }
        )

    def _level_rows(self) -> QVBoxLayout:
        """Threshold or slope, whichever matters."""
        self.threshold = NumberRow("t", "Threshold of the object, shared with the Euler explorer")
        self.tilt = NumberRow("a", "Slope of the plane, in values of the image per world unit")
        column = QVBoxLayout()
        column.addWidget(self.threshold)
        column.addWidget(self.tilt)
        return column

    def _direction_row(self) -> QHBoxLayout:
        self.azimuth = number(0, 360, 1, "From the last but one axis to the last, in the plane", 1)
        self.elevation = number(-90, 90, 1, "From the plane to the axis before", 1)
        self.elevation_slider = QDoubleSlider(Qt.Orientation.Horizontal)  # type: ignore[no-untyped-call]
        self.elevation_slider.setRange(-90, 90)
        self.elevation_label = QLabel("Elevation")
        for box in (self.azimuth, self.elevation):
            box.setSuffix("°")
        self.azimuth.setWrapping(True)
        self.directions = whole_number(4, 720, "Rows of the transform")
        self.heights = whole_number(8, 4096, "Columns of the transform, points of the curve")
        self.show_arrow = QCheckBox("Arrow in the canvas")
        self.show_arrow.setToolTip("Drag its tip to turn the direction")
        grid = QGridLayout()
        grid.setSpacing(4)
        grid.addWidget(QLabel("Azimuth"), 0, 0)
        grid.addWidget(self.azimuth, 0, 1)
        grid.addWidget(self.elevation_label, 1, 0)
        grid.addWidget(self.elevation, 1, 1)
        grid.addWidget(self.elevation_slider, 2, 0, 1, 2)
        grid.addWidget(QLabel("Directions"), 3, 0)
        grid.addWidget(self.directions, 3, 1)
        grid.addWidget(QLabel("Heights"), 4, 0)
        grid.addWidget(self.heights, 4, 1)
        grid.addWidget(self.show_arrow, 5, 0, 1, 2)
        grid.setColumnStretch(1, 1)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.dial, alignment=Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(grid, stretch=1)
        return row

    def _actions(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(button("Save curve…", "As CSV, Parquet, PNG or SVG", self._save_curve))
        row.addWidget(button("Save transform…", "As CSV, Parquet or PNG", self._save_transform))
        row.addWidget(button("Copy Python", "The calls that give what is shown", self.copy_python))
        return row

    def _connect(self) -> None:
        model, explorer = self.model, self.explorer
        self._fill_choices()
        for name in ("image", "scope", "superlevel", "diagonals"):
            self.tie(getattr(self, name), explorer, name)
        self.tie(self.filtration, model, "filtration")
        self.tie(self.directions, model, "n_directions")
        self.tie(self.heights, model, "n_heights")
        self.tie(self.show_arrow, model, "show_arrow")
        self.threshold.changed.connect(lambda t: setattr(explorer, "threshold", t))
        self.tilt.changed.connect(lambda a: setattr(model, "tilt", a))
        self.dial.turned.connect(model.turn)
        self.map.picked.connect(model.turn)
        self.azimuth.valueChanged.connect(model.turn)
        for widget in (self.elevation, self.elevation_slider):
            widget.valueChanged.connect(self._raise)
        self.listen(self.controller.images.names_changed, self._fill_choices)
        self.listen(self.controller.limits_changed, self._show_limits)
        self.listen(explorer.events.threshold, self.threshold.set_value)
        self.listen(model.events.tilt, self.tilt.set_value)
        self.listen(model.turned, self._show_direction)
        self.listen(model.events.ndim, self._show_rows)
        self.listen(model.events.filtration, self._show_rows)
        self.listen(model.events.curve, self._show_curve)
        self.listen(model.events.transform, self._show_transform)
        self.listen(model.events.status, self._show_curve)
        for show in (self._show_limits, self._show_rows, self._show_curve, self._show_transform):
            show()

    def _fill_choices(self) -> None:
        fill(self.image, self.controller.images.names, self.explorer.image)

    def _set_colours(self, colours: PlotColours) -> None:
        for widget in (self.plot, self.map, self.dial):
            widget.set_colours(colours)

    def _raise(self, elevation: float) -> None:
        self.model.turn(self.model.azimuth, elevation)

    def _show_limits(self) -> None:
        """Another layer: bounds of the sliders, names of the axes, units."""
        limits = self.controller.limits()
        self.threshold.set_range(limits.low, limits.high, whole=limits.whole)
        self.threshold.set_value(self.explorer.threshold)
        steepest = STEEPEST * (limits.high - limits.low) / limits.diameter
        self.tilt.set_range(-steepest, steepest)
        self.tilt.set_value(self.model.tilt)
        self.dial.set_axis_names(*limits.axis_names)
        self._show_rows()

    def _show_rows(self, *_: Any) -> None:
        """Show what matters for this filtration and number of axes."""
        tilted, solid = self.model.filtration == "tilt", self.model.ndim == 3
        self.threshold.setVisible(not tilted)
        self.tilt.setVisible(tilted)
        for widget in (self.elevation_label, self.elevation, self.elevation_slider):
            widget.setVisible(solid)
        level = (
            "value t of image + plane" if tilted else f"height ({self.controller.limits().unit})"
        )
        self.plot.set_x_label(level)
        self.map.set_labels(level, "azimuth °", QUARTERS)
        self._show_direction()

    def _show_direction(self) -> None:
        model = self.model
        self.dial.set_angle(model.azimuth)
        self.map.set_marker(self._marked(model.azimuth))
        for widget, value in (
            (self.azimuth, model.azimuth),
            (self.elevation, model.elevation),
            (self.elevation_slider, model.elevation),
        ):
            with QSignalBlocker(widget):
                widget.setValue(value)

    def _marked(self, azimuth: float) -> float:
        """Where an azimuth is on the map, whose first row is that of 0 and of 360 degrees."""
        step = 360 / self.model.n_directions
        return azimuth if azimuth < 360 - step / 2 else azimuth - 360

    def _show_curve(self, *_: Any) -> None:
        curve, model = self.model.curve, self.model
        self.work.set_text(model.status)
        if curve is None:
            self.plot.set_lines([], model.status)
        else:
            rising = model.filtration == "height" or not self.explorer.superlevel
            style = "step-right" if rising else "step-left"
            self.plot.set_lines([Line(curve.thresholds, curve.values, style)])

    def _show_transform(self, *_: Any) -> None:
        transform = self.model.transform
        if transform is None:
            self.map.set_values(np.zeros((0, 0)), np.zeros(0), np.zeros(0))
        else:
            rows = 360 * np.arange(len(transform.directions)) / len(transform.directions)
            self.map.set_values(transform.values, transform.heights, rows)
            self.map.set_marker(self._marked(self.model.azimuth))

    def copy_python(self) -> None:
        """Put the calls that give what is shown on the clipboard."""
        copy_code(self.controller.python_call())

    def _save_curve(self) -> None:
        ask_and_save(
            self, "Save the curve", "directional_curve.csv", TABLES + PICTURES, self.save_curve
        )

    def save_curve(self, path: str) -> None:
        """Write the curve as CSV, Parquet, PNG or SVG; the suffix decides."""
        picture = path.lower().endswith(PICTURES)
        save(path, self.plot.save if picture else self.controller.save_curve)

    def _save_transform(self) -> None:
        suffixes = (*TABLES, ".png")
        ask_and_save(
            self, "Save the transform", "euler_transform.csv", suffixes, self.save_transform
        )

    def save_transform(self, path: str) -> None:
        """Write the transform as CSV, Parquet or PNG; the suffix decides."""
        picture = path.lower().endswith(".png")
        save(path, self.map.save if picture else self.controller.save_transform)
