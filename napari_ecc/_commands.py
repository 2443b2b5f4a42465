"""Commands of the dock Threshold for the command palette; it is opened if necessary."""

from napari import Viewer
from qtpy.QtWidgets import QApplication

from napari_ecc._controller.explorer import ExplorerController
from napari_ecc._controller.session import session_of


def _explorer(viewer: Viewer) -> ExplorerController:
    """Return the controller of the dock Threshold."""
    found: ExplorerController | None = session_of(viewer).controllers.get("explorer")
    if found is None:
        _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
        found = panel.controller
    return found


def make_labels(viewer: Viewer) -> None:
    """Add a Labels layer of the components of the set at the threshold."""
    _explorer(viewer).make_labels()


def next_merge(viewer: Viewer) -> None:
    """Move the threshold up to the next one at which components merge."""
    _explorer(viewer).jump("merge", 1)


def next_birth(viewer: Viewer) -> None:
    """Move the threshold up to the next one at which a component is born."""
    _explorer(viewer).jump("birth", 1)


def toggle_changes(viewer: Viewer) -> None:
    """Show or hide the critical points near the threshold."""
    model = _explorer(viewer).model
    model.show_changes = not model.show_changes


def copy_python(viewer: Viewer) -> None:
    """Copy the code of the curve to the clipboard."""
    QApplication.clipboard().setText(_explorer(viewer).python_call())


def undo(viewer: Viewer) -> None:
    """Undo the last change that the plugin made to layers."""
    session_of(viewer).history.undo()
