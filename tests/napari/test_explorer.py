"""The dock Threshold in a real window: what the user does, and what it shows as it works."""

import dask.array as da
import numpy as np
import pandas as pd
from napari_helpers import TIMEOUT, assert_curve_of, coloured, overlays, settle, smooth
from numpy.testing import assert_allclose, assert_array_equal
from qtpy.QtCore import QPoint, Qt
from scipy.ndimage import gaussian_filter, label

import ecc_core as ecc
from napari_ecc import _workers


def test_two_dimensional_image(explorer, qtbot):
    """Curve, threshold, readout and overlay of an image, and all options of the curve."""
    image = smooth(60, 80)
    _, panel = explorer(image, name="cells")
    model = panel.model
    assert model.image == panel.form["image"].value == "cells"
    curve = assert_curve_of(panel, image)
    low, high = int(image.min()), int(image.max())
    assert_array_equal(curve.thresholds, np.arange(low, high + 1))
    assert model.threshold in curve.thresholds

    inside = image >= model.threshold
    components = label(inside, np.ones((3, 3)))[1]
    assert model.counts.numbers[0] == components
    assert model.counts.euler == ecc.euler_number(inside)
    assert f"{components:,} component" in panel.readout.text()
    assert "CPU" in model.status
    assert "60" in model.status

    panel.form["superlevel"].value = "Dark ≤ t"
    panel.settings["connectivity"].value = "Sides only"
    panel.settings["bins"].value = 16
    settle(qtbot, panel)
    curve = assert_curve_of(panel, image, superlevel=False, connectivity=1)
    assert curve.thresholds.size == 16
    assert model.counts.euler == ecc.euler_number(image <= model.threshold, 1)

    panel.settings["sigma"].value = 1.5
    settle(qtbot, panel)
    blurred = gaussian_filter(image.astype(np.float32), (1.5, 1.5))
    assert_curve_of(panel, blurred, superlevel=False, connectivity=1)


def test_a_curve_known_to_be_quick_comes_at_once(explorer, qtbot, monkeypatch):
    """Others come from a worker: of another image, and those that are slow the first time."""
    monkeypatch.setattr(_workers, "AT_ONCE", 60.0)
    viewer, panel = explorer(smooth(60, 80), name="image")
    runner = panel.controller.runner
    for superlevel in (False, True):
        panel.model.superlevel = superlevel
        assert runner.running != superlevel
        settle(qtbot, panel)
        assert_curve_of(panel, viewer.layers["image"].data, superlevel=superlevel)
    viewer.add_image(smooth(30, 40), name="smaller")
    panel.model.image = "smaller"
    assert runner.running
    settle(qtbot, panel)
    monkeypatch.setattr(_workers, "AT_ONCE", 0.0)
    panel.model.superlevel = False  # This is the last curve that is expected to be quick.
    settle(qtbot, panel)
    panel.model.superlevel = True
    panel.model.superlevel = False
    assert runner.running


def test_betti_curves_are_drawn_beside_the_curve(explorer, qtbot):
    """Once for all thresholds; what lies between two of them is counted for itself."""
    image = smooth(60, 80, dtype=np.float32)
    _, panel = explorer(image)
    model = panel.model
    betti = model.betti
    expected = ecc.betti_curves(image, betti.thresholds, superlevel=True)
    assert_array_equal(betti.values, expected.values)
    assert len(panel.plot.lines) == 1
    panel.form["show_betti"].value = True
    components, holes, euler = panel.plot.lines
    assert [line.label for line in panel.plot.lines] == ["components", "holes", "χ"]
    assert_array_equal(components.y - holes.y, euler.y)
    panel.controller.step(30)
    settle(qtbot, panel)
    assert model.betti is betti
    between = float(model.curve.thresholds[100:102].mean())
    model.threshold = between
    settle(qtbot, panel)
    assert model.counts.numbers == ecc.betti_numbers(image >= between)
    assert f"{model.counts.numbers[1]:,} hole" in panel.readout.text()


