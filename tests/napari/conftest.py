"""A napari window on a virtual display, and panels in it."""

import copy
import gc
import inspect
import itertools
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

try:
    import qtpy.QtWidgets  # noqa: F401
except ImportError as error:  # Qt's system libraries may be missing.
    WHY_NOT = f"Qt cannot be loaded ({error}): sh tools/ensure_system.sh"
    collect_ignore_glob = ["test_*.py"]
else:
    WHY_NOT = ""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or shutil.which("Xvfb")):
        WHY_NOT = "there is neither a display nor Xvfb: sh tools/ensure_system.sh"

# For the few shapes of these tests, napari would compile its triangulation for ten seconds.
sys.modules.setdefault("napari.layers.shapes._accelerated_triangulate_numba", None)

HERE = Path(__file__).parent


def pytest_report_header() -> str:
    return f"napari plugin: not tested, {WHY_NOT}" if WHY_NOT else "napari plugin: tested"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if WHY_NOT:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@pytest.fixture(autouse=True)
def _no_key_is_held():
    """Release modifiers after a test: the application keeps those that came with the last key."""
    yield
    from qtpy.QtCore import Qt
    from qtpy.QtGui import QGuiApplication
    from qtpy.QtTest import QTest
    from qtpy.QtWidgets import QWidget

    if QGuiApplication.instance() and QGuiApplication.keyboardModifiers():
        QTest.keyRelease(QWidget(), Qt.Key.Key_Shift)
        assert not QGuiApplication.keyboardModifiers()


@pytest.fixture(scope="session", autouse=True)
def _quick_windows():
    """Leave out half of the time that a window of napari takes.

    Plugins are looked for among all packages, and the resolution of the display, for which vispy
    starts programs, is asked for, once. The widget of the first window, which no test shows, is not
    written again for each of 176 shortcuts, nor are napari's own settings whenever a dock opens.
    Whether one of a window's 1,700 callbacks takes an event is found once for its code.
    """
    from napari._qt.widgets.qt_welcome import QtWelcomeWidget
    from napari.settings import NapariSettings
    from napari.utils.events import EventEmitter
    from npe2 import PluginManifest
    from vispy.app import canvas

    plugins = list(PluginManifest.discover())

    def known_plugins(paths=()):
        for plugin in plugins:
            yield plugin._replace(manifest=copy.deepcopy(plugin.manifest))

    takes_event = _for_each_code(EventEmitter._check_signature)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventEmitter, "_check_signature", staticmethod(takes_event))
        patch.setattr(canvas, "get_dpi", lambda **_: 96.0, raising=False)
        patch.setattr(PluginManifest, "discover", known_plugins)
        patch.setattr(QtWelcomeWidget, "refresh", lambda *_: None)
        patch.setattr(NapariSettings, "_maybe_save", lambda _: None)
        yield


def _for_each_code(check):
    """Return a check of the signatures of functions that knows the answers for code it has seen."""
    known = {}

    def checked(function):
        plain = getattr(function, "__func__", function)
        if not inspect.isfunction(plain) or hasattr(plain, "__wrapped__"):
            return check(function)
        key = plain.__code__, inspect.ismethod(function)
        if key not in known:
            known[key] = check(function)
        return known[key]

    return checked


@pytest.fixture(autouse=True)
def _short_collections(request):
    """napari collects garbage whenever a layer is removed: what there was before is left out."""
    if any(name.startswith("make_napari_viewer") for name in request.fixturenames):
        from napari_ecc._controller.loading import warm

        warm(("curve", "uint8", 2), ("pairs", "uint8", 2)).wait()
        gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch, tmp_path):
    """Settings of plugins are neither read from nor written to the user's own."""
    from napari import settings

    monkeypatch.setattr(settings, "_CFG_PATH", str(tmp_path / "settings.yaml"))
    settings._clear_plugin_settings_cache()
    yield
    settings._clear_plugin_settings_cache()


@pytest.fixture(autouse=True)
def _no_worker_is_left():
    """Whatever a test leaves behind, its threads must end."""
    from napari_helpers import TIMEOUT

    from napari_ecc._workers import Work

    yield
    for thread in threading.enumerate():
        if isinstance(thread, Work):
            thread.join(TIMEOUT / 1000)
            assert not thread.is_alive()


