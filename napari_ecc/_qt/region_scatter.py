"""A scatter plot of objects, one of which is selected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPen
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_ecc._qt.theme import PAPER, PlotColours

__all__ = ["RegionScatter"]

Floats = NDArray[np.float64]

PAD, EDGE, REACH = 8.0, 10.0, 12.0  # about the frame, inside it, and from mouse to point
DOT, RING = 4.0, 7.0


class RegionScatter(QWidget):
    """Points in two coordinates, in the colours of their labels. Click one to select it."""

    picked = Signal(int)
    """The index of the point that the user clicks, or -1 beside them all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._points: Floats = np.zeros((0, 2))
        self._shades: list[QColor] = []
        self._names = ("", "")
        self._texts: list[str] = []
        self._selected = -1
        self._hover = -1
        self._colours = PAPER
        self.setMinimumSize(QSize(220, 150))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        """About as high as wide."""
        return QSize(320, 240)

    def set_colours(self, colours: PlotColours) -> None:
        """Take the colours of a theme."""
        self._colours = colours
        self.update()

    def set_points(
        self, points: Floats, shades: NDArray[np.floating], texts: list[str], names: tuple[str, str]
    ) -> None:
        """Show (n, 2) points, their (n, 4) colours of 0 to 1, their names and those of the axes."""
        self._points, self._texts, self._names = points, texts, names
        channels = np.clip(np.rint(np.asarray(shades) * 255), 0, 255).astype(int).tolist()
        self._shades = [QColor(*channel) for channel in channels]
        self._selected = self._hover = -1
        self.update()

    @property
    def selected(self) -> int:
        """The marked point; -1 for none."""
        return self._selected

    def set_selected(self, index: int) -> None:
        """Mark a point; -1 for none."""
        if index != self._selected:
            self._selected = index
            self.update()

    def frame(self) -> QRectF:
        """Where points are drawn."""
        height = self.fontMetrics().height()
        return QRectF(
            PAD + height,
            PAD,
            max(self.width() - 2 * PAD - height, 1.0),
            max(self.height() - 2 * PAD - height, 1.0),
        )

    def positions(self) -> Floats:
        """Return where the points are on the widget, (n, 2)."""
        frame = self.frame().adjusted(EDGE, EDGE, -EDGE, -EDGE)
        if not len(self._points):
            return np.zeros((0, 2))
        low, high = self._points.min(axis=0), self._points.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        share = np.where(high > low, (self._points - low) / span, 0.5)
        left, bottom, width, height = (
            float(v) for v in (frame.left(), frame.bottom(), frame.width(), frame.height())
        )
        positions: Floats = [left, bottom] + share * [width, -height]
        return positions

    def _nearest(self, at: QPointF) -> int:
        positions = self.positions()
        if not len(positions):
            return -1
        away = np.hypot(*(positions - [at.x(), at.y()]).T)
        nearest = int(away.argmin())
        return nearest if away[nearest] <= REACH else -1

    def mousePressEvent(self, event: Any) -> None:
        """Select the point under the mouse."""
        if event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(self._nearest(event.position()))

    def mouseMoveEvent(self, event: Any) -> None:
        """Name the point under the mouse."""
        hover = self._nearest(event.position())
        if hover != self._hover:
            self._hover = hover
            self.setToolTip(self._texts[hover] if hover >= 0 else "")
            self.update()

    def leaveEvent(self, event: Any) -> None:
        """Forget the mouse."""
        self._hover = -1
        self.update()

    def paintEvent(self, event: Any) -> None:
        """Draw the points, the axes' names and the selection."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours, frame = self._colours, self.frame()
        painter.fillRect(self.rect(), QColor(colours.background))
        painter.setPen(QColor(colours.axis))
        painter.drawRect(frame)
        painter.setPen(QPen(QColor(colours.axis), 0.8))
        positions = self.positions().tolist()
        for (x, y), shade in zip(positions, self._shades, strict=True):
            painter.setBrush(shade)
            painter.drawEllipse(QPointF(x, y), DOT, DOT)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for index, colour, width in (
            (self._hover, colours.text, 1.0),
            (self._selected, colours.accent, 2.0),
        ):
            if index >= 0:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawEllipse(QPointF(*positions[index]), RING, RING)
        self._draw_names(painter, frame)
        painter.end()

    def _draw_names(self, painter: QPainter, frame: QRectF) -> None:
        height = painter.fontMetrics().height()
        painter.setPen(QColor(self._colours.text))
        below = QRectF(frame.left(), frame.bottom() + 2, frame.width(), height)
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self._names[0])
        painter.translate(PAD / 2, frame.center().y())
        painter.rotate(-90)
        beside = QRectF(-frame.height() / 2, 0, frame.height(), height)
        painter.drawText(beside, Qt.AlignmentFlag.AlignHCenter, self._names[1])
