"""Widgets that are painted in the colours of napari's theme."""

from __future__ import annotations

from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QPainter
from qtpy.QtWidgets import QSizePolicy, QWidget

from napari_ecc._qt.theme import PAPER, PlotColours

__all__ = ["PaintedWidget"]

LOWEST = 110


class PaintedWidget(QWidget):
    """The base class of plots, with a message that is shown while there is nothing to draw."""

    preferred = QSize(360, 240)
    """What `sizeHint` returns."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setMinimumHeight(LOWEST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self._colours = PAPER
        self._message = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return False

    def sizeHint(self) -> QSize:
        """Preferred size."""
        return self.preferred

    def set_colours(self, colours: PlotColours) -> None:
        """Apply the colours of a theme."""
        self._colours = colours
        self._redraw()

    def set_message(self, message: str) -> None:
        """Set the text that is shown while there is nothing to draw."""
        self._message = message
        if self.empty:
            self._redraw()

    def _redraw(self) -> None:
        """Paint the widget anew, soon."""
        self.update()

    def _paint_message(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        painter.setPen(QColor(colours.text))
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(area, flags, self._message)
