"""A guard against a crash of napari, which lives as long as the window."""

from contextlib import suppress
from typing import Any
from weakref import WeakSet, ref

from qtpy.QtOpenGLWidgets import QOpenGLWidget

_guarded: WeakSet[Any] = WeakSet()


def guard(window: Any, layers: Any) -> None:
    """Let napari delete what it drew of a layer in the OpenGL context that it drew it in.

    It does so in whatever context is current, and may crash: docs/design/napari-crash.md. It may do
    so after the last dock has been closed, so that the guard does not end with a dock.
    """
    if window in _guarded:
        return
    _guarded.add(window)
    known = ref(window)

    def make_canvas_current(_: Any = None) -> None:
        found = known()
        with suppress(RuntimeError):  # the window is being deleted
            central = None if found is None else found.centralWidget()
            for canvas in central.findChildren(QOpenGLWidget) if central is not None else ():
                canvas.makeCurrent()

    layers.events.removing.connect(make_canvas_current)
