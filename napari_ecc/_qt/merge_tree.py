"""The merge tree of the objects of an image."""

from typing import Any

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Qt, Signal

from napari_ecc._controller.regions import MORE
from napari_ecc._model.explorer import Tree
from napari_ecc._model.levels import formatted
from napari_ecc._model.regions import toggled
from napari_ecc._qt.canvas import Plot

NO_TREE = Tree(np.zeros(0), np.zeros(0), np.zeros(0, int))


class MergeTree(Plot):
    """A bar for each object from its birth to its merge, where a line joins it to the older one.

    Signals
    -------
    chosen : tuple of int
        The objects that are chosen now, in the order in which they were given: the one whose bar is
        the nearest to a click, which is added to the others, or taken away, with Ctrl or Shift.
    """

    chosen = Signal(tuple)

    def __init__(self) -> None:
        self.tree = NO_TREE
        self._range = (0.0, 1.0)
        super().__init__("threshold t", "objects")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Merge tree; the arrow keys up and down choose a bar")
        self._axes["left"].setTicks([])
        self._bars = pg.PlotCurveItem()
        self._marked = pg.PlotCurveItem()
        self._here = pg.InfiniteLine()
        self.selected: tuple[int, ...] = ()
        """The marked objects."""
        for item in (self._bars, self._marked, self._here):
            self.addItem(item, ignoreBounds=True)

    def keyPressEvent(self, event: Any) -> None:
        """Choose the next bar up or down by the arrow keys; Ctrl or Shift adds it."""
        steps = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self.empty:
            super().keyPressEvent(event)
            return
        rows = self.tree.rows
        last = rows.size - 1
        if self.selected:
            here = int(rows[self.selected[-1]])
            row = min(max(here + step, 0), last)
        else:
            row = 0 if step > 0 else last
        found = int(np.flatnonzero(rows == row)[0])
        others: list[int] = []
        if event.modifiers() & MORE:
            others = [at for at in self.selected if at != found]
        self.chosen.emit((*others, found))

    def set_tree(self, tree: Tree, low: float, high: float, threshold: float) -> None:
        """Show a tree between two thresholds, and the present one."""
        self.tree = tree
        self._range = (low, high)
        self.selected = ()
        self.set_extent((low, high) if tree.births.size else None)
        self._here.setValue(threshold)
        self._redraw()

    def set_selected(self, *indices: int) -> None:
        """Mark the bars of these objects, and no others."""
        self.selected = tuple(k for k in indices if 0 <= k < self.tree.births.size)
        self._redraw()

    def _redraw(self) -> None:
        self._here.setVisible(not self.empty)
        self._here.setPen(pg.mkPen(self._colours.accent, width=2))
        if not self.empty:
            rows = self.tree.rows
            # Objects may be born at points of infinite value, and those that never merge end at
            # the border.
            begins = np.clip(self.tree.births, *self._range)
            ends = np.clip(self.tree.deaths, *self._range)
            child = np.flatnonzero(self.tree.parents >= 0)
            parent = self.tree.parents[child]
            bars = np.stack([begins, rows, ends, rows], axis=1)
            joints = np.stack([ends[child], rows[child], ends[child], rows[parent]], axis=1)
            lines = np.concatenate([bars, joints]).reshape(-1, 2)
            pen = pg.mkPen(self._colours.curve, width=1.6)
            self._bars.setData(*lines.T, connect="pairs", pen=pen)
            marked = bars[list(self.selected)].reshape(-1, 2)
            accent = pg.mkPen(self._colours.accent, width=3)
            self._marked.setData(*marked.T, connect="pairs", pen=accent)
            self.set_bounds(*self._range, -1.0, float(rows.size))
        for item in (self._bars, self._marked):
            item.setVisible(not self.empty)
        self._write()

    def _nearest(self, event: Any) -> int:
        _, row = self.place_of(event)
        return int(np.abs(self.tree.rows - row).argmin())

    def _press(self, event: Any) -> None:
        """Choose an object."""
        found = (self._nearest(event),)
        self.chosen.emit(toggled(self.selected, found) if event.modifiers() & MORE else found)

    def _readout(self, event: Any) -> str:
        """What is known of an object."""
        k = self._nearest(event)
        tree = self.tree
        death = float(tree.deaths[k])
        parent = int(tree.parents[k])
        end = f"merges with {parent + 1} at {formatted(death)}" if parent >= 0 else "never merges"
        return f"object {k + 1}, born at {formatted(float(tree.births[k]))}, {end}"
