"""Changes of data in place, which only a refresh of the layer tells of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from napari_ecc._controller.layers import is_lazy, part_of, problem_with
from napari_ecc._controller.links import Links

__all__ = ["on_refresh"]


def on_refresh(viewer: Any, layer: Any, links: Links, changed: Callable[[], None]) -> None:
    """Notice ``layer.data[...] = ...; layer.refresh()``, napari's idiom for changes in place.

    napari emits the same event when it draws another slice, another view, or other data; those
    have events of their own. Data that are not in memory, or of several resolutions, are left out:
    napari draws them whenever the camera moves, and to compute them again takes a while.

    Parameters
    ----------
    viewer : napari.viewer.Viewer
    layer : napari layer
    links : Links
        Gets the connection.
    changed : callable
        Called without arguments.
    """
    if getattr(layer, "multiscale", False) or is_lazy(layer.data) or problem_with(layer):
        return

    def state() -> tuple[Any, ...]:
        place = part_of(viewer, layer, "slice"), viewer.dims.ndisplay, tuple(layer.scale)
        return layer.data, place

    drawn = state()

    def on_drawn(_: Any) -> None:
        nonlocal drawn
        before, drawn = drawn, state()
        if before[0] is drawn[0] and before[1] == drawn[1]:
            changed()

    links.add(on_drawn, layer.events.set_data)