@pytest.fixture
def messages():
    """Texts of the notifications that were shown."""
    from napari.utils.notifications import notification_manager

    shown: list[str] = []

    def keep(notification):
        shown.append(notification.message)

    notification_manager.notification_ready.connect(keep)
    yield shown
    notification_manager.notification_ready.disconnect(keep)


@pytest.fixture
def open_panel(make_napari_viewer_proxy, qtbot):
    """Open a viewer with some layers and a dock of the plugin: ``(viewer, panel)``."""

    def open_it(dock, /, *images, labels=None, viewer=None, show=False, **options):
        viewer = viewer or make_napari_viewer_proxy(show=show)
        for image in images:
            viewer.add_image(image, **options)
        if labels is not None:
            places = {"scale", "translate", "axis_labels"} & set(options)
            viewer.add_labels(labels, name="labels", **{name: options[name] for name in places})
        _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", dock)
        return viewer, panel

    return open_it


def _opener(dock):
    @pytest.fixture
    def opened(open_panel, qtbot):
        """Open a dock on images and wait for its results."""
        from napari_helpers import settle

        def open_it(*images, **options):
            viewer, panel = open_panel(dock, *images, **options)
            settle(qtbot, panel)
            return viewer, panel

        return open_it

    return opened


explorer, directions, series = map(_opener, ("Threshold", "Directions", "Series"))


@pytest.fixture
def stuck():
    """Make a dask image, some of whose blocks wait: ``(image, began, go)``.

    The first blocks to be read do not. Those that wait set `began` and wait for `go`, or for the
    end of the test.
    """
    import dask.array as da
    import numpy as np
    from napari_helpers import TIMEOUT

    began, go, read = threading.Event(), threading.Event(), itertools.count()

    def make(values, chunks, first=0):
        def block(x):
            if next(read) >= first:
                began.set()
                go.wait(TIMEOUT / 1000)
            return x

        image = da.from_array(values, chunks=chunks)
        return image.map_blocks(block, meta=np.empty((0,) * image.ndim, image.dtype)), began, go

    yield make
    go.set()


@pytest.fixture
def gate(monkeypatch):
    """Let the jobs of a module wait before they read anything: ``(began, go)``."""
    from napari_helpers import TIMEOUT

    began, go = threading.Event(), threading.Event()

    def prepared(*_):
        began.set()
        assert go.wait(TIMEOUT / 1000)
        return ()

    def close(module):
        monkeypatch.setattr(f"napari_ecc._controller.{module}.prepared", prepared)
        return began, go

    yield close
    go.set()


@pytest.fixture
def move_mouse(qapp):
    """Move the mouse over a widget to (x, y), or press or release a button there.

    The events go to the widget itself: those of a pointer that is really moved come when the window
    system has time, and not at all where another window is in the way.
    """
    from qtpy.QtCore import QEvent, QPointF, Qt
    from qtpy.QtGui import QMouseEvent

    left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    kinds = {
        "press": (QEvent.Type.MouseButtonPress, left, left),
        "drag": (QEvent.Type.MouseMove, none, left),
        "release": (QEvent.Type.MouseButtonRelease, left, none),
        "hover": (QEvent.Type.MouseMove, none, none),
    }

    def move(plot, at, kind="hover", modifiers=Qt.KeyboardModifier.NoModifier):
        widget = getattr(plot, "viewport", lambda: plot)()
        where = QPointF(*at)
        window = widget.mapToGlobal(where)
        name, button, buttons = kinds[kind]
        qapp.sendEvent(widget, QMouseEvent(name, where, window, button, buttons, modifiers))
        qapp.processEvents()

    return move


@pytest.fixture
def drag_mouse(move_mouse):
    """Press the left button on a widget at the first of some (x, y), and release it at the last."""

    def drag(widget, *points, **options):
        move_mouse(widget, points[0], "press", **options)
        for point in points[1:]:
            move_mouse(widget, point, "drag", **options)
        move_mouse(widget, points[-1], "release", **options)

    return drag


@pytest.fixture
def regions(open_panel, qtbot):
    """Open the dock on an image and its labels, and measure."""
    from napari_helpers import measure

    def open_it(image, labels, **options):
        viewer, panel = open_panel("Objects", image, labels=labels, name="image", **options)
        measure(qtbot, panel)
        return viewer, panel, viewer.layers["labels"]

    return open_it
