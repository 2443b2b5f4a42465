"""A dial for the azimuth of a direction, with the orientation of the canvas."""

from __future__ import annotations

import math
from typing import Any

from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPen, QPolygonF
from qtpy.QtWidgets import QSizePolicy

from napari_ecc._qt.painted import PaintedWidget, PlotColours

__all__ = ["DirectionDial"]

MARGIN = 18.0  # room for the letters outside the circle
HEAD = 12.0  # length of the arrow head
FINE, COARSE = 1.0, 15.0  # degrees per key press


class DirectionDial(PaintedWidget):
    """Circle with an arrow from its centre; 0 degrees point down, 90 to the right.

    Drag the arrow, turn the wheel or use the arrow keys (Page Up and Down for larger steps).
    """

    preferred = QSize(124, 124)
    turned = Signal(float)
    """Emitted with the angle in degrees when the user turns the arrow."""

    def __init__(self) -> None:
        super().__init__()
        self._angle = 0.0
        self._names = ("y", "x")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(False)
        self.setMinimumHeight(0)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.CrossCursor)
        self.setToolTip("Drag to turn the direction; the wheel and the arrow keys turn it by 1°")
        self.setAccessibleName("Azimuth")

    @property
    def angle(self) -> float:
        """Degrees, 0 to 360."""
        return self._angle

    def set_angle(self, angle: float) -> None:
        """Show an angle, without a signal."""
        self._angle = angle % 360.0
        self.update()

    def set_axis_names(self, down: str, right: str) -> None:
        """Name the axes that point down and right."""
        self._names = (down, right)
        self.update()

    def tip(self) -> QPointF:
        """Return the tip of the arrow."""
        return self._on_circle(self._angle, self._radius())

    def _radius(self) -> float:
        return float(min(self.width(), self.height()) / 2 - MARGIN)

    def _centre(self) -> QPointF:
        return QPointF(self.width() / 2, self.height() / 2)

    def _on_circle(self, angle: float, radius: float) -> QPointF:
        turn = math.radians(angle)
        return self._centre() + QPointF(radius * math.sin(turn), radius * math.cos(turn))

    def _turn(self, angle: float) -> None:
        self.set_angle(angle)
        self.turned.emit(self._angle)

    def mousePressEvent(self, event: Any) -> None:
        """Turn the arrow to the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            offset = event.position() - self._centre()
            if not offset.isNull():
                self._turn(math.degrees(math.atan2(offset.x(), offset.y())))

    mouseMoveEvent = mousePressEvent

    def wheelEvent(self, event: Any) -> None:
        """Turn by one degree per wheel step."""
        self._turn(self._angle + FINE * event.angleDelta().y() / 120)
        event.accept()

    def keyPressEvent(self, event: Any) -> None:
        """Turn counter-clockwise by left and up, clockwise by right and down."""
        steps = {
            Qt.Key.Key_Left: FINE,
            Qt.Key.Key_Up: FINE,
            Qt.Key.Key_Right: -FINE,
            Qt.Key.Key_Down: -FINE,
            Qt.Key.Key_PageUp: COARSE,
            Qt.Key.Key_PageDown: -COARSE,
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self._turn(self._angle + step)

    def _paint(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        """Draw the circle with a tick every 30 degrees, the axes' names and the arrow."""
        centre, radius = self._centre(), self._radius()
        painter.setPen(QPen(QColor(colours.axis), 1.5))
        painter.drawEllipse(centre, radius, radius)
        for angle in range(0, 360, 30):
            inner = radius - (7 if angle % 90 == 0 else 4)
            painter.drawLine(self._on_circle(angle, inner), self._on_circle(angle, radius))
        painter.setPen(QColor(colours.text))
        for angle, name in zip((0, 90), self._names, strict=True):
            at = self._on_circle(angle, radius + MARGIN / 2)
            box = QRectF(at.x() - MARGIN / 2, at.y() - MARGIN / 2, MARGIN, MARGIN)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, name)
        self._draw_arrow(painter, QColor(colours.accent))

    def _draw_arrow(self, painter: QPainter, colour: QColor) -> None:
        centre, radius = self._centre(), self._radius()
        painter.setPen(QPen(colour, 2.5))
        painter.drawLine(centre, self._on_circle(self._angle, radius - HEAD))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        wing = math.degrees(math.atan2(HEAD / 2, radius - HEAD))
        base = math.hypot(HEAD / 2, radius - HEAD)
        corners = [self.tip(), *(self._on_circle(self._angle + w, base) for w in (wing, -wing))]
        painter.drawPolygon(QPolygonF(corners))
        painter.drawEllipse(centre, 3.0, 3.0)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colour, 1.0, Qt.PenStyle.DotLine))
            painter.drawEllipse(centre, radius + 3, radius + 3)
