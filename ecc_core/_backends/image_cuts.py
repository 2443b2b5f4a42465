"""Where windows are cut from images."""

from typing import NamedTuple


class Cut(NamedTuple):
    """The places of windows in images (..., *sides)."""

    before: tuple[int, ...]
    """How far the first window begins before the image, along each axis; negative behind it."""
    positions: tuple[int, ...]
    """The number of windows along each axis."""
    side: int
    stride: int
    fill: float
    """The value of points outside the images."""