def test_the_histogram_is_that_of_napari(explorer, qtbot):
    """Bars behind the curve are as high as in napari's layer controls, at one scale for both."""
    viewer, panel = explorer(smooth(30, 40))
    layer = viewer.layers[0]
    panel.form["show_histogram"].value = True
    settle(qtbot, panel)
    layer.contrast_limits_range = panel.model.histogram.edges[[0, -1]].tolist()
    layer.histogram.bins = panel.model.histogram.counts.size

    def heights():
        bars = panel.plot._histogram
        return bars.getData()[1] - bars.opts["fillLevel"]

    layer.histogram.log_scale = False
    assert panel.settings["histogram_log"].value == "Linear"
    counts = layer.histogram.counts
    assert_allclose(heights() / heights().max(), counts / counts.max(), rtol=1e-6)
    layer.histogram.log_scale = True
    assert panel.settings["histogram_log"].value == "Logarithmic"
    counts = layer.histogram.counts
    assert_allclose(heights() / heights().max(), counts / counts.max(), rtol=1e-6)
    panel.settings["histogram_log"].value = "Linear"
    assert not layer.histogram.log_scale
    layer.histogram.log_scale = True
    viewer.add_image(smooth(20, 30, seed=1), name="other")
    panel.form["image"].value = "other"
    assert not panel.model.histogram_log
    assert layer.histogram.log_scale


def test_drag_of_the_line_moves_the_set(explorer, qtbot, drag_mouse):
    """Each move of the mouse moves the threshold, slider, number and overlay; no curve is made."""
    image = smooth(60, 80)
    viewer, panel = explorer(image, show=True)
    (overlay,) = overlays(viewer)
    curve = panel.model.curve
    plot, seen = panel.plot, []
    panel.model.events.threshold.connect(seen.append)
    x = np.linspace(plot.position_of(plot.threshold), plot.position_of(180.0), 4)
    middle = plot.height() // 2
    drag_mouse(plot, *((at, middle) for at in x))
    assert len(seen) >= 3
    assert abs(panel.model.threshold - 180) <= 1
    threshold = panel.model.threshold
    assert panel.value.value == threshold
    assert curve.thresholds[panel.slider.value] == threshold
    assert_array_equal(coloured(overlay, image), image >= threshold)
    settle(qtbot, panel)
    assert panel.model.curve is curve
    assert panel.model.counts.numbers[0] == label(image >= threshold, np.ones((3, 3)))[1]

    panel.slider.value = panel.slider.value + 5
    assert panel.model.threshold == threshold + 5
    panel.value.value = 77
    assert panel.model.threshold == panel.plot.threshold == 77


