"""Declarative forms of magicgui widgets that follow a model."""

import math
import re
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from magicgui import widgets
from qtpy import QtWidgets
from qtpy.QtCore import QEvent, Qt

from napari_ecc._controller.session import Links
from napari_ecc._model.levels import decimals

LARGEST_NUMBER = sys.float_info.max
"""The bound of fields for values of images, which may be as large as float64 allows."""
MOST_STEPS = 1 << 27
"""Steps from zero that a slider can be away: Qt counts them, or tenths of them, in 32 bits."""


class Field(NamedTuple):
    """A widget of a form, and the field of a model that it shows and sets."""

    name: str
    """The name of the field."""
    widget: type
    """A widget of magicgui."""
    options: dict[str, Any]
    """Options of the widget."""
    choices: Mapping[str, Any] | None = None
    """What the user reads in a combo box, and the value that it stands for."""
    hint: str = ""
    """What an empty line of text shows."""
    numbers: bool = False
    """Whether the text stands for a tuple of integers."""

    def checked(self, value: Any) -> Any:
        """Return a value of a file as one of the model; a ValueError says what it must be."""
        low = self.options.get("min")
        high = self.options.get("max")
        if self.choices is not None:
            known = [at for at in self.choices.values() if type(at) is type(value) and at == value]
            names = ", ".join(map(repr, self.choices.values()))
            return _checked(self.name, value, bool(known), f"one of {names}")
        if issubclass(self.widget, widgets.CheckBox | widgets.PushButton):
            return _checked(self.name, value, isinstance(value, bool), "true or false")
        if self.numbers:
            listed = isinstance(value, list) and {type(at) for at in value} <= {int}
            return tuple(_checked(self.name, value, listed, "a list of whole numbers"))
        if issubclass(self.widget, widgets.LineEdit):
            return _checked(self.name, value, isinstance(value, str), "a text")
        if issubclass(self.widget, widgets.FloatSlider):  # Its bounds follow the image.
            return checked_number(self.name, value)
        whole = issubclass(self.widget, widgets.SpinBox)
        within = is_number(value) and low <= value <= high and (not whole or type(value) is int)
        kind = "a whole number" if whole else "a number"
        return _checked(self.name, value, within, f"{kind} from {low} to {high}")


