"""A guard against a crash of napari, which lives as long as the window."""

from contextlib import suppress
from typing import Any
from weakref import WeakSet

_guarded: WeakSet[Any] = WeakSet()


def guard(window: Any) -> None:
    """Let napari delete what it drew of a layer in the OpenGL context that it drew it in.

    It does so when it lets the context finish, while any context may be current, and may crash:
    docs/design/napari-crash.md. It may do so after the last dock has been closed, so that the guard
    does not end with a dock.
    """
    if window in _guarded:
        return
    _guarded.add(window)
    canvas = window._qt_viewer.canvas._scene_canvas
    context = canvas.context
    finish = context.finish

    def finish_in_context() -> None:
        with suppress(RuntimeError):  # the window is being deleted
            canvas.native.makeCurrent()
        finish()

    context.finish = finish_in_context
