"""The dock "Threshold"."""

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QLabel, QTabWidget

from napari_ecc._controller.choice import chosen_in_words
from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._controller.fields import Objects
from napari_ecc._controller.overlays import LOWERS, RAISES
from napari_ecc._model.explorer import BETTI_NAMES, Tree
from napari_ecc._model.levels import decimals, distance_of, formatted
from napari_ecc._model.words import counted, life_in_words
from napari_ecc._qt import form
from napari_ecc._qt.explorer_rows import CHOICES, LEVELS, OVERLAYS, SETTINGS
from napari_ecc._qt.merge_tree import NO_TREE, MergeTree
from napari_ecc._qt.panel import Panel
from napari_ecc._qt.plot import BETTI_COLOURS, CurvePlot, Line, betti_lines
from napari_ecc._qt.saving import Saver
from napari_ecc._qt.scatter import Scatter

MOST_CLASSES = 2000
"""Largest number of points in the diagram: those of the most persistent classes."""
MOST_BARS = 500
"""Largest number of objects in the merge tree: the oldest ones."""
FINDING = "Births and deaths are being found …"
PLOTS: dict[str, str] = {"curve": "Curve", "diagram": "Diagram", "tree": "Merge tree"}
"""What is drawn in the tabs, and their titles."""
WIDTH_OF_NUMBERS = 116
"""Width of the fields of thresholds in pixels: seven digits between their two buttons."""
SLIDER_POSITIONS = 500
"""Positions of the slider of the persistence."""


