"""Commands for the command palette. Each opens the Euler explorer if necessary."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def save_curve(viewer: napari.viewer.Viewer) -> None:
    """Open a form that saves the curve of a layer."""
    viewer.window.add_dock_widget(_forms.save_curve(), name="Save an Euler curve")


def save_layer_table(viewer: napari.viewer.Viewer) -> None:
    """Open a form that saves a table of the selected layers."""
    viewer.window.add_dock_widget(_forms.save_layer_table(), name="Save a table of layers")


def save_frames(viewer: napari.viewer.Viewer) -> None:
    """Open a form that saves the curves of all frames of a layer."""
    viewer.window.add_dock_widget(_forms.save_frames(), name="Save the curves of frames")


def measure_regions(viewer: napari.viewer.Viewer) -> None:
    """Open a form that measures the objects of a Labels layer."""
    viewer.window.add_dock_widget(_forms.measure_regions(), name="Measure regions")


def save_transform(viewer: napari.viewer.Viewer) -> None:
    """Open a form that saves the directional curves of a layer."""
    viewer.window.add_dock_widget(_forms.save_transform(), name="Save directional Euler curves")


def compare_layers(viewer: napari.viewer.Viewer) -> None:
    """Open a form that compares groups of the selected layers."""
    viewer.window.add_dock_widget(_forms.compare_layers(), name="Compare layers")
