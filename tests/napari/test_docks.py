"""What all docks have in common, in a real window: room, words, keys and the wheel."""

import json
import math

import numpy as np
import pytest
from napari_helpers import DOCKS, TIMEOUT, overlays, pixels_of, settle, smooth, turn_wheel
from numpy.testing import assert_array_equal
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor
from qtpy.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QLabel,
    QPushButton,
    QTabBar,
    QTextBrowser,
    QWidget,
)
from scipy.ndimage import label

import ecc_core as ecc
from napari_ecc._controller.layers import PLUGIN_KEY
from napari_ecc._qt.canvas import Plot
from napari_ecc._qt.colours import colours_of
from napari_ecc._qt.saving import errors_shown, load_settings, save_settings


def test_all_docks_fit_in_a_small_window(make_napari_viewer_proxy, open_panel, qtbot):
    """The window keeps its size; docks are narrow, with plot and actions in view."""
    viewer = make_napari_viewer_proxy(show=True)
    window = viewer.__wrapped__.window._qt_window
    window.resize(1280, 740)
    viewer.add_image(np.random.default_rng(0).random((3, 40, 40)))
    viewer.add_labels(np.ones((3, 40, 40), int))

    def tabs_beside(panel):
        return len(window.tabifiedDockWidgets(panel.parent()))

    for count, name in enumerate(DOCKS):
        _, panel = open_panel(name, viewer=viewer)
        settle(qtbot, panel)
        qtbot.waitUntil(lambda p=panel, n=count: tabs_beside(p) == n, timeout=TIMEOUT)
        qtbot.waitUntil(lambda p=panel: p.height() >= 400, timeout=TIMEOUT)
        assert (window.width(), window.height()) == (1280, 740)
        assert panel.minimumSizeHint().width() <= 330
        assert panel.minimumSizeHint().height() <= 250
        assert panel.main.height() >= 180
        texts = [at for at in panel.findChildren(QPushButton) if at.text() == "Copy Python"]
        assert all(not at.visibleRegion().isEmpty() for at in texts)
        assert any("Help" in text.text() for text in panel.findChildren(QLabel))
        # What takes the focus has a name for screen readers.
        for at in panel.findChildren(QWidget):
            if at.focusPolicy() != Qt.FocusPolicy.NoFocus and not at.accessibleName():
                assert type(at).__name__ in ("QListView", "QLineEdit", "_Column")
        if name == "Threshold":  # In a window of 800 pixels there is nothing to scroll.
            content = panel._column.widget()
            in_view = panel._column.viewport().height() + 800 - window.height()
            assert content.layout().heightForWidth(content.width()) <= in_view
    (tabs,) = [at for at in window.findChildren(QTabBar) if at.parent() is window]
    assert tabs.tabRect(len(DOCKS) - 1).right() <= tabs.width()  # Titles are whole.
    assert isinstance(panel.parent(), QDockWidget)


@pytest.mark.parametrize(
    ("height", "tabs"), [(1000, 1), pytest.param(1400, 0, marks=pytest.mark.slow)]
)
def test_docks_become_tabs_rather_than_low(
    make_napari_viewer_proxy, open_panel, qtbot, height, tabs
):
    viewer = make_napari_viewer_proxy(show=True)
    window = viewer.__wrapped__.window._qt_window
    window.resize(1600, height)
    viewer.add_image(np.random.default_rng(0).random((40, 40)))
    _, second = (open_panel(name, viewer=viewer)[1] for name in DOCKS[:2])
    settle(qtbot, second)
    dock = second.parent()
    qtbot.waitUntil(lambda: dock.height() > 500, timeout=TIMEOUT)
    if window.height() == height:  # The screen may be lower.
        assert len(window.tabifiedDockWidgets(second.parent())) == tabs


def test_an_empty_dock_opens_a_sample(open_panel, qtbot):
    viewer, panel = open_panel("Threshold")
    assert panel.empty.native.isVisibleTo(panel)
    assert "Open an image" in panel.plot.state
    panel.empty["sample"].native.click()
    settle(qtbot, panel)
    assert not panel.empty.native.isVisibleTo(panel)
    assert panel.subject.text() == "coins, whole image"
    viewer.layers.clear()
    QApplication.processEvents()
    assert panel.subject.text() == panel.model.image == ""
    assert np.isnan(panel.model.threshold)
    assert panel.model.curve is None
    assert panel.overlays["show_set"].value
    assert not [layer for layer in viewer.layers if PLUGIN_KEY in layer.metadata]


def test_without_layers_nothing_is_offered_but_to_open_some(open_panel, make_napari_viewer_proxy):
    """Nothing is saved, copied or measured, either."""
    viewer = make_napari_viewer_proxy()
    sources = {"Open a sample", "Add layers", "Add frames", "Add objects", "Match labels"}
    sources |= {"Add folder…", "Pin curve", "Join table…", "Clear", "Put in class"}
    enabled = []
    for name in DOCKS:
        _, panel = open_panel(name, viewer=viewer)
        shown = [at for at in panel.findChildren(QPushButton) if at.isVisibleTo(panel)]
        texts = {at.text() for at in shown if at.isEnabled() and "Settings" not in at.text()}
        enabled.append(texts)
    assert all("Open a sample" in texts for texts in enabled)
    assert set.union(*enabled) <= sources


