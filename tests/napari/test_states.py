"""What a dock says about its work: in the plot, once, and only what is true."""

import time

import dask.array as da
import numpy as np
import pytest
from napari_helpers import TIMEOUT, overlays, settle, smooth
from numpy.testing import assert_array_equal
from processes import run_python
from qtpy.QtWidgets import QApplication, QLabel

import ecc_core as ecc
from napari_ecc._workers import PREPARING, Step

CLOSING = """
import atexit, sys
kernel = "pairs", "uint8", 2
atexit.register(lambda: print("at work:", not loading._compiler._ready[kernel].is_set()))
import napari
from napari_ecc._controller import loading
from qtpy.QtWidgets import QApplication
viewer = napari.Viewer(show=True)
viewer.open_sample("napari-ecc", "coins")
_, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
while not panel.plot.state.startswith("Preparing"):
    QApplication.processEvents()
if sys.argv[1] == "closed":
    viewer.close()
"""


def texts(panel):
    """What the dock writes now, in labels and in its plot."""
    labels = [at.text() for at in panel.findChildren(QLabel) if at.isVisibleTo(panel)]
    return [*labels, panel.main.state]


def count_texts(panel, words):
    """The number of texts of a panel that contain the words."""
    return sum(words in text for text in texts(panel))


def test_each_state_is_told_once(explorer, qtbot):
    """Empty, preparing, running, failed."""
    viewer, panel = explorer(smooth(20, 30), name="image")
    assert panel.plot.state == ""
    assert "20 × 30, uint8" in panel.work.text.text()  # noqa: RUF001
    runner, told = panel.controller.runner, []

    def job():
        for step in (PREPARING, Step(1)):
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                time.sleep(0.02)
                yield step

    panel.plot.set_lines([])
    runner.submit(job, lambda _: None)
    for state in ("Preparing, first use only …", "Computing …"):
        qtbot.waitUntil(lambda wanted=state: panel.plot.state == wanted, timeout=TIMEOUT)
        assert panel.plot._bar.isVisibleTo(panel) == (state[0] == "P")
        told.append(count_texts(panel, state))
    settle(qtbot, panel)
    viewer.layers["image"].data = np.full((20, 30), np.nan)
    settle(qtbot, panel)
    told.append(count_texts(panel, "no finite values"))
    viewer.layers.clear()
    told.append(count_texts(panel, "Open an image"))
    assert told == [1, 1, 1, 1]


def test_counting_is_work_that_can_be_cancelled(explorer, qtbot, gate):
    """It has its bar and its state, and goes on where the user wants it to."""
    began, go = gate("fields")
    viewer, panel = explorer()
    viewer.add_image(smooth(20, 30), name="image")
    qtbot.waitUntil(lambda: panel.work.state == "Counting components …", timeout=TIMEOUT)
    assert began.is_set()
    assert panel.plot.state == "Counting components …"
    assert not panel.plot.empty
    assert "counting …" in panel.readout.text()
    assert panel.work.cancel.native.isVisibleTo(panel)
    panel.work.cancel.native.click()
    go.set()
    settle(qtbot, panel)
    assert panel.model.counts is None
    assert "counting" not in panel.readout.text()
    panel.work.resume.native.click()
    settle(qtbot, panel)
    assert panel.model.counts is not None
    assert panel.model.classes is not None


def test_a_set_that_cannot_be_drawn_leaves_the_curve(explorer, monkeypatch, messages):
    """napari draws in float32, and cannot draw a set whose values lie beyond it."""

    def refuse(*_):
        raise ValueError("Sequence must be increasing\nand more")

    monkeypatch.setattr("napari_ecc._controller.set_overlay.SetOverlay._limits", refuse)
    _, panel = explorer(smooth(20, 30), name="image")
    assert panel.model.curve.complete
    assert not panel.plot.empty
    assert panel.model.counts is not None
    assert messages == ["The set cannot be drawn: Sequence must be increasing"]


# napari warns so of its own layer.
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_a_threshold_beyond_float32_is_not_drawn(explorer, qtbot, messages):
    """Its curve is there, smoothed, too, and the set is drawn at the next threshold that can be."""
    image = smooth(20, 30, dtype=np.float64)
    image[0] = 1e305
    viewer, panel = explorer(image, name="image", contrast_limits=(0, 1))
    model = panel.model
    model.threshold = 1e305
    said = ["The set cannot be drawn: napari draws values up to 1e+38: divide the data"]
    assert messages == said
    model.threshold = 2e304
    assert messages == said  # It is said once, not at each move.
    assert not overlays(viewer)
    assert model.counts.numbers == (1, 0)
    model.threshold = 0.0
    assert len(overlays(viewer)) == 1
    model.sigma = 1.0
    settle(qtbot, panel)
    assert model.curve.thresholds[-1] > 1e304


