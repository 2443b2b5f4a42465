"""``ecc info``: what a file holds and which curve would be computed of it."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._cli import options
from ecc_core._cli.errors import blame, one_line
from ecc_core._cli.inputs import open_input
from ecc_core._io.select import select, shown
from ecc_core._io.views import View, grown_chunks
from ecc_core.io import StoredImage

__all__ = ["DESCRIPTION", "HELP", "add_arguments", "run"]

Array = NDArray[Any]

HELP = "describe image files"
DESCRIPTION = (
    "Print the shape, axes, data type, spacing, range and number of NaN of images, and the curve "
    "that `ecc curve` computes by default."
)

SLAB = 1 << 26  # bytes that are read at once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    options.add(parser, "inputs")
    options.add_selection(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print a few lines for each input."""
    for path in arguments.inputs:
        image = open_input(path, arguments)
        with blame(path):
            facts = list(_facts(image, arguments))
        lines = [path, *(f"  {name:<7} {text}" for name, text in facts)]
        sys.stdout.write("\n".join(lines) + "\n")


def _facts(image: StoredImage, arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    shape = " x ".join(map(str, image.shape)) or "none"
    yield "shape", f"{shape} ({image.axes})" if image.axes else shape
    yield "dtype", str(image.dtype)
    if image.series > 1:
        yield "series", f"{arguments.series or 0} of {image.series}"
    if image.levels > 1:
        yield "level", f"{arguments.level} of {image.levels}"
    if image.spacing:
        steps = ", ".join(f"{axis} {step}" for axis, step in image.spacing.items())
        yield "spacing", f"{steps} {image.unit or '(unknown unit)'}"
    for note in image.notes:
        yield "note", note
    if image.dtype.kind not in "buif":
        yield "curve", "none: values are not real numbers"
        return
    if not image.shape:
        yield "curve", "none: needs 1 to 3 axes, got 0"
        return
    try:
        view, axes = select(
            image, channel=arguments.channel, time=arguments.time, roi=arguments.roi
        )
    except ValueError as error:
        yield "curve", f"none: {one_line(error)}"
        return
    if arguments.channel is not None:
        yield "channel", shown(arguments.channel)
    if arguments.time is not None:
        yield "time", shown(arguments.time)
    low, high, nans, infinities = _statistics(view)
    if low is not None:
        yield "range", f"{low} to {high}"
    if view.source.dtype.kind == "f":
        yield "NaN", str(nans)
        yield "inf", str(infinities)
    yield "curve", _default_curve(view.shape, axes, low, high, nans)


def _statistics(view: View) -> tuple[Any, Any, int, int]:
    """Return the finite minimum and maximum, or None, and how many NaN and infinite values."""
    low = high = None
    nans = infinities = 0
    for part in _slabs(view):
        if part.dtype.kind == "f":
            nans += int(np.isnan(part).sum())
            infinities += int(np.isinf(part).sum())
            part = part[np.isfinite(part)]
        if part.size:
            low = part.min() if low is None else min(low, part.min())
            high = part.max() if high is None else max(high, part.max())
    return low, high, nans, infinities


def _slabs(view: View) -> Iterator[Array]:
    """Yield parts of an image along its first axis, each of which fits in memory."""
    source = view.source
    sizes = grown_chunks(
        source.chunks, source.shape, view.order[:0:-1] + view.order[:1], source.dtype.itemsize, SLAB
    )
    others = [slice(0, n) for n in view.shape[1:]]
    start = 0
    for length in view.chunks(sizes)[0]:
        yield view.read((slice(start, start + length), *others))
        start += length


def _default_curve(shape: tuple[int, ...], axes: str, low: Any, high: Any, nans: int) -> str:
    if low is None:
        return "none: no finite value"
    if nans:
        return "none: has NaN, choose --nan omit"
    ndim = sum(letter in "ZYX" for letter in axes)
    batch = zip(axes[:-ndim], shape, strict=False)
    each = "".join(f", one for each of {n} along {letter}" for letter, n in batch)
    connected = {1: "2-connected", 2: "8-connected", 3: "26-connected"}[ndim]
    return f"256 thresholds from {low} to {high}, {connected}, sublevel sets{each}"
