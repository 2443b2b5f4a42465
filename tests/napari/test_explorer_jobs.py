"""The dock Threshold while it works: growing curves, and what the viewer does meanwhile."""

import dask.array as da
import numpy as np
import pandas as pd
from napari_helpers import TIMEOUT, assert_curve_of, overlays, settle, smooth
from numpy.testing import assert_array_equal

import ecc_core as ecc


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

    layer.visible = False  # napari does not refresh it
    layer.data[:] = image.T.reshape(30, 40)
    panel.actions["recompute"].native.click()
    settle(qtbot, panel)
    assert_curve_of(panel, layer.data)
