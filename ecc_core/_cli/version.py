"""The version of the installed package."""

from importlib.metadata import version as installed_version

__all__ = ["version"]


def version() -> str:
    """Return the version of the installed distribution."""
    return installed_version("napari-ecc")