def test_click_on_a_peak_shows_where_it_comes_from(explorer, qtbot):
    image = smooth(60, 80)
    viewer, panel = explorer(image, show=True)
    panel.overlays["show_changes"].value = True
    peak = float(panel.model.curve.thresholds[np.argmax(panel.model.curve.values)])
    where = QPoint(round(panel.plot.position_of(peak)), panel.plot.height() // 2)
    qtbot.mouseClick(panel.plot.viewport(), Qt.MouseButton.LeftButton, pos=where)
    settle(qtbot, panel)
    (points,) = [layer for layer in overlays(viewer) if layer.name == "changes at t"]
    low, high = panel.controller.details.window()
    effects = ecc.euler_coefficients(image, superlevel=True)
    expected = np.argwhere((effects != 0) & (image >= low) & (image <= high))
    assert_array_equal(points.data[np.lexsort(points.data.T[::-1])], expected)
    at = tuple(points.data.astype(int).T)
    assert_array_equal(points.features["effect"], effects[at])
    colours = pd.DataFrame(points.face_color).groupby(effects[at])
    assert (colours.nunique() == 1).all(axis=None)  # There is one colour for each effect.
    shades = colours.first()
    assert shades.loc[:-1].merge(shades.loc[1:]).empty
    assert f"{len(expected):,}" in panel.changes.text()

    panel.settings["window"].value = 0.4
    settle(qtbot, panel)
    assert len(points.data) < len(expected)
    panel.overlays["show_changes"].value = False
    assert len(overlays(viewer)) == 1


def test_settings_are_where_the_explorer_starts(explorer):
    from napari.settings import get_plugin_settings

    settings = get_plugin_settings("napari-ecc")
    settings.explorer.superlevel = False
    settings.explorer.bins = 32
    image = smooth(30, 40, dtype=np.float32)
    _, panel = explorer(image)
    assert panel.settings["bins"].value == 32
    assert panel.form["superlevel"].value == "Dark ≤ t"
    assert_curve_of(panel, image, superlevel=False)


def test_dask_grows_block_by_block(explorer, qtbot):
    """The curve of a lazy volume appears in parts, each block is read when it is its turn."""
    volume = smooth(32, 48, 48)
    reads = []

    def read(block, block_info=None):
        reads.append(block_info[0]["chunk-location"])
        return block

    lazy = da.from_array(volume, chunks=16).map_blocks(read, dtype=volume.dtype)
    _, panel = explorer(lazy, contrast_limits=(0, 255), cache=False)
    reads.clear()
    stages = []
    panel.model.events.curve.connect(lambda curve: stages.append(curve and curve.stage))
    assert panel.form["scope"].native.isVisibleTo(panel)
    panel.form["scope"].value = "Volume"
    settle(qtbot, panel)
    curve = assert_curve_of(panel, volume)
    assert_array_equal(curve.thresholds, np.arange(256))
    assert sorted(set(reads)) == sorted(np.ndindex(2, 3, 3))
    assert stages[-1] == "complete"
    assert panel.model.counts.euler == ecc.euler_number(volume >= panel.model.threshold)


def test_multiscale_shows_the_coarse_level_first(explorer, qtbot):
    fine = smooth(64, 64)
    viewer, panel = explorer(np.zeros((8, 8), np.uint8))
    stages = []
    panel.model.events.curve.connect(lambda curve: stages.append(curve and curve.stage))
    viewer.add_image([fine, fine[::2, ::2], fine[::4, ::4]], name="pyramid", multiscale=True)
    panel.form["image"].value = "pyramid"
    settle(qtbot, panel)
    assert_curve_of(panel, fine)
    assert stages[-1] == "complete"
    (overlay,) = overlays(viewer)
    assert overlay.multiscale


def test_cancel_and_newest_request(explorer, qtbot, stuck, tmp_path):
    """Cancel ends the work; of many requests the last one is answered.

    A cancelled curve is dashed, named in words, and saved with its mark.
    """
    slow, _, go = stuck(smooth(40, 64, 64), (2, 64, 64), first=8)
    viewer, panel = explorer(smooth(20, 30), smooth(20, 30, seed=1), name="small")
    viewer.add_image(slow, name="slow", contrast_limits=(0, 255), visible=False)
    panel.form["scope"].value = "Volume"
    panel.form["image"].value = "slow"
    qtbot.waitUntil(lambda: panel.work.bar.value() > 0, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: panel.work.cancel.native.isVisibleTo(panel), timeout=TIMEOUT)
    panel.work.cancel.native.click()
    go.set()
    settle(qtbot, panel)
    curve = panel.model.curve
    assert curve.stage == "stopped"
    assert curve.done < curve.total
    words = f"cancelled: partial, {curve.done} of {curve.total} blocks"
    assert panel.plot.state == curve.in_words() == words
    assert panel.plot.lines[0].dashed
    assert "<b" not in panel.readout.text()
    panel.save(str(tmp_path / "cancelled.csv"))
    assert not pd.read_csv(tmp_path / "cancelled.csv", comment="#")["complete"].any()
    panel.save(str(tmp_path / "cancelled.svg"))
    assert words in (tmp_path / "cancelled.svg").read_text()
    panel.controller.request()
    for name in ("small", "slow", "small [1]"):
        panel.form["image"].value = name
    settle(qtbot, panel)
    assert_curve_of(panel, viewer.layers["small [1]"].data)


def test_changes_in_place_are_noticed(explorer, qtbot):
    """After ``refresh``; a slider that moves another layer does not hide it; or by Recompute."""
    image = smooth(30, 40)
    viewer, panel = explorer(image.copy(), name="image")
    viewer.add_image(smooth(5, 30, 40))
    layer = viewer.layers["image"]
    viewer.dims.set_current_step(0, 4)
    layer.data[:, :20] = 0
    layer.refresh()
    settle(qtbot, panel)
    assert_curve_of(panel, layer.data)
    inside = layer.data >= panel.model.threshold
    assert panel.model.counts.numbers == ecc.betti_numbers(inside)

    layer.visible = False  # napari does not refresh hidden layers.
    layer.data[:] = image.T.reshape(30, 40)
    panel.actions["recompute"].native.click()
    settle(qtbot, panel)
    assert_curve_of(panel, layer.data)
