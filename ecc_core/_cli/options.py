"""Arguments that several commands share, and what they mean."""

import argparse
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core.errors import InputFileError
from ecc_core.io import IMAGE_SUFFIXES, check_output

__all__ = [
    "add_image_arguments",
    "blame",
    "channel",
    "one_line",
    "output",
    "sigma",
    "thresholds",
    "value_range",
]


def add_image_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the images to read."""
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help=f"image ({', '.join(IMAGE_SUFFIXES)}); the pages of a TIFF file make a 3-D image",
    )
    parser.add_argument(
        "--channel",
        type=channel,
        metavar="C",
        help="channel of images that have several: 0, 1, ..., or r, g, b, a, gray for colours",
    )
    parser.add_argument(
        "--axes",
        metavar="LETTERS",
        help="axes of the file's array where the file does not tell, such as ZYX or YXC; "
        "C are channels, S are colours",
    )


def channel(text: str) -> int | str:
    """Return the index or name of a channel."""
    return int(text) if text.isdecimal() else text


def thresholds(text: str) -> int | str | NDArray[Any]:
    """Return how many thresholds, "exact", or the thresholds themselves."""
    if text == "exact":
        return text
    if re.fullmatch(r"0*[1-9]\d*", text):
        return int(text)
    try:
        if re.fullmatch(r"[+-]?\d+", text):  # a single threshold has a comma or a point
            raise ValueError
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


def _numbers(text: str) -> NDArray[Any]:
    """Return numbers with commas between, as integers if all of them are."""
    words = text.rstrip(",").split(",")
    try:
        integers = np.array([int(word) for word in words])
        if integers.dtype.kind in "iu":
            return integers
    except ValueError:
        pass
    return np.array([float(word) for word in words])


def sigma(text: str) -> float:
    """Return a standard deviation."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of pixels, got {text!r}")
    return value


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


def one_line(error: BaseException) -> str:
    """Return what an error says in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "not enough memory" + (f": {error}" if str(error) else "")
    return " ".join(str(error).split()) or type(error).__name__