def test_keys_move_the_threshold_and_the_wheel_changes_nothing(explorer, qtbot):
    image = np.arange(60, dtype=np.uint8).reshape(6, 10)
    _, panel = explorer(image, contrast_limits=(0, 59), show=True)
    model, plot = panel.model, panel.plot
    model.threshold = 30.0
    shift = {"modifier": Qt.KeyboardModifier.ShiftModifier}
    keys = [
        (Qt.Key.Key_Right, {}),
        (Qt.Key.Key_Left, shift),
        (Qt.Key.Key_Home, {}),
        (Qt.Key.Key_Left, {}),
        (Qt.Key.Key_End, {}),
    ]
    reached = []
    for key, options in keys:
        qtbot.keyClick(plot, key, **options)
        reached.append((model.threshold, plot.threshold))
    assert reached == [(t, t) for t in (31, 21, 0, 0, 59)]
    assert not panel.form["scope"].native.isVisibleTo(panel)  # A plane has no volume.
    chosen = [panel.form["image"].value, panel.form["superlevel"].value]
    turn_wheel(panel.form["image"].native, (9, 9))
    turn_wheel(panel.form["superlevel"].native, (9, 9))
    assert [panel.form["image"].value, panel.form["superlevel"].value] == chosen
    bins = panel.settings["bins"].native
    bins.clearFocus()
    turn_wheel(bins, (9, 9))
    assert model.bins == 256


def test_labels_are_explored_as_one_set(explorer, qtbot):
    objects = np.random.default_rng(0).integers(0, 3, (30, 30))
    viewer, panel = explorer(labels=objects)
    assert panel.model.image == "labels"
    assert panel.model.threshold == 1
    assert panel.model.curve.value_at(1) == ecc.euler_number(objects > 0)
    assert panel.model.counts.numbers[0] == label(objects > 0, np.ones((3, 3)))[1]
    panel.settings["sigma"].value = 0.0
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    assert_array_equal(viewer.layers[-1].data > 0, objects > 0)
    (shown,) = [layer for layer in viewer.layers if layer.name == "labels ≥ t"]
    sliced = []
    shown.events.set_data.connect(sliced.append)
    viewer.layers["labels"].paint((10, 10), 2)
    settle(qtbot, panel)
    assert sliced  # The overlay shows the same array, which has changed.


@pytest.mark.parametrize("height", [180, pytest.param(400, marks=pytest.mark.slow)])
def test_plots_keep_ticks_and_titles(explorer, qtbot, height):
    """The title of the vertical axis is shortened where there is no room for it."""
    _, panel = explorer(smooth(12, 14))
    panel.plot.setFixedSize(360, height)
    panel.plot.set_threshold(None)
    panel.plot.grab()  # Only drawing resizes a window that is not shown.
    picture = pixels_of(panel.plot)
    assert picture[:, 2:20].max() > 150  # The vertical axis has a title.
    assert picture[-20:, 60:350].max() > 150
    assert picture[-36:-22, 60:350].max() > 150  # The horizontal axis has ticks.


def test_settings_are_saved_and_loaded(explorer, open_panel, tmp_path, messages, monkeypatch):
    viewer, panel = explorer(smooth(12, 14))
    model, path = panel.model, str(tmp_path / "settings.json")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (path, ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (path, ""))
    model.connectivity, model.sigma, model.threshold, model.show_betti = 1, 1.5, 21.0, True
    panel.heading.linkActivated.emit("save")
    model.connectivity, model.sigma, model.threshold, model.show_betti = None, 0.0, 7.0, False
    panel.heading.linkActivated.emit("load")
    assert (model.connectivity, model.sigma, model.show_betti) == (1, 1.5, True)
    assert model.threshold == 21
    assert messages == []
    _, series = open_panel("Series", viewer=viewer)
    series.heading.linkActivated.emit("load")
    assert "not settings of the dock Series" in messages[-1]
    series.model.range = 3.0, 9.0
    series.heading.linkActivated.emit("save")
    series.model.range = 0.0, 1.0
    series.heading.linkActivated.emit("load")
    assert series.model.range == (3.0, 9.0)
    text = (tmp_path / "settings.json").read_text().replace("n_thresholds", "colour")
    (tmp_path / "settings.json").write_text(text)
    series.heading.linkActivated.emit("load")
    assert "has no settings ['colour']" in messages[-1]


