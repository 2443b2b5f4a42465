"""The plugin's settings: Preferences, plugin settings, napari-ecc."""

from __future__ import annotations

from typing import Any

from napari.settings import get_plugin_settings

__all__ = ["read_settings"]

PLUGIN = "napari-ecc"


def read_settings(category: str) -> dict[str, Any]:
    """Current values of one category of the manifest's ``configurations``.

    Parameters
    ----------
    category : str
        Its key, such as "explorer".

    Returns
    -------
    dict
        Value by name; empty where napari does not know the plugin, so that defaults hold.
    """
    try:
        settings: Any = get_plugin_settings(PLUGIN)
    except KeyError:
        return {}
    values: dict[str, Any] = getattr(settings, category).model_dump()
    return values
