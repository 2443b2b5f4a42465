"""A plot of curves with a threshold line that can be dragged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from qtpy.QtCore import QPointF, QRectF, Qt, Signal
from qtpy.QtGui import QColor, QPainter, QPen, QPixmap, QPolygonF

from ecc_core import BettiCurves
from napari_ecc._model.explorer import BETTI_NAMES, Histogram
from napari_ecc._qt.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    Frame,
    nice_ticks,
    paint_axes,
    symlog_ticks,
)
from napari_ecc._qt.painted import PALETTE, PaintedWidget, PlotColours

__all__ = ["BETTI_COLOURS", "CurvePlot", "Line", "betti_lines"]

BETTI_COLOURS = PALETTE[1:4]

TOP = 10
LINEAR = 50
"""Largest height of a plot whose vertical axis is linear; that of higher ones is logarithmic."""
GRAB = 8
SHIFTED, ALL_STEPS = 10, 2**30


class Line(NamedTuple):
    """A curve of a plot."""

    x: NDArray[Any]  # increasing
    y: NDArray[Any]
    superlevel: bool = False  # a value holds down to the x before, not up to the next one
    colour: str = "curve"  # ``#rrggbb``, or the name of one of `PlotColours`
    width: float = 1.6
    dashed: bool = False
    label: str = ""  # for the legend; "" leaves the curve out of it

    def shade(self, colours: PlotColours) -> QColor:
        """The colour in those of a theme."""
        return QColor(getattr(colours, self.colour, self.colour))


def betti_lines(curves: BettiCurves) -> list[Line]:
    """A line for each Betti number, with what it counts in the legend."""
    names = BETTI_NAMES[len(curves.values)]
    return [
        Line(curves.thresholds, values, curves.superlevel, colour=colour, label=many)
        for values, colour, (_, many) in zip(curves.values, BETTI_COLOURS, names, strict=False)
    ]


class CurvePlot(PaintedWidget):
    """Curves over thresholds, one of which can be dragged.

    The curves are drawn once into a pixmap; a drag only redraws the line. The mouse wheel
    stretches the vertical axis about zero, a double click shows all again.

    Signals
    -------
    threshold_moved : float
        The line was dragged or clicked to here. The plot does not move it by itself: a listener
        calls `set_threshold`.
    stepped : int
        A key moves the line by so many thresholds: left and right by 1, with Shift by 10; Home and
        End by more than there are.
    """

    pictures = (".png", ".svg")
    threshold_moved = Signal(float)
    stepped = Signal(int)

    def __init__(self, x_label: str, y_label: str) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._labels = (x_label, y_label)
        self.setAccessibleName(f"{y_label} by {x_label}")
        self._lines: tuple[Line, ...] = ()
        self._bounds = (0.0, 1.0, 0.0, 1.0)
        self._threshold: float | None = None
        self._band: tuple[float, float] | None = None
        self._bars: Histogram | None = None
        self._backdrop: QPixmap | None = None
        self._dragging = False
        self._stretch = 1.0

    @property
    def empty(self) -> bool:
        """Whether there are no curves."""
        return not self._lines

    @property
    def lines(self) -> tuple[Line, ...]:
        """Curves in drawing order."""
        return self._lines

    @property
    def threshold(self) -> float | None:
        """Return the position of the line."""
        return self._threshold

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Draw these curves, the last one on top."""
        self._lines = tuple(line for line in lines if len(line.x))
        self._set_bounds()

    def set_bars(self, bars: Histogram | None) -> None:
        """Draw a histogram behind the curves, as high as the plot; None draws none."""
        self._bars = bars
        self._redraw()

    def set_x_label(self, label: str) -> None:
        """Change the title of the horizontal axis."""
        self._labels = (label, self._labels[1])
        self._redraw()

    def set_threshold(self, threshold: float | None) -> None:
        """Move the line; None or NaN hides it."""
        hidden = threshold is None or math.isnan(threshold)
        self._threshold = None if hidden else threshold
        self.update()

    def set_band(self, band: tuple[float, float] | None) -> None:
        """Shade the thresholds between two values, or none."""
        self._band = band
        self.update()

    def position_of(self, x: float) -> float:
        """Return the horizontal pixel of a threshold."""
        return float(self._frame(QRectF(self.rect())).px(x))

    def paintEvent(self, event: Any) -> None:
        """Draw the curves, from the pixmap if nothing changed, and the line."""
        if self._backdrop is None:
            ratio = self.devicePixelRatioF()
            self._backdrop = QPixmap(self.size() * ratio)
            self._backdrop.setDevicePixelRatio(ratio)
            painter = QPainter(self._backdrop)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(self.font())
            self._paint_curves(painter, QRectF(self.rect()), self._colours)
            painter.end()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._backdrop)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_threshold(painter, QRectF(self.rect()), self._colours)
        painter.end()

    def _paint(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        self._paint_curves(painter, area, colours)
        self._paint_threshold(painter, area, colours)

    def mousePressEvent(self, event: Any) -> None:
        """Start a drag; a click moves the line there."""
        if event.button() == Qt.MouseButton.LeftButton and self._lines:
            self._dragging = True
            self.threshold_moved.emit(self._x_at(event))

    def mouseMoveEvent(self, event: Any) -> None:
        """Drag the line, or show that it can be dragged."""
        if self._dragging:
            self.threshold_moved.emit(self._x_at(event))
            return
        x = event.position().x()
        near = self._threshold is not None and abs(self.position_of(self._threshold) - x) < GRAB
        shape = Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)

    def mouseReleaseEvent(self, event: Any) -> None:
        """End a drag."""
        self._dragging = False

    def keyPressEvent(self, event: Any) -> None:
        """Move the line by the arrow keys, Home and End."""
        larger = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        steps = {
            Qt.Key.Key_Left: -SHIFTED if larger else -1,
            Qt.Key.Key_Right: SHIFTED if larger else 1,
            Qt.Key.Key_Home: -ALL_STEPS,
            Qt.Key.Key_End: ALL_STEPS,
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            self.stepped.emit(step)

    def wheelEvent(self, event: Any) -> None:
        """Zoom the vertical axis, at most out to the whole curve."""
        turns = event.angleDelta().y() / 120
        self._stretch = min(max(self._stretch * 1.25**turns, 1.0), 1e6)
        self._set_bounds()

    def mouseDoubleClickEvent(self, event: Any) -> None:
        """Show all of the curves again."""
        self._stretch = 1.0
        self._set_bounds()

    def _set_bounds(self) -> None:
        x0, x1, y0, y1 = _bounds(self._lines)
        self._bounds = (x0, x1, y0 / self._stretch, y1 / self._stretch)
        self._redraw()

    def _frame(self, area: QRectF) -> Frame:
        plot = area.adjusted(LEFT, TOP, -RIGHT, -BOTTOM)
        return Frame(plot, self._bounds, log=self._logarithmic)

    @property
    def _logarithmic(self) -> bool:
        """Whether values differ too much for a linear axis."""
        return self._bounds[3] - self._bounds[2] > LINEAR

    def _x_at(self, event: Any) -> float:
        frame = self._frame(QRectF(self.rect()))
        low, high = self._bounds[:2]
        return min(max(frame.x(event.position().x()), low), high)

    def _redraw(self) -> None:
        self._backdrop = None
        self.update()

    def _paint_curves(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        painter.fillRect(area, QColor(colours.background))
        frame = self._frame(area)
        if not self._lines:
            self._paint_message(painter, area.adjusted(16, 8, -16, -8), colours)
            return
        most = max(2, int(frame.plot.height() / 45))
        ticks = nice_ticks(frame.y0, frame.y1, most, whole=True)
        if self._logarithmic:
            ticks = symlog_ticks(frame.y0, frame.y1, most)
        paint_axes(painter, frame, self._labels, colours, ticks, grid=True)
        painter.setClipRect(frame.plot.adjusted(-1, -2, 1, 2))
        if self._bars is not None:
            _paint_bars(painter, frame, self._bars, colours)
        for line in self._lines:
            pen = QPen(line.shade(colours), line.width)
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            if line.dashed:
                pen.setStyle(Qt.PenStyle.DashLine)
            painter.setPen(pen)
            painter.drawPolyline(_polyline(line, frame))
        painter.setClipping(False)
        texts = [(line.label, line.shade(colours)) for line in self._lines if line.label]
        corner = frame.plot.adjusted(6, 2, -6, 0)
        for text, colour in texts:
            painter.setPen(colour)
            top = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight
            painter.drawText(corner, top, text)
            corner.setTop(corner.top() + painter.fontMetrics().height())
        self._paint_note(painter, corner, colours)

    def _paint_threshold(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        if self._threshold is None or not self._lines:
            return
        frame = self._frame(area)
        colour = QColor(colours.accent)
        if self._band is not None:
            low, high = (frame.px(x) for x in self._band)
            shade = QColor(colour)
            shade.setAlpha(48)
            band = QRectF(low, frame.plot.top(), max(high - low, 1.0), frame.plot.height())
            painter.fillRect(band & frame.plot, shade)
        painter.setPen(QPen(colour, 2))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        x = frame.px(self._threshold)
        if frame.plot.left() - 1 <= x <= frame.plot.right() + 1:
            painter.drawLine(QPointF(x, frame.plot.top()), QPointF(x, frame.plot.bottom()))


def _bounds(lines: Sequence[Line]) -> tuple[float, float, float, float]:
    if not lines:
        return (0.0, 1.0, 0.0, 1.0)
    x0 = min(float(line.x[0]) for line in lines)
    x1 = max(float(line.x[-1]) for line in lines)
    y0 = min(0.0, *(float(np.min(line.y)) for line in lines))
    y1 = max(0.0, *(float(np.max(line.y)) for line in lines))
    room = 0.06 * (y1 - y0) or 1.0
    half = 0.0 if x1 > x0 else 0.5
    return (x0 - half, x1 + half, y0 - room * (y0 < 0), y1 + room)


def _paint_bars(painter: QPainter, frame: Frame, bars: Histogram, colours: PlotColours) -> None:
    """Draw square roots of the counts, so that a large background does not hide the rest."""
    shade = QColor(colours.axis)
    shade.setAlpha(70)
    heights = np.sqrt(bars.counts / max(bars.counts.max(initial=1), 1)) * frame.plot.height()
    left = frame.px(bars.edges)
    for start, end, height in zip(left[:-1], left[1:], heights, strict=True):
        bar = QRectF(start, frame.plot.bottom() - height, end - start, height)
        painter.fillRect(bar, shade)


def _polyline(line: Line, frame: Frame) -> QPolygonF:
    """Return the corners of the line in pixels, at most four per pixel column."""
    x, y = frame.px(np.asarray(line.x, float)), frame.py(np.asarray(line.y, float))
    x, y = np.repeat(x, 2), np.repeat(y, 2)
    x, y = (x[:-1], y[1:]) if line.superlevel else (x[1:], y[:-1])
    if x.size > 8 * frame.plot.width():
        x, y = _thin(x, y)
    return QPolygonF([QPointF(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])


def _thin(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Keep the first, smallest, largest and last point of each pixel column."""
    x, y = np.asarray(x), np.asarray(y)
    start = np.flatnonzero(np.diff(np.floor(x), prepend=-np.inf))
    end = np.append(start[1:], x.size) - 1
    corners = (y[start], np.minimum.reduceat(y, start), np.maximum.reduceat(y, start), y[end])
    return np.repeat(x[start], 4), np.stack(corners, axis=1).ravel()