WRONG = {
    "Threshold": [
        ("bins", "many", "a whole number from 2 to 65536, got 'many'"),
        ("bins", -5, "a whole number from 2 to 65536, got -5"),
        ("bins", 9.5, "a whole number from 2 to 65536, got 9.5"),
        ("threshold", "x", "a number, got 'x'"),
        ("threshold", math.inf, "a number, got inf"),
        ("min_persistence", -7, "a number of at least 0, got -7"),
        ("window", [1, 2], "a number from 0.1 to 50, got [1, 2]"),
        ("scope", "cube", "one of 'slice', 'volume', got 'cube'"),
        ("connectivity", True, "one of None, 1, got True"),
        ("sigma", math.nan, "a number from 0 to 50, got nan"),
        ("show_betti", 1, "true or false, got 1"),
    ],
    "Series": [("range", [2, 1], "two increasing numbers, got [2, 1]")],
    "Compare": [("pattern", 3, "a text, got 3")],
    "Objects": [("selected", [1, 2.5], "a list of whole numbers, got [1, 2.5]")],
}


@pytest.mark.parametrize("dock", WRONG)
def test_values_of_settings_are_checked(open_panel, tmp_path, messages, dock):
    """A file with a wrong value changes nothing, and the message says what it must be."""
    path = tmp_path / "settings.json"
    _, panel = open_panel(dock)
    said = []
    changed = {}
    for name, value, _ in WRONG[dock]:
        before = repr(getattr(panel.model, name))
        path.write_text(json.dumps({"dock": dock, name: value}))
        with errors_shown():
            load_settings(panel, str(path))
        said.append(messages[-1])
        if repr(getattr(panel.model, name)) != before:
            changed[name] = value
    assert said == [f"{path}: `{name}` must be {words}" for name, _, words in WRONG[dock]]
    assert changed == {}


def test_gates_are_loaded_before_objects_are_measured(open_panel, tmp_path):
    """Though there are no columns yet to choose the axes from."""
    path = str(tmp_path / "settings.json")
    _, panel = open_panel("Objects")
    gate = ((0.0, 1.0), (2.0, 1.0), (1.0, 3.0))
    panel.model.first = "area"
    panel.model.gate = gate
    save_settings(panel, path)
    panel.model.first = "ecc_pc1"
    panel.model.gate = ()
    load_settings(panel, path)
    assert panel.model.first == "area"
    assert panel.model.gate == gate


@pytest.mark.parametrize(
    "content",
    [b"", b'{"dock": "Com', b"\xff\xfe", b"[" * 100_000, b"1" * 5000],
    ids=["empty", "cut off", "no text", "deep", "long number"],
)
def test_a_damaged_file_of_settings_is_named(open_panel, tmp_path, messages, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    _, panel = open_panel("Compare")
    with errors_shown():
        load_settings(panel, str(path))
    assert messages[-1].startswith(f"{path}: this must be a file of settings, as JSON: ")


def test_layers_that_arrive_and_that_are_selected(open_panel, qtbot):
    """Labels are taken if there is nothing else; a dock says that it shows another layer."""
    viewer, panel = open_panel("Threshold")
    viewer.add_labels(np.eye(9, dtype=int), name="cells")
    settle(qtbot, panel)
    assert panel.model.image == "cells"
    assert panel.model.curve is not None
    assert "(not the selected layer)" not in panel.subject.text()
    viewer.add_labels(np.ones((9, 9), int), name="others")
    assert panel.subject.text() == "cells, whole image (not the selected layer)"
    assert "others" in panel.subject.toolTip()
    drawn = []
    overlays(viewer)[0].events.contrast_limits.connect(drawn.append)
    panel.model.image = "others"
    assert not drawn  # A window that draws something else shows the curve later.
    settle(qtbot, panel)
    assert panel.subject.text() == "others, whole image"


@pytest.mark.parametrize(
    "dock", [DOCKS[0], *(pytest.param(dock, marks=pytest.mark.slow) for dock in DOCKS[1:])]
)
def test_plots_follow_the_theme_and_help_is_a_section_of_the_guide(open_panel, dock):
    viewer, panel = open_panel(dock, smooth(20, 20))
    backgrounds = []
    for theme in ("light", "dark"):
        viewer.theme = theme
        background = QColor(colours_of(theme).background).getRgb()[:3]
        pictures = [pixels_of(plot) for plot in panel.findChildren(Plot)]
        corners = {tuple(picture[2, 2].tolist()) for picture in pictures}
        backgrounds.append((corners, {background}))
    assert [corners for corners, _ in backgrounds] == [expected for _, expected in backgrounds]
    panel.heading.linkActivated.emit("guide")
    (shown,) = panel.findChildren(QTextBrowser)
    text = shown.toPlainText()
    assert text.startswith(dock)
    assert len(text) > 500
    assert not any(text.count(f"\n{other}\n") for other in DOCKS)
    shown.close()


def test_every_plot_offers_its_picture(open_panel, tmp_path, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "a.pdf"), ""))
    _, panel = open_panel("Threshold")
    panel.diagram.picture_wanted.emit()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
