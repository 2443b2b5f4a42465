"""Files that a file refers to, which must lie in the same folder."""

from pathlib import Path


def check_same_folder(name: str, what: str = "values") -> None:
    """Raise a ValueError if the name of a file with `what` leads to another folder.

    Separators and drives of all operating systems count, so that results do not depend on it.
    """
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:"):
        raise ValueError(f"its {what} lie outside of its folder, in {name}")


def file_in_same_folder(path: Path, name: str, what: str = "values") -> Path:
    """Return the file with a name to which the file at `path` refers for its `what`."""
    check_same_folder(name, what)
    file = path.with_name(name)
    if not file.is_file():
        raise ValueError(f"its {what} are in {name}, which is missing")
    return file
