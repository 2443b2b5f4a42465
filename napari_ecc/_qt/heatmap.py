"""A heat map of curves: one row for each direction or frame, one column for each level."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QRectF, Qt, Signal

from napari_ecc._qt.canvas import Axis, Plot, symlog
from napari_ecc._qt.colours import PlotColours

Floats = NDArray[np.float64]
COLOURS = 255
"""Number of colours; the one in the middle is that of zero."""
FAINTEST = 0.2
"""How much of its colour the smallest value has, so that it can be told from zero."""
SHIFTED = 10
BAR = 8
"""Height of the bar of colours in pixels."""


class HeatMap(Plot):
    """Values in a diverging colour scale about zero, with a marker on one row.

    Its sides are those of a `CurvePlot`, so that one below the other has the same abscissa.

    Signals
    -------
    placed : (float, float)
        The user points to these coordinates of the columns and of the rows.
    """

    placed = Signal(float, float)

    def __init__(self, x_label: str, y_label: str) -> None:
        self._values: NDArray[Any] = np.zeros((0, 0))
        self._columns = np.zeros(0)
        self._rows = np.zeros(0)
        self.marker: float | None = None
        self.marked_column: float | None = None
        """The marked row, and the marked column."""
        super().__init__(x_label, y_label, whole=True)
        self.setAccessibleName(f"χ by {x_label} and {y_label}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._view.invertY()
        self._image = pg.ImageItem(axisOrder="row-major", autoDownsample=True)
        self.addItem(self._image)
        self._markers = {
            angle: [pg.InfiniteLine(angle=angle) for _ in range(2)] for angle in (0, 90)
        }
        for line in (*self._markers[0], *self._markers[90]):
            line.hide()
            self.addItem(line, ignoreBounds=True)
        # Above the map are its colours, with the values that they stand for.
        axis = self._axes["bar"] = Axis("top")
        axis.log = True
        bar = pg.PlotItem(axisItems={"top": axis}, enableMenu=False)
        # In the order left, top, right, bottom.
        bar.showAxes((False, True, False, False), showValues=None)
        bar.hideButtons()
        bar.setMouseEnabled(x=False, y=False)
        bar.getViewBox().setFixedHeight(BAR)
        self._colour_bar = bar
        self._scale = pg.ImageItem(np.arange(COLOURS)[:, None])
        bar.addItem(self._scale)
        self.plotItem.layout.removeItem(self.plotItem.titleLabel)
        self.plotItem.layout.addItem(bar, 0, 1)
        self._bar_title = pg.LabelItem("χ")
        below = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom
        self.plotItem.layout.addItem(self._bar_title, 0, 0, below)

    def set_labels(
        self, x_label: str, y_label: str, row_ticks: Sequence[float] | None = None
    ) -> None:
        """Set the names of the axes; `row_ticks` replace round numbers."""
        self.setLabels(bottom=x_label, left=y_label)
        ticks = None if row_ticks is None else [[(at, f"{at:g}") for at in row_ticks]]
        self._axes["left"].setTicks(ticks)

    def set_values(self, values: NDArray[Any], columns: Floats, rows: Floats) -> None:
        """Show values, NaN where they are unknown, at evenly spaced coordinates of both axes."""
        self._values = values
        self._columns = columns
        self._rows = rows
        least = min(columns.min(initial=np.inf), rows.min(initial=np.inf))
        most = max(columns.max(initial=-np.inf), rows.max(initial=-np.inf))
        self.set_extent((float(least), float(most)) if values.size else None)
        self._redraw()

    def show_nothing(self) -> None:
        """Show no values."""
        self.set_values(np.zeros((0, 0)), np.zeros(0), np.zeros(0))

    def set_marker(self, row: float | None, column: float | None = None) -> None:
        """Mark the coordinate of a row, and of a column."""
        self.marker = row
        self.marked_column = column
        for angle, at in ((0, row), (90, column)):
            for line in self._markers[angle]:
                line.setVisible(at is not None)
                line.setValue(at or 0.0)

    def _press(self, event: Any) -> None:
        """Select the row and the column under the mouse."""
        column, row = self.place_of(event)
        row = float(np.clip(row, self._rows[0], self._rows[-1]))
        self.placed.emit(float(np.clip(column, self._columns[0], self._columns[-1])), row)

    _drag = _press

    def keyPressEvent(self, event: Any) -> None:
        """Point to the next row or column by the arrow keys; with Shift ten further."""
        moves = {
            Qt.Key.Key_Left: (-1, 0),
            Qt.Key.Key_Right: (1, 0),
            Qt.Key.Key_Up: (0, -1),
            Qt.Key.Key_Down: (0, 1),
        }
        move = moves.get(Qt.Key(event.key()))
        if move is None or self.empty:
            super().keyPressEvent(event)
            return
        count = SHIFTED if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        column = _further(self._columns, self.marked_column, count * move[0])
        row = _further(self._rows, self.marker, count * move[1])
        self.placed.emit(column, row)

    def _readout(self, event: Any) -> str:
        """Format a value."""
        x, y = self.place_of(event)
        column = int(np.abs(self._columns - x).argmin())
        row = int(np.abs(self._rows - y).argmin())
        value = self._values[row, column]
        shown = "not yet known" if np.isnan(value) else f"χ = {value:.0f}"
        return f"({self._columns[column]:.4g}, {self._rows[row]:.4g}): {shown}"

    def _redraw(self) -> None:
        if not self.empty:
            left, right = even_edges(self._columns)
            top, bottom = even_edges(self._rows)
            known = self._values[np.isfinite(self._values)]
            end = float(symlog(np.abs(known).max(initial=1.0)))
            table = colour_table(self._colours)
            self._image.setImage(symlog(self._values), levels=(-end, end), lut=table)
            self._view.setBackgroundColor(self._colours.faint)  # It shows where values are unknown.
            self._image.setRect(QRectF(left, top, right - left, bottom - top))
            self.set_bounds(left, right, top, bottom)
            self._scale.setImage(levels=(0, COLOURS), lut=table)
            self._scale.setRect(QRectF(-end, 0, 2 * end, 1))
            self._colour_bar.setRange(xRange=(-end, end), yRange=(0, 1), padding=0)
        self._bar_title.setText("χ", color=self._colours.text)
        for below, above in self._markers.values():
            below.setPen(pg.mkPen(self._colours.background, width=3.5))
            above.setPen(pg.mkPen(self._colours.text, width=1.5))
        self._write()


def _further(places: Floats, now: float | None, count: int) -> float:
    """Return the place some steps from the nearest one to now, or from the middle."""
    if now is None:
        here = places.size // 2
    else:
        here = int(np.abs(places - now).argmin())
    last = places.size - 1
    return float(places[min(max(here + count, 0), last)])


def colour_table(colours: PlotColours) -> NDArray[np.uint8]:
    """Return colours over which the logarithms of 1 + |value| are spread evenly.

    The difference between one object and two is visible even if other values are in the thousands.
    """
    ends = [colours.named(name).getRgb()[:3] for name in ("curve", "background", "accent")]
    at = np.linspace(-1, 1, COLOURS)
    at = np.sign(at) * (FAINTEST + (1 - FAINTEST) * np.abs(at))
    channels = [np.interp(at, [-1, 0, 1], channel) for channel in np.transpose(ends)]
    found: NDArray[np.uint8] = np.rint(np.transpose(channels)).astype(np.uint8)
    return found


def even_edges(centres: Floats) -> tuple[float, float]:
    """Return where cells about evenly spaced centres begin and end."""
    half = (centres[-1] - centres[0]) / (2 * max(len(centres) - 1, 1)) or 0.5
    return float(centres[0] - half), float(centres[-1] + half)
