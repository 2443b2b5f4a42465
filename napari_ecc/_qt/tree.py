"""The merge tree of objects: where each is born, and where it merges with which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Signal

from napari_ecc._model.explorer import Tree
from napari_ecc._model.levels import formatted
from napari_ecc._qt.canvas import Plot

NO_TREE = Tree(np.zeros(0), np.zeros(0), np.zeros(0, int))


class MergeTree(Plot):
    """A bar for each object from its birth to its merge, where a line joins it to the older one.

    Signals
    -------
    chosen : int
        The object whose bar is the nearest to a click, in the order in which they were given.
    """

    chosen = Signal(int)

    def __init__(self) -> None:
        self.tree, self._range = NO_TREE, (0.0, 1.0)
        super().__init__("threshold t", "objects")
        self._axes["left"].setTicks([])
        self._bars, self._marked = pg.PlotCurveItem(), pg.PlotCurveItem()
        self._here, self._selected = pg.InfiniteLine(), -1
        for item in (self._bars, self._marked, self._here):
            self.addItem(item, ignoreBounds=True)

    @property
    def empty(self) -> bool:
        """Whether there are no objects."""
        return not self.tree.births.size

    def set_tree(self, tree: Tree, low: float, high: float, threshold: float) -> None:
        """Show a tree between two thresholds, and the present one."""
        self.tree, self._range, self._selected = tree, (low, high), -1
        self._here.setValue(threshold)
        self._redraw()

    def set_selected(self, index: int) -> None:
        """Mark the bar of an object, or none."""
        self._selected = index
        self._redraw()

    def _redraw(self) -> None:
        self._here.setVisible(not self.empty)
        self._here.setPen(pg.mkPen(self._colours.accent, width=2))
        if not self.empty:
            rows = self.tree.rows
            ends = np.clip(self.tree.deaths, *self._range)  # of objects that never merge, too
            child = np.flatnonzero(self.tree.parents >= 0)
            parent = self.tree.parents[child]
            bars = np.stack([self.tree.births, rows, ends, rows], axis=1)
            joints = np.stack([ends[child], rows[child], ends[child], rows[parent]], axis=1)
            lines = np.concatenate([bars, joints]).reshape(-1, 2)
            pen = pg.mkPen(self._colours.curve, width=1.6)
            self._bars.setData(*lines.T, connect="pairs", pen=pen)
            marked = bars[[self._selected] if self._selected >= 0 else []].reshape(-1, 2)
            self._marked.setData(*marked.T, pen=pg.mkPen(self._colours.accent, width=3))
            self.set_bounds(*self._range, -1.0, float(rows.size))
        for item in (self._bars, self._marked):
            item.setVisible(not self.empty)
        self._write()

    def _nearest(self, event: Any) -> int:
        return int(np.abs(self.tree.rows - self.place_of(event)[1]).argmin())

    def _press(self, event: Any) -> None:
        """Choose an object."""
        self.chosen.emit(self._nearest(event))

    def _readout(self, event: Any) -> str:
        """What is known of an object."""
        k, tree = self._nearest(event), self.tree
        death, parent = float(tree.deaths[k]), int(tree.parents[k])
        end = f"merges with {parent + 1} at {formatted(death)}" if parent >= 0 else "never merges"
        return f"object {k + 1}, born at {formatted(float(tree.births[k]))}, {end}"
