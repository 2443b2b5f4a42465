"""The line of a dock that says what is being done, with what ends it and goes on with it."""

from functools import partial
from typing import Any

from qtpy import QtWidgets
from qtpy.QtCore import Qt, QTimer, Signal

from napari_ecc._controller.docks import Work
from napari_ecc._qt.form import buttons

PREPARING = "Preparing, first use only …"
SHOWN_AFTER = 250
"""Milliseconds until progress is shown, because showing it causes a new layout."""
BESIDE = 6
"""Pixels at the right of widgets, which keep them apart from a scroll bar."""


class WorkLine(QtWidgets.QWidget):
    """Status text; while a job runs, its progress and a Cancel button, and then a Resume button."""

    changed = Signal()
    """The state has changed."""

    def __init__(self, controller: Any) -> None:
        super().__init__()
        self._works: tuple[Work, ...] = controller.works
        self._now = self._works[0]
        self._last = self._works[0]
        """What is shown now, and what was cancelled last."""
        self.text = QtWidgets.QLabel(textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.bar = QtWidgets.QProgressBar(maximumWidth=90, textVisible=False)
        both = buttons(
            cancel=("Cancel", "Stop; what is known stays", self._stop),
            resume=("Resume", "Go on where it was cancelled", self._resume),
            details=("Copy details", "The trace of what went wrong, to report it", self._copy),
        )
        self.cancel = both["cancel"]
        self.resume = both["resume"]
        self.details = both["details"]
        layout = QtWidgets.QHBoxLayout(self)
        layout.setContentsMargins(0, 0, BESIDE, 0)
        layout.addWidget(self.text, stretch=1)
        for widget in (self.bar, self.cancel.native, self.resume.native, self.details.native):
            layout.addWidget(widget)
            widget.hide()
        self._soon = QTimer(self, singleShot=True, interval=SHOWN_AFTER)
        self._soon.timeout.connect(self._show_work)
        self.state = ""
        """What is being done."""
        for work in self._works:
            self._show_busy(work, work.runner.running)
            work.runner.busy.connect(partial(self._show_busy, work))
            work.runner.preparing.connect(self._show_work)
            work.runner.progressed.connect(self._show_progress)
            work.runner.stopped.connect(partial(self._show_stopped, work))
            work.runner.failed.connect(lambda _: self.details.native.show())

    def _stop(self) -> None:
        for work in self._works:
            work.runner.stop()

    def _resume(self) -> None:
        self._last.resume()

    def _copy(self) -> None:
        texts = [work.runner.details for work in self._works if work.runner.details]
        QtWidgets.QApplication.clipboard().setText("\n".join(texts))

    def _show_stopped(self, work: Work) -> None:
        self._last = work
        self.resume.native.show()

    def _show_busy(self, work: Work, busy: bool) -> None:
        running = [at for at in self._works if at.runner.running]
        if busy:
            self._now = work
            self.resume.native.hide()
            self.details.native.hide()
            self._soon.start()
        elif running:
            self._now = running[0]
        else:
            self._soon.stop()
            self.bar.hide()
            self.bar.reset()
            self.cancel.native.hide()
            self.state = ""
            self.changed.emit()

    def _show_work(self, preparing: bool = False) -> None:
        """Say what is being done; `preparing`: kernels are being compiled for it."""
        self._soon.stop()
        self.cancel.native.show()
        self.bar.setVisible(self.bar.value() > 0)
        self.state = PREPARING if preparing else self._now.title
        self.changed.emit()

    def _show_progress(self, done: int, total: int) -> None:
        self.bar.setRange(0, total)
        self.bar.setValue(done)
        self.bar.setVisible(self.cancel.native.isVisibleTo(self))
