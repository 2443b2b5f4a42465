"""The Euler explorer in a real window: what the user does, and what the viewer does meanwhile."""

import math

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from qtpy.QtCore import QPoint, Qt
from scipy.ndimage import gaussian_filter, label

import ecc_core as ecc
from napari_ecc._controller.layers import PLUGIN_KEY

TIMEOUT = 20_000


def smooth(*shape, dtype=np.uint8, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 2)
    low, high = noise.min(), noise.max()
    scale = 255 if np.dtype(dtype).kind in "iu" else 1.0
    return ((noise - low) / (high - low) * scale).astype(dtype)


def settle(qtbot, panel):
    qtbot.waitUntil(lambda: not panel.controller.running, timeout=TIMEOUT)


def assert_curve_of(panel, image, **options):
    curve = panel.model.curve
    assert curve.stage == "complete"
    expected = ecc.euler_curve(image, curve.thresholds, **{"superlevel": True, **options})
    assert_array_equal(curve.values, expected.values)
    return curve


def overlays(viewer):
    return [layer for layer in viewer.layers if PLUGIN_KEY in layer.metadata]


def coloured(overlay, image):
    """Where the graphics card colours the overlay: as it computes, in float32."""
    low, high = (np.float32(limit) for limit in overlay.contrast_limits)
    share = (np.clip(image.astype(np.float32), low, high) - low) / (high - low)
    colours = overlay.colormap.map(share.ravel())
    return (colours[:, 3] > 0).reshape(image.shape)


def drag(drag_mouse, panel, to):
    plot = panel.plot
    y, start, end = plot.height() // 2, plot.position_of(plot.threshold), plot.position_of(to)
    drag_mouse(plot, *((start + (end - start) * share, y) for share in (0, 0.3, 0.6, 1.0)))


def test_two_dimensional_image(explorer, qtbot):
    """Curve, threshold, readout and overlay of an image, and all options of the curve."""
    image = smooth(60, 80)
    _, panel = explorer(image, name="cells")
    model = panel.model
    assert model.image == panel.form["image"].value == "cells"
    curve = assert_curve_of(panel, image)
    assert_array_equal(curve.thresholds, np.arange(int(image.min()), int(image.max()) + 1))
    assert model.threshold in curve.thresholds

    inside = image >= model.threshold
    components = label(inside, np.ones((3, 3)))[1]
    assert model.counts.numbers[0] == components
    assert model.counts.euler == ecc.euler_number(inside)
    assert f"{components:,} component" in panel.readout.text()
    assert "CPU" in model.status
    assert "60" in model.status

    panel.form["superlevel"].value = "Dark ≤ t"
    panel.form["connectivity"].value = "Sides only"
    panel.settings["bins"].value = 16
    settle(qtbot, panel)
    curve = assert_curve_of(panel, image, superlevel=False, connectivity=1)
    assert curve.thresholds.size == 16
    assert model.counts.euler == ecc.euler_number(image <= model.threshold, 1)

    panel.settings["sigma"].value = 1.5
    settle(qtbot, panel)
    blurred = gaussian_filter(image.astype(np.float32), (1.5, 1.5))
    assert_curve_of(panel, blurred, superlevel=False, connectivity=1)


def test_betti_curves_are_drawn_beside_the_curve(explorer, qtbot):
    """Once for all thresholds; what lies between two of them is counted for itself."""
    image = smooth(60, 80, dtype=np.float32)
    _, panel = explorer(image)
    model = panel.model
    betti = model.betti
    expected = ecc.betti_curves(image, betti.thresholds, superlevel=True)
    assert_array_equal(betti.values, expected.values)
    assert len(panel.plot.lines) == 1
    panel.settings["show_betti"].value = True
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


