"""A scatter plot, one of whose points is selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from skimage.measure import points_in_poly

from napari_ecc._qt.axes import BOTTOM, LEFT, RIGHT, Frame, nice_ticks, paint_axes
from napari_ecc._qt.painted import PALETTE, PaintedWidget, PlotColours

__all__ = ["Scatter"]

Floats = NDArray[np.float64]

TOP, EDGE, REACH = 8.0, 10.0, 12.0  # above the frame, inside it, and from mouse to point
DOT, RING = 4.0, 7.0
CLICK = 5.0
"""Largest distance in pixels that the mouse moves during a click."""


class Scatter(PaintedWidget):
    """Points in two coordinates, in the colours of their labels, with rings for their classes.

    Click a point to select it; draw around points with the mouse to put them in a class.

    Signals
    -------
    picked : int
        The index of the point that the user clicks, or -1 beside them all.
    lassoed : array of int
        The indices of the points that the user has drawn around.
    """

    preferred = QSize(320, 240)
    picked = Signal(int)
    lassoed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._points: Floats = np.zeros((0, 2))
        self._shades: list[QColor] = []
        self._names = ("", "")
        self._texts: list[str] = []
        self._classes: Sequence[str] = ()
        self._lasso: list[tuple[float, float]] = []
        self._selected = -1
        self._hover = -1
        self._band = 0.0
        self.setMinimumWidth(220)

    def set_points(
        self, points: Floats, shades: NDArray[np.floating], texts: list[str], names: tuple[str, str]
    ) -> None:
        """Show (n, 2) points, their (n, 4) colours of 0 to 1, their names and those of the axes."""
        self._points, self._texts, self._names = points, texts, names
        channels = np.clip(np.rint(np.asarray(shades) * 255), 0, 255).astype(int).tolist()
        self._shades = [QColor(*channel) for channel in channels]
        self._classes = ()
        self._selected = self._hover = -1
        self.update()

    def set_classes(self, classes: Sequence[str]) -> None:
        """Show the class of each point, "" for none."""
        self._classes = classes
        self.update()

    def set_band(self, height: float) -> None:
        """Shade so much above the diagonal, or below it if negative."""
        self._band = height
        self.update()

    @property
    def empty(self) -> bool:
        """Whether there are no points."""
        return not len(self._points)

    @property
    def selected(self) -> int:
        """The selected point; -1 for none."""
        return self._selected

    def set_selected(self, index: int) -> None:
        """Select a point; -1 for none."""
        if index != self._selected:
            self._selected = index
            self.update()

    def frame(self) -> Frame:
        """Return the area of the points, with their coordinates."""
        area = QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        if self.empty:
            return Frame(area, (0.0, 1.0, 0.0, 1.0))
        low, high = self._points.min(axis=0), self._points.max(axis=0)
        room = np.where(high > low, EDGE / max(area.width(), 2 * EDGE) * (high - low), 0.5)
        (x0, y0), (x1, y1) = (low - room).tolist(), (high + room).tolist()
        return Frame(area, (x0, x1, y0, y1))

    def positions(self) -> Floats:
        """Return where the points are on the widget, (n, 2)."""
        frame, (x, y) = self.frame(), self._points.T
        return np.column_stack([frame.px(x), frame.py(y)])

    def _nearest(self, at: QPointF) -> int:
        positions = self.positions()
        if not len(positions):
            return -1
        away = np.hypot(*(positions - [at.x(), at.y()]).T)
        nearest = int(away.argmin())
        return nearest if away[nearest] <= REACH else -1

    def mousePressEvent(self, event: Any) -> None:
        """Start drawing a lasso."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._lasso = [(event.position().x(), event.position().y())]

    def mouseReleaseEvent(self, event: Any) -> None:
        """Select the point under the mouse, or those inside the lasso."""
        lasso, self._lasso = np.array(self._lasso), []
        if not len(lasso):
            return
        self.update()
        if np.ptp(lasso, axis=0).max() < CLICK:
            self.picked.emit(self._nearest(event.position()))
        elif len(self._points):
            self.lassoed.emit(np.flatnonzero(points_in_poly(self.positions(), lasso)))

    def mouseMoveEvent(self, event: Any) -> None:
        """Draw around points, or name the one under the mouse."""
        if self._lasso:
            self._lasso.append((event.position().x(), event.position().y()))
            self.update()
            return
        hover = self._nearest(event.position())
        if hover != self._hover:
            self._hover = hover
            self.setToolTip(self._texts[hover] if hover >= 0 else "")
            self.update()

    def leaveEvent(self, event: Any) -> None:
        """Clear the name under the mouse."""
        self._hover = -1
        self.update()

    def _paint(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        """Draw the axes, the points and the selection."""
        frame = self.frame()
        painter.fillRect(area, QColor(colours.background))
        if self.empty:
            self._paint_message(painter, area.adjusted(16, 8, -16, -8), colours)
            return
        ticks = nice_ticks(frame.y0, frame.y1, max(2, int(frame.plot.height() / 45)))
        paint_axes(painter, frame, self._names, colours, ticks, grid=True)
        self._draw_band(painter, frame, colours)
        painter.setPen(QPen(QColor(colours.axis), 0.8))
        positions = self.positions().tolist()
        for (x, y), shade in zip(positions, self._shades, strict=True):
            painter.setBrush(shade)
            painter.drawEllipse(QPointF(x, y), DOT, DOT)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        self._draw_classes(painter, frame.plot, positions)
        for index, colour, width in (
            (self._hover, colours.text, 1.0),
            (self._selected, colours.accent, 2.0),
        ):
            if index >= 0:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawEllipse(QPointF(*positions[index]), RING, RING)

    def _draw_band(self, painter: QPainter, frame: Frame, colours: PlotColours) -> None:
        if not self._band:
            return
        shade = QColor(colours.accent)
        shade.setAlpha(48)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(shade)
        ends = [(x, x + up) for up in (0.0, self._band) for x in (frame.x0, frame.x1)]
        corners = [QPointF(frame.px(x), frame.py(y)) for x, y in ends]
        painter.save()
        painter.setClipRect(frame.plot)
        painter.drawPolygon(QPolygonF([*corners[:2], corners[3], corners[2]]))
        painter.restore()

    def _draw_classes(self, painter: QPainter, frame: QRectF, positions: list[Any]) -> None:
        """Draw a ring about each point of a class, a legend, and what is being drawn around."""
        names = sorted({name for name in self._classes if name})
        colours = {name: QColor(PALETTE[k % len(PALETTE)]) for k, name in enumerate(names)}
        for (x, y), name in zip(positions, self._classes, strict=False):
            if name:
                painter.setPen(QPen(colours[name], 2.0))
                painter.drawEllipse(QPointF(x, y), DOT + 1, DOT + 1)
        corner = frame.adjusted(EDGE, 2, -EDGE, -2)
        for name in names:
            painter.setPen(colours[name])
            text = f"● {name} ({self._classes.count(name):,})"
            painter.drawText(corner, Qt.AlignmentFlag.AlignRight, text)
            corner.translate(0, self.fontMetrics().height())
        if self._lasso:
            painter.setPen(QPen(QColor(self._colours.accent), 1.5, Qt.PenStyle.DashLine))
            painter.drawPolygon(QPolygonF([QPointF(*at) for at in self._lasso]))
