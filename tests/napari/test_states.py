"""What a dock says about its work: in the plot, once, and only what is true."""

import time

import numpy as np
import pytest
from napari_helpers import TIMEOUT, settle, smooth
from processes import run_python
from qtpy.QtWidgets import QLabel

from napari_ecc._workers import PREPARING, Step

CLOSING = """
import atexit, sys
kernel = "curve", "uint8", 2
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
        told.append(sum(state in text for text in texts(panel)))
    settle(qtbot, panel)
    viewer.layers["image"].data = np.full((20, 30), np.nan)
    settle(qtbot, panel)
    told.append(sum("no finite values" in text for text in texts(panel)))
    viewer.layers.clear()
    told.append(sum("Open an image" in text for text in texts(panel)))
    assert told == [1, 1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["closed", "left open"])
def test_a_window_closes_while_it_prepares(tmp_path, end):
    """Without a crash, and without waiting for the first kernel."""
    done = run_python(CLOSING, end, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "at work: True" in done.stdout
