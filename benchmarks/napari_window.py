"""A window of napari that benchmarks act on, and what is measured in it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import napari
import numpy as np
from qtpy.QtCore import QEvent, QEventLoop, QObject, QTimer
from qtpy.QtWidgets import QApplication
from scipy.ndimage import gaussian_filter

GREATEST = ("GUI thread's processor time between beats", "wrong")
"""The first words of the cases of which the greatest value counts."""
BEAT = 5
"""The milliseconds after which the timer, whose ticks are called heartbeats, is due again."""


class Row(NamedTuple):
    """One measurement, in milliseconds or as a ratio."""

    case: str
    least: float
    median: float
    most: float
    repeats: int
    bar: float | None
    """What the median must not exceed; between beats and for openings, the greatest."""

    @property
    def met(self) -> str:
        if self.bar is None:
            return ""
        measured = self.most if self.case.startswith(GREATEST) else self.median
        return "met" if measured <= self.bar else "missed"


def smooth(shape: tuple[int, ...], dtype: Any, sigma: float = 3.0) -> np.ndarray:
    noise = gaussian_filter(np.random.default_rng(3).standard_normal(shape, np.float32), sigma)
    scaled = (noise - noise.min()) / np.ptp(noise) * np.iinfo(dtype).max
    return scaled.astype(dtype)


class Painted(QObject):
    """Whether a widget has been painted."""

    def __init__(self, widget: Any) -> None:
        super().__init__()
        self.done = False
        widget.viewport().installEventFilter(self)

    def eventFilter(self, _: QObject, event: QEvent) -> bool:
        self.done |= event.type() == QEvent.Type.Paint
        return False


class Window:
    """A napari window with one dock of the plugin, or none."""

    def __init__(self, dock: str) -> None:
        self.viewer = napari.Viewer(show=True)
        self.viewer.window.resize(1500, 950)
        self.panel = None
        if dock:
            _, self.panel = self.viewer.window.add_plugin_dock_widget("napari-ecc", dock)
        self.canvas = self.viewer.window._qt_viewer.canvas._scene_canvas
        self.drawn = 0
        self.canvas.events.draw.connect(self._on_draw)
        self.wait(1.0)

    def _on_draw(self, _: Any) -> None:
        self.drawn += 1

    def wait(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            QApplication.processEvents()
            time.sleep(0.001)

    def settle(self) -> None:
        """Wait until all computing and drawing has finished."""
        self.wait(0.2)
        while self.panel is not None and self.panel.controller.running:
            self.wait(0.05)
        self.wait(0.3)

    def until(self, condition: Callable[[], bool]) -> None:
        wait = QEventLoop.ProcessEventsFlag.WaitForMoreEvents
        while not condition():
            QApplication.processEvents(wait)

    def painted(self, plot: Any, act: Callable[[], None]) -> float:
        """Return milliseconds from an action until a plot shows it."""
        painted = Painted(plot)
        start = time.perf_counter()
        act()
        self.until(lambda: painted.done)
        return 1000 * (time.perf_counter() - start)

    def frame(self, act: Callable[[], None], canvas_only: bool = False) -> float:
        """Return milliseconds from an action until plot and canvas, or only this, show it."""
        painted = Painted(self.panel.plot)
        before = self.drawn
        start = time.perf_counter()
        act()
        self.until(lambda: (canvas_only or painted.done) and self.drawn > before)
        self.canvas.context.finish()
        return 1000 * (time.perf_counter() - start)

    def busy(self, act: Callable[[], None], canvas_only: bool = False) -> float:
        """Return the processor time of the GUI thread in a frame, in milliseconds; see `frame`."""
        start = time.thread_time()
        self.frame(act, canvas_only)
        return 1000 * (time.thread_time() - start)

    def beats(self, act: Callable[[], None]) -> np.ndarray:
        """Return the milliseconds between ticks of a timer, from an action until all is computed.

        The second row has those of the GUI thread's processor time.
        """
        beats: list[tuple[float, float]] = []

        def beat() -> None:
            beats.append((time.perf_counter(), time.thread_time()))

        timer = QTimer()
        timer.timeout.connect(beat)
        timer.start(BEAT)
        beat()
        act()
        self.until(lambda: len(beats) >= 20)
        self.settle()
        timer.stop()
        return 1000 * np.diff(beats, axis=0).T

    def close(self) -> None:
        self.viewer.close()
        QApplication.processEvents()


def summary(case: str, times: list[float], bar: float | None) -> Row:
    row = Row(
        case=case,
        least=min(times),
        median=statistics.median(times),
        most=max(times),
        repeats=len(times),
        bar=bar,
    )
    times = [f"{time:8.1f}" for time in (row.least, row.median, row.most)]
    print(f"{case:64s} {' '.join(times)}  {row.met}", flush=True)
    return row
