"""State that the docks of a viewer share."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from napari_ecc._controller.history import History
from napari_ecc._model.explorer import ExplorerModel
from napari_ecc._settings import read_settings

__all__ = ["Session", "session_of"]


class Session:
    """State shared by the docks of a viewer, kept while one of them is open.

    Attributes
    ----------
    viewer : napari.viewer.Viewer
        As napari hands it to plugins: a proxy of public names.
    history : History
        Changes to layers that can be undone.
    explorer : ExplorerModel
        Image layer and threshold of the Euler explorer, for the other docks to follow.
    controllers : dict of str to controller
        Of the docks that are open now, by topic.
    """

    def __init__(self, viewer: Any) -> None:
        self.viewer = viewer
        self.history = History()
        settings = read_settings("explorer")
        full = settings.pop("full_connectivity", True)
        self.explorer = ExplorerModel(**settings, connectivity=None if full else 1)
        self.controllers: WeakValueDictionary[str, Any] = WeakValueDictionary()


_sessions: WeakValueDictionary[int, Session] = WeakValueDictionary()


def session_of(viewer: Any) -> Session:
    """Return the session of a viewer, a new one if no dock is open.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
        Or a proxy of one.

    Returns
    -------
    Session
        Keep it: the plugin itself holds no strong reference.
    """
    key = id(getattr(viewer, "__wrapped__", viewer))
    session = _sessions.get(key)
    if session is None:
        session = _sessions[key] = Session(viewer)
    return session
