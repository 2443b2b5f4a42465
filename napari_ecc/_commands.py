"""Commands for the command palette. Each opens the Euler explorer if necessary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from qtpy.QtWidgets import QApplication

from napari_ecc import _forms
from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._controller.session import session_of

if TYPE_CHECKING:
    import napari

__all__ = [
    "compare_layers",
    "copy_python",
    "make_labels",
    "measure_regions",
    "next_extremum",
    "next_zero",
    "save_curve",
    "save_frames",
    "save_layer_table",
    "save_transform",
    "toggle_changes",
    "undo",
]


def _explorer(viewer: napari.viewer.Viewer) -> ExplorerController:
    found: ExplorerController | None = session_of(viewer).controllers.get("explorer")
    if found is None:
        _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Euler explorer")
        found = panel.controller
    return found


def make_labels(viewer: napari.viewer.Viewer) -> None:
    """Add a Labels layer of the components of the set at the threshold."""
    _explorer(viewer).make_labels()


def next_extremum(viewer: napari.viewer.Viewer) -> None:
    """Move the threshold to the next extremum of the curve."""
    _explorer(viewer).jump("extremum", 1)


def next_zero(viewer: napari.viewer.Viewer) -> None:
    """Move the threshold to the next zero crossing of the curve."""
    _explorer(viewer).jump("zero", 1)


def toggle_changes(viewer: napari.viewer.Viewer) -> None:
    """Show or hide the critical points near the threshold."""
    model = _explorer(viewer).model
    model.show_changes = not model.show_changes


def copy_python(viewer: napari.viewer.Viewer) -> None:
    """Copy the code of the curve to the clipboard."""
    QApplication.clipboard().setText(_explorer(viewer).python_call())


def undo(viewer: napari.viewer.Viewer) -> None:
    """Undo the last change that the plugin made to layers."""
    session_of(viewer).history.undo()


def _opener(form: Callable[[], Any], title: str) -> Callable[[Any], None]:
    """A command that opens a form."""

    def open_form(viewer: napari.viewer.Viewer) -> None:
        viewer.window.add_dock_widget(form(), name=title)

    return open_form


save_curve = _opener(_forms.save_curve, "Save an Euler curve")
save_layer_table = _opener(_forms.save_layer_table, "Save a table of layers")
save_frames = _opener(_forms.save_frames, "Save the curves of frames")
save_transform = _opener(_forms.save_transform, "Save directional Euler curves")
compare_layers = _opener(_forms.compare_layers, "Compare layers")
measure_regions = _opener(_forms.measure_regions, "Measure regions")
