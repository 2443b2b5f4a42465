"""Exceptions raised by :mod:`ecc_core` beyond Python's own ``TypeError`` and ``ValueError``."""

__all__ = ["BackendError", "EccError", "InputFileError"]


class EccError(Exception):
    """Base class of the package's own exceptions."""


class BackendError(EccError, RuntimeError):
    """A compute backend that the input asks for is not installed or not usable."""


class InputFileError(EccError, ValueError):
    """A file that cannot be read as an image, mask or label image."""


NAN_MESSAGE = '`image` must not contain NaN (pass nan="omit" to leave such points out), got NaN'
