"""A scatter plot, some of whose points are selected."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, Qt, Signal
from qtpy.QtGui import QColor, QPolygonF
from qtpy.QtWidgets import QGraphicsPolygonItem
from skimage.measure import points_in_poly

from napari_ecc._controller.regions import MORE
from napari_ecc._model.regions import toggled
from napari_ecc._qt.canvas import PALETTE, Plot

Floats = NDArray[np.float64]

EDGE = 0.05
"""Margin around the points, as a part of their range."""
MOUSE_REACH = 12.0
"""The largest distance from the mouse to a point that it chooses."""
DOT = 8.0
RING = 14.0
MANY = 1000
"""Number of selected points from which on they are filled, because rings would hide them."""
CLICK = 5.0
"""Largest distance in pixels that the mouse moves during a click."""


class Scatter(Plot):
    """Points in two coordinates, in the colours of their labels, with rings for their classes.

    Click a point to choose it; draw around points with the mouse to choose them all. With Ctrl or
    Shift they are added to the chosen ones, or taken away if all of them are chosen already.

    Signals
    -------
    chosen : tuple of int
        The indices of the points that are chosen now. The plot does not select them by itself: a
        listener calls `set_selected`.
    """

    chosen = Signal(tuple)

    def __init__(self) -> None:
        self._points: Floats = np.zeros((0, 2))
        self._shades: list[QColor] = []
        self._texts: list[str] = []
        self._classes: Sequence[str] = ()
        self._lasso: list[tuple[float, float]] = []
        self.selected: tuple[int, ...] = ()
        """The selected points."""
        self._band = 0.0
        super().__init__()
        self.setMinimumWidth(220)
        self._dots = pg.ScatterPlotItem(size=DOT, useCache=False)
        self._ring = pg.ScatterPlotItem(size=RING, brush=None, useCache=False)
        self._shade = QGraphicsPolygonItem()
        self._drawn = QGraphicsPolygonItem()
        self._diagonal = pg.InfiniteLine(angle=45)
        self._diagonal.hide()
        for item in (self._shade, self._diagonal, self._dots, self._ring, self._drawn):
            self.addItem(item)

    def set_points(
        self,
        points: Floats,
        shades: list[QColor],
        texts: list[str],
        names: tuple[str, str],
        *,
        diagonal: bool = False,
    ) -> None:
        """Show (n, 2) points in colours, with their names and those of the axes.

        With a `diagonal`, both axes have the same range.
        """
        self._diagonal.setVisible(diagonal)
        self._points = points
        self._shades = shades
        self._texts = texts
        self.empty = not len(points)
        self._classes = ()
        self.selected = ()
        self.setLabels(bottom=names[0], left=names[1])
        self._redraw()

    def show_nothing(self) -> None:
        """Show no points."""
        self.set_points(np.zeros((0, 2)), [], [], ("", ""))

    def set_classes(self, classes: Sequence[str]) -> None:
        """Show the class of each point, "" for none; of others than those shown, none."""
        self._classes = classes if len(classes) == len(self._points) else ()
        self._redraw()

    def set_band(self, height: float) -> None:
        """Shade so much above the diagonal, or below it if negative."""
        self._band = height
        self._redraw_band()

    def set_selected(self, *indices: int) -> None:
        """Select these points, and no others."""
        self.selected = indices
        many = len(indices) > MANY
        accent = self._colours.accent
        look: dict[str, Any] = {"size": RING, "pen": pg.mkPen(accent, width=2), "brush": None}
        if many:
            look = {"size": DOT, "pen": pg.mkPen(None), "brush": pg.mkBrush(accent)}
        self._ring.setData(pos=self._points[list(indices)], **look)

    def positions(self) -> Floats:
        """Return where the points are on the widget, (n, 2)."""
        return np.column_stack(self.pixels(*self._points.T))

    def _nearest(self, at: QPointF) -> tuple[int, ...]:
        """The point there, if there is one."""
        away = np.hypot(*(self.positions() - [at.x(), at.y()]).T)
        return (int(away.argmin()),) if away.min(initial=np.inf) <= MOUSE_REACH else ()

    def _press(self, event: Any) -> None:
        """Draw a lasso around points."""
        self._lasso.append((event.position().x(), event.position().y()))
        corners = [self._view.mapSceneToView(QPointF(*at)) for at in self._lasso]
        self._drawn.setPolygon(QPolygonF(corners))

    _drag = _press

    def _readout(self, event: Any) -> str:
        """The name of a point."""
        hover = self._nearest(event.position())
        return self._texts[hover[0]] if hover else ""

    def _release(self, event: Any) -> None:
        """Choose the point under the mouse, or those inside the lasso."""
        lasso = np.array(self._lasso)
        self._lasso = []
        self._drawn.setPolygon(QPolygonF())
        if np.ptp(lasso, axis=0).max() < CLICK:
            found = self._nearest(event.position())
        else:
            found = tuple(np.flatnonzero(points_in_poly(self.positions(), lasso)).tolist())
        self.chosen.emit(toggled(self.selected, found) if event.modifiers() & MORE else found)

    def _legend(self) -> Sequence[tuple[str, QColor]]:
        return [
            (f"{name} ({self._classes.count(name):,})", QColor(colour))
            for name, colour in self._rings().items()
        ]

    def _rings(self) -> dict[str, str]:
        """The colour of each class."""
        names = sorted({name for name in self._classes if name})
        return {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(names)}

    def _redraw(self) -> None:
        """Draw the points, the selection and the band."""
        rings = self._rings()
        plain = pg.mkPen(self._colours.axis, width=0.8)
        classes = self._classes or [""] * len(self._points)
        pens = [pg.mkPen(rings[name], width=2) if name else plain for name in classes]
        self._dots.setData(pos=self._points, brush=self._shades, pen=pens)
        self._diagonal.setPen(pg.mkPen(self._colours.text, style=Qt.PenStyle.DotLine))
        self._drawn.setPen(pg.mkPen(self._colours.accent, width=1.5, style=Qt.PenStyle.DashLine))
        self.set_selected(*self.selected)
        if not self.empty:
            low = self._points.min(axis=0)
            high = self._points.max(axis=0)
            if self._diagonal.isVisible():
                low[:] = low.min()
                high[:] = high.max()
            room = np.where(high > low, EDGE * (high - low), 0.5)
            (x0, y0), (x1, y1) = (low - room).tolist(), (high + room).tolist()
            self.set_bounds(x0, x1, y0, y1)
        self._redraw_band()
        self._write()

    def _redraw_band(self) -> None:
        x0, x1 = self._bounds[:2]
        ends = [(x0, x0), (x1, x1), (x1, x1 + self._band), (x0, x0 + self._band)]
        self._shade.setPolygon(QPolygonF([QPointF(*at) for at in ends if self._band]))
        shade = self._colours.named("accent")
        shade.setAlpha(48)
        self._shade.setBrush(shade)
        self._shade.setPen(pg.mkPen(None))
