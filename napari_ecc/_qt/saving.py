"""Save results to files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from napari.utils.notifications import show_error, show_info
from qtpy.QtWidgets import QFileDialog

__all__ = ["Saver", "attempt"]

FILTERS = {
    ".csv": "CSV table (*.csv)",
    ".parquet": "Parquet table (*.parquet)",
    ".png": "PNG picture (*.png)",
    ".svg": "SVG drawing (*.svg)",
}


class Saver:
    """Saves a result as a table, or as a picture of a plot. The suffix decides.

    `name` is proposed for the file, and `write` writes the table to a path.
    """

    def __init__(
        self, panel: Any, name: str, write: Callable[[str], None], plot: Any = None
    ) -> None:
        self._panel, self._name, self._write, self._plot = panel, name, write, plot
        self._pictures: tuple[str, ...] = () if plot is None else plot.pictures

    def ask(self) -> None:
        """Ask for a file and save to it."""
        suffixes = (".csv", ".parquet", *self._pictures)
        filters = {suffix: FILTERS[suffix] for suffix in suffixes}
        title = f"Save {self._name}"
        path, chosen = QFileDialog.getSaveFileName(
            self._panel, title, self._name, ";;".join(filters.values())
        )
        if path and not path.lower().endswith(suffixes):
            known = [suffix for suffix, text in filters.items() if text == chosen]
            path += (known or suffixes)[0]
        if path:
            self(path)

    def __call__(self, path: str) -> None:
        """Write a file, CSV without a suffix; what goes wrong becomes a notification."""
        path = path if Path(path).suffix else f"{path}.csv"
        if path.lower().endswith(self._pictures):
            done = attempt(partial(self._plot.save, path, self._panel.controller.facts))
        else:
            done = attempt(partial(self._write, path))
        if done:
            show_info(f"Saved {path}")


def attempt(act: Callable[[], None]) -> bool:
    """Call a function with a file and return whether it succeeded; errors become notifications."""
    try:
        act()
    except (OSError, ValueError) as error:
        show_error(str(error))
        return False
    return True
