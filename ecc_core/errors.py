"""Exceptions of :mod:`ecc_core` other than ``TypeError`` and ``ValueError``."""

__all__ = ["BackendError", "EccError", "InputFileError"]


class EccError(Exception):
    """Base class of the package's own exceptions."""


class BackendError(EccError, RuntimeError):
    """A backend that the input requires is not installed or cannot be used."""


class InputFileError(EccError, ValueError):
    """A file that cannot be read as an image, mask or label image."""


def nan_message(name: str) -> str:
    """Message of the ValueError for an image with NaN, by the name of the argument."""
    return f'`{name}` must not contain NaN (pass nan="omit" to leave such points out), got NaN'


NAN_MESSAGE = nan_message("image")
