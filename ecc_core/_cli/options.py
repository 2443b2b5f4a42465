"""Arguments that several commands share, and what they mean."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.affines import Affine
from ecc_core._io.select import select
from ecc_core._io.views import View
from ecc_core._request.thresholds import exact_array
from ecc_core.errors import InputFileError
from ecc_core.io import (
    FIGURE_SUFFIXES,
    IMAGE_SUFFIXES,
    TABLE_SUFFIXES,
    StoredImage,
    check_output,
    open_image,
)

__all__ = [
    "INPUT",
    "add_boundary_argument",
    "add_connectivity_argument",
    "add_image_arguments",
    "add_minkowski_argument",
    "add_nan_argument",
    "add_plot_argument",
    "add_selection_arguments",
    "add_table_argument",
    "add_thresholds_argument",
    "affine_of",
    "blame",
    "channel",
    "keep_inputs",
    "number",
    "one_line",
    "open_input",
    "output",
    "select_input",
    "select_single",
    "selection_of",
    "settle_estimator",
    "sigma",
    "spacing",
    "thresholds",
    "value_range",
]


INPUT = (
    "image: a file, a folder of slices, or a Zarr or OME-Zarr image, which may be remote, such as "
    f"s3://bucket/image.zarr ({', '.join(IMAGE_SUFFIXES)}). Name an array in an HDF5, NPZ or "
    "zipped Zarr file like a file in a folder: scan.h5/raw"
)


def add_image_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the argument for the images to read."""
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help=INPUT)
    add_selection_arguments(parser)


def add_selection_arguments(parser: argparse.ArgumentParser) -> Any:
    """Declare the arguments that select a part of an image; return their group."""
    group = parser.add_argument_group("part of the image")
    group.add_argument(
        "--series", type=int, metavar="N", help="index of the image in a file with several"
    )
    group.add_argument(
        "--level",
        type=int,
        default=0,
        metavar="N",
        help="resolution level of a pyramid (default: 0)",
    )
    group.add_argument(
        "--axes",
        metavar="LETTERS",
        help="axes if the file does not name them, such as TZYX or YXC, in the order that ecc info "
        "prints without this option: Z, Y and X for space, T for time, C for channels, S for "
        "colour samples",
    )
    group.add_argument(
        "--channel",
        type=channel,
        metavar="C",
        help="channel, an index or a range such as 0:2 (default: all, one curve each). Required "
        "for colour images: r, g, b, a or gray",
    )
    group.add_argument(
        "--time",
        type=index_or_range,
        metavar="T",
        help="time point, an index or a range such as 10:20 (default: all, one curve each)",
    )
    group.add_argument(
        "--roi",
        type=roi,
        metavar="A:B,...",
        help="region of interest: a range for each of the axes Z, Y and X, such as :,100:200,:",
    )
    return group


def add_boundary_argument(parser: Any) -> None:
    """Declare the argument for the border of an image."""
    parser.add_argument(
        "--boundary",
        choices=("closed", "periodic", "half-open"),
        default="closed",
        help="the image ends at its border (default), opposite sides touch, or it is a window of a "
        "larger image",
    )


def add_minkowski_argument(parser: Any) -> None:
    """Declare the argument for Minkowski functionals."""
    parser.add_argument(
        "--minkowski",
        nargs="?",
        const=True,
        choices=("exact", "crofton-2", "crofton-4", "crofton-3", "crofton-13"),
        help="add area and perimeter, or volume, surface and mean breadth. For natural objects, "
        "whose surface is smooth, use crofton-4 (2-D) or crofton-13 (3-D), which estimate from 4 "
        "or 13 directions; crofton-2 and crofton-3 use only those of the axes. exact, the default, "
        "measures the pixels or voxels as they are: steps make the perimeter of a disk 4/pi and "
        "the surface of a ball 3/2 times too large",
    )


def settle_estimator(arguments: argparse.Namespace) -> None:
    """Let --minkowski without a value be exact, and say so."""
    if arguments.minkowski is True:
        arguments.minkowski = "exact"
        sys.stderr.write(
            "ecc: --minkowski exact: perimeters and surfaces of smooth objects are up to 3/2 times "
            "too large; crofton-4 (2-D) or crofton-13 (3-D) suits these\n"
        )


