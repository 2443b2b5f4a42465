"""Save results to files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from napari.utils.notifications import show_error, show_info
from qtpy.QtWidgets import QFileDialog

from napari_ecc._controller.output import write_columns
from napari_ecc._qt.canvas import DEVICES

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
        self._panel, self._name, self._table, self._plot = panel, name, table, plot
        self._suffixes = (*(TABLES if table else ()), *(DEVICES if plot else ()))

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

        def save() -> None:
            if self._table is None or path.lower().endswith(tuple(DEVICES)):
                self._plot.save(path, facts)
            else:
                write_columns(path, self._table(), facts)

        if attempt(save):
            show_info(f"Saved {path}")


def attempt(act: Callable[[], None]) -> bool:
    """Call a function with a file and return whether it succeeded; errors become notifications."""
    try:
        act()
    except (OSError, ValueError) as error:
        show_error(str(error))
        return False
    return True
