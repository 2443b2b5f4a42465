"""What all panels have in common: their end, and widgets tied to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from qtpy.QtCore import QEvent, QSignalBlocker
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

__all__ = [
    "Panel",
    "button",
    "choice",
    "fill",
    "form_of",
    "number",
    "sets_choices",
    "side_by_side",
    "whole_number",
]


class Panel(QWidget):
    """A dock's contents, that cleans up when the dock or the viewer is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[Callable[[], Any]] = []
        self._docked = False
        self.destroyed.connect(partial(_finish, self._ends))

    def stack(self) -> QVBoxLayout:
        """The panel's layout, from top to bottom."""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(6)
        return layout

    def until_closed(self, end: Callable[[], Any]) -> None:
        """Call this when the panel is closed, the last one first."""
        self._ends.append(end)

    def listen(self, signal: Any, callback: Callable[..., Any]) -> None:
        """Connect a signal until the panel is closed."""
        signal.connect(callback)
        self.until_closed(lambda: signal.disconnect(callback))

    def event(self, event: Any) -> bool:
        """End when napari takes the panel out of its dock, which is how docks are closed."""
        if event.type() == QEvent.Type.ParentChange:
            if self.parent() is not None:
                self._docked = True
            elif self._docked:
                _finish(self._ends)
                self.deleteLater()
        return bool(super().event(event))

    def tie(self, widget: QWidget, model: Any, field: str) -> None:
        """Keep a widget and a field of a model the same, both ways.

        Parameters
        ----------
        widget : QComboBox, QCheckBox, QSpinBox or QDoubleSpinBox
            A combo box stands for the data of its current item.
        model : evented dataclass
        field : str
        """
        changed, read, write = _access(widget)
        changed.connect(lambda *_: setattr(model, field, read()))

        def show(*_: Any) -> None:
            with QSignalBlocker(widget):
                write(getattr(model, field))

        self.listen(getattr(model.events, field), show)
        show()


def _finish(ends: list[Callable[[], Any]]) -> None:
    while ends:
        ends.pop()()


def _access(widget: Any) -> tuple[Any, Callable[[], Any], Callable[[Any], Any]]:
    """A widget's signal of a change, and how to read and write its value."""
    if isinstance(widget, QComboBox):

        def select(value: Any) -> None:
            widget.setCurrentIndex(widget.findData(value))

        return widget.currentIndexChanged, widget.currentData, select
    if isinstance(widget, QCheckBox):
        return widget.toggled, widget.isChecked, widget.setChecked
    return widget.valueChanged, widget.value, widget.setValue


def choice(options: Mapping[Any, str], tip: str) -> QComboBox:
    """A combo box of values and what the user reads."""
    box = QComboBox()
    for value, text in options.items():
        box.addItem(text, value)
    box.setToolTip(tip)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    box.setMinimumContentsLength(8)
    return box


def fill(box: QComboBox, names: list[str], current: str, none: str = "") -> None:
    """Offer these names; with `none`, the text for the value "", that as well."""
    with QSignalBlocker(box):
        box.clear()
        if none:
            box.addItem(none, "")
        for name in names:
            box.addItem(name, name)
        box.setCurrentIndex(box.findData(current))


def number(low: float, high: float, step: float, tip: str, decimals: int = 2) -> QDoubleSpinBox:
    """A field for a real number, which is taken when it is complete."""
    box = QDoubleSpinBox()
    box.setDecimals(decimals)
    box.setRange(low, high)
    box.setSingleStep(step)
    box.setKeyboardTracking(False)
    box.setToolTip(tip)
    return box


def whole_number(low: int, high: int, tip: str) -> QSpinBox:
    """A field for an integer, which is taken when it is complete."""
    box = QSpinBox()
    box.setRange(low, high)
    box.setKeyboardTracking(False)
    box.setToolTip(tip)
    return box


def button(text: str, tip: str, action: Callable[[], Any]) -> QPushButton:
    """A push button."""
    result = QPushButton(text)
    result.setToolTip(tip)
    result.clicked.connect(lambda _: action())
    return result


def form_of(rows: Mapping[str, QWidget | QLayout]) -> QFormLayout:
    """Named rows, as wide as the panel."""
    form = QFormLayout()
    form.setSpacing(4)
    form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for name, row in rows.items():
        form.addRow(name, row)
    return form


def sets_choices() -> tuple[QComboBox, QComboBox]:
    """Superlevel or sublevel sets, and what connects their points."""
    superlevel = choice(
        {True: "Bright (≥ t)", False: "Dark (≤ t)"}, "Superlevel or sublevel sets of the image"
    )
    diagonals = choice(
        {True: "Diagonals", False: "Sides only"},
        "What connects points: 8 or 4 neighbours in 2-D, 26 or 6 in 3-D",
    )
    return superlevel, diagonals


def side_by_side(*widgets: QWidget) -> QHBoxLayout:
    """A row of widgets of equal width; labels take what they need."""
    row = QHBoxLayout()
    row.setSpacing(4)
    for widget in widgets:
        row.addWidget(widget, stretch=0 if isinstance(widget, QLabel) else 1)
    return row
