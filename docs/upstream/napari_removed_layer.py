"""Crash napari 0.9.2: hide a volume beside an image, and remove it. See napari-removed-layer.md.

xvfb-run -a -s "-screen 0 1280x800x24" python docs/upstream/napari_removed_layer.py
"""

import sys
import time

import napari
import numpy as np
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QApplication


def live(seconds: float = 0.5) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents()


viewer = napari.Viewer()
viewer.add_image(np.random.default_rng(0).random((60, 80)))
live()
volume = viewer.add_image(np.random.default_rng(0).random((20, 40, 50)))
live()
volume.visible = False
live()
if "--current" in sys.argv:  # napari could do this before it deletes.
    for window in QApplication.topLevelWidgets():
        for canvas in window.findChildren(QOpenGLWidget):
            canvas.makeCurrent()
viewer.layers.remove(volume)
live()
print("napari is alive")
viewer.close()
