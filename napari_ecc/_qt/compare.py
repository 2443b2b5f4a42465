"""The dock "Compare"."""

import math
from typing import Any

import numpy as np
import pyqtgraph as pg
from magicgui.widgets import Table
from qtpy.QtWidgets import QAbstractItemView, QFileDialog

from ecc_core.features import descriptor_table
from napari_ecc._controller.compare import CompareController
from napari_ecc._model.compare import MOST_NAMED, Comparison
from napari_ecc._qt import form
from napari_ecc._qt.colours import PALETTE
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import CurvePlot, Line
from napari_ecc._qt.saving import Saver, errors_shown

JOIN_TIP = "CSV or Parquet with a column name, layer, frame or index, to group by its columns"
FOLDER_TIP = "The images in a folder, to group by the folders in it"
MATCH_TIP = (
    "What one of two selected Labels layers has and the other has not: lines around false (orange) "
    "and missing (blue) components and holes; the lower layer is taken as the truth"
)
MOST_OPAQUE = 12
"""Number of curves of a group beyond which they are translucent."""
TRANSLUCENT = "#70"
"""What the code of a colour with an opacity begins with."""
MOST_LINES = 200
"""Largest number of curves per group that are drawn, evenly chosen."""
EACH = {"each curve": ""}
CHOICES: form.Rows = {
    "Group by": (
        form.choice("by", "The names, or a column that is known of the curves", {"name": ""}),
        form.text(
            "pattern",
            "Regular expression for the names or values, such as control|drug",
            hint="control|drug",
        ),
    ),
    "Units": form.choice(
        "unit",
        "What is independent: each curve, or a column such as the well or the animal, whose "
        "curves are averaged",
        EACH,
    ),
    "Only": form.text(
        "where",
        "What curves must fulfil, such as channel=DAPI or frame!=0",
        hint="all, or such as channel=DAPI",
    ),
    "Show": form.choice(
        "view",
        "All curves; the mean of each group with a 95 % band; the difference of two means",
        {"Curves": "curves", "Means and bands": "bands", "Difference": "difference"},
    ),
}
COLUMNS = ["maximum", "maximum_at", "minimum", "minimum_at"]


def _difference(comparison: Comparison, superlevel: bool) -> list[Line]:
    """The difference of two groups, in colour where it is significant."""
    if comparison.difference is None:
        return []
    t, difference = comparison.difference
    lines = [Line(t, difference, superlevel, label=comparison.difference_in_words)]
    if comparison.test is not None and comparison.test.differing():
        differs = np.zeros(t.size, bool)
        for first, last in comparison.test.differing():
            differs |= (first <= t) & (t <= last)
        where = np.where(differs, difference, np.nan)
        label = "p ≤ 0.05, corrected"
        lines.append(Line(t, where, superlevel, colour="accent", width=3.0, label=label))
    return lines


