"""Write tables and figures, each completely or not at all."""

import csv
import glob
import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._optional import import_optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE_SUFFIXES = (".csv", ".parquet", ".json")
"""Suffixes of the tables that can be written."""
FIGURE_SUFFIXES = (".png", ".pdf", ".svg")
"""Suffixes of the figures that can be written."""
FIGURE_OF = "figure of napari-ecc"
"""The text by which PNG figures name the program that wrote them."""
TEXT_BYTES = 1024
"""The bytes at the start of a PNG file that contain its texts."""
FORMULA = re.compile(r"[=+@\-\t\r]")
"""The first characters of cells that spreadsheets take for formulas."""


def check_output(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Raise an error unless a file can be written to this path.

    Call it before a long computation whose result is to be written.

    Parameters
    ----------
    path : path-like
        The file to write, which may exist.
    suffixes : sequence of str
        Allowed suffixes, such as ``TABLE_SUFFIXES``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ValueError
        If the suffix is not one of `suffixes`.
    OSError
        If the folder does not exist or is not writable, or `path` is not a regular file.
    ImportError
        If the library for this file type is not installed.

    Examples
    --------
    >>> from ecc_core.io import TABLE_SUFFIXES, check_output
    >>> check_output("curve.txt", TABLE_SUFFIXES)
    Traceback (most recent call last):
    ...
    ValueError: curve.txt: type not supported, must be one of .csv, .parquet, .json
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{path}: type not supported, must be one of {', '.join(suffixes)}")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the folder {folder} is not writable")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: exists and is not a regular file")
    if path.suffix.lower() == ".parquet":
        import_optional("pyarrow", extra="parquet", purpose="writing Parquet files")
    return path


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces `path` only when it is complete.

    Data are written to a temporary file in the same folder, which is flushed to disk and renamed to
    `path` when the block ends. After an error, `path` is unchanged and the temporary file is
    removed.

    Parameters
    ----------
    path : path-like
        The file to write or replace. If it is a symbolic link, its target is replaced.

    Yields
    ------
    binary file
        Open for writing.

    Raises
    ------
    OSError
        If the file cannot be written, for example because the disk is full.

    Examples
    --------
    >>> import os, tempfile
    >>> from ecc_core.io import atomic_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(os.path.join(folder, "notes.txt")) as file:
    ...         _ = file.write(b"complete")
    ...     os.listdir(folder)
    ['notes.txt']
    """
    target = Path(os.path.realpath(path))
    for left in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 8}.tmp"):
        with suppress(OSError):
            if sys.platform == "win32":
                left.unlink()  # This fails while a process has the file open.
                continue
            with left.open("rb") as file:
                if lock_file(file):  # The process that wrote it was killed.
                    left.unlink()
    with whole_file(path) as file:
        yield file


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Like `atomic_file`, but do not remove temporary files of processes that were killed."""
    target = Path(os.path.realpath(path))
    temporary = None
    try:
        temporary, file = _create_temporary(target)
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError) and (
            temporary is None or error.filename in (None, str(temporary))
        ):
            error.filename = str(path)
        raise
    if hasattr(os, "O_DIRECTORY"):  # The new name is flushed to disk, too.
        descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # Some network file systems do not support it.
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock_file(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it."""
    if sys.platform != "win32":  # Windows needs no lock, because open files cannot be removed.
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # Some network file systems have no locks.
            return True
    return True


def is_removed(file: IO[bytes]) -> bool:
    """Whether an open file has been removed."""
    return os.fstat(file.fileno()).st_nlink == 0


def _create_temporary(target: Path) -> tuple[Path, IO[bytes]]:
    """Create a file beside `target`, locked while this process writes it."""
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        file = path.open("x+b")
        if lock_file(file) and not is_removed(file):
            return path, file
        file.close()  # Another process found the file before it was locked, and removed it.


def write_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, ArrayLike],
    *,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a table as CSV, Parquet or JSON, completely or not at all.

    Numbers are written without loss of precision.

    Parameters
    ----------
    path : path-like
        The file. Its suffix determines the type: ``.csv``, ``.parquet`` or ``.json``. A JSON file
        contains an object with the keys ``metadata`` and ``columns``; each column is a list, in
        which infinity is ``"inf"`` or ``"-inf"``. Numbers of extended precision (longdouble) are
        text in Parquet and JSON files.
    columns : mapping of str to array_like
        Columns by name, 1-D and of the same length.
    metadata : mapping, optional
        Metadata of types that JSON supports. Written to JSON files, and to Parquet files under the
        key ``ecc`` of the schema metadata, but not to CSV files.

    Raises
    ------
    ValueError
        If the suffix is not supported, or the columns differ in length.
    OSError
        If the file cannot be written.
    ImportError
        If pyarrow is not installed and the file is a Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ecc_core.io import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "curve.json")
    ...     write_table(path, {"threshold": [0.5], "euler_number": [3]}, metadata={"version": "1"})
    ...     print(path.read_text())
    {"metadata": {"version": "1"}, "columns": {"threshold": [0.5], "euler_number": [3]}}
    """
    path = check_output(path, TABLE_SUFFIXES)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    suffix = path.suffix.lower()
    arrays = {name: _storable(values, suffix) for name, values in arrays.items()}
    shapes = {array.shape for array in arrays.values()}
    axes = {len(shape) for shape in shapes}
    if len(shapes) > 1 or axes - {1}:
        raise ValueError(f"`columns` must be 1-D and of the same length, got shapes {shapes}")
    with atomic_file(path) as file:
        if suffix == ".csv":
            stream = TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
            write_csv(stream, arrays)
            stream.detach()
        elif suffix == ".json":
            file.write(json_of(arrays, metadata or {}).encode())
        else:
            _write_parquet(file, arrays, metadata or {})


def _storable(values: NDArray[Any], suffix: str) -> NDArray[Any]:
    """Return the text of values for which a type of files has no type of its own."""
    # Only Parquet files have types for dates, times and durations.
    if values.dtype.kind in "mM" and suffix != ".parquet":
        return values.astype(str)
    # Parquet and JSON files have no type for numbers of extended precision.
    if values.dtype.char == "g" and suffix != ".csv":
        return values.astype(str)
    return values


def write_csv(stream: TextIO, columns: Mapping[str, ArrayLike]) -> None:
    """Write a table as CSV to an open text stream.

    Text that a spreadsheet would interpret as a formula, because it begins with ``=``, ``+``,
    ``-``, ``@`` or a tab, is preceded by an apostrophe.

    Parameters
    ----------
    stream : text file
        The stream to write to.
    columns : mapping of str to array_like
        Columns by name, 1-D and of the same length.

    Examples
    --------
    >>> import sys
    >>> from ecc_core.io import write_csv
    >>> write_csv(sys.stdout, {"threshold": [0.5, 1.0], "euler_number": [3, 1]})
    threshold,euler_number
    0.5,3
    1.0,1
    """
    # Cells are Python's numbers, whose text is the shortest that reads back as the same number.
    lists = [_cells(np.asarray(values)) for values in columns.values()]
    texts = [value for values in lists for value in values if isinstance(value, str)]
    # Before Python 3.13, `QUOTE_MINIMAL` does not quote a carriage return.
    has_return = any("\r" in text for text in (*columns, *texts))
    writer = csv.writer(
        stream, lineterminator="\n", quoting=csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    )
    writer.writerow(columns)
    writer.writerows(zip(*lists, strict=True))


def _cells(values: NDArray[Any]) -> list[Any]:
    cells: list[Any] = values.tolist()
    if values.dtype.kind not in "UO":
        return cells
    return [f"'{cell}" if _is_formula(cell) else cell for cell in cells]


def _is_formula(cell: Any) -> bool:
    """Whether a spreadsheet would take a cell for a formula."""
    return isinstance(cell, str) and FORMULA.match(cell) is not None


def printable(name: str) -> str:
    r"""Return a file name as valid Unicode. Bytes that are not valid are written as ``\xff``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _in_json(cell: Any) -> Any:
    """Return a value as JSON can hold it: infinity and NaN as text."""
    return str(cell) if isinstance(cell, float) and not isfinite(cell) else cell


def json_of(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> str:
    """Return a table as the text of a JSON file."""
    lists = {name: [_in_json(cell) for cell in array.tolist()] for name, array in columns.items()}
    return json.dumps({"metadata": metadata, "columns": lists}, allow_nan=False) + "\n"


def _write_parquet(
    file: IO[bytes], columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]
) -> None:
    pyarrow = import_optional("pyarrow", extra="parquet", purpose="writing Parquet files")
    parquet = import_optional("pyarrow.parquet", extra="parquet", purpose="writing Parquet files")
    native = {}  # Columns in native byte order, with text that is valid Unicode.
    for name, values in columns.items():
        if values.dtype.kind in "UO":
            texts = [printable(v) if isinstance(v, str) else v for v in values.tolist()]
            native[name] = np.array(texts, values.dtype.kind)
        else:
            native[name] = values.astype(values.dtype.newbyteorder("="), copy=False)
    table = pyarrow.table(native).replace_schema_metadata({"ecc": json.dumps(metadata)})
    parquet.write_table(table, file)


def write_figure(path: str | os.PathLike[str], figure: "Figure", *, dpi: float = 300) -> None:
    """Write a matplotlib figure as PNG, PDF or SVG, completely or not at all.

    Parameters
    ----------
    path : path-like
        The file. Its suffix determines the type.
    figure : matplotlib.figure.Figure
        The figure.
    dpi : float, default 300
        Resolution of PNG files, in dots per inch.

    Raises
    ------
    ValueError
        If the suffix is not supported.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import os, tempfile
    >>> from matplotlib.figure import Figure
    >>> from ecc_core.io import write_figure
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figure(os.path.join(folder, "empty.png"), Figure())
    ...     os.listdir(folder)
    ['empty.png']
    """
    path = check_output(path, FIGURE_SUFFIXES)
    kind = path.suffix.lower()[1:]
    known = {"Software": FIGURE_OF} if kind == "png" else None
    with atomic_file(path) as file:
        figure.savefig(file, format=kind, dpi=dpi, metadata=known)


def is_own_figure(path: str) -> bool:
    """Whether a PNG file was written by `write_figure`, by a text before its pixels."""
    if not path.lower().endswith(".png"):
        return False
    with Path(path).open("rb") as file:
        return FIGURE_OF.encode("latin-1") in file.read(TEXT_BYTES)
