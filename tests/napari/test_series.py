"""The series panel in a real window: frames in the background, sliders, caching."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from napari_helpers import TIMEOUT, run_copied, save_all, settle, smooth
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._controller import series as series_controller


def movie(*shape):
    noise = np.random.default_rng(0).standard_normal(shape)
    return gaussian_filter(noise, (0,) * (len(shape) - 2) + (2, 2))


@pytest.fixture
def counted(monkeypatch):
    """Indices of the frames whose curves are computed."""
    frames = []
    compute = series_controller.compute_curves

    def count(wanted):
        frames.extend(key[6:] for key in wanted)
        return compute(wanted)

    monkeypatch.setattr(series_controller, "compute_curves", count)
    return frames


def assert_exact(panel, frames, **options):
    model, sets = panel.model, {"superlevel": True, **options}
    curves = (ecc.euler_curve(at, model.n_thresholds, range=model.range, **sets) for at in frames)
    expected = [curve.values for curve in curves]
    assert_array_equal(model.table(), expected)
    assert_array_equal(panel.plot.lines[0].y, expected[model.cursor])


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_frames_of_integers_that_are_smoothed(series, qtbot, dtype):
    """Their thresholds are not rounded to integers, of which there may be two."""
    image = movie(3, 20, 30)
    image = image > 0.1 if dtype is bool else (100 * (image - image.min())).astype(dtype)
    _, panel = series(image, contrast_limits=(0, int(image.max())))
    blurred = gaussian_filter(image.astype(np.float32), (0, 1, 1))
    high = int(image.max())
    whole = np.arange(high + 1)
    between = np.linspace(0, high, panel.model.n_thresholds)
    for sigma, frames, thresholds in ((0, image, whole), (1, blurred, between), (0, image, whole)):
        panel.settings["sigma"].value = sigma
        settle(qtbot, panel)
        assert_array_equal(panel.model.thresholds, thresholds)
        expected = [ecc.euler_curve(at, thresholds, superlevel=True).values for at in frames]
        assert_array_equal(panel.model.table(), expected)


def test_the_map_is_in_view_without_scrolling(make_napari_viewer_proxy, open_panel, qtbot):
    """The window has 1280 by 800 pixels, and the offer lies below the numbers."""
    viewer = make_napari_viewer_proxy(show=True)
    viewer.__wrapped__.window._qt_window.resize(1280, 800)
    _, panel = open_panel("Series", movie(3, 20, 30), viewer=viewer)
    settle(qtbot, panel)
    qtbot.waitUntil(lambda: panel.offer_least["accept"].native.isVisible(), timeout=TIMEOUT)
    content = panel._column.widget()
    qtbot.waitUntil(lambda: panel.height() > 600, timeout=TIMEOUT)
    assert content.minimumSizeHint().height() <= panel._column.viewport().height()


def test_time_series(series, qtbot, counted, tmp_path, messages, drag_mouse):
    image = movie(7, 20, 30)
    viewer, panel = series(image, scale=(2, 1, 1), axis_labels=("t", "y", "x"))
    assert panel.model.range == tuple(viewer.layers[0].contrast_limits)
    assert panel.form["axis"].value == "t (7)"
    assert "7 of 7 frames of 20 × 30" in panel.work.text.text()  # noqa: RUF001
    assert_exact(panel, image)
    assert sorted(counted) == [(k,) for k in range(7)]
    assert counted[0] == (panel.model.cursor,)  # What is in view comes first.

    viewer.dims.set_current_step(0, 5)
    assert panel.model.cursor == panel.map.marker == 5
    assert_exact(panel, image)
    heights = [panel.map.pixels(0, row)[1] for row in (4, 2, 1)]
    drag_mouse(panel.map, *[(200, y) for y in heights])
    assert viewer.dims.current_step[0] == panel.model.cursor == 1
    settle(qtbot, panel)
    assert len(counted) == 7  # Nothing was computed again.

    panel.settings["superlevel"].value = "Dark ≤ t"
    settle(qtbot, panel)
    assert_exact(panel, image, superlevel=False)
    panel.settings["connectivity"].value = "Sides only"
    settle(qtbot, panel)
    assert_exact(panel, image, superlevel=False, connectivity=1)
    count = len(counted)
    panel.settings["superlevel"].value = "Bright ≥ t"
    panel.settings["connectivity"].value = "Diagonals"
    settle(qtbot, panel)
    assert len(counted) <= count + 7  # Some frames may be counted between the changes.
    panel.settings["high"].value = 0.05
    settle(qtbot, panel)
    assert panel.model.range[1] == 0.05
    assert_exact(panel, image)
    panel.controller.take_contrast_limits()
    panel.settings["n_thresholds"].value = 16
    settle(qtbot, panel)
    assert_exact(panel, image)
    panel.settings["n_thresholds"].value = 128
    count = len(counted)
    settle(qtbot, panel)
    assert len(counted) == count
    assert_exact(panel, image)

    names = run_copied(viewer, panel)
    assert_array_equal(names["chi"], panel.model.table())
    files = [tmp_path / f"series.{kind}" for kind in ("csv", "parquet", "png")]
    save_all(panel.save, *files, messages=messages)
    table = pd.read_parquet(tmp_path / "series.parquet")
    assert_array_equal(table["euler_number"], panel.model.table().ravel())
    assert_array_equal(table["frame"], np.repeat(np.arange(7), 128))
    assert_allclose(table["threshold"][:128], panel.model.thresholds)


def test_time_and_channels(series, qtbot, counted):
    """Each frame of both axes is computed once, whichever axis is looked along."""
    image = movie(4, 3, 16, 16)
    viewer, panel = series(da.from_array(image, chunks=(1, 1, 16, 16)), contrast_limits=(-1, 1))
    viewer.dims.set_current_step(1, 2)
    settle(qtbot, panel)
    assert_exact(panel, image[:, 2])
    viewer.dims.set_current_step(1, 0)
    settle(qtbot, panel)
    viewer.dims.set_current_step(0, 3)
    panel.form["axis"].native.setCurrentIndex(1)
    settle(qtbot, panel)
    assert panel.model.length == 3
    assert_exact(panel, image[3])
    panel.form["axis"].native.setCurrentIndex(0)
    viewer.dims.set_current_step(1, 1)
    settle(qtbot, panel)
    assert_exact(panel, image[:, 1])
    assert sorted(counted) == sorted(set(counted))
    panel.form["scope"].value = "Volumes"
    settle(qtbot, panel)
    assert_exact(panel, image)
    assert counted[-4:] == [(3,), (0,), (1,), (2,)]
    viewer.layers[0].data = -image[:2]
    settle(qtbot, panel)
    assert_exact(panel, -image[:2])


def test_clear_messages(series, qtbot):
    viewer, panel = series(movie(20, 20))
    assert "Series needs several" in panel.work.text.text()
    assert not panel.tabs.isVisibleTo(panel)
    assert panel.form["axis"].choices == ()
    assert panel.model.table().shape == (0, 128)
    viewer.layers.clear()
    assert "Open an image" in panel.work.text.text()
    viewer.add_image(np.zeros((4, 8, 8, 3), np.uint8), rgb=True)
    assert "RGB" in panel.work.text.text()
    viewer.add_image(movie(3, 8, 8), name="new")
    panel.form["image"].value = "new"
    settle(qtbot, panel)
    assert "3 of 3" in panel.work.text.text()


def test_cancelled(open_panel, qtbot, stuck, tmp_path):
    """What was computed before the Cancel button stays; the rest comes when it is asked for."""
    image = movie(6, 16, 16)
    slow, began, go = stuck(image, (1, 16, 16), first=3)
    _, panel = open_panel("Series", slow, contrast_limits=(-1, 1), visible=False)
    qtbot.waitUntil(began.is_set, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: len(panel.model.rows) > 0, timeout=TIMEOUT)
    known = len(panel.model.rows)
    panel.work.cancel.native.click()
    go.set()
    settle(qtbot, panel)
    assert 0 < known <= len(panel.model.rows) < 6
    assert panel.work.text.text() == f"Cancelled: {len(panel.model.rows)} of 6 frames."
    missing = np.isnan(panel.model.table()).all(axis=1)
    assert missing.sum() == 6 - len(panel.model.rows)
    panel.save(str(tmp_path / "some.csv"))
    table = pd.read_csv(tmp_path / "some.csv", comment="#")
    assert not table["complete"].any()
    assert np.unique(table["frame"]).size == len(panel.model.rows)
    panel.controller.request()
    settle(qtbot, panel)
    assert_exact(panel, image)


def test_a_series_of_integers_has_integer_thresholds(series, qtbot):
    image = smooth(3, 20, 20)
    viewer, panel = series(image)
    settle(qtbot, panel)
    t = np.round(np.linspace(image.min(), image.max(), 128))
    assert_array_equal(panel.model.thresholds, t)
    expected = [ecc.euler_curve(frame, t, superlevel=True).values for frame in image]
    assert_array_equal(panel.model.table(), expected)
    names = run_copied(viewer, panel)
    assert_array_equal(names["t"], t)
