"""A choice of layer that survives as layers come, go and are renamed."""

from __future__ import annotations

from typing import Any

from napari.layers import Image
from psygnal import Signal

from napari_ecc._controller.layers import layer_named, names_of

__all__ = ["LayerChoice"]


class LayerChoice:
    """Keeps a field of a model the name of a layer of one class, or "" where there is none.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    model : evented dataclass
    field : str
        Of the model; holds the name.
    kind : type, default Image
        Class of the layers to choose from.

    Attributes
    ----------
    names_changed : Signal
        Layers came, went or were renamed.
    """

    names_changed = Signal()

    def __init__(self, viewer: Any, model: Any, field: str, kind: Any = Image) -> None:
        self.viewer, self.model, self.field, self.kind = viewer, model, field, kind
        self._layer: Any = None
        for layer in viewer.layers:
            layer.events.name.connect(self._on_renamed)
        viewer.layers.events.inserted.connect(self._on_inserted)
        viewer.layers.events.removed.connect(self._on_removed)
        self._signal.connect(self._remember)
        self.pick()
        self._remember()

    def close(self) -> None:
        """Let go of the viewer."""
        self._signal.disconnect(self._remember)
        self.viewer.layers.events.inserted.disconnect(self._on_inserted)
        self.viewer.layers.events.removed.disconnect(self._on_removed)
        for layer in self.viewer.layers:
            layer.events.name.disconnect(self._on_renamed)
        self._layer = None
        self.names_changed.disconnect()

    @property
    def layer(self) -> Any | None:
        """The chosen layer."""
        return layer_named(self.viewer, getattr(self.model, self.field))

    @property
    def names(self) -> list[str]:
        """What can be chosen."""
        return names_of(self.viewer, self.kind)

    def pick(self) -> None:
        """Choose the viewer's active layer or the last one, unless one is chosen."""
        if self.layer is None:
            active, names = self.viewer.layers.selection.active, self.names
            chosen = active.name if active is not None and active.name in names else ""
            setattr(self.model, self.field, chosen or (names[-1] if names else ""))

    @property
    def _signal(self) -> Any:
        return getattr(self.model.events, self.field)

    def _remember(self, *_: Any) -> None:
        self._layer = self.layer

    def _on_inserted(self, event: Any) -> None:
        event.value.events.name.connect(self._on_renamed)
        self.pick()
        self.names_changed.emit()

    def _on_removed(self, event: Any) -> None:
        event.value.events.name.disconnect(self._on_renamed)
        self.pick()
        self._remember()
        self.names_changed.emit()

    def _on_renamed(self, event: Any) -> None:
        if self._layer is not None and event.source == self._layer:
            with self._signal.blocked():
                setattr(self.model, self.field, event.source.name)
        self.names_changed.emit()
