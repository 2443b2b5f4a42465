"""Colours of images in files: their luminance, and what is to be said of them."""

from typing import Any

import numpy as np

from ecc_core._io.lazy import Array

LUMINANCE = (0.2125, 0.7154, 0.0721)
"""Weights of red, green and blue, as in `skimage.color.rgb2gray`."""
ZERO_IS_WHITE = "0 is white and the largest value black; values are as stored"
CMYK = "channels are amounts of ink: cyan, magenta, yellow and black"


def luminance(channels: Array) -> Array:
    """Return the luminance, from 0 to 1, of red, green, blue and maybe alpha on the first axis."""
    channels = opaque_colours(channels, "gray")
    opaque = _largest_colour(channels.dtype)
    precision = channels.dtype if channels.dtype.kind == "f" else np.dtype(np.float64)
    weights = np.array(LUMINANCE, precision) / precision.type(opaque)
    values = weights[0] * channels[0]
    for weight, channel in zip(weights[1:], channels[1:], strict=True):
        # Rounding errors of a matrix product would depend on the place in the block.
        values += weight * channel
    return np.asanyarray(values)


def opaque_colours(channels: Array, purpose: str) -> Array:
    """Return red, green and blue of an image whose points are all opaque.

    The first axis has red, green, blue and maybe alpha. `purpose` is the name, in errors, of what
    is computed from them.
    """
    if channels.dtype.kind not in "uf":
        raise ValueError(f"{purpose} needs colours of type uint or float, got {channels.dtype}")
    if len(channels) == 4 and np.any(channels[3] != _largest_colour(channels.dtype)):
        raise ValueError(f"{purpose} is not defined where colours are transparent")
    return channels[:3]


def _largest_colour(dtype: np.dtype[Any]) -> int:
    """Return the value of white, and of an opaque alpha."""
    return np.iinfo(dtype).max if dtype.kind == "u" else 1


def orientation_notes(orientation: int) -> list[str]:
    """Return notes on an orientation tag of EXIF or TIFF, 1 to 8."""
    if orientation in (0, 1):
        return []
    return [f"rows and columns are as stored; its orientation tag {orientation} is not applied"]
