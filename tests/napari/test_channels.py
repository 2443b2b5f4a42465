"""Two channels in a real window: the surface, the thresholds of both, the points in both sets."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from napari_helpers import TIMEOUT, overlays, run_copied, save_all, settle, smooth
from numpy.testing import assert_array_equal

import ecc_core as ecc
from napari_ecc import actions


@pytest.fixture
def channels(open_panel, qtbot):
    """Open the dock on two images and wait for their surface."""

    def open_it(first, second, **options):
        viewer, panel = open_panel("Two channels", second, first, **options)
        viewer.layers[0].name, viewer.layers[1].name = "second", "first"
        panel.explorer.image, panel.model.second = "first", "second"
        settle(qtbot, panel)
        return viewer, panel

    return open_it


def levels_of(image):
    """64 even thresholds, integers of integers."""
    levels = np.linspace(float(image.min()), float(image.max()), 64)
    return np.round(levels) if image.dtype.kind in "iu" else levels


def assert_surface_of(panel, first, second, superlevel=True, **options):
    levels = levels_of(first), levels_of(second)
    expected = ecc.euler_surface(first, second, *levels, superlevel=superlevel, **options)
    assert_array_equal(panel.model.surface.values, expected.values)
    assert_array_equal(panel.model.surface.thresholds_second, expected.thresholds_second)


def test_a_click_sets_both_thresholds(channels, qtbot, drag_mouse, tmp_path, messages):
    first, second = smooth(40, 60), smooth(40, 60, dtype=np.float32, seed=1)
    viewer, panel = channels(first, second, scale=(2, 1))
    assert_surface_of(panel, first, second)
    area = panel.map.area()
    at = (area.left() + 0.3 * area.width(), area.top() + 0.6 * area.height())
    drag_mouse(panel.map, at)
    settle(qtbot, panel)
    surface = panel.model.surface
    place = surface.thresholds_first[38], surface.thresholds_second[19]
    assert panel.model.place == place
    both = (first >= place[0]) & (second >= place[1])
    (shown,) = overlays(viewer)
    assert_array_equal(shown.data > 0, both)
    assert_array_equal(shown.scale, (2, 1))
    number = ecc.euler_number(both)
    assert panel.model.value() == number
    assert f"χ = {number}" in panel.readout.text().replace("\N{MINUS SIGN}", "-")

    panel.form["superlevel_second"].value = "Dark ≤ t"
    panel.settings["connectivity"].value = "Sides only"
    settle(qtbot, panel)
    assert_surface_of(panel, first, second, superlevel=(True, False), connectivity=1)
    both = (first >= place[0]) & (second <= place[1])
    (shown,) = overlays(viewer)
    assert_array_equal(shown.data > 0, both)
    assert panel.model.value() == ecc.euler_number(both, 1)

    names = run_copied(viewer, panel)
    assert_array_equal(names["surface"].values, panel.model.surface.values)
    files = [tmp_path / f"surface.{kind}" for kind in ("csv", "parquet", "png")]
    save_all(panel.save, *files, messages=messages)
    table = pd.read_csv(tmp_path / "surface.csv", comment="#")
    assert_array_equal(table["euler_number"], panel.model.surface.values.ravel())
    panel.overlay["show_both"].value = False
    qtbot.waitUntil(lambda: not overlays(viewer), timeout=TIMEOUT)
    viewer.window.remove_dock_widget(panel)
    assert not overlays(viewer)


def test_slices_volumes_and_objects(channels, qtbot):
    """Parts are those of the explorer; lazy data are loaded; a Labels layer is a set."""
    first, second = smooth(5, 20, 30), smooth(5, 20, 30, seed=1)
    viewer, panel = channels(first, da.from_array(second, chunks=10), contrast_limits=(0, 255))
    viewer.dims.set_current_step(0, 3)
    settle(qtbot, panel)
    assert_surface_of(panel, first[3], second[3])
    assert "slice" in panel.subject.text()
    panel.form["scope"].value = "Volume"
    settle(qtbot, panel)
    assert_surface_of(panel, first, second)
    labels = viewer.add_labels(np.cumsum(second > 150, axis=-1), name="objects")
    panel.form["second"].value = "objects"
    settle(qtbot, panel)
    surface = actions.layer_surface(viewer.layers["first"], labels)
    assert_array_equal(panel.model.surface.values, surface.values)
    levels = levels_of(first), [0, 1]
    expected = ecc.euler_surface(first, labels.data > 0, *levels, superlevel=True)
    assert_array_equal(surface.values, expected.values)


def test_the_first_surface_is_computed_once(open_panel, qtbot, monkeypatch):
    calls, surface = [], ecc.euler_surface

    def counted(*arguments, **options):
        calls.append(1)
        return surface(*arguments, **options)

    monkeypatch.setattr(ecc, "euler_surface", counted)
    viewer, panel = open_panel("Two channels", smooth(20, 30), smooth(20, 30, seed=1))
    settle(qtbot, panel)
    assert len(overlays(viewer)) == 1
    settle(qtbot, panel)
    assert calls == [1]


def test_clear_messages(channels, qtbot):
    viewer, panel = channels(smooth(20, 30), smooth(20, 30, seed=1))
    viewer.add_image(smooth(9, 9), name="other")
    panel.form["second"].value = "other"
    assert "must have the shape of “other”, 9 × 9, got 20 × 30" in panel.work.text.text()  # noqa: RUF001
    assert panel.model.surface is None
    viewer.layers.remove("other")
    settle(qtbot, panel)
    assert panel.model.second == "second"
    assert panel.model.surface is not None
    viewer.layers.remove("second")
    assert "second image" in panel.map.state
    viewer.layers.clear()
    assert "Open an image" in panel.work.text.text()


def test_labels_that_a_dock_makes_are_no_channel(open_panel, qtbot):
    """Such labels can be chosen as a channel, but are not chosen by default."""
    viewer, channels = open_panel("Two channels", smooth(40, 60))
    _, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
    settle(qtbot, panel)
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    made = viewer.layers[-1].name
    assert made.endswith("128")
    settle(qtbot, channels)
    assert channels.model.surface is None
    assert "second image" in channels.map.state
    channels.form["second"].value = made
    settle(qtbot, channels)
    assert channels.model.surface is not None


def test_the_first_thresholds_divide_a_set_from_its_complement(open_panel, qtbot):
    """The first picture shows all objects of a Labels layer, and nothing else."""
    image = smooth(20, 30)
    labels = np.zeros(image.shape, int)
    labels[5:15, 5:20] = 3
    viewer, panel = open_panel("Two channels", image, labels=labels)
    settle(qtbot, panel)
    assert panel.model.place[1] == 1
    (shown,) = overlays(viewer)
    assert_array_equal(shown.data > 0, (image >= panel.model.place[0]) & (labels > 0))
