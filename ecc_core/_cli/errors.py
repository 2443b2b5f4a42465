"""Messages of errors: one line that names the file, and options in place of arguments."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ecc_core._io.retries import without_secrets
from ecc_core.errors import InputFileError

ARGUMENTS = {
    "image": "the image",
    "first": "the first image",
    "second": "the second image",
    "prediction": "the prediction",
    "target": "the target",
    "axis": "--axes",
    "estimator": "--minkowski",
    "min_persistence": "--persistence",
}
"""The words for arguments of the library. Other arguments are options of the same name."""
TUPLE_OF_WORDS = re.compile(r"\('[\w-]+'(?:, '[\w-]+')+\)")
"""A tuple of words in a message, such as the boundary ('closed', 'periodic')."""


class FailedImages(Exception):
    """Some images failed after all others were computed. `args` are the reasons."""


def failure_of(path: str, error: Exception | str) -> str:
    """Return why an image failed, with its path."""
    reason = one_line(error)
    return reason if path in reason else f"{path}: {reason}"


@contextmanager
def blame(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the path to errors and warnings that the file causes."""
    try:
        with _warnings_of(path):
            yield
    except InputFileError:
        raise
    except (TypeError, ValueError) as error:
        raise InputFileError(f"{path}: {one_line(error)}") from error


@contextmanager
def _warnings_of(path: str | os.PathLike[str]) -> Iterator[None]:
    """Show warnings with the path before their message."""
    show = warnings.showwarning

    def show_with_path(message: Warning | str, *place: Any, **more: Any) -> None:
        show(UserWarning(failure_of(str(path), message)), *place, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show_with_path
        yield


def one_line(error: BaseException | str) -> str:
    """Return a message in one line, with options instead of Python's arguments."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return without_secrets(named)
    if isinstance(error, MemoryError):
        return "not enough memory" + (f": {error}" if str(error) else "")
    words = str(error).split()
    message = without_secrets(" ".join(words)) or type(error).__name__
    message = re.sub(r'\b(\w+)="([\w-]+)"', r"--\1 \2", message)
    message = message.replace("must be None", "must not be given")
    message = TUPLE_OF_WORDS.sub(_with_commas, message)

    def option(found: re.Match[str]) -> str:
        return ARGUMENTS.get(found[1]) or "--" + found[1].replace("_", "-")

    return re.sub(r"`(\w+)`", option, message)


def _with_commas(found: re.Match[str]) -> str:
    """Return a tuple of words as a list with commas, as options take it."""
    return ",".join(re.findall(r"[\w-]+", found[0]))
