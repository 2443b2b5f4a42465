"""What all plots have in common: axes, colours of napari's theme, a state, and saved pictures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QMarginsF, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from qtpy.QtGui import QColor, QImage, QPageSize, QPainter, QPdfWriter, QPolygonF
from qtpy.QtWidgets import QApplication, QGraphicsTextItem, QMenu, QProgressBar

from napari_ecc._model.levels import formatted
from napari_ecc._qt.colours import PAPER, PlotColours

LEFT = 56
BOTTOM = 36
"""Width and height of axes in pixels, so that plots below each other have the same abscissa."""
MARGIN = 8
RIGHT = 13
"""Margin to the right of the axes: numbers at their ends may reach beyond them by `MARGIN`, and are
drawn a few pixels wider than pyqtgraph takes them for."""
BEHIND = 180
"""Opacity of the background of texts, of 255."""
HEIGHT_A_TICK = 24
"""Pixels of a logarithmic axis for each of its numbers, at least."""
LEAST_DISTANCE = 12
"""Least distance of two numbers below each other in pixels; of those in a row it is twice that."""
LOWEST = 180
PREFERRED = QSize(360, LOWEST)
"""Minimum height and preferred size of a plot in pixels; plots take the room that is left."""
LARGEST_WITH_SUFFIX = 1e13
"""Numbers from here on are written with an exponent, not as many billions."""
EXPORT_SIZE = QSize(640, 400)
PICTURES = (".png", ".svg", ".pdf")
"""Suffixes of the files that a plot is saved to."""
SCALE = 3
"""Pixels of a PNG file per pixel of the screen."""


def polygon(corners: Iterable[Sequence[float]]) -> QPolygonF:
    """Return the polygon with corners (x, y)."""
    return QPolygonF([QPointF(x, y) for x, y in corners])


def symlog(values: Any) -> Any:
    """Logarithms of 1 + |value| with the sign of the value."""
    return np.sign(values) * np.log1p(np.abs(values))


class Axis(pg.AxisItem):
    """An axis of numbers such as 250k; with `log`, coordinates are those of `symlog`."""

    def __init__(self, side: str, *, whole: bool = False) -> None:
        super().__init__(side)
        self.log = False
        self._whole = whole
        self.enableAutoSIPrefix(False)
        self.setStyle(hideOverlappingLabels=MARGIN)  # Numbers at the ends may reach beyond.

    def resizeEvent(self, event: Any = None) -> None:
        """Place the label, which pyqtgraph moves below the axis, where its descenders are cut."""
        super().resizeEvent(event)
        if self.orientation == "bottom" and self.label is not None:
            self.label.setY(self.size().height() - self.label.boundingRect().height())

    def tickSpacing(self, low: float, high: float, size: float) -> Any:
        """Distances of ticks: of whole numbers at least 1."""
        levels = super().tickSpacing(low, high, size)
        return [(max(step, 1.0), 0.0) for step, _ in levels[:1]] if self._whole else levels[:2]

    def tickValues(self, low: float, high: float, size: float) -> Any:
        """Coordinates of ticks: with `log` those of zero and of powers of ten, or some of them."""
        if not self.log:
            return super().tickValues(low, high, size)
        digits = (high - low) / np.log(10)
        space = size / (high - low)
        step = max(1, math.ceil(digits / max(2, size // HEIGHT_A_TICK)))
        powers = 10.0 ** np.arange(0, math.ceil(digits) + 1, step)
        room = LEAST_DISTANCE if self.orientation == "left" else 2 * LEAST_DISTANCE
        powers = powers[symlog(powers) * space >= room]
        ticks = symlog(np.concatenate([-powers[::-1], [0], powers]))
        return [(1.0, ticks[(ticks >= low) & (ticks <= high)])]

    def tickStrings(self, values: Any, scale: float, spacing: float) -> list[str]:
        """Write the numbers."""
        numbers = np.asarray(values, dtype=np.float64)
        if self.log:
            numbers = np.sign(numbers) * np.round(np.expm1(np.abs(numbers)))
        return [_written(number) for number in numbers.tolist()]


def _written(number: float) -> str:
    suffix = ""
    if abs(number) >= LARGEST_WITH_SUFFIX:
        return f"{number:.3g}".replace("-", "\N{MINUS SIGN}")
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 10 * size:
            number = number / size
            suffix = prefix
            break
    return f"{number:.4g}{suffix}".replace("-", "\N{MINUS SIGN}")


class Plot(pg.PlotWidget):
    """The base class of plots: what is drawn, or why there is nothing, and what it is not.

    The mouse wheel zooms, the middle button moves what is drawn, and a double click shows all of it
    again. What the left button does is up to the plot: `_press`, `_drag` and `_release`.
    """

    picture_wanted = Signal()
    """The user wants to save the picture."""
    empty = True
    """Whether there is nothing to draw."""

    def __init__(self, x_label: str = "", y_label: str = "", *, whole: bool = False) -> None:
        self._axes = {"bottom": Axis("bottom"), "left": Axis("left", whole=whole)}
        super().__init__(axisItems=self._axes, background=PAPER.background)
        self.setMinimumHeight(LOWEST)
        for widget in (self, self.viewport()):
            widget.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAntialiasing(True)
        self.hideButtons()
        self.setMenuEnabled(False)
        self.plotItem.layout.setContentsMargins(0, MARGIN, RIGHT, 2)
        self.setLabels(bottom=x_label, left=y_label)
        self._axes["left"].setWidth(LEFT)
        self._axes["bottom"].setHeight(BOTTOM)
        self._view = self.getViewBox()
        self._bounds = (0.0, 1.0, 0.0, 1.0)
        self._colours = PAPER
        self._held = False
        self.state = ""
        """Why there is nothing to draw, or what the picture is not."""
        self._text = QGraphicsTextItem()
        self._written = ""
        self._text.setZValue(100)
        self._head = QGraphicsTextItem()
        """The legend, above what is drawn."""
        self._known: tuple[str, int, str] | None = None
        self._undrawn = ""
        """Why what there is cannot be drawn; "" if it can."""
        for item in (self._text, self._head):
            self.scene().addItem(item)
        self._bar = QProgressBar(self, minimum=0, maximum=0, textVisible=False, visible=False)

    def sizeHint(self) -> QSize:
        """Preferred size."""
        return PREFERRED

    def set_colours(self, colours: PlotColours) -> None:
        """Apply the colours of a theme."""
        self._colours = colours
        self.setBackground(colours.background)
        for axis in self._axes.values():
            axis.setPen(colours.axis)
            axis.setTextPen(colours.text)
        self._redraw()

    def set_bounds(self, x0: float, x1: float, y0: float, y1: float) -> None:
        """Set the range of both axes, and show all of it unless the user has zoomed in."""
        if (x0, x1, y0, y1) == self._bounds:
            return
        (a, b), (c, d) = self._view.viewRange()
        zoomed = not np.allclose((a, b, c, d), self._bounds) and (x0, x1) == self._bounds[:2]
        self._bounds = (x0, x1, y0, y1)
        self.setLimits(xMin=x0, xMax=x1, yMin=y0, yMax=y1)
        if not zoomed:
            self.show_all()

    def set_extent(self, ends: tuple[float, float] | None) -> None:
        """Say between which two ends of an axis there is something to draw; None: there is nothing.

        The plot is empty, and says so, where they are too large: pyqtgraph computes their sum and
        their difference, which must be numbers of float64.
        """
        self.empty = True
        self._undrawn = ""
        if ends is not None:
            low, high = ends
            self.empty = not (math.isfinite(high - low) and math.isfinite(high + low))
            if self.empty:
                between = f"{formatted(low)} to {formatted(high)}"
                self._undrawn = f"Values from {between} are too large to be drawn."

    def show_all(self) -> None:
        """Leave the zoom."""
        x0, x1, y0, y1 = self._bounds
        self.setRange(xRange=(x0, x1), yRange=(y0, y1), padding=0)

    def mousePressEvent(self, event: Any) -> None:
        """Begin what the left button does."""
        self._held = event.button() == Qt.MouseButton.LeftButton and not self.empty
        (self._press if self._held else super().mousePressEvent)(event)

    def mouseMoveEvent(self, event: Any) -> None:
        """Go on with what the left button does, or tell what is under the mouse."""
        if self._held:
            self._drag(event)
            return
        super().mouseMoveEvent(event)
        inside = not self.empty and self.area().contains(event.position())
        self.setToolTip(self._readout(event) if inside else "")

    def mouseReleaseEvent(self, event: Any) -> None:
        """End what the left button does."""
        if self._held:
            self._held = False
            self._release(event)
        super().mouseReleaseEvent(event)

    def _press(self, event: Any) -> None:
        """Handle a press of the left button where there is something to draw."""

    def _drag(self, event: Any) -> None:
        """Handle a move with the left button."""

    def _release(self, event: Any) -> None:
        """Handle the release of the left button."""

    def _readout(self, event: Any) -> str:
        """Return what is under the mouse, or ""."""
        raise NotImplementedError

    def mouseDoubleClickEvent(self, event: Any) -> None:
        """Show all again."""
        self.show_all()

    def contextMenuEvent(self, event: Any) -> None:
        """Offer to save a picture of the plot."""
        menu = QMenu(self)
        menu.addAction("Copy picture", self._copy_picture)
        menu.addAction("Save picture…", self.picture_wanted.emit)
        menu.exec(event.globalPos())

    def _copy_picture(self) -> None:
        QApplication.clipboard().setPixmap(self.grab())

    def pixels(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Where coordinates of the axes are on the widget."""
        self.plotItem.layout.activate()
        self._view.updateMatrix()
        to = self._view.childGroup.sceneTransform()
        return to.m11() * x + to.dx(), to.m22() * y + to.dy()

    def area(self) -> QRectF:
        """Where what is drawn is on the widget, without the axes."""
        return self._view.sceneBoundingRect()

    def place_of(self, event: Any) -> tuple[float, float]:
        """Coordinates of the mouse, within the bounds."""
        at = self._view.mapSceneToView(event.position())
        x0, x1, y0, y1 = self._bounds
        return min(max(at.x(), x0), x1), min(max(at.y(), y0), y1)

    def set_state(self, text: str, *, busy: bool = False) -> None:
        """Set the state; `busy` adds a bar.

        The text is drawn in the middle, or at the right of the picture, also of saved ones.
        """
        self.state = text
        self._bar.setVisible(busy)
        self._write()

    def _legend(self) -> Sequence[tuple[str, QColor]]:
        """Texts above what is drawn, and the colours of the marks before them."""
        return ()

    def _write(self) -> None:
        """Write the legend and the state."""
        if self.plotItem.isVisible() == self.empty:
            self.plotItem.setVisible(not self.empty)
            # While the axes are hidden, pyqtgraph sets both sizes to 0.
            self._axes["left"].setWidth(LEFT)
            self._axes["bottom"].setHeight(BOTTOM)
        colours = self._colours
        legend = () if self.empty else self._legend()
        self._write_legend(legend)
        shade = colours.text if self.empty else colours.accent
        align = "center" if self.empty else "right"
        behind = colours.named("background").getRgb()[:3]
        style = f"color: {shade}; background-color: rgba{(*behind, BEHIND)}"
        state = self._undrawn or self.state
        line = f"<span style='{style}'>{escape(state)}</span>" if state else ""
        html = f"<div align='{align}'>{line}</div>"
        if html != self._written:
            self._text.setHtml(html)
            self._written = html
        self._text.setTextWidth(self.width() - LEFT - 2 * MARGIN)
        high = self._text.boundingRect().height()
        if self.empty:  # A message alone is in the middle.
            self._text.setPos(LEFT / 2 + MARGIN, (self.height() - high) / 2)
        else:
            self._text.setPos(LEFT, self.area().top())
        width = min(160, self.width() // 2)
        self._bar.setGeometry((self.width() - width) // 2, self.height() // 2 + 24, width, 6)

    def _write_legend(self, legend: Sequence[tuple[str, QColor]]) -> None:
        """Write the legend, and make room for it."""
        marks = [
            f"<nobr><span style='color: {mark.name()}'>●</span> {escape(text)}</nobr>"
            for text, mark in legend
        ]
        html = f"<div align='right'>{' &nbsp; '.join(marks)}</div>" if marks else ""
        wanted = html, self.width(), self._colours.text
        if wanted == self._known:
            return
        self._known = wanted
        self._head.setHtml(html)
        self._head.setDefaultTextColor(QColor(self._colours.text))
        self._head.setTextWidth(self.width() - LEFT - MARGIN)
        self._head.setPos(LEFT, 0)
        height = self._head.boundingRect().height() if marks else MARGIN
        self.plotItem.layout.setContentsMargins(0, math.ceil(height), RIGHT, 2)
        self.plotItem.layout.activate()

    def resizeEvent(self, event: Any) -> None:
        """Draw in the new size."""
        super().resizeEvent(event)
        # The constructor of the base class calls this, too.
        if hasattr(self, "_bar") and not self.closed:
            self._write()

    def _redraw(self) -> None:
        """Draw everything anew."""
        raise NotImplementedError

    def save(self, path: str | Path, facts: Mapping[str, str] | None = None) -> None:
        """Save the plot, on white, to a file of one of the suffixes in `PICTURES`.

        `facts` become texts of a PNG file, or the description of an SVG or a PDF file. Raises
        ValueError for another suffix, OSError if the file cannot be written.
        """
        path = Path(path)
        facts = facts or {}
        if path.suffix.lower() not in PICTURES:
            wanted = ", ".join(PICTURES)
            raise ValueError(f"`path` must end with one of {wanted}, got {path.name!r}")
        device = _device(path, facts)
        size = self.size()
        colours = self._colours
        self.resize(EXPORT_SIZE)
        self.resizeEvent(None)
        self.set_colours(PAPER)
        painter = QPainter(device)
        drawn = painter.isActive()
        if drawn:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self.render(painter, QRectF(0, 0, EXPORT_SIZE.width(), EXPORT_SIZE.height()))
            painter.end()
        self.set_colours(colours)
        self.resize(size)
        if not drawn or (isinstance(device, QImage) and not device.save(str(path))):
            raise OSError(f"{path} cannot be written")


def _device(path: Path, facts: Mapping[str, str]) -> Any:
    """A picture to draw on, finer than the screen, or a file; both with texts."""
    width = EXPORT_SIZE.width()
    height = EXPORT_SIZE.height()
    if path.suffix.lower() == ".png":
        device: Any = QImage(EXPORT_SIZE * SCALE, QImage.Format.Format_ARGB32)
        device.setDevicePixelRatio(SCALE)
        for name, text in facts.items():
            device.setText(name, text)
        return device
    texts = "\n".join(f"{name}: {text}" for name, text in facts.items())
    if path.suffix.lower() == ".svg":
        from qtpy.QtSvg import QSvgGenerator

        device = QSvgGenerator()
        device.setFileName(str(path))
        device.setSize(EXPORT_SIZE)
        device.setViewBox(QRectF(0, 0, width, height))
        device.setDescription(texts)
    else:
        device = QPdfWriter(str(path))
        device.setResolution(72)
        device.setPageSize(QPageSize(QSizeF(EXPORT_SIZE), QPageSize.Unit.Point))
        device.setPageMargins(QMarginsF())
        device.setCreator(texts)
    device.setTitle("Euler characteristic curve")
    return device
