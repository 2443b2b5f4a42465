"""A named real number with a slider and a field."""

from __future__ import annotations

import math

from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QWidget
from superqt import QDoubleSlider

from napari_ecc._qt.panel import number

__all__ = ["NumberRow"]


class NumberRow(QWidget):
    """A slider between two bounds, beside a field that takes any number.

    Parameters
    ----------
    name : str
    tip : str

    Signals
    -------
    changed : float
        By the user.
    """

    changed = Signal(float)

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.slider = QDoubleSlider(Qt.Orientation.Horizontal)  # type: ignore[no-untyped-call]
        self.slider.setToolTip(tip)
        self.field = number(-1e300, 1e300, 1, tip, decimals=4)
        self.field.setMinimumWidth(96)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(QLabel(name))
        row.addWidget(self.slider, stretch=1)
        row.addWidget(self.field)
        for widget in (self.slider, self.field):
            widget.valueChanged.connect(self.changed)

    def set_range(self, low: float, high: float, *, whole: bool = False) -> None:
        """Set the slider's bounds; `whole` for integers."""
        span = high - low if high > low else 1.0
        with QSignalBlocker(self.slider), QSignalBlocker(self.field):
            self.slider.setRange(low, low + span)
            self.slider.setSingleStep(1 if whole else span / 500)
            self.field.setDecimals(0 if whole else max(0, 3 - math.floor(math.log10(span))))
            self.field.setSingleStep(1 if whole else span / 200)

    def set_value(self, value: float) -> None:
        """Show a number; NaN disables the row."""
        known = not math.isnan(value)
        self.setEnabled(known)
        if known:
            with QSignalBlocker(self.slider), QSignalBlocker(self.field):
                self.slider.setValue(value)
                self.field.setValue(value)
