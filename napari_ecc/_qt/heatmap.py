"""A heat map of curves: one row for each direction or frame, one column for each level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QImage, QLinearGradient, QPainter, QPen, QPolygonF, qRgb

from napari_ecc._qt.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    Frame,
    nice_ticks,
    paint_axes,
    symlog,
    symlog_ticks,
    tick_label,
)
from napari_ecc._qt.painted import PaintedWidget, PlotColours

__all__ = ["HeatMap"]

Floats = NDArray[np.float64]

UNKNOWN, ZERO, STEPS = 0, 128, 127  # indices of colours: 0, then -127 .. 127 about 128
FAINTEST = 0.2
"""How much of its colour the smallest value has, so that it can be told from zero."""
TOP = 24  # room for the readout and the colour bar
BAR = QSize(72, 8)
HANDLE = 5.0


class HeatMap(PaintedWidget):
    """Values in a diverging colour scale about zero, with a marker on one row.

    Its sides are those of a `CurvePlot`, so that one below the other has the same abscissa. What
    is under the mouse is written above the map.

    Signals
    -------
    picked : float
        The user points to this coordinate of the rows.
    placed : (float, float)
        The user points to these coordinates of the columns and of the rows.
    """

    preferred = QSize(360, 220)
    pictures = (".png",)
    picked = Signal(float)
    placed = Signal(float, float)

    def __init__(self, x_label: str, y_label: str) -> None:
        super().__init__()
        self._labels = (x_label, y_label)
        self.setAccessibleName(f"χ by {x_label} and {y_label}")
        self._row_ticks: Sequence[float] | None = None
        self._values: NDArray[Any] = np.zeros((0, 0))
        self._columns, self._rows = np.zeros(0), np.zeros(0)
        self._largest = 1.0
        self._indices = np.zeros((0, 0), dtype=np.uint8)
        self._image = QImage()
        self._marker: float | None = None
        self._column: float | None = None
        self._hover: tuple[int, int] | None = None

    @property
    def empty(self) -> bool:
        """Whether there are no values."""
        return bool(self._image.isNull())

    @property
    def marker(self) -> float | None:
        """The coordinate of the row that is marked."""
        return self._marker

    def set_labels(
        self, x_label: str, y_label: str, row_ticks: Sequence[float] | None = None
    ) -> None:
        """Set the names of the axes; `row_ticks` replace round numbers."""
        self._labels, self._row_ticks = (x_label, y_label), row_ticks
        self.update()

    def set_values(self, values: NDArray[Any], columns: Floats, rows: Floats) -> None:
        """Show values, NaN where they are unknown, at evenly spaced coordinates of both axes."""
        self._values, self._columns, self._rows = values, columns, rows
        known = np.abs(values[np.isfinite(values)])
        self._largest = float(known.max(initial=1.0))
        self._indices = colour_indices(values, self._largest)
        self._hover = None
        lines, width = self._indices.shape
        form = QImage.Format.Format_Indexed8
        self._image = QImage(self._indices.data, width, lines, width, form) if lines else QImage()
        self.update()

    def clear(self) -> None:
        """Show no values."""
        self.set_values(np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    def set_marker(self, row: float | None, column: float | None = None) -> None:
        """Mark the coordinate of a row, and of a column."""
        self._marker, self._column = row, column
        self.update()

    def map_area(self) -> QRectF:
        """Return the area of the map."""
        return QRectF(self.rect()).adjusted(LEFT, TOP, -RIGHT, -BOTTOM)

    def position_of(self, row: float) -> float:
        """Return the vertical pixel of a row's coordinate."""
        return float(self._frame().py(row))

    def readout(self) -> str:
        """Format the value under the mouse."""
        if self._hover is None:
            return ""
        row, column = self._hover
        value = self._values[row, column]
        shown = "not yet known" if np.isnan(value) else f"χ = {value:.0f}"
        return f"({self._columns[column]:.4g}, {self._rows[row]:.4g}): {shown}"

    def mousePressEvent(self, event: Any) -> None:
        """Select the row and the column under the mouse."""
        if event.buttons() & Qt.MouseButton.LeftButton and self._rows.size:
            area, at = self.map_area(), event.position()
            row = _coordinate(self._rows, (at.y() - area.top()) / max(area.height(), 1.0))
            column = _coordinate(self._columns, (at.x() - area.left()) / max(area.width(), 1.0))
            self.picked.emit(row)
            self.placed.emit(column, row)

    def mouseMoveEvent(self, event: Any) -> None:
        """Select rows while dragging, and show the value under the mouse."""
        self.mousePressEvent(event)
        self._hover = self._cell(event.position())
        self.update()

    def leaveEvent(self, event: Any) -> None:
        """Clear the value under the mouse."""
        self._hover = None
        self.update()

    def picture_size(self) -> QSize:
        """That of the screen."""
        return self.size()

    def _paint(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        """Draw the map, its axes, the marker and the colour bar."""
        painter.fillRect(area, QColor(colours.background))
        painter.setFont(self.font())
        area = self.map_area()
        if self.empty:
            self._paint_message(painter, area, colours)
            return
        self._image.setColorTable(colour_table(colours))
        crowded = self._image.height() > area.height() or self._image.width() > area.width()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, crowded)
        painter.drawImage(area, self._image)
        painter.setPen(QColor(colours.axis))
        painter.drawRect(area)
        self._draw_axes(painter, colours)
        self._draw_bar(painter, area, colours)
        self._paint_note(painter, area.adjusted(6, 2, -6, 0), colours)
        if self._marker is not None:
            self._draw_marker(painter, area, self.position_of(self._marker), colours)
        if self._column is not None:
            x = float(self._frame().px(self._column))
            ends = QPointF(x, area.top()), QPointF(x, area.bottom())
            _draw_line(painter, *ends, colours)

    def _cell(self, at: QPointF) -> tuple[int, int] | None:
        area = self.map_area()
        if self.empty or not area.contains(at):
            return None
        rows, columns = self._indices.shape
        row = int((at.y() - area.top()) / area.height() * rows)
        column = int((at.x() - area.left()) / area.width() * columns)
        return min(row, rows - 1), min(column, columns - 1)

    def _frame(self) -> Frame:
        left, right = even_edges(self._columns)
        top, bottom = even_edges(self._rows)
        return Frame(self.map_area(), (left, right, bottom, top))

    def _draw_axes(self, painter: QPainter, colours: PlotColours) -> None:
        frame = self._frame()
        most = max(2, int(frame.plot.height() / 28))
        ends = float(self._rows[0]), float(self._rows[-1])
        ticks = self._row_ticks or nice_ticks(*ends, most, whole=True)
        paint_axes(painter, frame, self._labels, colours, ticks)

    def _draw_bar(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        """Draw the readout, and the colours between the values at their ends."""
        strip = QRectF(area.left(), 0, area.width(), TOP - 2)
        painter.setPen(QColor(colours.text))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(strip, middle | Qt.AlignmentFlag.AlignLeft, self.readout())
        highest = tick_label(self._largest, self._largest)
        lowest = tick_label(-self._largest, self._largest)
        painter.drawText(strip, middle | Qt.AlignmentFlag.AlignRight, highest)
        metrics = painter.fontMetrics()
        right = strip.right() - metrics.horizontalAdvance(highest) - 5
        top = strip.center().y() - BAR.height() / 2
        bar = QRectF(right - BAR.width(), top, BAR.width(), BAR.height())
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        table = colour_table(colours)
        for k in range(17):
            gradient.setColorAt(k / 16, QColor(table[round(1 + 254 * k / 16)]))
        painter.fillRect(bar, gradient)
        for tick in symlog_ticks(-self._largest, self._largest, STEPS):
            x = bar.center().x() + bar.width() / 2 * symlog(tick) / symlog(self._largest)
            painter.drawLine(QPointF(x, bar.bottom()), QPointF(x, bar.bottom() + 3))
        strip.setRight(bar.left() - 5)
        painter.drawText(strip, middle | Qt.AlignmentFlag.AlignRight, f"χ {lowest}")

    def _draw_marker(self, painter: QPainter, area: QRectF, y: float, colours: PlotColours) -> None:
        """Draw a line across the map and a handle at either end."""
        ends = QPointF(area.left(), y), QPointF(area.right(), y)
        _draw_line(painter, *ends, colours)
        painter.setBrush(QColor(colours.text))
        for end, out in zip(ends, (-HANDLE, HANDLE), strict=True):
            corners = [end, end + QPointF(out, -HANDLE), end + QPointF(out, HANDLE)]
            painter.drawPolygon(QPolygonF(corners))


def _draw_line(painter: QPainter, start: QPointF, end: QPointF, colours: PlotColours) -> None:
    """Draw a line that is visible on any colour."""
    for colour, width in ((colours.background, 3.5), (colours.text, 1.5)):
        painter.setPen(QPen(QColor(colour), width))
        painter.drawLine(start, end)


def colour_indices(values: NDArray[Any], largest: float) -> NDArray[np.uint8]:
    """Return the index of each value's colour; the logarithm of 1 + |value| is spread evenly.

    The difference between one object and two is visible even if other values are in the thousands.
    """
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    steps = symlog(filled) * (STEPS / symlog(largest))
    indices = np.where(known, np.rint(steps) + ZERO, UNKNOWN).astype(np.uint8)
    return np.ascontiguousarray(indices)


@cache
def colour_table(colours: PlotColours) -> list[int]:
    """Return 256 colours for `colour_indices`; unknown values have that of a faint line."""
    ends = np.array([colour.getRgb()[:3] for colour in _ends(colours)], dtype=float)
    at = np.clip((np.arange(256) - ZERO) / STEPS, -1, 1)
    at = np.sign(at) * (FAINTEST + (1 - FAINTEST) * np.abs(at))
    channels = [np.interp(at, [-1, 0, 1], channel) for channel in ends.T]
    table = [qRgb(*(round(c) for c in colour)) for colour in np.transpose(channels).tolist()]
    table[UNKNOWN] = QColor(colours.faint).rgb()
    return table


def even_edges(centres: Floats) -> tuple[float, float]:
    """Return where cells about evenly spaced centres begin and end."""
    half = (centres[-1] - centres[0]) / (2 * max(len(centres) - 1, 1)) or 0.5
    return float(centres[0] - half), float(centres[-1] + half)


def _coordinate(centres: Floats, share: float) -> float:
    """Return the coordinate at a share of the way across all cells, within the centres."""
    first, last = even_edges(centres)
    return float(np.clip(first + share * (last - first), centres[0], centres[-1]))


def _ends(colours: PlotColours) -> tuple[QColor, QColor, QColor]:
    """Colours of the smallest value, of zero and of the largest."""
    return QColor(colours.curve), QColor(colours.background), QColor(colours.accent)