def add_thresholds_argument(
    parser: Any, name: str = "--thresholds", *, count: int = 256, exact: bool = False, of: str = ""
) -> None:
    """Declare an argument for thresholds."""
    parser.add_argument(
        name,
        type=thresholds,
        default=count,
        metavar=f"{count}|exact|a,b,c" if exact else f"{count}|a,b,c",
        help=f"number of thresholds{of}, evenly spaced over the range; "
        + ("exact for every level at which a curve changes; " if exact else "")
        + f"or an increasing list of thresholds, in which 110, is the one threshold 110 (default: "
        f"{count})",
    )


def add_table_argument(parser: Any, *, required: bool = False, names: bool = True) -> None:
    """Declare the argument for a table; `names`: whether it has columns of file names."""
    formulas = (
        ". In CSV, an apostrophe precedes file names that begin with =, +, - or @, which "
        "spreadsheets would take for formulas"
    )
    parser.add_argument(
        "--out",
        type=output(TABLE_SUFFIXES),
        required=required,
        metavar="FILE",
        help="table to write: .csv, or .parquet or .json, which include the settings"
        + (formulas if names else ""),
    )


def add_connectivity_argument(parser: Any) -> None:
    """Declare the argument for the connectivity."""
    parser.add_argument(
        "--connectivity",
        type=int,
        metavar="N",
        help="as in scikit-image: 1 for 4- or 6-connectivity; the number of axes, the default, for "
        "8- or 26-connectivity",
    )


def add_nan_argument(parser: Any) -> None:
    """Declare the argument for NaN."""
    parser.add_argument(
        "--nan",
        choices=("raise", "omit"),
        default="raise",
        help="reject images with NaN, or omit these points (default: raise)",
    )


def add_plot_argument(parser: Any, more: str = "") -> None:
    """Declare the argument for a figure."""
    parser.add_argument(
        "--plot",
        type=output(FIGURE_SUFFIXES),
        metavar="FILE",
        help=f"figure to write: .png, .pdf or .svg{more}",
    )


def keep_inputs(outputs: Iterable[Path | None], inputs: Iterable[str | None]) -> None:
    """Raise an error if an output would overwrite an input."""
    given = [Path(path) for path in inputs if path and Path(path).exists()]
    for path in filter(None, outputs):
        if path.exists() and any(path.samefile(other) for other in given):
            raise InputFileError(f"{path}: the output would overwrite the input")


def select_single(
    path: str, arguments: argparse.Namespace, rule: str
) -> tuple[StoredImage, View, str]:
    """Open an image; return it, the selected part, which must have no other axes, and its axes."""
    stored = open_input(path, arguments)
    view, axes = select_input(path, stored, arguments)
    for letter, length in zip(axes, view.shape, strict=True):
        if letter not in "ZYX":
            choice = {"T": "; choose one with --time", "C": "; choose one with --channel"}
            raise InputFileError(
                f"{path}: {rule}, but its axis {letter} has {length}{choice.get(letter, '')}"
            )
    return stored, view, axes


def open_input(path: str, arguments: argparse.Namespace) -> StoredImage:
    """Open an image according to the arguments."""
    return open_image(path, series=arguments.series, level=arguments.level, axes=arguments.axes)


def select_input(path: str, image: StoredImage, arguments: argparse.Namespace) -> tuple[View, str]:
    """Return the part of an image that the arguments select, batch axes first, and its axes.

    Notes of its reader are shown on stderr.
    """
    for note in image.notes:
        sys.stderr.write(f"ecc: {path}: {note}\n")
    with blame(path):
        return select(image, channel=arguments.channel, time=arguments.time, roi=arguments.roi)


def affine_of(image: StoredImage, view: View, axes: str) -> Affine | None:
    """Return where a part of an image lies, if its file says it."""
    return image.affine and image.affine.moved(dict(zip(axes, view.start, strict=True)))


