"""The dock "Objects"."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from qtpy.QtGui import QColor

from napari_ecc._controller.regions import RegionController
from napari_ecc._model.compare import MOST_NAMED
from napari_ecc._model.regions import ALSO, Corners
from napari_ecc._qt import form
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import CurvePlot, Line, betti_lines
from napari_ecc._qt.saving import Saver
from napari_ecc._qt.scatter import Scatter

MOST_LINES = 100
"""Largest number of curves of selected objects, and of others behind them."""
CHOICES = {
    "Labels": form.choice("labels", "The Labels layer, one label an object"),
    "Part": form.SCOPE,
    "Image": form.choice("image", "The Image layer, the same as in the dock Threshold"),
}
SETTINGS: form.Rows = {
    "Sets": form.SUPERLEVEL,
    "Connect": form.CONNECTIVITY,
    "Thresholds": form.whole_number("n_thresholds", "Columns of the curves", 2, 1024),
    **{
        " " * k or "Also": (form.check(f"with_{name}", one.title, one.about.capitalize()),)
        for k, (name, one) in enumerate(ALSO.items())
    },
    "Directions": form.whole_number("n_directions", "Directions of the transforms", 1, 256),
    "Heights": form.whole_number(
        "n_heights", "Heights of the transforms, in radii of each object", 2, 1024
    ),
}
OBJECT = {
    "Objects": (
        form.text(
            "selected",
            "Labels of the chosen objects; click an object or a point",
            hint="click objects",
            numbers=True,
        ),
        form.choice(
            "basis",
            "What the principal components below are of",
            {
                "PCA of curves": "curves",
                "PCA of transforms": "transforms",
                "Two features": "features",
            },
        ),
    ),
    "Features": (
        form.choice("first", "The feature along the horizontal axis"),
        form.choice("second", "The feature along the vertical axis"),
    ),
    "Class": (
        form.text(
            "class_name", "The name of a class; none takes objects out of theirs", hint="no class"
        ),
        form.push("classify", "Put in class", "Put the chosen objects in the class of this name"),
    ),
}


class RegionExplorer(Panel):
    """Measure the objects of a Labels layer, and compare them."""

    dock = RegionController
    title = "Objects"
    about = "Pattern and shape of each object."
    more_settings: ClassVar = {
        "first": form.checked_text,
        "second": form.checked_text,
        "gate": form.checked_corners,
    }

    def _fill(self) -> None:
        controller = self.controller
        events = self.model.events
        self.form = self.add_form(CHOICES, self.model, self.explorer)
        self.settings = self.add_settings(SETTINGS, self.model)
        self.plot = self.add(CurvePlot("threshold t", "χ"), stretch=1)
        self.object = self.add_form(OBJECT, self.model)
        self.scatter = self.add(Scatter(), stretch=1)
        self.save = Saver(self, "regions.csv", controller.table, self.plot)
        self.actions = self.add_actions(
            measure=("Measure", "Curves and transforms of all objects", controller.request),
            undo=self.undo_button,
            save=self.save.button(),
            copy=self.copy_button,
        )
        self.offer(self.form, "image", controller.images)
        self.offer(self.form, "labels", controller.objects)
        self.show(self.show_empty, controller.objects.names_changed)
        self.show(self._show_part, events.labels)
        points = events.regions, events.basis, events.first, events.second
        self._rows: list[int] = []
        """Which objects are drawn: those that have the features."""
        self.show(self._show_points, *points)
        self.show(self._show_selected, *points, events.selected)
        self.show(self._show_classes, *points, events.classes)
        self.show(self._show_undo, controller.session.history.changed)
        self.show(self._show_gate, *points, events.gate)
        self.scatter.gated.connect(self._keep_gate)
        self.scatter.chosen.connect(self._choose_points)
        self.object["classify"].changed.connect(lambda _: controller.classify())

    def _show_part(self) -> None:
        layer = self.controller.layer
        self.enable(self.actions, "measure", on=layer is not None)
        self.form.show_scope(layer)

    @property
    def message(self) -> str:
        """What the plot shows while there is nothing to draw."""
        if self.model.regions is not None and self.model.regions.curves is None:
            return "Without an image, the shapes of the objects are measured."
        return super().message

    def _show_points(self) -> None:
        model = self.model
        regions = model.regions
        self.enable(self.actions, "save", "copy", on=regions is not None)
        chosen = model.basis == "features"
        self.object.set_visible("first", chosen)
        columns = self.controller.columns() if chosen else {}
        # Filling these long lists takes a while, so it is done only where they are seen.
        for name in ("first", "second") if chosen else ():
            self.object.offer(name, {at: at for at in columns}, getattr(model, name))
        if regions is None:
            self._rows = []
            self.scatter.show_nothing()
            return
        points = np.zeros((0, 2))
        names = (model.first, model.second)
        if model.basis != "features":
            basis = model.basis if regions.curves is not None else "transforms"
            points, shares = regions.components[basis]
            first, second = (f"component {k + 1} ({share:.0%})" for k, share in enumerate(shares))
            names = (first, second)
        elif model.first in columns and model.second in columns:
            points = np.column_stack([columns[model.first], columns[model.second]])
        self._rows = np.flatnonzero(np.isfinite(points).all(axis=1)).tolist()
        labels = regions.labels.tolist()
        texts = [f"Label {labels[row]}" for row in self._rows]
        colours = self.controller.colours().tolist()
        shades = [QColor.fromRgbF(*colours[row]) for row in self._rows]
        self.scatter.set_points(points[self._rows], shades, texts, names)

    def _show_classes(self) -> None:
        classes = self.model.classes
        regions = self.model.regions
        if regions is None or len(classes) != len(regions.labels):  # The classes come soon.
            self.scatter.set_classes(())
        else:
            self.scatter.set_classes([classes[row] for row in self._rows])

    def _keep_gate(self, corners: Corners) -> None:
        """Keep the gate that was drawn, which a listener draws and chooses what is inside."""
        with self.model.events.gate.blocked():
            self.model.gate = corners
        self.scatter.set_gate(corners)

    def _show_gate(self) -> None:
        """Draw the gate, and choose what is inside."""
        gate = self.model.gate
        self.scatter.set_gate(gate)
        if gate and self._rows:
            self._choose_points(self.scatter.inside(gate))

    def _show_selected(self) -> None:
        """Draw the curves of selected objects, in their colours, in front of some others."""
        regions = self.model.regions
        rows = [] if regions is None else regions.rows(self.model.selected)
        places = {row: place for place, row in enumerate(self._rows)}
        self.scatter.set_selected(*(places[row] for row in rows if row in places))
        if regions is None or regions.curves is None:
            self.plot.set_lines([])
            return
        _, thresholds, values = regions.curves
        superlevel = regions.curves.superlevel
        others = _some(range(len(values)))
        lines = [Line(thresholds, values[k], superlevel, "axis", 0.8) for k in others]
        colours = self.controller.colours().tolist()
        for place, k in enumerate(_some(rows)):
            colour = QColor.fromRgbF(*colours[k]).name()
            label = f"Label {regions.labels[k]}" if place < MOST_NAMED else ""
            lines.append(Line(thresholds, values[k], superlevel, colour, 2.4, label=label))
        if len(rows) == 1 and "betti" in regions.also:
            lines += betti_lines(regions.also["betti"].select(regions.labels[rows[0]]))
        self.plot.set_lines(lines)

    def _choose_points(self, indices: tuple[int, ...]) -> None:
        regions = self.model.regions
        if regions is not None:
            rows = [self._rows[index] for index in indices]
            self.model.selected = tuple(regions.labels[rows].tolist())


def _some(rows: Sequence[int]) -> list[int]:
    """At most `MOST_LINES` of some rows, evenly spaced."""
    places = np.linspace(0, len(rows) - 1, min(len(rows), MOST_LINES)).astype(int)
    return [rows[place] for place in places]
