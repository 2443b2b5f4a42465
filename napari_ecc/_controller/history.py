"""Undo for changes that the plugin makes to layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psygnal import Signal

__all__ = ["History", "change_features"]


class History:
    """Changes that can be undone, the newest first.

    Attributes
    ----------
    changed : Signal of str
        The name of the change that `undo` would take back, or "".
    """

    changed = Signal(str)

    def __init__(self) -> None:
        self._changes: list[tuple[str, Callable[[], None]]] = []

    @property
    def newest(self) -> str:
        """The name of the change that `undo` reverts, or ""."""
        return self._changes[-1][0] if self._changes else ""

    def add(self, name: str, undo: Callable[[], None]) -> None:
        """Add a change.

        Parameters
        ----------
        name : str
            What was done, such as "Make Labels".
        undo : callable
            Takes it back; does nothing where the layer is gone.
        """
        self._changes.append((name, undo))
        self.changed.emit(self.newest)

    def undo(self) -> str:
        """Undo the newest change and return its name, or "" if there is none."""
        if not self._changes:
            return ""
        name, undo = self._changes.pop()
        undo()
        self.changed.emit(self.newest)
        return name


def change_features(history: History, layer: Any, features: Any) -> None:
    """Replace the features of a layer, so that it can be undone."""
    before = layer.features

    def undo() -> None:
        layer.features = before

    layer.features = features
    history.add(f"Features of {layer.name}", undo)