def selection_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that select a part of an image, as types that JSON supports."""
    names = ("series", "level", "axes", "channel", "time")
    found = {name: getattr(arguments, name) for name in names}
    for name, value in found.items():
        if isinstance(value, slice):
            found[name] = [value.start, value.stop]
    found["roi"] = arguments.roi and [[part.start, part.stop] for part in arguments.roi]
    return found


def channel(text: str) -> int | str | slice:
    """Return the index or name of a channel, or a range."""
    return index_or_range(text) if re.fullmatch(r"\d+|\d*:\d*", text) else text


def index_or_range(text: str) -> int | slice:
    """Return an index, or a range of them."""
    if text.isdecimal():
        return int(text)
    if not re.fullmatch(r"\d*:\d*", text):
        raise argparse.ArgumentTypeError(f"must be an index or a range such as 0:9, got {text!r}")
    return slice(*(int(end) if end else None for end in text.split(":")))


def roi(text: str) -> tuple[slice, ...]:
    """Return ranges of indices."""
    parts = text.split(",")
    if not all(re.fullmatch(r"\d*:\d*", part) for part in parts):
        raise argparse.ArgumentTypeError(f"must be ranges such as 0:64,:,100:, got {text!r}")
    ends = [[int(end) if end else None for end in part.split(":")] for part in parts]
    return tuple(slice(*pair) for pair in ends)


def thresholds(text: str) -> int | str | NDArray[Any]:
    """Return a number of thresholds, "exact", or the thresholds themselves."""
    if text == "exact":
        return text
    if re.fullmatch(r"0*[1-9]\d*", text):
        return int(text)
    if re.fullmatch(r"[+-]?\d+", text):
        raise argparse.ArgumentTypeError(
            f"must be how many, at least 1, got {text!r}; the one threshold {text} is '{text},'"
        )
    try:
        return _numbers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be how many, exact, or numbers with commas between, got {text!r}"
        ) from None


def value_range(text: str) -> tuple[Any, Any]:
    """Return the two ends of a range."""
    try:
        low, high = _numbers(text).tolist()
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be two numbers lo,hi, got {text!r}") from None
    return low, high


def number(text: str) -> NDArray[Any]:
    """Return one number, as an array of it."""
    try:
        (_,) = numbers = _numbers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    return numbers


def _numbers(text: str) -> NDArray[Any]:
    """Return comma-separated numbers; integers are not rounded."""
    return exact_array([_number(word) for word in text.rstrip(",").split(",")], "numbers")


def _number(word: str) -> int | float:
    try:
        return int(word)
    except ValueError:
        return float(word)


def sigma(text: str) -> float:
    """Return a standard deviation."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of pixels, got {text!r}")
    return value


def spacing(text: str) -> float | list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers, got {text!r}") from None
    return numbers[0] if len(numbers) == 1 else numbers


def output(suffixes: tuple[str, ...]) -> Callable[[str], Path]:
    """Return the type of an argument that names a file to write, checked before any work."""

    def path(text: str) -> Path:
        try:
            return check_output(text, suffixes)
        except (ValueError, OSError, ImportError) as error:
            raise argparse.ArgumentTypeError(one_line(error)) from None

    return path


@contextmanager
def blame(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors that its contents cause."""
    try:
        yield
    except InputFileError:
        raise
    except (TypeError, ValueError) as error:
        raise InputFileError(f"{path}: {one_line(error)}") from error


ARGUMENTS = {
    "image": "the image",
    "first": "the first image",
    "second": "the second image",
    "axis": "--axes",
    "estimator": "--minkowski",
}
"""What the command calls arguments of the library; others are options of the same name."""


def one_line(error: BaseException | str) -> str:
    """Return a message in one line, with options instead of Python's arguments."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory" + (f": {error}" if str(error) else "")
    message = " ".join(str(error).split()) or type(error).__name__
    message = re.sub(r'\b(\w+)="([\w-]+)"', r"--\1 \2", message)
    message = message.replace("must be None", "must not be given")
    return re.sub(r"`(\w+)`", lambda found: _option(found[1]), message)


def _option(argument: str) -> str:
    return ARGUMENTS.get(argument) or "--" + argument.replace("_", "-")
