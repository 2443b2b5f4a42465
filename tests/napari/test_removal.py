"""Layers, docks and windows that go, while they are shown and while there is work."""

import os
import sys

import numpy as np
import pytest
from napari_helpers import TIMEOUT, assert_curve_of, canvas_of, overlays, smooth
from numpy.testing import assert_array_equal
from processes import run_python

import ecc_core as ecc

SCRIPT = """
import time
import napari
from napari_helpers import smooth
from qtpy.QtWidgets import QApplication

def live(seconds=0.5):
    end = time.monotonic() + seconds
    while time.monotonic() < end or panel.controller.running:
        QApplication.processEvents()
        time.sleep(0.01)

viewer = napari.Viewer()
viewer.add_image(smooth(60, 80), name="flat")
_, panel = viewer.window.add_plugin_dock_widget("napari-ecc", "Threshold")
live()
for shown in (True, False):
    viewer.add_image(smooth(20, 40, 50), name="solid")
    live()
    panel.model.image = "solid"
    panel.model.superlevel = False
    viewer.dims.ndisplay = 3
    live()
    if not shown:
        viewer.layers["solid ≤ t"].visible = False
        live()
    viewer.layers.remove("solid")
    live(1.0)
    print([layer.name for layer in viewer.layers])
viewer.layers.clear()  # together: docks are drawn before napari deletes what was removed
viewer.add_image(smooth(80, 100), name="another")
live(1.0)
print([layer.name for layer in viewer.layers])
viewer.close()
"""


@pytest.mark.slow
def test_the_explored_volume_is_removed_beside_an_image():
    """Its overlay goes with it, hidden by the user or not; in a process, as napari could crash."""
    done = run_python(SCRIPT, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("['flat', 'flat ≥ t']") == 2  # The settings of this image are kept.
    assert done.stdout.count("['another', 'another ≥ t']") == 1


RESULTS = {"Threshold": "curve", "Directions": "curve", "Objects": "regions", "Series": "shape"}
"""Fields of the models that are empty without a layer."""


def assert_shown(panel, image):
    """The results are those of an image."""
    model = panel.model
    if panel.title == "Directions":
        inside = image >= panel.explorer.threshold
        expected = ecc.euler_transform(inside, [model.direction], model.n_heights).values[0]
        assert_array_equal(model.curve.values, expected)
    elif panel.title == "Threshold":
        assert_curve_of(panel, image)
    elif panel.title == "Series":
        curves = [ecc.euler_curve(frame, model.thresholds, superlevel=True) for frame in image]
        assert_array_equal(model.table(), [curve.values for curve in curves])


@pytest.mark.sweep
@pytest.mark.parametrize("how", ["removed", "replaced", "dock", "viewer"])
@pytest.mark.parametrize("dock", RESULTS)
def test_what_is_read_goes(make_napari_viewer_proxy, open_panel, qtbot, messages, stuck, dock, how):
    """The layer, the dock or the whole viewer, while a job waits for the data."""
    image = smooth(*(6, 64, 64) if dock == "Series" else (64, 64))
    slow, began, go = stuck(image, 32)
    viewer = make_napari_viewer_proxy()
    add, options = viewer.add_image, {"contrast_limits": (0, 255)}
    if dock == "Objects":
        viewer.add_image(image)
        add, options = viewer.add_labels, {}
    add(slow, visible=False, name="slow", **options)
    _, panel = open_panel(dock, viewer=viewer)
    controller = panel.controller
    if dock == "Objects":
        controller.request()
    qtbot.waitUntil(began.is_set, timeout=TIMEOUT)
    assert controller.running
    # napari would wait for the blocks if the set were shown before they have been read.
    assert not any(layer.name.startswith("slow ") for layer in viewer.layers)
    if how == "dock":
        viewer.window.remove_dock_widget(panel)
        assert not overlays(viewer)
    elif how == "viewer":
        viewer.close()
    else:
        viewer.layers.remove("slow")
        if how == "replaced":
            add(np.flip(image), visible=False, name="slow", **options)
    go.set()
    qtbot.waitUntil(lambda: not controller.running, timeout=TIMEOUT)
    if how == "removed":
        assert not getattr(panel.model, RESULTS[dock])
    if how == "replaced":
        assert_shown(panel, np.flip(image))
    assert messages == []


def wait_for_title(qtbot, panel):
    """napari names a dock after it has made it."""
    dock = panel.parent()
    qtbot.waitUntil(lambda: dock.windowTitle() == "Compare", timeout=TIMEOUT)


def test_the_guard_outlives_the_docks(open_panel, qtbot, monkeypatch):
    """The context of the canvas is current when napari deletes what it drew, whatever was before.

    Docks may have been drawn since a layer was removed, and napari deletes after the last of many.
    """
    viewer, panel = open_panel("Compare", *np.zeros((3, 4, 4)))
    wait_for_title(qtbot, panel)
    made, canvas = [], canvas_of(viewer)

    def make_current():
        made.append(len(viewer.layers))

    monkeypatch.setattr(canvas, "makeCurrent", make_current)
    viewer.layers.pop()
    viewer.window.remove_dock_widget(panel)
    viewer.layers.clear()
    assert made == [2, 0]


@pytest.mark.parametrize("planes", [(), (6,)])
def test_labels_are_added_to_volumes_where_the_pointer_rests(open_panel, qtbot, planes):
    """napari's status of Labels with features needs a direction, which the mouse did not give."""
    viewer, panel = open_panel("Compare", np.zeros((*planes, 8, 10)))
    wait_for_title(qtbot, panel)
    viewer.dims.ndisplay = 3
    labels = np.zeros((6, 8, 10), np.uint8)
    labels[2:4, 3:5] = 1
    viewer.__wrapped__.mouse_over_canvas = True
    added = viewer.add_labels(labels, features={"index": [1], "size": [40]})
    viewer.layers.selection.active = None
    viewer.layers.selection.active = added
    assert viewer.status["layer_name"] == added.name
