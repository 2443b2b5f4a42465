"""A plot of curves over thresholds, with a line that can be dragged."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import Qt, Signal
from qtpy.QtGui import QColor
from qtpy.QtWidgets import QGraphicsPolygonItem

from ecc_core import BettiCurves
from napari_ecc._model.explorer import BETTI_NAMES, Histogram
from napari_ecc._model.levels import formatted
from napari_ecc._qt.canvas import Plot, polygon, symlog
from napari_ecc._qt.colours import PALETTE

BETTI_COLOURS = PALETTE[1:4]
LINEAR = 50
"""Largest height of a plot whose vertical axis is linear; that of higher ones is logarithmic."""
MANY = 4096
"""Thresholds of a curve above which only some are drawn, as many as can be seen."""
BAND = 60
"""Opacity of bands, of 255."""
GRAB = 8
SHIFTED = 10
ALL_STEPS = 2**30


class Line(NamedTuple):
    """A curve of a plot."""

    x: NDArray[Any]
    """Increasing thresholds."""
    y: NDArray[Any]
    superlevel: bool = False
    """Whether a value holds down to the x before, not up to the next one."""
    colour: str = "curve"
    """``#rrggbb``, or the name of one of `PlotColours`."""
    width: float = 1.6
    dashed: bool = False
    label: str = ""
    """The text of the legend; "" leaves the curve out of it."""
    name: str = ""
    """What a click on the curve chooses."""
    to: NDArray[Any] | None = None
    """The other side of a band, which is filled instead of a line; None: a line is drawn."""

    def corners(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The ends of its steps."""
        x = np.repeat(self.x, 2)
        y = np.repeat(self.y, 2)
        return (x[:-1], y[1:]) if self.superlevel else (x[1:], y[:-1])

    def outline(self) -> NDArray[np.float64]:
        """Corners of the band, (n, 2)."""
        assert self.to is not None  # A band has another side.
        there = self.corners()
        back = self._replace(y=self.to).corners()
        x, y = (np.concatenate([a, b[::-1]]) for a, b in zip(there, back, strict=True))
        return np.column_stack([x, y]).astype(np.float64)

    def value_at(self, x: float) -> float:
        """The value of the curve at a place within its ends."""
        side: Any = "left" if self.superlevel else "right"
        place = int(np.searchsorted(self.x, x, side=side))
        if not self.superlevel:
            place -= 1  # The last threshold that is not above counts.
        return float(self.y[min(max(place, 0), len(self.y) - 1)])


def betti_lines(curves: BettiCurves) -> list[Line]:
    """A line for each Betti number, with what it counts in the legend."""
    names = BETTI_NAMES[len(curves.values)]
    return [
        Line(curves.thresholds, values, curves.superlevel, colour=colour, label=many)
        for values, colour, (_, many) in zip(curves.values, BETTI_COLOURS, names, strict=False)
    ]


class CurvePlot(Plot):
    """Curves over thresholds, one of which can be dragged.

    Signals
    -------
    threshold_moved : float
        The line was dragged or clicked to here. The plot does not move it by itself: a listener
        calls `set_threshold`.
    stepped : int
        A key moves the line by so many thresholds: left and right by 1, with Shift by 10; Home and
        End by more than there are.
    chosen : str
        The name of the curve nearest to a click.
    """

    threshold_moved = Signal(float)
    stepped = Signal(int)
    chosen = Signal(str)

    def __init__(self, x_label: str, y_label: str) -> None:
        self.lines: tuple[Line, ...] = ()
        """Curves in drawing order."""
        self.threshold: float | None = None
        """Where the line is."""
        self._bars: Histogram | None = None
        self._log_bars = False
        super().__init__(x_label, y_label, whole=True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(f"{y_label} by {x_label}")
        self.setDownsampling(auto=True, mode="peak")  # Curves of many points would be drawn slowly.
        self._curves: list[Any] = []
        self._bands: list[Any] = []
        self._x_label = x_label
        self._y_label = y_label
        self._zero = pg.InfiniteLine(angle=0)
        self._marker = pg.InfiniteLine()
        self._shade = pg.LinearRegionItem(movable=False, pen=pg.mkPen(None))
        self._histogram = pg.PlotCurveItem(pen=pg.mkPen(None))
        for item in (self._histogram, self._zero, self._shade, self._marker):
            self.addItem(item, ignoreBounds=True)
        for item in (self._shade, self._marker):
            item.setZValue(10)
            item.hide()

    def set_y_label(self, label: str) -> None:
        """Say what the curves are of."""
        self._y_label = label
        self._label_axis()

    def set_x_label(self, label: str) -> None:
        """Say what the curves are over."""
        if label != self._x_label:
            self._x_label = label
            self.setLabels(bottom=label)
            self.setAccessibleName(f"{self._y_label} by {label}")

    def _label_axis(self) -> None:
        """Name the vertical axis, and say that it is logarithmic if it is."""
        log = " (log)" if self._axes["left"].log else ""
        if self._axes["left"].labelText != f"{self._y_label}{log}":
            self.setLabels(left=f"{self._y_label}{log}")
            self.setAccessibleName(f"{self._y_label} by {self._x_label}")

    def set_lines(self, lines: Sequence[Line]) -> None:
        """Draw these curves, the last one on top."""
        self.lines = tuple(line for line in lines if len(line.x))
        self.set_extent(_bounds(self.lines)[:2] if self.lines else None)
        self._redraw()

    def set_bars(self, bars: Histogram | None, *, log: bool = False) -> None:
        """Draw a histogram behind the curves, as high as the plot; None draws none.

        With `log`, bars are as high as ``log10(1 + count)``, as in napari's own histogram.
        """
        self._bars = bars
        self._log_bars = log
        self._redraw()

    def set_threshold(self, threshold: float | None) -> None:
        """Move the line; None or NaN hides it."""
        hidden = threshold is None or math.isnan(threshold)
        self.threshold = None if hidden else threshold
        self._marker.setVisible(not hidden)
        if not hidden:
            self._marker.setValue(threshold)

    def set_band(self, band: tuple[float, float] | None) -> None:
        """Shade the thresholds between two values, or none."""
        self._shade.setVisible(band is not None)
        if band is not None:
            self._shade.setRegion(band)

    def position_of(self, x: float) -> float:
        """Return the horizontal pixel of a threshold."""
        return float(self.pixels(x, 0.0)[0])

    def _press(self, event: Any) -> None:
        """Move the line here, and choose the nearest curve."""
        self._drag(event)
        x, y = self.place_of(event)
        near = self._nearest(x, y)
        if near.name:
            self.chosen.emit(near.name)

    def _drag(self, event: Any) -> None:
        self.threshold_moved.emit(self.place_of(event)[0])

    def _readout(self, event: Any) -> str:
        """The value of a curve; the cursor says where the line can be dragged."""
        at = event.position().x()
        near = self.threshold is not None and abs(self.position_of(self.threshold) - at) < GRAB
        shape = Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        x, y = self.place_of(event)
        line = self._nearest(x, y)
        value = f"{x:.4g}: {formatted(line.value_at(x))}"
        return f"{line.name}, {value}" if line.name else value

    def _nearest(self, x: float, y: float) -> Line:
        """The curve with a name that is nearest to a place; without names the uppermost one."""
        scale: Any = symlog if self._axes["left"].log else float
        named = [line for line in self.lines if line.name]

        def distance(line: Line) -> float:
            height = scale(line.value_at(x))
            return float(abs(height - y))

        return min(named or self.lines[-1:], key=distance)

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

    def _legend(self) -> Sequence[tuple[str, QColor]]:
        return [(at.label, self._colours.named(at.colour)) for at in self.lines if at.label]

    def _redraw(self) -> None:
        accent, shade = (self._colours.named("accent") for _ in range(2))
        shade.setAlpha(48)
        self._marker.setPen(pg.mkPen(accent, width=2))
        self._shade.setBrush(shade)
        self._zero.setPen(self._colours.axis)
        if not self.empty:
            self._draw()
        self._write()

    def _draw(self) -> None:
        x0, x1, y0, y1 = _bounds(self.lines)
        log = self._axes["left"].log = y1 - y0 > LINEAR
        scale: Any = symlog if log else np.asarray
        self._label_axis()
        self.set_bounds(x0, x1, *scale((y0, y1)))
        self._draw_bars(*scale((y0, y1)))
        self._draw_bands(scale)
        place = -1
        groups = itertools.groupby((at for at in self.lines if at.to is None), _look)
        for place, ((colour, width, dashed, large), group) in enumerate(groups):
            corners = [line.corners() for line in group]
            x, y = (_joined(parts) for parts in zip(*corners, strict=True))
            style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
            pen = pg.mkPen(self._colours.named(colour), width=width, style=style)
            kind = pg.PlotCurveItem if large is None else pg.PlotDataItem
            if place == len(self._curves) or type(self._curves[place]) is not kind:
                for item in self._curves[place:]:
                    self.removeItem(item)
                self._curves[place:] = [kind()]
                self.addItem(self._curves[place], ignoreBounds=True)
            self._curves[place].setData(x, scale(y), pen=pen, connect="finite")
        while len(self._curves) > place + 1:
            self.removeItem(self._curves.pop())

    def _draw_bands(self, scale: Any) -> None:
        """Fill bands, translucent where they overlap."""
        for item in self._bands:
            self.removeItem(item)
        self._bands = []
        for line in self.lines:
            if line.to is None:
                continue
            corners = line.outline()
            shade = self._colours.named(line.colour)
            shade.setAlpha(BAND)
            points = zip(corners[:, 0].tolist(), scale(corners[:, 1]).tolist(), strict=True)
            item = QGraphicsPolygonItem(polygon(points))
            item.setBrush(shade)
            item.setPen(pg.mkPen(None))
            self._bands.append(item)
            self.addItem(item, ignoreBounds=True)

    def _draw_bars(self, low: float, high: float) -> None:
        """Draw the histogram between two heights, its largest count at the upper one."""
        bars = self._bars
        shade = self._colours.named("axis")
        self._histogram.setVisible(bars is not None)
        if bars is None:
            return
        shade.setAlpha(70)
        sizes = np.log10(1 + bars.counts) if self._log_bars else bars.counts
        largest = sizes.max(initial=0) or 1  # Nothing is drawn of a histogram without counts.
        heights = low + sizes / largest * (high - low)
        self._histogram.setData(bars.edges, heights, stepMode="center", fillLevel=low, brush=shade)


def _look(line: Line) -> tuple[str, float, bool, int | None]:
    """Curves of equal look, one after the other, are drawn as one item; large ones alone."""
    return line.colour, line.width, line.dashed, id(line) if len(line.x) > MANY else None


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Join coordinates, with NaN between curves."""
    if len(parts) == 1:
        return parts[0].astype(np.float64)
    return np.concatenate([np.append(part, np.nan) for part in parts])


def _bounds(lines: Sequence[Line]) -> tuple[float, float, float, float]:
    x0 = min(float(line.x[0]) for line in lines)
    x1 = max(float(line.x[-1]) for line in lines)
    heights = [at for line in lines for at in (line.y, line.to) if at is not None]
    lowest = [float(np.nanmin(at)) for at in heights]
    highest = [float(np.nanmax(at)) for at in heights]
    y0 = min(0.0, *lowest)
    y1 = max(0.0, *highest)
    room = 0.06 * (y1 - y0) or 1.0
    half = 0.0 if x1 > x0 else 0.5
    room_below = room if y0 < 0 else 0.0
    return (x0 - half, x1 + half, y0 - room_below, y1 + room)
