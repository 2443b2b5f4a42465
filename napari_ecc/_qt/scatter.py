"""A scatter plot, some of whose points are selected."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, Qt, Signal
from qtpy.QtGui import QColor, QPolygonF
from qtpy.QtWidgets import QGraphicsItem, QGraphicsPolygonItem
from skimage.measure import points_in_poly

from napari_ecc._controller.regions import MORE
from napari_ecc._model.regions import toggled
from napari_ecc._qt.canvas import Plot, polygon
from napari_ecc._qt.colours import PALETTE

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
    gated = Signal(tuple)
    """The corners of what was drawn around points without a key, or () after another choice."""

    def __init__(self) -> None:
        self._points: Floats = np.zeros((0, 2))
        self._shades: list[QColor] = []
        self._texts: list[str] = []
        self._classes: Sequence[str] = ()
        self._kinds: Sequence[tuple[str, QColor]] = ()
        self._lasso: list[tuple[float, float]] = []
        self._corners: list[QPointF] = []
        """The lasso in pixels, and in coordinates of the axes."""
        self._gate: Sequence[tuple[float, float]] = ()
        self.selected: tuple[int, ...] = ()
        """The selected points."""
        self._band = 0.0
        super().__init__()
        self.setMinimumWidth(220)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Points; the arrow keys left and right choose one")
        self._dots = pg.ScatterPlotItem(size=DOT, useCache=False)
        self._ring = pg.ScatterPlotItem(size=RING, brush=None, useCache=False)
        self._shade = QGraphicsPolygonItem()
        self._drawn = QGraphicsPolygonItem()
        self._outline = QGraphicsPolygonItem()
        # The cache saves drawing many points at each move of a lasso.
        for item in (self._dots, self._ring):
            item.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)
        self._equal_axes = False
        self._diagonal = pg.InfiniteLine(angle=45)
        self._diagonal.hide()
        own = (self._shade, self._diagonal, self._dots, self._ring, self._outline, self._drawn)
        for item in own:
            self.addItem(item)

    def set_points(
        self,
        points: Floats,
        shades: list[QColor],
        texts: list[str],
        names: tuple[str, str],
        *,
        diagonal: bool = False,
        legend: Sequence[tuple[str, QColor]] = (),
    ) -> None:
        """Show (n, 2) points in colours, with their names and those of the axes.

        With a `diagonal`, both axes have the same range. The `legend` says what colours mean.
        """
        self._kinds = legend
        self._diagonal.setVisible(diagonal)
        self._equal_axes = diagonal
        self.set_extent((float(points.min()), float(points.max())) if len(points) else None)
        self._points = points[:0] if self.empty else points
        self._shades = [] if self.empty else shades
        self._texts = [] if self.empty else texts
        self._classes = ()
        self.selected = ()
        self.setLabels(bottom=names[0], left=names[1])
        self._redraw()

    def show_nothing(self) -> None:
        """Show no points."""
        if self.empty and not self._undrawn:
            return
        self.set_points(np.zeros((0, 2)), [], [], ("", ""))

    def set_classes(self, classes: Sequence[str]) -> None:
        """Show the class of each point, "" for none; of others than those shown, none."""
        self._classes = classes if len(classes) == len(self._points) else ()
        self._redraw()

    def set_band(self, height: float) -> None:
        """Shade so much above the diagonal, or below it if negative."""
        if height != self._band:
            self._band = height
            self._redraw_band()

    def set_selected(self, *indices: int) -> None:
        """Select these points, and no others."""
        self.selected = indices = () if self.empty else indices
        many = len(indices) > MANY
        accent = self._colours.accent
        look: dict[str, Any] = {"size": RING, "pen": pg.mkPen(accent, width=2), "brush": None}
        if many:
            look = {"size": DOT, "pen": pg.mkPen(None), "brush": pg.mkBrush(accent)}
        self._ring.setData(pos=self._points[list(indices)], **look)

    def set_gate(self, corners: Sequence[tuple[float, float]]) -> None:
        """Draw a line through corners in coordinates of the axes; none without corners."""
        self._gate = corners
        self._outline.setPolygon(polygon(corners))

    def inside(self, corners: Sequence[tuple[float, float]]) -> tuple[int, ...]:
        """Return which points are inside a polygon in coordinates of the axes."""
        return inside(self._points, corners)

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
        self._corners.append(self._view.mapSceneToView(event.position()))
        self._drawn.setPolygon(QPolygonF(self._corners))

    _drag = _press

    def _readout(self, event: Any) -> str:
        """The name of a point."""
        hover = self._nearest(event.position())
        return self._texts[hover[0]] if hover else ""

    def _release(self, event: Any) -> None:
        """Choose the point under the mouse, or those inside the lasso."""
        lasso = np.array(self._lasso)
        corners = tuple((at.x(), at.y()) for at in self._corners)
        self._lasso = []
        self._corners = []
        self._drawn.setPolygon(QPolygonF())
        clicked = np.ptp(lasso, axis=0).max() < CLICK
        more = bool(event.modifiers() & MORE)
        found = self._nearest(event.position()) if clicked else self.inside(corners)
        self.gated.emit(() if clicked or more else corners)
        self.chosen.emit(toggled(self.selected, found) if more else found)

    def keyPressEvent(self, event: Any) -> None:
        """Choose the next point along the abscissa, or the one before; Ctrl or Shift adds it."""
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        step = steps.get(Qt.Key(event.key()))
        if step is None or self.empty:
            super().keyPressEvent(event)
            return
        order = np.argsort(self._points[:, 0], kind="stable")
        if self.selected:
            (here,) = np.flatnonzero(order == self.selected[-1])
            place = min(max(int(here) + step, 0), order.size - 1)
        else:
            place = 0 if step > 0 else order.size - 1
        found = int(order[place])
        others: list[int] = []
        if event.modifiers() & MORE:
            others = [at for at in self.selected if at != found]
        self.gated.emit(())
        self.chosen.emit((*others, found))

    def _legend(self) -> Sequence[tuple[str, QColor]]:
        return [
            *self._kinds,
            *(
                (f"{name} ({self._classes.count(name):,})", QColor(colour))
                for name, colour in self._rings().items()
            ),
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
        pen_of = {name: pg.mkPen(rings[name], width=2) for name in set(classes) if name}
        pens = [pen_of.get(name, plain) for name in classes]
        self._dots.setData(pos=self._points, brush=self._shades, pen=pens)
        self._diagonal.setPen(pg.mkPen(self._colours.text, style=Qt.PenStyle.DotLine))
        for line in (self._drawn, self._outline):
            line.setPen(pg.mkPen(self._colours.accent, width=1.5, style=Qt.PenStyle.DashLine))
        self.set_selected(*self.selected)
        if not self.empty:
            low = self._points.min(axis=0)
            high = self._points.max(axis=0)
            if self._equal_axes:
                low[:] = low.min()
                high[:] = high.max()
            room = np.where(high > low, EDGE * (high - low), 0.5)
            x0, y0 = (low - room).tolist()
            x1, y1 = (high + room).tolist()
            self.set_bounds(x0, x1, y0, y1)
        self._redraw_band()
        self._write()

    def _redraw_band(self) -> None:
        x0, x1 = self._bounds[:2]
        corners: list[tuple[float, float]] = []
        if self._band:
            corners = [(x0, x0), (x1, x1), (x1, x1 + self._band), (x0, x0 + self._band)]
        self._shade.setPolygon(polygon(corners))
        shade = self._colours.named("accent")
        shade.setAlpha(48)
        self._shade.setBrush(shade)
        self._shade.setPen(pg.mkPen(None))


def inside(points: Floats, corners: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Return which points are inside a polygon, in coordinates of the same unit."""
    if len(corners) < 3 or not len(points):
        return ()
    unit = np.ptp(points, axis=0)
    unit[unit == 0] = 1.0  # The axes may be of very different size.
    found = points_in_poly(points / unit, np.array(corners) / unit)
    return tuple(np.flatnonzero(found).tolist())