class EulerExplorer(Panel):
    """Drag a threshold over the Euler characteristic curve, and see the set and its topology."""

    dock = ExplorerController
    title = "Threshold"
    more_settings: ClassVar = {
        "threshold": form.checked_number,
        "min_persistence": form.checked_least,
    }
    about = "Components and holes at every threshold."

    def _fill(self) -> None:
        self.form = self.add_form(CHOICES, self.model)
        self.tabs = self.add(QTabWidget(), stretch=2)
        self.plot = CurvePlot("threshold t", "Euler characteristic χ")
        self.diagram = Scatter()
        self.tree = MergeTree()
        for plot, title in zip((self.plot, self.diagram, self.tree), PLOTS.values(), strict=True):
            self.tabs.addTab(plot, title)
        for part in (self.tabs, self.tabs.tabBar()):
            part.setAccessibleName("Curve, diagram or merge tree")
        self._add_levels()
        self.overlays = self.add_form(OVERLAYS, self.model)
        self.changes = self.add(QLabel())
        self.changes.setWordWrap(True)
        self.settings = self.add_settings(SETTINGS, self.model)
        window = self.settings["window"].native
        window.setDecimals(1)
        window.setPrefix("± ")
        window.setSuffix(" %")
        labels_tip = (
            "A Labels layer with a table: of what is chosen in the diagram or in the merge tree, "
            "or of all components that are counted"
        )
        recompute_tip = "Compute the curve again, after a change of the data in place"
        self.actions = self.add_actions(
            make_labels=("Make Labels", labels_tip, self.controller.make_labels, "Ctrl+Alt+L"),
            undo=self.undo_button,
            recompute=("Recompute", recompute_tip, self.controller.refresh, "Ctrl+Alt+R"),
        )
        self.save = Saver(self, "curve.csv", self.controller.table, self.plot)
        self.outputs = self.add_actions(
            save=(*self.save.button(), "Ctrl+Alt+S"), copy=(*self.copy_button, "Ctrl+Alt+C")
        )
        self._connect()

    def _add_levels(self) -> None:
        """Add the answer, the threshold and the least persistence, and where to go."""
        self.readout = self.add_line(lines=2)
        self.readout.setAccessibleName("Numbers at the threshold")
        self.readout.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.lasting = self.add_line(lines=2)
        accept = ("", "Count only what lasts, or all again", self._accept)
        self.offer_least = self.add(form.buttons(accept=accept))
        levels = self.add_form(LEVELS)
        self.slider, self.value, self.least, self.least_value = (
            levels[name] for name in ("t", "t_value", "least", "least_value")
        )
        self.least.max = SLIDER_POSITIONS
        for field in (self.value, self.least_value):
            field.native.setSpecialValueText("none")
            field.native.setFixedWidth(WIDTH_OF_NUMBERS)
        self.object = self.add_line()
        jump = self.controller.jump
        to_otsu = partial(self.controller.details.show_histogram, go_to_otsu=True)
        jumps = form.buttons(
            merge_below=("◀", "Merge below", lambda: jump("merge", -1)),
            merge_above=("▶", "Merge above", lambda: jump("merge", 1), "Ctrl+Alt+M"),
            birth_below=("◀", "Birth below", lambda: jump("birth", -1)),
            birth_above=("▶", "Birth above", lambda: jump("birth", 1), "Ctrl+Alt+B"),
            otsu=("Otsu", "Otsu's threshold of the values", to_otsu, "Ctrl+Alt+O"),
        )
        self.jumps = self.add(jumps)
        for button in jumps:
            if button.text in "◀▶":
                button.native.setFixedWidth(36)
        row = jumps.native.layout()
        for place, title in ((0, "Merge"), (3, "Birth")):
            row.insertWidget(place, QLabel(title))

    def _connect(self) -> None:
        controller = self.controller
        events = self.model.events
        self.offer(self.form, "image", controller.images)
        self.show(
            lambda: self.form.show_scope(controller.layer),
            self.explorer.events.image,
            controller.images.names_changed,
        )
        self.offer(self.settings, "roi", controller.regions, **{"all of it": ""})
        self.show(self._show_curve, events.curve)
        self.show(self._show_threshold, events.threshold)
        self.show(self._show_lines, events.betti, events.show_betti)
        self.show(self._show_readout, events.betti, events.show_betti, events.classes)
        self.show(self._show_histogram, events.histogram, events.histogram_log)
        self.show(self._show_changes, events.changes, events.show_changes, events.window)
        self.show(self._show_undo, controller.session.history.changed)
        self.show(self._show_counting, controller.details.counting.busy)
        self.show(self._show_least, events.min_persistence, events.classes, events.unpaired)
        self.show(self._show_tab, events.plot)
        self.show(self._show_diagram, events.classes, events.unpaired, events.plot)
        self.show(
            self._show_tree,
            events.classes,
            events.unpaired,
            events.plot,
            events.threshold,
            events.min_persistence,
        )
        self.show(self._show_object, events.pointed, events.threshold)
        self.show(self._show_chosen, events.chosen)
        self.tabs.currentChanged.connect(self._choose_plot)
        self.plot.threshold_moved.connect(controller.snap)
        self.plot.stepped.connect(controller.step)
        self.slider.changed.connect(self._slide)
        self.value.changed.connect(self._type)
        self.least.changed.connect(self._slide_least)
        self.least_value.changed.connect(partial(setattr, self.model, "min_persistence"))
        self.diagram.chosen.connect(partial(setattr, self.model, "chosen"))
        self.tree.chosen.connect(controller.choose_objects)

    def _show_curve(self) -> None:
        curve = self.model.curve
        for row in (self.actions, self.outputs, self.jumps):
            row.enabled = curve is not None
        if curve is not None:
            steps = max(1, curve.thresholds.size - 1)
            with self.slider.changed.blocked(), self.value.changed.blocked():
                self.slider.max = steps
                for field in (self.value, self.least_value):
                    field.native.setDecimals(self._digits)
                    field.native.setSingleStep(distance_of(curve.thresholds))
        self._show_lines()
        self._show_threshold()
        if curve is not None:
            # The curve must not wait until napari has drawn the layers.
            self.plot.viewport().repaint()

    @property
    def _digits(self) -> int:
        """Decimals of thresholds: none of those of integer images."""
        curve = self.model.curve
        if curve is None or np.array_equal(curve.thresholds, np.round(curve.thresholds)):
            return 0
        return decimals(*curve.thresholds[[0, -1]].tolist())

    def _show_lines(self) -> None:
        """Draw the curve of what lasts and, behind it, its Betti curves if they are wanted."""
        curve = self.model.curve
        betti = self.model.lasting_betti
        if curve is None:
            self.plot.set_lines([])
            return
        lasting = betti if self.model.least else None
        values = curve.values if lasting is None else lasting.euler
        lines = [Line(curve.thresholds, values, curve.superlevel, dashed=not curve.complete)]
        if betti is not None and self.model.show_betti:
            lines = [*betti_lines(betti), lines[0]._replace(label="χ")]
        self.plot.set_lines(lines)

    def _show_threshold(self) -> None:
        curve = self.model.curve
        threshold = self.model.threshold
        known = curve is not None and not math.isnan(threshold)
        self.plot.set_threshold(threshold if known else None)
        self.plot.set_band(self.controller.details.window())
        for widget in (self.slider, self.value):
            widget.enabled = known
        with self.slider.changed.blocked(), self.value.changed.blocked():
            self.slider.value = 0 if curve is None or not known else curve.index_of(threshold)
            self.value.value = threshold if known else self.value.min
        self._show_readout()
        self._show_offer()

    def _show_readout(self) -> None:
        curve = self.model.curve
        counts = self.model.counts
        if curve is None or math.isnan(self.model.threshold):
            self.readout.setText("")
            return
        euler = curve.value_at(self.model.threshold) if counts is None else counts.euler
        tag = "b" if curve.complete else "i"
        text = f"<{tag} style='font-size: large'>χ = {formatted(euler)}</{tag}>"
        if counts is not None:
            colours = BETTI_COLOURS if self.model.show_betti else ()
            text += f" &nbsp; {counts.in_html(colours)}"
        elif self.controller.details.counting.running:
            text += " &nbsp; counting …"
        self.readout.setText(text)

    @property
    def _unit(self) -> float:
        """Persistence of a step of the slider."""
        classes = self.model.classes
        if classes is None:
            return 1.0
        known = classes.persistence[np.isfinite(classes.persistence)]
        step = float(known[0] if known.size else 1) / SLIDER_POSITIONS or math.ulp(0.0)
        return step if self._digits else max(1.0, round(step))

    def _show_least(self) -> None:
        """Show the persistence, and the curves and numbers of what lasts."""
        classes = self.model.classes
        least = self.model.least
        jumps = [button for button in self.jumps if button.name != "otsu"]
        for widget in (self.least, self.least_value, *jumps):
            widget.enabled = classes is not None
        with self.least.changed.blocked(), self.least_value.changed.blocked():
            self.least.value = min(round(least / self._unit), SLIDER_POSITIONS)
            self.least_value.value = least
        self.diagram.set_band(-least if self.model.superlevel else least)
        self._show_lines()
        self._show_readout()
        self._show_offer()

    def _show_counting(self) -> None:
        """Say that components are being counted, or no longer."""
        self._show_readout()
        self._show_offer()

    def _show_offer(self) -> None:
        """Say how many components last, or would do so; offer to count them alone, or all again."""
        classes = self.model.classes
        model = self.model
        button = self.offer_least["accept"]
        unknown = FINDING if self.controller.details.counting.running else ""
        self.lasting.setText(model.unpaired or ("" if classes else unknown))
        self.lasting.setToolTip(model.unpaired)
        offered = None if classes is None else model.least or classes.offer()
        button.visible = offered is not None and not math.isnan(model.threshold)
        if classes is None or offered is None or math.isnan(model.threshold):
            return
        last, rest = classes.components(model.threshold, offered)
        some = counted(last, "component lasts", "components last")
        others = counted(rest, "does not", "do not")
        self.lasting.setText(f"{some} at least {formatted(offered)}; {others}")
        button.text = "Count all again" if model.least else "Count only what lasts"

    def _accept(self) -> None:
        """Count what lasts as long as is offered, or all classes again."""
        classes = self.model.classes
        model = self.model
        if classes is not None:
            model.min_persistence = 0.0 if model.least else classes.offer() or 0.0

    def _choose_plot(self, place: int) -> None:
        self.model.plot = list(PLOTS)[place]

    def _show_tab(self) -> None:
        self.tabs.setCurrentIndex(list(PLOTS).index(self.model.plot))

    def _show_diagram(self) -> None:
        """Draw births against deaths, those that never die at the last threshold."""
        classes = self.model.classes
        curve = self.model.curve
        self.diagram.set_state("" if classes else self.model.unpaired or FINDING)
        if classes is None or curve is None or self.model.plot != "diagram":
            self.diagram.show_nothing()
            return
        some = slice(0, MOST_CLASSES)
        births = classes.births[some]
        deaths = classes.deaths[some]
        first = curve.thresholds[0]
        last = curve.thresholds[-1]
        dimensions = classes.dimensions[some].tolist()
        kinds = [BETTI_NAMES[classes.ndim][k][0] for k in dimensions]
        each = zip(kinds, births.tolist(), deaths.tolist(), strict=True)
        texts = [life_in_words(kind, birth, death) for kind, birth, death in each]
        shades = [QColor(BETTI_COLOURS[k]) for k in dimensions]
        # Infinite ones, of points of infinite value or of what never dies, are drawn at the ends.
        points = np.clip(np.stack([births, deaths], axis=1), first, last)
        names = ("birth", "death")
        each_kind = zip(BETTI_NAMES[classes.ndim], BETTI_COLOURS, strict=False)
        legend = [(many, QColor(colour)) for (_, many), colour in each_kind]
        self.diagram.set_points(points, shades, texts, names, diagonal=True, legend=legend)
        self._show_chosen()

    def _show_tree(self) -> None:
        """Draw where the objects of the set merge, once they are known."""
        self.tree.set_state("" if self.model.classes else self.model.unpaired or FINDING)
        if self.model.plot != "tree" or self.model.classes is None:
            self.tree.set_tree(NO_TREE, 0.0, 1.0, 0.0)
        elif not math.isnan(self.model.threshold):
            self.controller.details.find_objects(self._draw_tree)

    def _draw_tree(self, objects: Objects) -> None:
        table = objects.table
        curve = self.model.curve
        if table is None or curve is None:
            return
        columns = ("birth", "death", "merges_with")
        longest = table.head(MOST_BARS)
        arrays = [longest[name].to_numpy() for name in columns]
        tree = Tree(*arrays)
        low, high = curve.thresholds[[0, -1]].tolist()
        self.tree.set_tree(tree, low, high, self.model.threshold)
        self._show_chosen()

    def _show_chosen(self) -> None:
        """Mark what is chosen in the plots, say how much it is, and let it be labelled."""
        model = self.model
        objects = self.controller.details.objects
        classes = model.classes
        chosen = model.chosen
        if not self.diagram.empty:
            self.diagram.set_selected(*(k for k in chosen if k < MOST_CLASSES))
        points = None if objects is None else objects.birth_points
        if not self.tree.empty and classes is not None and points is not None:
            born = classes.born_at(points[:MOST_BARS])
            bars = np.flatnonzero(np.isin(born, chosen))
            self.tree.set_selected(*bars.tolist())
        self.actions["make_labels"].text = "Label chosen" if chosen else "Make Labels"
        self._show_object()

    def _show_object(self) -> None:
        """Say what is known of the object under the mouse, or else of what is chosen."""
        model = self.model
        words = ""
        if model.classes is not None:
            words = chosen_in_words(model.classes, model.chosen, model.threshold)
        self.object.setText(model.pointed or words)

    def _show_histogram(self) -> None:
        self.plot.set_bars(self.model.histogram, log=self.model.histogram_log)

    def _show_changes(self) -> None:
        shown, total = self.model.changes
        self.changes.setVisible(self.model.show_changes)
        of_all = f"{total:,}" if shown == total else f"{shown:,} of {total:,}"
        marks = [*_legend_of("+", "≥", RAISES), *_legend_of("\N{MINUS SIGN}", "≤", LOWERS)]
        legend = "&nbsp; ".join(marks)
        self.changes.setText(f"{of_all} critical points in the window<br>{legend}")
        self.plot.set_band(self.controller.details.window())

    def _slide(self, index: int) -> None:
        if self.model.curve is not None and index < self.model.curve.thresholds.size:
            self.model.threshold = float(self.model.curve.thresholds[index])

    def _type(self, threshold: float) -> None:
        """Use the threshold that was typed, or the nearest end of the curve."""
        curve = self.model.curve
        if curve is not None:
            first, last = curve.thresholds[[0, -1]].tolist()
            self.model.threshold = min(max(threshold, first), last)
            self._show_threshold()

    def _slide_least(self, index: int) -> None:
        self.model.min_persistence = index * self._unit


def _legend_of(sign: str, beyond: str, colours: Sequence[str]) -> list[str]:
    """Return the legend of changes 1, 2, ... of one sign; the last colour is of larger ones."""
    numbers = [f"{sign}{step}" for step in range(1, len(colours) + 1)]
    numbers[-1] = f"{beyond} {numbers[-1]}"
    pairs = zip(colours, numbers, strict=True)
    return [f"<span style='color: {colour}'>●</span> {number}" for colour, number in pairs]
