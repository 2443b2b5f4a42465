"""A line that says what is being done, how far it is, and stops it."""

from __future__ import annotations

from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

from napari_ecc._workers import Runner

__all__ = ["WorkLine"]

SHOWN_AFTER = 250
"""Milliseconds of work after which it is shown: to make room for it redraws the window."""


class WorkLine(QWidget):
    """Status text; while a job runs, its progress and a Cancel button.

    Parameters
    ----------
    runner : Runner
        It is closed before this widget is.
    """

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar()
        self.bar.setMaximumWidth(90)
        self.bar.setTextVisible(False)
        self.cancel = QPushButton("Cancel")
        self.cancel.clicked.connect(lambda _: runner.stop())
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.text, stretch=1)
        layout.addWidget(self.bar)
        layout.addWidget(self.cancel)
        self._soon = QTimer(self, singleShot=True, interval=SHOWN_AFTER)
        self._soon.timeout.connect(self._show_work)
        self.bar.setVisible(False)
        self.cancel.setVisible(False)
        self._show_busy(runner.running)
        runner.busy.connect(self._show_busy)
        runner.progressed.connect(self._show_progress)

    def set_text(self, text: str) -> None:
        """Say this."""
        self.text.setText(text)

    def _show_busy(self, busy: bool) -> None:
        self.cancel.setEnabled(busy)
        if busy:
            self._soon.start()
        else:
            self._soon.stop()
            self.bar.setVisible(False)
            self.bar.reset()
            self.cancel.setVisible(False)

    def _show_work(self) -> None:
        self.cancel.setVisible(True)
        self.bar.setVisible(self.bar.value() > 0)

    def _show_progress(self, done: int, total: int) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)
        self.bar.setVisible(self.cancel.isVisibleTo(self))
