"""The version of the installed package."""

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

__all__ = ["version"]


@cache
def version() -> str:
    """Return the version of the installed distribution, "unknown" for a checkout on the path."""
    try:
        return installed_version("napari-ecc")
    except PackageNotFoundError:
        return "unknown"
