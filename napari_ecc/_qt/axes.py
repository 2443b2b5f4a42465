"""Axes of plots: round numbers for ticks, how they are written, and where they are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from qtpy.QtCore import QPointF, QRectF, Qt
from qtpy.QtGui import QColor, QPainter, QPen

from napari_ecc._qt.painted import PlotColours

__all__ = [
    "BOTTOM",
    "LEFT",
    "RIGHT",
    "Frame",
    "nice_ticks",
    "paint_axes",
    "paint_titles",
    "symlog",
    "symlog_ticks",
    "tick_label",
]

LEFT, RIGHT, BOTTOM = 58, 12, 40
"""Margins of a plot in pixels, for the axes."""

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def nice_ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Round numbers between two bounds: steps of 1, 2 or 5 times a power of ten, at most `most`.

    Integers only, if `whole`; none for bounds that are not finite.

    Examples
    --------
    >>> from napari_ecc._qt.axes import nice_ticks
    >>> nice_ticks(-3, 11, 4)
    [0.0, 5.0, 10.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0 or most < 1:
        return [low] if math.isfinite(low) and span == 0 else []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * power for m in (1, 2, 5, 10, 20) if span / (m * power) <= most)
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(float(k * step), 12) for k in np.arange(first, last + 1).tolist()]


def tick_label(value: float, span: float) -> str:
    """Format the number of a tick: 250k, 1.5. The length of the axis decides on the digits.

    Examples
    --------
    >>> from napari_ecc._qt.axes import tick_label
    >>> tick_label(250_000, 1e6), tick_label(0.5, 1)
    ('250k', '0.5')
    """
    suffix = ""
    for size, prefix in PREFIXES:
        if span >= 10 * size:
            value, suffix = value / size, prefix
            break
    text = f"{value:.4g}" if value else "0"
    return text.replace("-", "\N{MINUS SIGN}") + (suffix if value else "")


def symlog(values: Any) -> Any:
    """Logarithms of 1 + |value| with the sign of the value."""
    return np.sign(values) * np.log1p(np.abs(values))


def symlog_ticks(low: float, high: float, most: int) -> list[float]:
    """Zero, and about as many powers of ten of either sign between two bounds.

    Examples
    --------
    >>> from napari_ecc._qt.axes import symlog_ticks
    >>> symlog_ticks(-12, 2000, 9), symlog_ticks(-12, 2000, 4)
    ([-10.0, -1.0, 0.0, 1.0, 10.0, 100.0, 1000.0], [-1.0, 0.0, 1.0, 100.0])
    """
    digits = math.log10(1 + max(-low, 0.0)) + math.log10(1 + max(high, 0.0))
    step = max(1, math.ceil(digits / max(most, 1)))
    powers = [10.0**k for k in range(0, 16, step)]
    return [y for y in (*(-p for p in reversed(powers)), 0.0, *powers) if low <= y <= high]


class Frame:
    """Map data coordinates to an area, with bounds at its left, right, lower and upper side.

    With `log`, heights are those of `symlog`.
    """

    def __init__(
        self, plot: QRectF, bounds: tuple[float, float, float, float], *, log: bool = False
    ) -> None:
        self.plot = plot
        self.x0, self.x1, self.y0, self.y1 = bounds
        self.log = log
        self._scale: Any = symlog if log else lambda y: y

    def px(self, x: Any) -> Any:
        return self.plot.left() + (x - self.x0) / (self.x1 - self.x0) * self.plot.width()

    def py(self, y: Any) -> Any:
        low, high = self._scale(self.y0), self._scale(self.y1)
        return self.plot.bottom() - (self._scale(y) - low) / (high - low) * self.plot.height()

    def x(self, px: float) -> float:
        share = (px - self.plot.left()) / max(self.plot.width(), 1.0)
        return float(self.x0 + share * (self.x1 - self.x0))


def paint_axes(
    painter: QPainter,
    frame: Frame,
    labels: tuple[str, str],
    colours: PlotColours,
    y_ticks: Sequence[float],
    *,
    grid: bool = False,
) -> None:
    """Draw ticks and titles of both axes; with `grid`, lines across the plot instead of ticks.

    Of the second title its last word is drawn where there is no room for more.
    """
    plot = frame.plot
    height = painter.fontMetrics().height()
    axis, faint, text = QPen(QColor(colours.axis), 1), QColor(colours.faint), QColor(colours.text)
    right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
    centre = Qt.AlignmentFlag.AlignCenter
    for y in y_ticks:
        py = frame.py(y)
        painter.setPen(QPen(faint, 1) if grid and y != 0 else axis)
        ends = (plot.left(), plot.right()) if grid else (plot.left() - 4, plot.left())
        painter.drawLine(*(QPointF(x, py) for x in ends))
        painter.setPen(text)
        where = QRectF(0, py - height, plot.left() - 6, 2 * height)
        span = 10 * abs(y) if frame.log else abs(frame.y1 - frame.y0)
        painter.drawText(where, right, tick_label(y, span))
    painter.setPen(axis)
    painter.drawLine(plot.bottomLeft(), plot.bottomRight())
    painter.drawLine(plot.bottomLeft(), plot.topLeft())
    for x in nice_ticks(frame.x0, frame.x1, max(2, int(plot.width() / 50))):
        px = frame.px(x)
        painter.setPen(axis)
        painter.drawLine(QPointF(px, plot.bottom()), QPointF(px, plot.bottom() + 4))
        painter.setPen(text)
        where = QRectF(px - 50, plot.bottom() + 4, 100, height + 2)
        painter.drawText(where, centre, tick_label(x, frame.x1 - frame.x0))
    whole, short = labels[1], labels[1].rpartition(" ")[2]
    fits = painter.fontMetrics().horizontalAdvance(whole) <= plot.height()
    paint_titles(painter, plot, (labels[0], whole if fits else short), height + 5, 2)


def paint_titles(
    painter: QPainter, plot: QRectF, titles: tuple[str, str], below: float, left: float
) -> None:
    """Draw the titles of both axes, so far below the plot and so far from the left."""
    height = painter.fontMetrics().height() + 2
    centre = Qt.AlignmentFlag.AlignCenter
    bottom = QRectF(plot.left(), plot.bottom() + below, plot.width(), height)
    painter.drawText(bottom, centre, titles[0])
    painter.save()
    painter.translate(left, plot.center().y())
    painter.rotate(-90)
    side = QRectF(-plot.height() / 2, 0, plot.height(), height)
    painter.drawText(side, centre, titles[1])
    painter.restore()