def is_number(value: Any) -> bool:
    """Whether a value of a file is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def checked_number(name: str, value: Any) -> Any:
    """Return a finite number, or NaN, which stands for what is not known yet."""
    unknown = type(value) is float and math.isnan(value)
    return _checked(name, value, unknown or is_number(value), "a number")


def checked_range(name: str, value: Any) -> Any:
    """Return a pair of increasing numbers."""
    pair = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
    return tuple(_checked(name, value, pair and value[0] < value[1], "two increasing numbers"))


def checked_text(name: str, value: Any) -> Any:
    """Return a text."""
    return _checked(name, value, isinstance(value, str), "a text")


def checked_corners(name: str, value: Any) -> Any:
    """Return the corners of a polygon, or none."""
    pairs = isinstance(value, list) and len(value) != 1 and len(value) != 2
    for at in value if pairs else ():
        pairs &= isinstance(at, list) and len(at) == 2 and all(map(is_number, at))
    checked = _checked(name, value, pairs, "a list of three or more pairs of numbers, or empty")
    return tuple((float(x), float(y)) for x, y in checked)


def checked_least(name: str, value: Any) -> Any:
    """Return a number of at least 0."""
    return _checked(name, value, is_number(value) and value >= 0, "a number of at least 0")


def _checked(name: str, value: Any, valid: bool, wanted: str) -> Any:
    if not valid:
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}")
    return value


def choice(name: str, tip: str, choices: Mapping[str, Any] | None = None) -> Field:
    """A combo box with labels and values, which `Form.offer` changes."""
    choices = choices or {}
    return Field(name, widgets.ComboBox, {"tooltip": tip, "choices": list(choices)}, choices)


def check(name: str, text: str, tip: str, widget: type = widgets.CheckBox) -> Field:
    """A check box, or another widget with a text."""
    return Field(name, widget, {"text": text, "tooltip": tip})


push = partial(check, widget=widgets.PushButton)
"""A button, which is connected by the panel."""


def number(
    name: str,
    tip: str,
    low: float = 0.0,
    high: float = 1.0,
    widget: type = widgets.FloatSpinBox,
    **options: Any,
) -> Field:
    """A field for a real number, or another widget with bounds.

    A number that is typed is applied when editing is finished.
    """
    return Field(name, widget, {"tooltip": tip, "min": low, "max": high, **options})


whole_number = partial(number, widget=widgets.SpinBox)
"""A field for an integer, which is applied when editing is finished."""
slider = partial(number, widget=widgets.FloatSlider)
"""A slider with a field for the number; `Form.set_range` changes its bounds."""
steps = partial(number, low=0, high=1, widget=widgets.Slider, readout=False)
"""A slider over the indices of something, without a number."""


def text(name: str, tip: str, *, hint: str = "", numbers: bool = False) -> Field:
    """A line of text, or of integers, which is applied when editing is finished.

    The hint stands in it while it is empty.
    """
    return Field(name, widgets.LineEdit, {"tooltip": tip}, hint=hint, numbers=numbers)


Rows = Mapping[str, Field | tuple[Field, ...]]
"""One or more fields of each row by the text before them."""
SCOPE = choice(
    "scope",
    "The plane on the screen, or the last three axes",
    {"Slice": "slice", "Volume": "volume"},
)
SUPERLEVEL = choice(
    "superlevel",
    "Sets of values of at least t (superlevel), or of at most t (sublevel)",
    {"Bright ≥ t": True, "Dark ≤ t": False},
)
CONNECTIVITY = choice(
    "connectivity",
    "What connects points: 8 or 4 neighbours in 2-D, 26 or 6 in 3-D",
    {"Diagonals": None, "Sides only": 1},
)


class Form(QtWidgets.QWidget):
    """Rows of widgets."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._fields: dict[str, Field] = {}
        self._widgets: dict[str, Any] = {}
        self.models: dict[str, Any] = {}
        """The model of each field that is followed."""
        self.offered: set[str] = set()
        """Fields whose choices depend on the layers."""
        self._rows: dict[str, QtWidgets.QHBoxLayout] = {}
        layout = self._layout = QtWidgets.QFormLayout(self)
        layout.setFieldGrowthPolicy(QtWidgets.QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        _tighten(layout)
        for label, fields in rows.items():
            row = QtWidgets.QHBoxLayout()
            title = QtWidgets.QLabel(label)
            for field in (fields,) if isinstance(fields, Field) else fields:
                row.addWidget(self._made(field), 1)
                self._rows[field.name] = row
            title.setBuddy(row.itemAt(0).widget())
            layout.addRow(*([title, row] if label else [row]))

    def __getitem__(self, name: str) -> Any:
        """Return the widget of a field."""
        return self._widgets[name]

    def _made(self, field: Field) -> QtWidgets.QWidget:
        widget = field.widget(name=field.name, **field.options)
        native = widget.native
        inside = [
            *native.findChildren(QtWidgets.QAbstractSpinBox),
            *native.findChildren(QtWidgets.QAbstractSlider),
        ]
        for part in (native, *inside):
            part.setAccessibleName(field.options["tooltip"])  # Screen readers read it.
            part.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            part.installEventFilter(self)
            if isinstance(part, QtWidgets.QAbstractSpinBox):
                part.setKeyboardTracking(False)
            if isinstance(part, QtWidgets.QComboBox):
                policy = QtWidgets.QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
                part.setSizeAdjustPolicy(policy)
                part.setMinimumContentsLength(4)
        if field.hint:
            native.setPlaceholderText(field.hint)
        if field.numbers:
            native.setMaxLength(2**31 - 1)
        self._fields[field.name] = field
        self._widgets[field.name] = widget
        return native

    def checked(self, name: str, value: Any) -> Any:
        """Return a value of a file as one of the model; a ValueError says what it must be."""
        return self._fields[name].checked(value)

    def set_visible(self, name: str, visible: bool) -> None:
        """Show or hide the row of a widget."""
        self._layout.setRowVisible(self._rows[name], visible)

    def show_scope(self, layer: Any) -> None:
        """Offer the plane or the volume of a layer, which has more than two axes then."""
        offered = layer is not None and layer.ndim > 2
        if self._rows["scope"].count() > 1:
            self._widgets["scope"].native.setVisible(offered)
        else:
            self.set_visible("scope", offered)

    def set_range(self, name: str, low: float, high: float, *, whole: bool = False) -> None:
        """Set the bounds of a slider; `whole` for integers."""
        widget = self._widgets[name]
        span = high - low if high > low else 1.0
        largest = max(abs(low), abs(low + span))
        step = max(1 if whole else span / 500, largest / MOST_STEPS)
        with widget.changed.blocked():
            for _ in range(2):  # The step changes the unit of the slider, but not its bounds.
                widget.range = (low, low + span)
                widget.step = step
            digits = 0 if whole else decimals(0.0, span)
            for readout in widget.native.findChildren(QtWidgets.QDoubleSpinBox):
                readout.setDecimals(digits)

    def set_decimals(self, name: str, digits: int) -> None:
        """Set the number of decimals of a field for a real number."""
        widget = self._widgets[name]
        with widget.changed.blocked():  # The rounded number that is shown must not reach the model.
            widget.native.setDecimals(digits)

    def follow(self, model: Any, links: Links) -> None:
        """Synchronise widgets with fields of a model, both ways."""
        for name, widget in self._widgets.items():
            if name in self.models or not hasattr(model, name):
                continue
            self.models[name] = model
            typed = self._fields[name].numbers
            changed = widget.native.editingFinished if typed else widget.changed

            def take(*_: Any, name: str = name) -> None:
                setattr(model, name, self.value(name))

            # Another listener may have changed the value.
            def show(*_: Any, name: str = name) -> None:
                self.display(name, getattr(model, name))

            changed.connect(take)
            links.add(show, getattr(model.events, name))
            show()

    def offer(self, name: str, choices: Mapping[str, Any], current: Any) -> None:
        """Set the choices of a combo box and its current value."""
        self.offered.add(name)
        self._fields[name] = self._fields[name]._replace(choices=choices)
        widget = self._widgets[name]
        with widget.changed.blocked():
            widget.choices = list(choices)
            self.display(name, current)

    def value(self, name: str) -> Any:
        """Return the value of a widget as a value of the model."""
        shown = self._widgets[name].value
        choices = self._fields[name].choices
        if self._fields[name].numbers:
            return tuple(dict.fromkeys(map(int, re.findall(r"\d+", shown))))
        return shown if choices is None else choices.get(shown, "")

    def display(self, name: str, value: Any) -> None:
        """Set a widget to a value of the model without a signal."""
        widget = self._widgets[name]
        choices = self._fields[name].choices
        with widget.changed.blocked():
            if isinstance(widget, widgets.FloatSlider):
                widget.enabled = widget.readout = not math.isnan(value)
                value = min(max(value, widget.min), widget.max) if widget.enabled else widget.min
            if choices is None:
                listed = self._fields[name].numbers
                widget.value = ", ".join(map(str, value)) if listed else value
                if isinstance(widget, widgets.LineEdit) and not widget.native.hasFocus():
                    widget.native.setCursorPosition(0)  # The beginning of a long text is seen.
                return
            texts = [text for text, meaning in choices.items() if meaning == value]
            if texts:
                widget.value = texts[0]
            else:
                widget.native.setCurrentIndex(-1)

    def eventFilter(self, widget: Any, event: Any) -> bool:
        """Leave wheel events over combo boxes and widgets without focus to the scroll area."""
        if event.type() != QEvent.Type.Wheel:
            return False
        if widget.hasFocus() and not isinstance(widget, QtWidgets.QComboBox):
            return False
        event.ignore()
        return True


def buttons(**actions: tuple[Any, ...]) -> widgets.Container[Any]:
    """A row of push buttons: text, tooltip and callback by the names of the widgets.

    Some have a shortcut, too, such as "Ctrl+Alt+L".
    """
    made = []
    for name, (text, tip, action, *keys) in actions.items():
        shortcut = "".join(keys)
        described = f"{tip} ({shortcut})" if shortcut else tip
        button = widgets.PushButton(name=name, text=text, tooltip=described)
        button.changed.connect(lambda _, action=action: action())
        button.native.setMinimumWidth(24)
        button.native.setAccessibleName(tip)
        button.native.setShortcut(shortcut)
        made.append(button)
    row = widgets.Container(widgets=made, layout="horizontal", labels=False)
    _tighten(row.native.layout())
    return row


def _tighten(layout: Any) -> None:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(4)
