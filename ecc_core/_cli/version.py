"""The version of the installed package."""

from functools import cache
from importlib.metadata import version as installed_version

__all__ = ["version"]


@cache
def version() -> str:
    """Return the version of the installed distribution."""
    return installed_version("napari-ecc")