class CurveComparison(Panel):
    """Compare curves, and test whether two groups differ."""

    dock = CompareController
    title = "Compare"
    about = "Curves of layers, frames and groups, and labels that are matched."

    def _fill(self) -> None:
        controller = self.controller
        events = self.model.events
        sources = form.buttons(
            layers=("Add layers", "The selected layers, or all images", controller.add_layers),
            frames=("Add frames", "All frames of the image", controller.add_frames),
            objects=("Add objects", "The objects of the dock Objects", controller.add_objects),
            match=("Match labels", MATCH_TIP, controller.matcher.match),
        )
        others = form.buttons(
            folder=("Add folder…", FOLDER_TIP, self._ask_for_folder),
            pin=("Pin curve", "The curve of the dock Threshold", controller.pin),
            join=("Join table…", JOIN_TIP, self._ask_for_features),
            clear=("Clear", "Forget all curves", controller.clear),
        )
        others["clear"].changed.connect(lambda: self.work.resume.native.hide())
        self.sources = self.add(sources)
        self.others = self.add(others)
        self.form = self.add_form(CHOICES, self.model)
        choose_tip = "Leave out the other values, which are no replicates"
        average_tip = "Take the values of this column as replicates, and average over them"
        self.choices = self.add(
            form.buttons(
                choose=("", choose_tip, controller.choose),
                average=("", average_tip, controller.average),
            )
        )
        self.plot = self.add(CurvePlot("threshold t", "χ"), stretch=2)
        self.table = self.add(Table(), stretch=1)
        self.table.read_only = True
        native = self.table.native
        native.setMinimumHeight(90)
        native.setAccessibleName("Descriptors of the curves")
        native.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.save_curves = Saver(self, "curves.csv", controller.curves_table, self.plot)
        self.save_table = Saver(self, "table.csv", controller.table)
        self.actions = self.add_actions(
            curves=self.save_curves.button("Save curves…"),
            table=self.save_table.button("Save table…"),
            copy=self.copy_button,
            undo=self.undo_button,
        )
        self.show(self._offer_columns, events.curves, events.features)
        self.show(self._show_curves, events.curves, events.comparison)
        self.show(self._show_lines, events.view)
        self.show(self._show_choices, events.comparison)
        self.show(self._show_undo, controller.session.history.changed)
        self.show(self._show_copy, controller.session.history.changed)
        self.table.native.itemSelectionChanged.connect(self._show_lines)
        self.plot.chosen.connect(self._select_row)

    def _select_row(self, name: str) -> None:
        """Select the row of a curve that is chosen in the plot."""
        row = list(self.model.curves).index(name)
        self.table.native.selectRow(row)

    def _offer_columns(self) -> None:
        columns = [name for name in self.model.table.columns if name != "name"]
        known = {name: name for name in columns}
        self.form.offer("by", {"name": "", **known}, self.model.by)
        self.form.offer("unit", {**EACH, **known}, self.model.unit)

    def show_empty(self) -> None:
        """Show a button that opens a sample if there are neither layers nor curves."""
        self.empty.visible = not self.controller.choice.names and not self.model.curves

    def _show_choices(self) -> None:
        """Offer what can be done about curves that are no replicates."""
        comparison = self.model.comparison
        mixed = None if comparison is None or comparison.mixed is None else comparison.mixed.mixed
        self.choices.visible = mixed is not None
        if mixed is not None:
            self.choices["choose"].text = f"Only {mixed.choice}"
            self.choices["average"].text = f"Average {mixed.column}"

    @property
    def message(self) -> str:
        """What the plot shows while there is nothing to draw."""
        comparison = self.model.comparison
        if comparison is not None and comparison.problem and self.model.view != "curves":
            found: str = comparison.problem
            return found
        if self.model.curves and self.model.view == "difference":
            return "The difference is that of two groups: type a pattern such as control|drug."
        return super().message

    def _show_curves(self) -> None:
        comparison = self.model.comparison
        curves = self.model.curves
        self.enable(self.actions, "curves", "table", on=bool(curves))
        self._show_copy()
        self.table.visible = bool(curves)
        self.show_empty()
        if not curves:
            self.table.clear()
        elif comparison is not None:
            group = {name: title for title, names in comparison.groups.items() for name in names}
            table = descriptor_table(curves)[COLUMNS].map("{:.6g}".format)
            table.insert(0, "group", table.index.map(group).fillna(""))
            self.table.value = table
        self._show_lines()

    def _show_copy(self) -> None:
        """Let the code be copied if there are curves, or labels that have been matched."""
        self.enable(self.actions, "copy", on=bool(self.controller.python_call()))

    def _show_lines(self) -> None:
        """Draw the curves, those of the selected rows on top."""
        self.plot.set_y_label("difference of χ" if self.model.view == "difference" else "χ")
        if self.model.comparison is not None:
            self.plot.set_lines(self._wanted_lines(self.model.comparison))
        elif not self.model.curves:
            self.plot.set_lines([])
        self.show_state()

    def _wanted_lines(self, comparison: Comparison) -> list[Line]:
        rows = {index.row() for index in self.table.native.selectedIndexes()}
        lines = self._lines(comparison)
        if self.model.view != "difference":
            names = [name for row, name in enumerate(self.model.curves) if row in rows]
            lines += [self._line(name, colour="text", width=2.4, label=name) for name in names]
        return lines

    def _line(self, name: str, **look: Any) -> Line:
        curve = self.model.curves[name]
        return Line(curve.thresholds, curve.values, curve.superlevel, name=name, **look)

    def _lines(self, comparison: Comparison) -> list[Line]:
        superlevel = next(iter(self.model.curves.values())).superlevel
        if self.model.view == "difference":
            return _difference(comparison, superlevel)
        lines = []
        for k, (name, members) in enumerate(comparison.groups.items()):
            colour = PALETTE[k % len(PALETTE)]
            label = f"{name} ({comparison.size_in_words(k)})" if k < MOST_NAMED else ""
            if self.model.view == "curves":
                some = members[:: math.ceil(len(members) / MOST_LINES)]
                colours = self._colours_of(some, colour)
                pairs = zip(some, colours, strict=True)
                drawn = [self._line(at, colour=own, width=1.2) for at, own in pairs]
            elif not comparison.bands:
                continue
            else:
                t, mean, low, high = comparison.bands[name]
                band = Line(t, low, superlevel, colour=colour, to=high)
                drawn = [Line(t, mean, superlevel, colour=colour, width=2.0), band]
            lines += [drawn[0]._replace(label=label), *drawn[1:]]
        return lines

    def _colours_of(self, names: list[str], colour: str) -> list[str]:
        """Colours of the curves of a group: of frames by their place, or that of the group."""
        known = self.model.features
        frames = [known.get(name, {}).get("frame") for name in names]
        if len(frames) > 1 and None not in frames and len(self.model.comparison.groups) == 1:
            scale = pg.colormap.get("viridis").mapToQColor(np.linspace(0, 1, len(names)))
            return [at.name() for at in scale]
        return [colour.replace("#", TRANSLUCENT) if len(names) > MOST_OPAQUE else colour] * len(
            names
        )

    def _ask_for_folder(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Add the images in a folder")
        if path:
            self.controller.add_folder(path)

    def _ask_for_features(self) -> None:
        kinds = "Tables (*.csv *.parquet)"
        path, _ = QFileDialog.getOpenFileName(self, "Join a table", "", kinds)
        if path:
            self.join(path)

    def join(self, path: str) -> None:
        """Join a CSV or Parquet table; errors become notifications."""
        with errors_shown():
            self.controller.join(path)
