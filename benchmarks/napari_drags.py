"""Frames of drags in the window of the plugin, beside those of a drag of the contrast limits."""

from __future__ import annotations

import math
import statistics
from functools import partial
from typing import Any

import numpy as np
from napari_window import Row, Window, smooth, summary
from qtpy.QtCore import QEvent, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtWidgets import QApplication

CELL = 12
"""Pixels of the side of the square in which an object lies."""


def contrast_frame(window: Window, layer: Any, most: float) -> float:
    """Return the time of a frame after the contrast limits have moved."""

    def act() -> None:
        layer.contrast_limits = (0.0, most)

    return window.frame(act, True)


def drag(side: int, changes: bool, bar: float | None) -> list[Row]:
    """Return times of frames while the threshold is dragged, and ratios to contrast drags."""
    window = Window("Threshold")
    panel = window.panel
    model = window.panel.model
    window.viewer.add_image(smooth((side, side), np.uint16), name="image")
    window.settle()
    model.show_changes = changes
    window.settle()
    curve = model.curve
    places = np.linspace(0.3, 0.7, 40) * curve.thresholds[-1]
    layer = window.viewer.layers["image"]
    times = []
    contrasts = []
    for at in places.tolist():
        times.append(window.frame(partial(panel.plot.threshold_moved.emit, at)))
        contrasts.append(contrast_frame(window, layer, at))
    assert model.curve is curve
    window.close()
    what = "threshold drag, plot and overlay" + (", with critical points" if changes else "")
    case = f"{what}, {side}^2 uint16"
    return [
        summary(case, times, None),
        summary(f"contrast drag, {side}^2 uint16", contrasts, None),
        summary(
            f"ratio of the medians, {case}",
            [statistics.median(times) / statistics.median(contrasts)],
            bar,
        ),
    ]


def drag_least(side: int, bar: float) -> list[Row]:
    """Return times of frames while the least persistence is dragged, and ratios to contrast."""
    window = Window("Threshold")
    panel = window.panel
    model = window.panel.model
    layer = window.viewer.add_image(smooth((side, side), np.uint16), name="image")
    model.show_betti = True
    window.until(lambda: model.classes is not None)
    window.settle()
    longest = float(model.classes.persistence[1])
    model.min_persistence = 0.04 * longest  # Lasting classes are computed before the drag.
    window.settle()
    times = []
    contrasts = []

    def leave_out(least: float) -> None:
        model.min_persistence = least  # The canvas may stay as it is.

    for share in np.linspace(0.05, 0.5, 40).tolist():
        times.append(window.frame(partial(leave_out, share * longest)))
        contrasts.append(contrast_frame(window, layer, 65535 * (1 - share)))
    assert panel.model.lasting_betti is not None
    window.close()
    case = f"drag of the least persistence with Betti curves, {side}^2 uint16"
    ratio = statistics.median(times) / statistics.median(contrasts)
    return [summary(case, times, None), summary(f"ratio of the medians, {case}", [ratio], bar)]


def drag_volume(side: int, bar: float) -> list[Row]:
    """Return times of drags over a volume in 3-D, ratios to contrast drags, and times of a set.

    Times of the GUI thread are compared: without a graphics card a frame is mostly the time of the
    threads that draw, which are compared by themselves, with and without a set.
    """
    window = Window("Threshold")
    panel = window.panel
    model = window.panel.model
    layer = window.viewer.add_image(smooth((side,) * 3, np.uint16), name="image")
    window.viewer.dims.ndisplay = 3
    window.until(lambda: model.classes is not None)
    window.settle()
    longest = float(model.classes.persistence[1])
    shares = np.linspace(0.3, 0.7, 10).tolist()

    def leave_out(share: float) -> None:
        model.min_persistence = share * longest

    def move(share: float) -> None:
        panel.plot.threshold_moved.emit(65535 * share)

    def contrast(share: float) -> None:
        layer.contrast_limits = (0.0, 65535 * share)

    rows = []
    for what, act in (("threshold", move), ("the least persistence", leave_out)):
        if act is leave_out:
            leave_out(0.04)  # Lasting classes are computed once, before the drag.
            window.settle()
        times = []
        contrasts = []
        for share in shares:
            times.append(window.busy(partial(act, share)))
            contrasts.append(window.busy(partial(contrast, share), True))
        case = f"drag of {what} in 3-D, {side}^3 uint16"
        ratio = statistics.median(times) / statistics.median(contrasts)
        rows.append(summary(f"GUI thread's processor time, {case}", times, None))
        rows.append(summary(f"ratio of the medians, {case}", [ratio], bar))
    drawn = {}
    for shown in (True, False):
        model.show_set = shown
        window.settle()
        drawn[shown] = [contrast_frame(window, layer, 65535 * share) for share in shares]
    window.close()
    case = f"contrast drag in 3-D, {side}^3 uint16"
    return [
        *rows,
        summary(f"{case}, with what lasts", drawn[True], None),
        summary(f"{case}, without a set", drawn[False], None),
    ]


def objects(count: int) -> np.ndarray:
    """Return labels of so many rectangles of random sides, in a square of places for them."""
    rows = math.ceil(math.sqrt(count))
    sides = np.random.default_rng(3).integers(3, CELL - 1, (count, 2))
    labels = np.zeros((rows * CELL,) * 2, np.int32)
    for place, (high, wide) in enumerate(sides.tolist()):
        y, x = (CELL * at for at in divmod(place, rows))
        labels[y : y + high, x : x + wide] = place + 1
    return labels


def send_mouse(plot: Any, kind: QEvent.Type, angle: float) -> None:
    """Send an event of the left button on an ellipse around the middle of a plot."""
    area = plot.area()
    x = area.center().x() + 0.45 * area.width() * float(np.cos(angle))
    y = area.center().y() + 0.45 * area.height() * float(np.sin(angle))
    at = QPointF(x, y)
    left = Qt.MouseButton.LeftButton
    none = Qt.MouseButton.NoButton
    button = none if kind == QEvent.Type.MouseMove else left
    held = none if kind == QEvent.Type.MouseButtonRelease else left
    everywhere = QPointF(plot.viewport().mapToGlobal(at))
    event = QMouseEvent(kind, at, everywhere, button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(plot.viewport(), event)


def lasso(count: int, bar: float) -> list[Row]:
    """Return times of frames while a lasso is drawn around objects, and the ratio to contrast."""
    window = Window("Objects")
    panel = window.panel
    labels = objects(count)
    image = window.viewer.add_image(smooth(labels.shape, np.uint16), name="image")
    window.viewer.add_labels(labels, name="objects")
    window.settle()
    panel.controller.request()
    window.until(lambda: panel.model.regions is not None)
    window.settle()
    plot = panel.scatter

    def move(angle: float) -> float:
        return window.painted(plot, partial(send_mouse, plot, QEvent.Type.MouseMove, angle))

    angles = np.linspace(0, 2 * np.pi, 40).tolist()
    send_mouse(plot, QEvent.Type.MouseButtonPress, 0.0)
    times = []
    contrasts = []
    for angle in angles:
        times.append(move(angle))
        contrasts.append(contrast_frame(window, image, 65535 * (1 + angle) / 8))
    send_mouse(plot, QEvent.Type.MouseButtonRelease, 0.0)
    window.settle()
    assert len(panel.model.selected) > count / 2
    window.close()
    case = f"lasso around {count:,} objects"
    ratio = statistics.median(times) / statistics.median(contrasts)
    return [
        summary(case, times, None),
        summary(f"contrast drag over {count:,} objects", contrasts, None),
        summary(f"ratio of the medians, {case}", [ratio], bar),
    ]
