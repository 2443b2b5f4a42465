"""Widgets that are painted in the colours of napari's theme, live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from napari.utils.theme import get_theme
from qtpy.QtCore import QRectF, QSize, Qt
from qtpy.QtGui import QColor, QImage, QPainter
from qtpy.QtWidgets import QProgressBar, QSizePolicy, QWidget

__all__ = ["PALETTE", "PAPER", "PaintedWidget", "PlotColours", "colours_of", "rgb"]

LOWEST = 180
"""Minimum height of a plot in pixels."""
EXPORT_SIZE = QSize(640, 400)
SCALE = 3
"""Pixels of a PNG file per pixel of the screen."""


class PlotColours(NamedTuple):
    """Colours of a plot, as ``#rrggbb``."""

    background: str
    axis: str
    text: str
    curve: str
    faint: str
    accent: str


PAPER = PlotColours("#ffffff", "#4d4d4d", "#1a1a1a", "#1a1a1a", "#d9d9d9", "#d55e00")
"""Colours of saved figures: black on white."""

PALETTE = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#0072b2")
"""Colours of groups and classes, for any background (Okabe and Ito)."""

ON_DARK = {"curve": "#6cc5ff", "accent": "#ff9f43"}
ON_LIGHT = {"curve": "#0072b2", "accent": "#d55e00"}


def colours_of(theme: str) -> PlotColours:
    """Colours that go with a napari theme, such as "dark"."""
    found = get_theme(theme)
    light = sum(found.background.as_rgb_tuple()[:3]) > 3 * 128
    return PlotColours(
        background=found.background.as_hex("long"),
        axis=found.highlight.as_hex("long"),
        text=found.text.as_hex("long"),
        faint=found.foreground.as_hex("long"),
        **(ON_LIGHT if light else ON_DARK),
    )


def rgb(colour: str) -> tuple[float, ...]:
    """Channels from 0 to 1 of a colour."""
    return tuple(QColor(colour).getRgbF())


class PaintedWidget(QWidget):
    """The base class of plots: what is drawn, or why there is nothing, and what it is not."""

    pictures: tuple[str, ...] = ()
    """Suffixes of files that it can be saved as."""
    preferred = QSize(360, 240)
    """What `sizeHint` returns."""

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumHeight(LOWEST)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self._colours = PAPER
        self._state = ""
        self._bar = QProgressBar(self)
        self._bar.setRange(0, 0)
        self._bar.setTextVisible(False)
        self._bar.hide()

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

    @property
    def state(self) -> str:
        """The text of `set_state`."""
        return self._state

    def set_state(self, text: str, *, busy: bool = False) -> None:
        """Set why there is nothing to draw, or what the picture is not; `busy` adds a bar.

        The text is drawn in the middle, or at the right of the picture, also of saved ones.
        """
        if text != self._state:
            self._state = text
            self._redraw()
        self._bar.setVisible(busy)
        self._place_bar()

    def _place_bar(self) -> None:
        width = min(160, self.width() // 2)
        self._bar.setGeometry((self.width() - width) // 2, self.height() // 2 + 24, width, 6)

    def resizeEvent(self, event: Any) -> None:
        """Draw in the new size."""
        self._place_bar()
        self._redraw()

    def picture_size(self) -> QSize:
        """Size of saved pictures, in pixels of the screen."""
        return EXPORT_SIZE

    def save(self, path: str | Path, facts: Mapping[str, str] | None = None) -> None:
        """Save what is painted, on white, to a file of one of the suffixes `pictures`.

        `facts` become texts of a PNG file, or the description of an SVG file. Raises ValueError for
        another suffix, OSError if the file cannot be written.
        """
        path, size, facts = Path(path), self.picture_size(), facts or {}
        suffix = path.suffix.lower()
        if suffix not in self.pictures:
            wanted = " or ".join(self.pictures)
            raise ValueError(f"`path` must end with {wanted}, got {path.name!r}")
        svg = suffix == ".svg"
        device = _new_svg(path, size, facts) if svg else _new_image(size, facts)
        painter = QPainter(device)
        if not painter.isActive():
            raise OSError(f"{path} cannot be written")
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint(painter, QRectF(0, 0, size.width(), size.height()), PAPER)
        painter.end()
        if not svg and not device.save(str(path)):
            raise OSError(f"{path} cannot be written")

    def paintEvent(self, event: Any) -> None:
        """Draw on the background."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint(painter, QRectF(self.rect()), self._colours)
        painter.end()

    def _paint(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        """Paint the widget, or what is saved of it."""
        raise NotImplementedError

    def _redraw(self) -> None:
        """Schedule a repaint."""
        self.update()

    def _paint_message(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        painter.setPen(QColor(colours.text))
        flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        painter.drawText(area, flags, self._state)

    def _paint_note(self, painter: QPainter, area: QRectF, colours: PlotColours) -> None:
        painter.setPen(QColor(colours.accent))
        flags = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight
        painter.drawText(area, flags, self._state)


def _new_image(size: QSize, facts: Mapping[str, str]) -> Any:
    """An image to draw on, finer than the screen, with texts that are saved in the file."""
    image = QImage(size * SCALE, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(SCALE)
    for name, text in facts.items():
        image.setText(name, text)
    return image


def _new_svg(path: Path, size: QSize, facts: Mapping[str, str]) -> Any:
    """An SVG file to draw on, with texts as its description."""
    from qtpy.QtSvg import QSvgGenerator

    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle("Euler characteristic curve")
    generator.setDescription("\n".join(f"{name}: {text}" for name, text in facts.items()))
    return generator
