"""Removing layers from a window that is shown, in a process of its own: napari could crash."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import time
import napari
from napari_helpers import smooth
from qtpy.QtWidgets import QApplication

def live(seconds=0.5):
    end = time.monotonic() + seconds
    while time.monotonic() < end or panel.controller.running:
        QApplication.processEvents()

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
viewer.close()
"""


def test_the_explored_volume_is_removed_beside_an_image():
    """Its overlay goes with it, hidden by the user or not, and the image is explored."""
    here = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(here, capture_output=True, text=True, timeout=600, env=_environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("['flat', 'flat ≥ t']") == 2  # with the settings of this image


def _environment():
    folders = [str(Path(__file__).parents[1]), *sys.path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
