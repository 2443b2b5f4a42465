"""The dock "Euler regions"."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtWidgets import QFormLayout, QHBoxLayout, QLabel

from napari_ecc._controller.regions import RegionController
from napari_ecc._qt.panel import (
    Panel,
    button,
    choice,
    fill,
    form_of,
    sets_choices,
    side_by_side,
    whole_number,
)
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.progress import WorkLine
from napari_ecc._qt.region_scatter import RegionScatter
from napari_ecc._qt.saving import PICTURES, TABLES, ask_and_save, copy_code, save
from napari_ecc._qt.theme import PAPER, PlotColours, follow_theme

__all__ = ["RegionExplorer"]

MOST_LINES = 100
"""Of more objects, this many curves are drawn behind the selected one."""


class RegionExplorer(Panel):
    """Measure the objects of a Labels layer, and compare them.

    Parameters
    ----------
    napari_viewer : napari.viewer.Viewer
    """

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__()
        self.controller = RegionController(napari_viewer)
        self.until_closed(self.controller.close)
        self.model = self.controller.model
        self.explorer = self.controller.session.explorer
        self._colours = PAPER
        self.plot = CurvePlot("threshold t", "χ")
        self.scatter = RegionScatter()
        self.work = WorkLine(self.controller.runner)
        layout = self.stack()
        layout.addLayout(self._choices())
        layout.addWidget(
            button("Measure", "Curves and transforms of all objects", self.controller.measure)
        )
        layout.addWidget(self.plot, stretch=1)
        layout.addLayout(self._object_row())
        layout.addWidget(self.scatter, stretch=1)
        layout.addLayout(self._actions())
        layout.addWidget(self.work)
        self._connect()
        self.until_closed(follow_theme(napari_viewer, self._set_colours))

    def _choices(self) -> QFormLayout:
        self.image = choice({}, "The Image layer, the same as in the Euler explorer")
        self.labels = choice({}, "The Labels layer, one label an object")
        self.scope = choice(
            {"volume": "Whole volume", "slice": "Displayed slice"},
            "The last three axes of the labels, or the plane on the screen",
        )
        self.superlevel, self.diagonals = sets_choices()
        self.thresholds = whole_number(2, 1024, "Columns of the curves")
        self.directions = whole_number(1, 256, "Directions of the transforms")
        self.heights = whole_number(2, 1024, "Heights of the transforms, in radii of each object")
        return form_of(
            {
                "Image": self.image,
                "Labels": side_by_side(self.labels, self.scope),
                "Sets": side_by_side(self.superlevel, self.diagonals),
                "Thresholds": self.thresholds,
                "Transform": side_by_side(self.directions, QLabel("by"), self.heights),
            }
        )

    def _object_row(self) -> QHBoxLayout:
        self.label = whole_number(0, 2**31 - 1, "The selected label; click an object or a point")
        self.label.setSpecialValueText("none")
        self.basis = choice(
            {"curves": "of curves", "transforms": "of transforms"},
            "What the principal components below are of",
        )
        return side_by_side(QLabel("Object"), self.label, QLabel("Components"), self.basis)

    def _actions(self) -> QHBoxLayout:
        undo = button("Undo", "Take the features back", self.controller.session.history.undo)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(undo)
        row.addWidget(button("Save…", "Table as CSV or Parquet, plot as PNG or SVG", self._save))
        row.addWidget(button("Copy Python", "The calls that give the table", self.copy_python))
        return row

    def _connect(self) -> None:
        model, events = self.model, self.model.events
        self._fill_choices()
        self.tie(self.image, self.explorer, "image")
        for name in ("labels", "scope", "superlevel", "diagonals", "basis"):
            self.tie(getattr(self, name), model, name)
        for name in ("thresholds", "directions", "heights"):
            self.tie(getattr(self, name), model, f"n_{name}")
        self.tie(self.label, model, "selected")
        self.listen(self.controller.images.names_changed, self._fill_choices)
        self.listen(self.controller.objects.names_changed, self._fill_choices)
        self.listen(events.regions, self._show_regions)
        self.listen(events.basis, self._show_points)
        self.listen(events.selected, self._show_selected)
        self.listen(events.status, self._show_status)
        self.scatter.picked.connect(self._pick_point)
        self._show_status()
        self._show_regions()

    def _fill_choices(self) -> None:
        fill(self.image, self.controller.images.names, self.explorer.image)
        fill(self.labels, self.controller.objects.names, self.model.labels)

    def _set_colours(self, colours: PlotColours) -> None:
        self._colours = colours
        self.plot.set_colours(colours)
        self.scatter.set_colours(colours)
        self._show_curves()

    def _show_status(self) -> None:
        self.work.set_text(self.model.status)
        if self.model.regions is None:
            self.plot.set_lines([], self.model.status)

    def _show_regions(self) -> None:
        self._show_points()
        self._show_selected()

    def _show_points(self) -> None:
        regions = self.model.regions
        if regions is None:
            self.scatter.set_points(np.zeros((0, 2)), np.zeros((0, 4)), [], ("", ""))
            return
        scores, shares = regions.components[self.model.basis]
        first, second = (f"component {k + 1} ({share:.0%})" for k, share in enumerate(shares))
        texts = [f"Label {label}" for label in regions.labels.tolist()]
        self.scatter.set_points(scores, self.controller.colours(), texts, (first, second))
        self._mark_point()

    def _mark_point(self) -> None:
        regions = self.model.regions
        row = None if regions is None else regions.row(self.model.selected)
        self.scatter.set_selected(-1 if row is None else row)

    def _show_selected(self) -> None:
        self._mark_point()
        self._show_curves()

    def _show_curves(self) -> None:
        """Some curves behind, that of the selected object in front."""
        regions = self.model.regions
        if regions is None:
            self.plot.set_lines([], self.model.status)
            return
        _, thresholds, values = regions.curves
        style = "step-left" if self.model.superlevel else "step-right"
        some = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_LINES)).astype(int))
        faint = self._colours.axis
        lines = [Line(thresholds, values[k], style, faint, width=0.8) for k in some.tolist()]
        row = regions.row(self.model.selected)
        if row is not None:
            lines.append(Line(thresholds, values[row], style, self._colours.accent, width=2.4))
        self.plot.set_lines(lines)

    def _pick_point(self, index: int) -> None:
        regions = self.model.regions
        if regions is not None:
            self.controller.pick(int(regions.labels[index]) if index >= 0 else 0)

    def copy_python(self) -> None:
        """Put the calls that give the table on the clipboard."""
        copy_code(self.controller.python_call())

    def _save(self) -> None:
        ask_and_save(self, "Save the regions", "regions.csv", TABLES + PICTURES, self.save)

    def save(self, path: str) -> None:
        """Write the table as CSV or Parquet, or the plot as PNG or SVG; the suffix decides."""
        picture = path.lower().endswith(PICTURES)
        save(path, self.plot.save if picture else self.controller.save_table)
