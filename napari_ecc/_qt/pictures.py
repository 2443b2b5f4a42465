"""Pictures that plots are saved as."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qtpy.QtCore import QRectF, QSize
from qtpy.QtGui import QImage

__all__ = ["EXPORT_SIZE", "new_image", "new_svg"]

EXPORT_SIZE = QSize(640, 400)
SCALE = 3
"""Pixels of a PNG file for one of the screen."""


def new_image(size: QSize, facts: Mapping[str, str] | None = None) -> QImage:
    """An image to draw on, finer than the screen, with texts that are saved in a PNG file."""
    image = QImage(size * SCALE, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(SCALE)
    for name, text in (facts or {}).items():
        image.setText(name, text)
    return image


def new_svg(path: Path, facts: Mapping[str, str] | None = None) -> Any:
    """An SVG file of `EXPORT_SIZE` to draw on, with texts as its description."""
    from qtpy.QtSvg import QSvgGenerator

    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(EXPORT_SIZE)
    generator.setViewBox(QRectF(0, 0, EXPORT_SIZE.width(), EXPORT_SIZE.height()))
    generator.setTitle("Euler characteristic curve")
    generator.setDescription("\n".join(f"{name}: {text}" for name, text in (facts or {}).items()))
    return generator
