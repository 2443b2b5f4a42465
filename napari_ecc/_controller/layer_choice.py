"""A selected layer that follows layers as they are added, removed and renamed."""

from __future__ import annotations

from typing import Any

from psygnal import Signal

from napari_ecc._controller.layers import names_of
from napari_ecc._controller.links import Links


class LayerChoice:
    """Keeps a field of a model equal to the name of a layer of some classes, or "".

    A layer of the first class is selected automatically; one of another class only when the dock is
    opened, and only if there is none of the first. An `optional` choice is left to the user.
    """

    names_changed = Signal()  # layers were added, removed or renamed

    def __init__(
        self, viewer: Any, model: Any, field: str, *kinds: Any, optional: bool = False
    ) -> None:
        self.viewer, self.model, self.field, self.kinds = viewer, model, field, kinds
        self.optional = optional
        self._layer: Any = None
        self._chosen = getattr(model.events, field)  # the signal
        self._links = Links()
        events = viewer.layers.events
        self._links.add(self._on_renamed, events.renamed)
        self._links.add(self._on_layers, events.inserted, events.removed)
        self._links.add(self._remember, self._chosen)
        self._pick(*self.kinds)
        self._remember()

    def close(self) -> None:
        """Disconnect from the viewer."""
        self._links.close()
        self._layer = None
        self.names_changed.disconnect()

    @property
    def layer(self) -> Any | None:
        """The chosen layer."""
        layers, name = self.viewer.layers, self.name
        return layers[name] if name and name in layers else None

    @property
    def name(self) -> str:
        """The name of the chosen layer, or ""."""
        return str(getattr(self.model, self.field))

    @property
    def names(self) -> list[str]:
        """The layers that can be selected."""
        return names_of(self.viewer, *self.kinds)

    def _pick(self, *kinds: Any) -> None:
        """Select the viewer's active layer or the last one, unless one is selected."""
        if self.layer is not None:
            return
        active = self.viewer.layers.selection.active
        offered = [] if self.optional else [names_of(self.viewer, kind) for kind in kinds]
        names = next(filter(None, offered), [""])
        found = active.name if active is not None and active.name in names else names[-1]
        setattr(self.model, self.field, found)

    def _remember(self, *_: Any) -> None:
        self._layer = self.layer

    def _on_layers(self, *_: Any) -> None:
        self._pick(self.kinds[0])
        self._remember()
        self.names_changed.emit()

    def _on_renamed(self, event: Any) -> None:
        layer = self.viewer.layers[event.index]
        if layer == self._layer:
            with self._chosen.blocked():
                setattr(self.model, self.field, layer.name)
        self.names_changed.emit()