def test_drag_of_the_line_moves_the_set(explorer, qtbot, drag_mouse):
    """Each move of the mouse moves the threshold, slider, number and overlay; no curve is made."""
    image = smooth(60, 80)
    viewer, panel = explorer(image, show=True)
    (overlay,) = overlays(viewer)
    curve = panel.model.curve
    seen = []
    panel.model.events.threshold.connect(seen.append)
    drag(drag_mouse, panel, 180.0)
    assert len(seen) >= 3
    assert abs(panel.model.threshold - 180) <= 1
    threshold = panel.model.threshold
    assert panel.value.value == threshold
    assert curve.thresholds[panel.slider.value] == threshold
    assert_array_equal(coloured(overlay, image), image >= threshold)
    settle(qtbot, panel)
    assert panel.model.curve is curve
    assert panel.model.counts.threshold == threshold

    panel.slider.value = panel.slider.value + 5
    assert panel.model.threshold == threshold + 5
    panel.value.value = 77
    assert panel.model.threshold == panel.plot.threshold == 77


def test_overlay_shows_the_set(explorer, qtbot):
    """Pixels of the canvas are coloured where the image is at the threshold or above."""
    image = np.zeros((40, 40), np.uint8)
    image[:, 20:] = 200
    viewer, panel = explorer(image, show=True)
    panel.model.threshold = 200.0
    settle(qtbot, panel)
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    row = picture[picture.shape[0] // 2]
    colourful = np.ptp(row, axis=1) > 40
    middle = len(row) // 2
    assert not colourful[: middle - 3].any()
    assert colourful[middle + 3 : middle + 60].all()
    panel.model.threshold = 201.0
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    assert not (np.ptp(picture[len(picture) // 2], axis=1) > 40).any()
    panel.overlays["show_set"].value = False
    assert not overlays(viewer)


def test_jumps_to_extrema_and_zeros(explorer, qtbot, messages):
    _, panel = explorer(smooth(60, 80))
    curve = panel.model.curve
    panel.model.threshold = float(curve.thresholds[0])
    for _ in range(curve.values.size):
        panel.jumps["extremum_above"].native.click()
        if curve.value_at(panel.model.threshold) == curve.values.max():
            break
    assert curve.value_at(panel.model.threshold) == curve.values.max()
    panel.jumps["zero_below"].native.click()
    index = curve.index_of(panel.model.threshold)
    signs = np.sign(curve.values)
    assert signs[index] != signs[index - 1]


def test_click_on_a_peak_shows_where_it_comes_from(explorer, qtbot):
    image = smooth(60, 80)
    viewer, panel = explorer(image, show=True)
    panel.overlays["show_changes"].value = True
    peak = float(panel.model.curve.thresholds[np.argmax(panel.model.curve.values)])
    where = QPoint(round(panel.plot.position_of(peak)), panel.plot.height() // 2)
    qtbot.mouseClick(panel.plot, Qt.MouseButton.LeftButton, pos=where)
    settle(qtbot, panel)
    (points,) = [layer for layer in overlays(viewer) if layer.name == "changes at t"]
    low, high = panel.controller.closer.window()
    effects = ecc.euler_coefficients(image, superlevel=True)
    expected = np.argwhere((effects != 0) & (image >= low) & (image <= high))
    assert_array_equal(points.data[np.lexsort(points.data.T[::-1])], expected)
    at = tuple(points.data.astype(int).T)
    assert_array_equal(points.features["effect"], effects[at])
    colours = points.face_color
    raising = np.asarray(points.features["effect"]) > 0
    by_effect = {
        effect: np.unique(colours[np.asarray(effects[at]) == effect], axis=0)
        for effect in np.unique(effects[at])
    }
    assert all(len(found) == 1 for found in by_effect.values())
    assert len(np.unique(np.concatenate(list(by_effect.values())), axis=0)) >= 2
    assert not set(map(tuple, colours[raising])) & set(map(tuple, colours[~raising]))
    assert f"{len(expected):,}" in panel.changes.text()

    panel.overlays["window_percent"].value = 0.4
    settle(qtbot, panel)
    assert len(points.data) < len(expected)
    panel.overlays["show_changes"].value = False
    assert len(overlays(viewer)) == 1


def test_slice_and_volume(explorer, qtbot):
    """The displayed plane follows the dims slider; the volume does not; scales may differ."""
    volume = smooth(12, 40, 50)
    viewer, panel = explorer(volume, scale=(3, 1, 0.5), translate=(5, 0, 0))
    assert viewer.dims.current_step[0] == 5 or viewer.dims.current_step[0] == 6
    for plane in (2, 9):
        viewer.dims.set_current_step(0, plane)
        settle(qtbot, panel)
        assert_curve_of(panel, volume[plane])
    viewer.dims.order = (1, 0, 2)
    viewer.dims.set_current_step(1, 7)
    settle(qtbot, panel)
    assert_curve_of(panel, volume[:, 7])
    panel.form["scope"].value = "Volume"
    settle(qtbot, panel)
    curve = assert_curve_of(panel, volume)
    assert len(panel.model.counts.numbers) == 3
    assert panel.model.counts.euler == ecc.euler_number(volume >= panel.model.threshold)
    assert "tunnel" in panel.readout.text()
    viewer.dims.set_current_step(1, 20)
    settle(qtbot, panel)
    assert panel.model.curve is curve
    viewer.dims.ndisplay = 3
    panel.settings["sigma"].value = 1
    settle(qtbot, panel)
    blurred = gaussian_filter(volume.astype(np.float32), (1 / 6, 0.5, 1.0))
    assert_curve_of(panel, blurred)
    (overlay,) = overlays(viewer)
    assert_array_equal(overlay.scale, (3, 1, 0.5))
    assert_array_equal(overlay.translate, (5, 0, 0))


def test_smoothed_slice_lies_where_it_is(explorer, qtbot):
    """Overlay, critical points and Labels of a plane are put on that plane, in world units."""
    volume = smooth(12, 40, 50)
    viewer, panel = explorer(volume, scale=(3, 1, 0.5), translate=(5, 0, 0))
    viewer.dims.set_current_step(0, 9)
    panel.settings["sigma"].value = 0.5
    panel.overlays["show_changes"].value = True
    settle(qtbot, panel)
    panel.controller.make_labels()
    settle(qtbot, panel)
    labels = viewer.layers[-1]
    shown, points = overlays(viewer)
    for layer in (labels, shown):
        assert layer.data.shape == (1, 40, 50)
        assert_array_equal(layer.translate, (5 + 9 * 3, 0, 0))
        assert_array_equal(layer.scale, (3, 1, 0.5))
    assert set(points.data[:, 0]) == {9}
    assert points.data_to_world((9, 0, 0))[0] == 5 + 9 * 3
    blurred = gaussian_filter(volume[9].astype(np.float32), (0.25, 0.5))
    assert_array_equal(labels.data[0] > 0, blurred >= panel.model.threshold)


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int16, np.float64])
def test_dtypes(explorer, qtbot, dtype):
    image = smooth(40, 50, dtype=float)
    image = image > 0.5 if dtype is bool else (image * 100).astype(dtype)
    viewer, panel = explorer(image)
    assert_curve_of(panel, image)
    threshold = panel.model.threshold
    (overlay,) = overlays(viewer)
    levels = (threshold, *image.ravel()[:20].astype(float).tolist(), -1.5, 0.1)
    for t in levels:
        panel.model.threshold = t
        assert_array_equal(coloured(overlay, image), image >= t)
    panel.model.superlevel = False
    settle(qtbot, panel)
    (overlay,) = overlays(viewer)
    for t in levels:
        panel.model.threshold = t
        assert_array_equal(coloured(overlay, image), image <= t)


def test_nan_is_left_out_and_infinity_is_no_bound(explorer):
    image = smooth(40, 50, dtype=np.float32)
    image[:5], image[5], image[6] = np.nan, np.inf, -np.inf
    _, panel = explorer(image, contrast_limits=(0, 1))
    curve = assert_curve_of(panel, image, nan="omit")
    assert np.isfinite(curve.thresholds).all()


def test_images_without_a_curve_say_why(explorer, qtbot, messages):
    """An RGB image gives a line of text, a constant and an all-NaN image no traceback."""
    viewer, panel = explorer(np.zeros((20, 30, 3), np.uint8), rgb=True)
    assert "RGB" in panel.model.status
    assert "Split RGB" in panel.work.text.text()
    assert panel.model.curve is None
    assert not panel.slider.enabled
    panel.controller.make_labels()
    assert messages == ["There is no curve yet."]

    viewer.add_image(np.full((20, 30), 7, np.uint8), name="constant")
    panel.form["image"].value = "constant"
    settle(qtbot, panel)
    assert_array_equal(panel.model.curve.values, [1])
    viewer.add_image(np.full((20, 30), np.nan), name="empty", contrast_limits=(0, 1))
    panel.form["image"].value = "empty"
    settle(qtbot, panel)
    assert "finite" in messages[-1]


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


def assert_marked_as_incomplete(panel, folder):
    """A cancelled curve is dashed, named in words, and saved with its mark."""
    curve = panel.model.curve
    assert curve.stage == "stopped"
    words = f"cancelled: partial, {curve.done} of {curve.total} blocks"
    assert curve.done < curve.total
    assert curve.in_words() == words
    assert panel.plot._lines[0].dashed
    assert panel.plot._note == words
    assert words in panel.readout.text()
    assert "<b" not in panel.readout.text()
    assert "Cancelled" in panel.work.text.text()
    panel.save(str(folder / "cancelled.csv"))
    table = pd.read_csv(folder / "cancelled.csv", comment="#")
    assert not table["complete"].any()
    panel.save(str(folder / "cancelled.svg"))
    assert words in (folder / "cancelled.svg").read_text()


def test_cancel_and_newest_request(explorer, qtbot, tmp_path):
    """Cancel ends the work; of many requests the last one is answered."""
    slow = da.from_array(smooth(40, 64, 64), chunks=(2, 64, 64)).map_blocks(_slowly)
    viewer, panel = explorer(smooth(20, 30), smooth(20, 30, seed=1), name="small")
    viewer.add_image(slow, name="slow", contrast_limits=(0, 255))
    panel.form["scope"].value = "Volume"
    panel.form["image"].value = "slow"
    qtbot.waitUntil(lambda: panel.work.bar.value() > 0, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: panel.work.cancel.native.isVisibleTo(panel), timeout=TIMEOUT)
    panel.work.cancel.native.click()
    settle(qtbot, panel)
    assert_marked_as_incomplete(panel, tmp_path)
    panel.controller.request_curve()
    for name in ("small", "slow", "small [1]"):
        panel.form["image"].value = name
    settle(qtbot, panel)
    assert_curve_of(panel, viewer.layers["small [1]"].data)


def _slowly(block):
    import time

    time.sleep(0.1)
    return block


def test_layers_come_and_go(explorer, qtbot):
    """Removing, replacing and renaming the layer; removing an overlay by hand."""
    first, second = smooth(30, 40), smooth(30, 40, seed=1)
    viewer, panel = explorer(first, name="first")
    viewer.layers["first"].data = second
    settle(qtbot, panel)
    assert_curve_of(panel, second)
    viewer.layers["first"].name = "renamed"
    assert panel.model.image == panel.form["image"].value == "renamed"
    curve = panel.model.curve
    assert curve is not None

    viewer.layers.remove(overlays(viewer)[0])
    qtbot.waitUntil(lambda: not panel.overlays["show_set"].value)
    viewer.add_image(first, name="other")
    viewer.layers.remove("renamed")
    settle(qtbot, panel)
    assert panel.model.image == "other"
    assert_curve_of(panel, first)
    viewer.layers.clear()
    assert panel.model.image == ""
    assert panel.model.curve is None
    assert not overlays(viewer)
    qtbot.wait(10)
    assert math.isnan(panel.model.threshold)
    assert "Open an image" in panel.model.status


@pytest.mark.parametrize("end", ["layer", "dock", "viewer"])
def test_end_during_work(explorer, qtbot, messages, end):
    """Removing the layer, the dock or the whole viewer while a curve is computed is harmless."""
    slow = da.from_array(smooth(40, 64, 64), chunks=(2, 64, 64)).map_blocks(_slowly)
    viewer, panel = explorer(smooth(20, 30), name="small")
    viewer.add_image(slow, name="slow", contrast_limits=(0, 255))
    panel.form["scope"].value = "Volume"
    panel.form["image"].value = "slow"
    controller = panel.controller
    qtbot.waitUntil(lambda: panel.work.bar.value() > 0, timeout=TIMEOUT)
    if end == "layer":
        viewer.layers.remove("slow")
    elif end == "dock":
        viewer.window.remove_dock_widget(panel)
        assert not overlays(viewer)
    else:
        viewer.close()
    qtbot.waitUntil(lambda: not controller.running, timeout=TIMEOUT)
    assert messages == []


def test_region_of_interest(explorer, qtbot, messages):
    """Shapes and Labels restrict the image, whatever their scale; a wrong shape is explained."""
    image = smooth(60, 80)
    viewer, panel = explorer(image, scale=(2, 2))
    shapes = viewer.add_shapes(name="shapes")
    panel.settings["roi"].value = "shapes"
    assert "Draw one" in panel.model.status
    shapes.add_rectangles([[20, 20], [20, 100], [80, 100], [80, 20]])
    settle(qtbot, panel)
    inside = np.zeros(image.shape, bool)
    inside[10:41, 10:51] = True
    assert_curve_of(panel, image, mask=inside)
    viewer.add_labels(inside.astype(int), name="labels", scale=(2, 2))
    panel.settings["roi"].value = "labels"
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=inside)
    (overlay,) = overlays(viewer)
    assert_array_equal(np.isnan(overlay.data), ~inside)
    assert panel.model.counts.euler == ecc.euler_number((image >= panel.model.threshold) & inside)
    viewer.add_labels(np.ones((5, 5), int), name="wrong")
    panel.settings["roi"].value = "wrong"
    assert "must have the shape" in panel.model.status
    viewer.layers.remove("wrong")
    settle(qtbot, panel)
    assert_curve_of(panel, image)


def test_make_labels_can_be_undone(explorer, qtbot):
    image = smooth(60, 80)
    viewer, panel = explorer(image)
    assert not panel.actions["undo"].enabled
    panel.controller.make_labels()
    settle(qtbot, panel)
    labels = viewer.layers[-1]
    expected, count = label(image >= panel.model.threshold, np.ones((3, 3)))
    assert_array_equal(labels.data, expected)
    assert count == panel.model.counts.numbers[0]
    assert panel.actions["undo"].enabled
    panel.actions["undo"].native.click()
    assert labels not in viewer.layers
    assert not panel.actions["undo"].enabled


def test_theme_is_followed(explorer):
    viewer, panel = explorer(smooth(30, 40), show=True)

    def shade():
        picture = panel.plot.grab().toImage()
        return picture.pixelColor(3, 3).lightness()

    assert shade() < 100
    viewer.theme = "light"
    assert shade() > 150
    viewer.theme = "dark"
    assert shade() < 100


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


def test_painting_a_region_does_not_change_what_is_computed(explorer, qtbot, monkeypatch):
    """The worker has its own copy; the painted region is computed after that."""
    import threading

    from napari_ecc._controller import curves

    image, began, go = smooth(40, 50), threading.Event(), threading.Event()
    viewer, panel = explorer(image)
    region = np.zeros((40, 50), int)
    region[:20] = 1
    layer = viewer.add_labels(region.copy(), name="region")
    region_mask = curves.region_mask

    def gated(*args):
        read_mask = region_mask(*args)

        def read():
            began.set()
            assert go.wait(10)
            return read_mask()

        return read

    monkeypatch.setattr(curves, "region_mask", gated)
    panel.model.roi = "region"
    qtbot.waitUntil(began.is_set, timeout=TIMEOUT)
    layer.data[:] = 1  # without an event, as another plugin might
    go.set()
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=region > 0)
    layer.paint((10, 10), 0)
    settle(qtbot, panel)
    assert_curve_of(panel, image, mask=layer.data > 0)
