"""Results leave the program: files and the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from napari.utils.notifications import show_error, show_info
from qtpy.QtWidgets import QApplication, QFileDialog, QWidget

__all__ = [
    "FILTERS",
    "PICTURES",
    "TABLES",
    "ask_and_save",
    "ask_for_table",
    "ask_path",
    "attempt",
    "copy_code",
    "save",
]

TABLES = (".csv", ".parquet")
PICTURES = (".png", ".svg")
FILTERS = {
    ".csv": "CSV table (*.csv)",
    ".parquet": "Parquet table (*.parquet)",
    ".png": "PNG picture (*.png)",
    ".svg": "SVG drawing (*.svg)",
}


def ask_path(parent: QWidget, title: str, name: str, suffixes: tuple[str, ...]) -> str:
    """Ask where to save; "" if the user changes their mind.

    Parameters
    ----------
    parent : QWidget
    title, name : str
        Of the dialog, and of the file that it proposes.
    suffixes : tuple of str
        Keys of `FILTERS`; the chosen one is added to a name without any of them.
    """
    filters = [FILTERS[suffix] for suffix in suffixes]
    path, chosen = QFileDialog.getSaveFileName(parent, title, name, ";;".join(filters))
    if not path or path.lower().endswith(suffixes):
        return str(path)
    known = [suffix for suffix in suffixes if FILTERS[suffix] == chosen]
    return f"{path}{(known or suffixes)[0]}"


def ask_and_save(
    parent: QWidget,
    title: str,
    name: str,
    suffixes: tuple[str, ...],
    save_as: Callable[[str], None],
) -> None:
    """Call `save_as` with what `ask_path` gives, if anything."""
    path = ask_path(parent, title, name, suffixes)
    if path:
        save_as(path)


def save(path: str, write: Callable[[str], None]) -> None:
    """Write a file, CSV without a suffix; what goes wrong becomes a notification."""
    path = path if Path(path).suffix else f"{path}{TABLES[0]}"
    if attempt(lambda: write(path)):
        show_info(f"Saved {path}")


def attempt(act: Callable[[], None]) -> bool:
    """Do something with a file, and say whether it went well; else there is a notification."""
    try:
        act()
    except (OSError, ValueError) as error:
        show_error(str(error))
        return False
    return True


def ask_for_table(parent: QWidget, title: str) -> str:
    """Ask which table to read; "" if the user changes their mind."""
    path, _ = QFileDialog.getOpenFileName(parent, title, "", "Tables (*.csv *.parquet)")
    return str(path)


def copy_code(code: str) -> None:
    """Put code on the clipboard, if there is any."""
    if code:
        QApplication.clipboard().setText(code)
    show_info("Copied: paste it in napari's console." if code else "There is no curve yet.")