def test_what_is_not_known_of_data_that_are_not_in_memory(explorer, qtbot, messages):
    """The histogram and Otsu's threshold, which is said once each; labels are that of the set."""
    image = smooth(30, 40)
    data = da.from_array(image, chunks=16)
    viewer, panel = explorer(data, name="image", contrast_limits=(0, 255))
    model = panel.model
    in_memory = "found of data in memory only: load the data, or crop them."
    panel.form["show_histogram"].value = True
    settle(qtbot, panel)
    panel.controller.refresh()
    settle(qtbot, panel)
    panel.jumps["otsu"].native.click()
    settle(qtbot, panel)
    assert [message.endswith(in_memory) for message in messages] == [True, True]
    model.threshold = 128.0
    assert model.counts.numbers[0] > 1
    panel.actions["make_labels"].native.click()
    settle(qtbot, panel)
    assert model.status.startswith("“image ≥ 128” has one label, as components of data")
    assert_array_equal(np.asarray(viewer.layers["image ≥ 128"].data), image >= 128)


def test_values_may_be_subnormal(explorer, qtbot):
    """The step of the slider of the persistence would be zero."""
    image = smooth(20, 30) * 5e-324
    _, panel = explorer(image, contrast_limits=(0, 1))
    qtbot.waitUntil(lambda: panel.model.classes is not None, timeout=TIMEOUT)
    panel.model.threshold = t = float(np.median(image))
    assert panel.model.counts.numbers == ecc.betti_numbers(image >= t)
    panel.model.min_persistence = 5e-324
    assert panel.model.counts.numbers == ecc.betti_numbers(image >= t)


def test_what_went_wrong_is_one_line_with_its_trace(explorer, qtbot, monkeypatch):
    """A job that fails, and an exception in a callback of a signal."""
    _, panel = explorer(smooth(20, 30), name="image")

    def broken(*_, **__):
        raise OSError("the disk is gone\nand more")

    monkeypatch.setattr("napari_ecc._controller.details.compute_curve", broken)
    panel.controller.refresh()
    settle(qtbot, panel)
    assert panel.plot.state == "the disk is gone"
    assert panel.work.details.native.isVisibleTo(panel)
    panel.work.details.native.click()
    assert "in broken" in QApplication.clipboard().text()
    monkeypatch.undo()
    panel.controller.refresh()
    settle(qtbot, panel)
    assert not panel.work.details.native.isVisibleTo(panel)


def test_changes_in_place_and_undo_are_shown(open_panel, qtbot):
    """Labels and images that are changed in place are stale; a measurement is undone altogether."""
    labels = np.zeros((20, 20), int)
    labels[2:8, 2:8], labels[12:18, 3:9] = 1, 2
    viewer, panel = open_panel("Objects", smooth(20, 20), labels=labels)
    controller = panel.controller
    layer = viewer.layers["labels"]
    for changed in (layer, viewer.layers[0]):
        panel.actions["measure"].native.click()
        settle(qtbot, panel)
        layer.selected_label = 2
        layer.opacity = 0.5
        layer.contour = 2 - layer.contour
        layer.visible = False
        layer.visible = True  # napari draws it again.
        assert controller.state == "complete"
        changed.data[3, 3] = 0
        changed.refresh()
        assert controller.state.startswith("stale")
    panel.actions["measure"].native.click()
    settle(qtbot, panel)
    panel.model.selected = (1,)
    controller.classify()
    panel.actions["undo"].native.click()
    assert panel.model.status == "Undone: Features of labels"
    assert set(panel.model.classes) == {""}
    panel.actions["undo"].native.click()
    assert panel.model.regions is None
    assert panel.plot.empty
    assert panel.scatter.empty


@pytest.mark.slow
@pytest.mark.parametrize("end", ["closed", "left open"])
def test_a_window_closes_while_it_prepares(tmp_path, end):
    """It neither crashes nor waits for the first kernel."""
    done = run_python(CLOSING, end, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "at work: True" in done.stdout
