"""Guards against faults of napari, which live as long as the window."""

from contextlib import suppress
from typing import Any
from weakref import WeakSet

_guarded: WeakSet[Any] = WeakSet()


def guard(window: Any) -> None:
    """Keep a window of napari from the faults that layers of the docks can meet.

    They may appear after the last dock has been closed, so that the guards do not end with a dock.
    """
    if window in _guarded:
        return
    _guarded.add(window)
    _finish_in_context(window._qt_viewer.canvas._scene_canvas)
    _know_view_direction(window._qt_viewer.viewer)


def _finish_in_context(canvas: Any) -> None:
    """Let napari delete what it drew of a layer in the OpenGL context that it drew it in.

    It does so when it lets the context finish, while any context may be current, and may crash:
    docs/design/napari-crash.md.
    """
    context = canvas.context
    finish = context.finish

    def finish_in_context() -> None:
        with suppress(RuntimeError):  # The window may be being deleted.
            canvas.native.makeCurrent()
        finish()

    context.finish = finish_in_context


def _know_view_direction(viewer: Any) -> None:
    """Give the cursor a direction of view before the mouse moves over a volume.

    The status of Labels with features is an error without one: findings/napari_labels_status.sh.
    """

    def look_along_camera(_: Any = None) -> None:
        if viewer.cursor._view_direction is None:
            direction = viewer.scene.camera.calculate_nd_view_direction(
                viewer.dims.ndim, viewer.dims.displayed
            )
            viewer.cursor._view_direction = direction

    viewer.dims.events.ndim.connect(look_along_camera)
    viewer.dims.events.ndisplay.connect(look_along_camera)
    look_along_camera()
