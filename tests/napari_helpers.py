"""Images and actions for the tests of the napari plugin."""

import numpy as np
from numpy.testing import assert_array_equal
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from napari_ecc._controller.layers import PLUGIN_KEY

DOCKS = ("Threshold", "Directions", "Objects", "Series", "Compare", "Two channels")
TIMEOUT = 120_000
"""The most milliseconds of a wait, enough for slow and loaded machines."""


def smooth(*shape, dtype=np.uint8, seed=0):
    noise = gaussian_filter(np.random.default_rng(seed).standard_normal(shape), 2)
    low = noise.min()
    high = noise.max()
    scale = 255 if np.dtype(dtype).kind in "iu" else 1.0
    return ((noise - low) / (high - low) * scale).astype(dtype)


def settle(qtbot, panel):
    """Wait until nothing is computed, and draw the arrow of directions."""
    qtbot.waitUntil(lambda: not panel.controller.running, timeout=TIMEOUT)
    if panel.title == "Directions":
        panel.controller._place_arrow.flush()


def assert_curve_of(panel, image, **options):
    curve = panel.model.curve
    assert curve.stage == "complete"
    expected = ecc.euler_curve(image, curve.thresholds, **{"superlevel": True, **options})
    assert_array_equal(curve.values, expected.values)
    return curve


def run_copied(viewer, panel):
    """Return the names that the code on the clipboard defines."""
    from qtpy.QtWidgets import QApplication

    panel.copy_python()
    names = {"viewer": viewer}
    exec(QApplication.clipboard().text(), names)
    return names


def save_all(save, *paths, messages):
    """Save to files, and check that a message names each."""
    messages.clear()
    for path in paths:
        save(str(path))
    assert messages == [f"Saved {path}" for path in paths]


def pixels_of(widget):
    """Return the colours of a plot, (height, width, 3), in full depth on any display."""
    from qtpy.QtGui import QImage, QPainter
    from superqt.utils import qimage_to_array

    picture = QImage(widget.size(), QImage.Format.Format_ARGB32)
    painter = QPainter(picture)
    widget.render(painter)
    painter.end()
    return qimage_to_array(picture)[..., :3].astype(int)


def turn_wheel(widget, at, angle=-120):
    from qtpy.QtCore import QPoint, QPointF, Qt
    from qtpy.QtGui import QWheelEvent
    from qtpy.QtWidgets import QApplication

    at = QPointF(*at)
    no_key = Qt.KeyboardModifier.NoModifier
    where = at, widget.mapToGlobal(at), QPoint(), QPoint(0, angle)
    no_phase = Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(*where, Qt.MouseButton.NoButton, no_key, no_phase, False)
    QApplication.sendEvent(widget, event)


def colourful(viewer):
    """Return a mask of the pixels of the canvas that are not gray, (height, width)."""
    picture = viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    return np.ptp(picture, axis=2) > 40


def canvas_of(viewer):
    return viewer.__wrapped__.window._qt_viewer.canvas.native


def on_canvas(viewer, point):
    """Return the pixel of a world point in the middle plane, seen from the front."""
    canvas = canvas_of(viewer)
    camera = viewer.scene.camera
    down, across = (np.asarray(point)[-2:] - np.asarray(camera.center)[-2:]) * camera.zoom
    return canvas.width() / 2 + across, canvas.height() / 2 + down


def overlays(viewer):
    return [layer for layer in viewer.layers if PLUGIN_KEY in layer.metadata]


def coloured(overlay, image):
    """Return a mask of the points that the graphics card colours; it computes in float32."""
    low, high = (np.float32(limit) for limit in overlay.contrast_limits)
    share = (np.clip(image.astype(np.float32), low, high) - low) / (high - low)
    colours = overlay.colormap.map(share.ravel())
    return (colours[:, 3] > 0).reshape(image.shape)


def objects():
    """Return an image, and six touching rectangles in it labelled 2, 4, ... 12."""
    image = gaussian_filter(np.random.default_rng(0).standard_normal((40, 60)), 1.5)
    labels = np.zeros((40, 60), np.int32)
    labels[:36, :54] = 2 * (1 + 3 * (np.arange(36)[:, None] // 18) + np.arange(54) // 18)
    labels[:4, 18:] = 0
    return image, labels


def push(panel, text):
    """Click the button of a panel that has a text."""
    from qtpy.QtWidgets import QPushButton

    (button,) = [b for b in panel.findChildren(QPushButton) if b.text() == text]
    button.click()


def measure(qtbot, panel):
    """Measure the objects of the dock Objects, and wait for the result."""
    push(panel, "Measure")
    settle(qtbot, panel)


def noise(seed, sigma):
    """Return an image of smooth noise, uint8."""
    values = gaussian_filter(np.random.default_rng(seed).standard_normal((40, 40)), sigma)
    return (values / values.std() * 20 + 128).astype(np.uint8)
