"""``ecc info``: what a file holds and which curve would be computed of it."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core.io import ImageFile, read_file, select_channel

__all__ = ["add_parser"]

Array = NDArray[Any]


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "info",
        help="show what files hold",
        description="Show shape, axes, type, range and NaN of images, and the curve that "
        "`ecc curve` computes of them by default.",
        allow_abbrev=False,
    )
    parser.set_defaults(run=run)
    options.add_image_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print a few lines for each input."""
    for path in arguments.inputs:
        file = read_file(path, axes=arguments.axes)
        lines = [path, *(f"  {name:<7} {text}" for name, text in _facts(file, arguments.channel))]
        sys.stdout.write("\n".join(lines) + "\n")


def _facts(file: ImageFile, channel: int | str | None) -> Iterator[tuple[str, str]]:
    values = file.values
    shape = " x ".join(map(str, values.shape)) or "none"
    yield "shape", f"{shape} ({file.axes})" if file.axes else shape
    yield "dtype", str(values.dtype)
    try:
        image = select_channel(file, channel)
    except ValueError as error:
        yield "curve", f"none: {error}"
        return
    if image.dtype.kind not in "buif":
        yield "curve", "none: values are not real numbers"
        return
    if channel is not None:
        yield "channel", str(channel)
    low, high, nans, infinities = _statistics(image)
    if low is not None:
        yield "range", f"{low} to {high}"
    if image.dtype.kind == "f":
        yield "NaN", str(nans)
        yield "inf", str(infinities)
    yield "curve", _default_curve(image, low, high, nans)


def _statistics(image: Array) -> tuple[Any, Any, int, int]:
    """Return the finite minimum and maximum, or None, and how many NaN and infinite values."""
    low = high = None
    nans = infinities = 0
    for part in image if image.ndim > 1 else [image]:  # mapped files may exceed the memory
        if image.dtype.kind == "f":
            nans += int(np.isnan(part).sum())
            infinities += int(np.isinf(part).sum())
            part = part[np.isfinite(part)]
        if part.size:
            low = part.min() if low is None else min(low, part.min())
            high = part.max() if high is None else max(high, part.max())
    return low, high, nans, infinities


def _default_curve(image: Array, low: Any, high: Any, nans: int) -> str:
    if not 1 <= image.ndim <= 3:
        return f"none: needs 1 to 3 axes, got {image.ndim}"
    if low is None:
        return "none: no finite value"
    if nans:
        return "none: has NaN, choose --nan omit"
    connected = {1: "2-connected", 2: "8-connected", 3: "26-connected"}[image.ndim]
    return f"256 thresholds from {low} to {high}, {connected}, sublevel sets"
