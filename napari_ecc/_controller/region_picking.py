"""Clicks on objects in the canvas."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

__all__ = ["LabelPicker"]

PICKING_MODES = ("pan_zoom", "pick")
"""Modes of a Labels layer in which a click does not paint."""


class LabelPicker:
    """Reports which object of a Labels layer is clicked, whichever layer is active.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    layer : callable
        Returns the Labels layer, or None.
    picked : callable
        Called with the label, 0 for the background.
    """

    def __init__(
        self, viewer: Any, layer: Callable[[], Any], picked: Callable[[int], None]
    ) -> None:
        self.viewer, self._layer, self._picked = viewer, layer, picked
        viewer.mouse_drag_callbacks.append(self._on_press)

    def close(self) -> None:
        """Disconnect from the viewer."""
        self.viewer.mouse_drag_callbacks.remove(self._on_press)

    def _on_press(self, viewer: Any, event: Any) -> Generator[None, None, None]:
        layer = self._layer()
        if layer is None or not layer.visible or layer.mode not in PICKING_MODES:
            return
        yield
        if event.type == "mouse_move":
            return  # the canvas is dragged
        value = layer.get_value(
            event.position,
            view_direction=event.view_direction,
            dims_displayed=list(event.dims_displayed),
            world=True,
        )
        if isinstance(value, tuple):  # level and value of a multiscale layer
            value = value[1]
        if value is not None:
            self._picked(int(value))
