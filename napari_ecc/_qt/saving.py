"""Save results and settings to files."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from napari.utils.notifications import show_error, show_info
from psygnal import EmitLoopError
from qtpy.QtWidgets import QFileDialog

from ecc_core.io import atomic_file, check_output, write_csv, write_table
from napari_ecc._qt.canvas import PICTURES
from napari_ecc._qt.form import Form
from napari_ecc._workers import in_one_line

FILTERS = {
    ".csv": "CSV table (*.csv)",
    ".parquet": "Parquet table (*.parquet)",
    ".png": "PNG picture (*.png)",
    ".svg": "SVG drawing (*.svg)",
    ".pdf": "PDF drawing (*.pdf)",
}
TABLES = (".csv", ".parquet")


class Saver:
    """Saves a result as a table, or as a picture of a plot. The suffix decides.

    `name` is proposed for the file, and `table` returns the table, or raises a ValueError.
    """

    def __init__(
        self, panel: Any, name: str, table: Callable[[], Any] | None, plot: Any = None
    ) -> None:
        self._panel = panel
        self._name = name
        self._table = table
        self._plot = plot
        self._suffixes = (*(TABLES if table else ()), *(PICTURES if plot else ()))

    def button(self, text: str = "Save…") -> tuple[str, str, Callable[[], None]]:
        """Text, tooltip and callback of a button that asks for a file."""
        kinds = ", ".join(suffix[1:].upper() for suffix in self._suffixes)
        return text, f"A file of one of the types {kinds}", self.ask

    def ask(self) -> None:
        """Ask for a file and save to it."""
        filters = ";;".join(FILTERS[suffix] for suffix in self._suffixes)
        title = f"Save {self._name}"
        path, chosen = QFileDialog.getSaveFileName(self._panel, title, self._name, filters)
        if path:
            self(path, chosen)

    def __call__(self, path: str, chosen: str = "") -> None:
        """Write a file, of the chosen type without a suffix; errors become notifications."""
        if not path.lower().endswith(self._suffixes):
            known = [suffix for suffix in self._suffixes if FILTERS[suffix] == chosen]
            path += (known or self._suffixes)[0]
        facts = self._panel.controller.facts
        with errors_shown():
            if self._table is None or path.lower().endswith(PICTURES):
                self._plot.save(path, facts)
            else:
                write_columns(path, self._table(), facts)
            show_info(f"Saved {path}")


@contextmanager
def errors_shown() -> Iterator[None]:
    """Turn errors about a file into notifications."""
    try:
        yield
    except (OSError, ValueError, EmitLoopError) as error:
        show_error(in_one_line(error))


def write_columns(path: str, table: Any, facts: Mapping[str, str]) -> None:
    """Write a mapping of columns or a DataFrame as CSV or Parquet; the suffix decides.

    `facts` say how they were computed: lines of CSV that begin with ``#``, before the table; in
    Parquet the key ``ecc`` of the schema's metadata.
    """
    target = check_output(path, TABLES)
    columns = {str(name): np.asarray(column) for name, column in table.items()}
    if target.suffix.lower() == ".parquet":
        write_table(target, columns, metadata=facts)
        return
    with atomic_file(target) as file:
        stream = TextIOWrapper(file, encoding="utf-8", newline="")
        for name, text in facts.items():
            stream.writelines(f"# {name}: {line}\n" for line in text.splitlines())
        write_csv(stream, columns)
        stream.detach()


class Setting(NamedTuple):
    """Where the value of a setting belongs."""

    model: Any
    check: Callable[[str, Any], Any]
    """Returns a value of a file as one of the model, or raises a ValueError."""


def _settings(panel: Any) -> dict[str, Setting]:
    """The settings by name: what the forms show, but for layers and what is in them."""
    found: dict[str, Setting] = {}
    for form in panel.findChildren(Form):
        own = {k: model for k, model in form.models.items() if k not in form.offered}
        found |= {name: Setting(model, form.checked) for name, model in own.items()}
    # Columns can be set before objects are measured, when a form has none to choose from.
    more = {name: Setting(panel.model, check) for name, check in panel.more_settings.items()}
    return found | more


def save_settings(panel: Any, path: str) -> None:
    """Write the settings of a dock as JSON."""
    values = {name: getattr(one.model, name) for name, one in _settings(panel).items()}
    text = json.dumps({"dock": panel.title, **values}, indent=1)
    Path(path).write_text(text, encoding="utf-8")


def load_settings(panel: Any, path: str) -> None:
    """Read settings of a dock; a ValueError says what is wrong with them, and none is set."""
    known = _settings(panel)
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: this must be a file of settings, as JSON: {error}") from None
    if not isinstance(values, dict) or values.pop("dock", None) != panel.title:
        raise ValueError(f"{path}: these are not settings of the dock {panel.title}")
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{path}: the dock {panel.title} has no settings {unknown}")
    try:
        checked = {name: known[name].check(name, value) for name, value in values.items()}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    for name, value in checked.items():
        setattr(known[name].model, name, value)
