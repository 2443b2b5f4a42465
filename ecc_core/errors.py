"""Exceptions of :mod:`ecc_core` other than ``TypeError`` and ``ValueError``, and warnings."""

import itertools
import sys
import traceback
import warnings
from pathlib import Path

__all__ = ["BackendError", "EccError", "InputFileError"]


class EccError(Exception):
    """Base class of the package's own exceptions."""


class BackendError(EccError, RuntimeError):
    """A backend that the input requires is not installed or cannot be used."""


class InputFileError(EccError, ValueError):
    """A file that cannot be read as an image, mask or label image."""


def nan_message(name: str) -> str:
    """Return the message of the ValueError for NaN in the argument of this name."""
    return f'`{name}` must not contain NaN (pass nan="omit" to leave such points out), got NaN'


NAN_MESSAGE = nan_message("image")
NAN_SHOWN_MESSAGE = "`image` must not contain NaN where `mask` keeps it, got NaN"
PACKAGE = str(Path(__file__).parent)


def warn_caller(message: str) -> None:
    """Warn at the line that calls the package; Python shows it once for each such line."""
    frames = (frame.f_code.co_filename for frame, _ in traceback.walk_stack(sys._getframe()))
    inside = itertools.takewhile(lambda file: file.startswith(PACKAGE), frames)
    warnings.warn(message, stacklevel=1 + len(list(inside)))
