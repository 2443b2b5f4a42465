"""A status line with progress, a Cancel and a Resume button."""

from __future__ import annotations

from typing import Any

from magicgui.widgets import PushButton
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QWidget

__all__ = ["WorkLine"]

SHOWN_AFTER = 250
"""Milliseconds until progress is shown, because showing it causes a new layout."""


class WorkLine(QWidget):
    """Status text; while a job runs, its progress and a Cancel button, and then a Resume button.

    Parameters
    ----------
    controller : DockController
        It is closed before this widget is.
    """

    def __init__(self, controller: Any) -> None:
        super().__init__()
        runner = controller.runner
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar()
        self.bar.setMaximumWidth(90)
        self.bar.setTextVisible(False)
        self.cancel = PushButton(text="Cancel", tooltip="Stop; what is known stays")
        self.cancel.changed.connect(lambda _: runner.stop())
        self.resume = PushButton(text="Resume", tooltip="Go on where it was cancelled")
        self.resume.changed.connect(lambda _: controller.resume())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text, stretch=1)
        for widget in (self.bar, self.cancel.native, self.resume.native):
            layout.addWidget(widget)
        self._soon = QTimer(self, singleShot=True, interval=SHOWN_AFTER)
        self._soon.timeout.connect(self._show_work)
        self.bar.setVisible(False)
        self.cancel.native.setVisible(False)
        self.resume.native.setVisible(False)
        self._show_busy(runner.running)
        runner.busy.connect(self._show_busy)
        runner.progressed.connect(self._show_progress)
        runner.stopped.connect(self._show_stopped)

    def set_text(self, text: str) -> None:
        """Set the status text."""
        self.text.setText(text)

    def _show_busy(self, busy: bool) -> None:
        self.cancel.enabled = busy
        if busy:
            self.resume.native.setVisible(False)
            self._soon.start()
        else:
            self._soon.stop()
            self.bar.setVisible(False)
            self.bar.reset()
            self.cancel.native.setVisible(False)

    def _show_stopped(self) -> None:
        self.resume.native.setVisible(True)

    def _show_work(self) -> None:
        self.cancel.native.setVisible(True)
        self.bar.setVisible(self.bar.value() > 0)

    def _show_progress(self, done: int, total: int) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)
        self.bar.setVisible(self.cancel.native.isVisibleTo(self))
