"""Write results with their dtypes and facts, and read them back."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from ecc_core import results
from ecc_core._io.persistence_files import DIAGRAM_SUFFIXES, read_diagram, write_diagram
from ecc_core._io.write import TABLE_SUFFIXES, atomic_file, check_output, write_table
from ecc_core._optional import import_optional
from ecc_core.quantities import QUANTITIES
from ecc_core.results import Result, columns

RESULT_SUFFIXES = (*TABLE_SUFFIXES, ".npz")
"""Suffixes of the files that can hold a result."""
KEY = "ecc"
"""The column of a CSV file that has the description of the result."""
TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in vars(results).values() if hasattr(kind, "_fields")},
    **{kind.__name__: kind for quantity in QUANTITIES for kind in quantity.results},
}
COLUMNS = {
    "thresholds": ("threshold", -1),
    "thresholds_first": ("threshold_first", -2),
    "thresholds_second": ("threshold_second", -1),
    "heights": ("height", -1),
    "directions": ("direction", -2),
    "labels": ("label", 0),
}
"""The column that each array has in a table, and the axis of `values` that it describes."""
Table = dict[str, list[Any]]


def write_result(
    path: str | os.PathLike[str], result: Result[Any], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a result, completely or not at all.

    Parameters
    ----------
    path : path-like
        The file. Its suffix determines the type: ``.npz`` files contain the arrays by name, and
        ``.csv``, ``.parquet`` and ``.json`` files the table that
        :meth:`~ecc_core.results.Result.to_pandas` returns. ``.diagram`` files of DIPHA contain the
        births and deaths of PersistencePairs, those of the negative image for superlevel sets as in
        :meth:`~ecc_core.results.PersistencePairs.to_gudhi`, and neither points nor facts.
    result : EulerCurve, BettiCurves, PersistencePairs, EulerTransform or another result
        Arrays on a device are copied to the host, and dask arrays are computed.
    metadata : mapping, optional
        Additional metadata of types that JSON supports, for ``.parquet`` and ``.json``.

    Raises
    ------
    TypeError
        If `result` is not a result of ecc_core.
    ValueError
        If the suffix is not supported, an array holds Python objects, or the file is a CSV file and
        the result has no values.
    OSError
        If the file cannot be written.
    ImportError
        If pyarrow is not installed and the file is a Parquet file.

    Notes
    -----
    Facts such as the connectivity are stored as JSON: under the key ``result`` in the metadata of
    Parquet and JSON files, as the comment of the zip archive in NPZ files, and in the first row of
    the column ``ecc``, which is otherwise empty, in CSV files.

    Examples
    --------
    >>> import os, tempfile, numpy as np, ecc_core as ecc
    >>> from ecc_core.io import read_result, write_result
    >>> curve = ecc.euler_curve(np.eye(3), [0.5, 1], superlevel=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "curve.csv")
    ...     write_result(path, curve)
    ...     read_result(path) == curve
    True
    """
    path = check_output(path, (*RESULT_SUFFIXES, *DIAGRAM_SUFFIXES))
    if isinstance(result, results.BettiMatching):
        raise TypeError(
            "`result` must be arrays and facts, got a BettiMatching: write its table, "
            "`to_pandas()`, or its pairs, `prediction` and `target`"
        )
    if type(result).__name__ not in TYPES:
        raise TypeError(f"`result` must be a result of ecc_core, got a {type(result).__name__}")
    if path.suffix.lower() in DIAGRAM_SUFFIXES:
        if not isinstance(result, results.PersistencePairs):
            raise ValueError(
                f"{path}: `result` must be PersistencePairs, got {type(result).__name__}"
            )
        write_diagram(path, result)
        return
    if isinstance(result, results.PersistentRegions) and path.suffix.lower() != ".npz":
        raise ValueError(
            f"{path}: a table cannot hold labels, use .npz (or write `labels` as an image and "
            "`to_pandas()` as a table)"
        )
    result = result.to_numpy()
    for name, array in result._asdict().items():
        if array.dtype.hasobject:  # NumPy would pickle objects, which `read_result` never loads.
            raise ValueError(f"{path}: `{name}` must hold numbers, got dtype {array.dtype}")
    described = describe_result(result)
    if path.suffix.lower() == ".npz":
        with atomic_file(path) as file:
            np.savez_compressed(file, **result._asdict())
            with ZipFile(file, "a") as archive:
                archive.comment = json.dumps({**described, "arrays": {}}).encode()
        return
    table: dict[str, Any] = dict(columns(result))
    if path.suffix.lower() == ".csv":
        if not result.values.size:
            raise ValueError(f"{path}: CSV cannot hold a result without values, use another type")
        rows = len(next(iter(table.values())))
        table[KEY] = np.array([json.dumps(described), *[""] * rows][:rows], dtype=object)
    write_table(path, table, metadata={**(metadata or {}), "result": described})


def describe_result(result: Result[Any]) -> dict[str, Any]:
    """Return the description of a result that its table lacks, as types that JSON supports.

    It has the ``type``, the ``facts``, the ``dtypes`` and ``shapes`` of arrays by name, and
    ``arrays``, the arrays themselves if the table has no rows.
    """
    arrays = result._asdict()
    unlisted: dict[str, list[str]] = {}
    if not result.values.size:
        flat = {name: array.ravel() for name, array in arrays.items()}
        unlisted = {name: list(map(str, array)) for name, array in flat.items()}
    return {
        "type": type(result).__name__,
        "facts": result.facts,
        "dtypes": {name: array.dtype.str for name, array in arrays.items()},
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "arrays": unlisted,
    }


def read_result(path: str | os.PathLike[str], *, source: str | None = None) -> Result[Any]:
    """Read a result that was written by this package.

    Parameters
    ----------
    path : path-like
        A file of :func:`write_result`, a ``.diagram`` file of DIPHA, or a ``.parquet`` or ``.json``
        table of ``ecc curve`` or ``ecc stack``. CSV tables of the command have no place for facts
        such as the connectivity.
    source : str, optional
        The input whose result to return, if the table contains several.

    Returns
    -------
    EulerCurve, BettiCurves, PersistencePairs, EulerTransform or another result
        Equal to the result that was written, with NumPy arrays. Diagrams of DIPHA are those of
        sublevel sets in float64. They have no points: indices are the largest int64, or -1 for the
        death of a class that never dies.

    Raises
    ------
    ValueError
        If the file does not contain a result, or contains those of several inputs and `source` is
        not one of them.
    OSError
        If the file cannot be read.
    ImportError
        If pyarrow is not installed and the file is a Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, ecc_core as ecc
    >>> from ecc_core.io import read_result, write_result
    >>> curve = ecc.euler_curve(np.eye(3, dtype=np.uint8), [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_result(f"{folder}/curve.csv", curve)
    ...     found = read_result(f"{folder}/curve.csv")
    >>> found.values.tolist() == curve.values.tolist(), found.connectivity
    (True, 2)
    """
    path = Path(path)
    if path.suffix.lower() in DIAGRAM_SUFFIXES:
        return read_diagram(path)
    reader = {".csv": _read_csv, ".json": read_json, ".parquet": read_parquet, ".npz": _read_npz}
    if path.suffix.lower() not in reader:
        types = ", ".join((*RESULT_SUFFIXES, *DIAGRAM_SUFFIXES))
        raise ValueError(f"{path}: type not supported, must be one of {types}")
    try:
        table, metadata = reader[path.suffix.lower()](path)
    except (KeyError, IndexError, json.JSONDecodeError, BadZipFile) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    described = metadata.get("result")
    inputs = {one["path"]: one["result"] for one in metadata.get("inputs", ()) if "result" in one}
    if inputs:
        if source is None and len(inputs) == 1:
            (source,) = inputs
        if source not in inputs:
            raise ValueError(f"{path}: `source` must be one of {list(inputs)}, got {source!r}")
        described = inputs[source]
        rows = [row for row, name in enumerate(table["input"]) if name == source]
        table = {name: [column[row] for row in rows] for name, column in table.items()}
    if not isinstance(described, dict) or described.get("type") not in TYPES:
        raise ValueError(f"{path}: does not say that it holds a result of ecc_core")
    try:
        return _rebuild(table, described)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{path}: is damaged or was changed by hand: {error}") from error


def _rebuild(table: Mapping[str, Any], described: Mapping[str, Any]) -> Result[Any]:
    kind = TYPES[described["type"]]
    arrays = {}
    for name in kind._fields:
        dtype = np.dtype(described["dtypes"][name])
        shape = tuple(described["shapes"][name])
        if name in table:  # The table is that of an NPZ file, whose arrays have these names.
            found = table[name]
        elif name in described["arrays"]:
            found = _numbers(described["arrays"][name], dtype).reshape(shape)
        else:
            found = _from_columns(table, kind, name, described)
        if found.dtype != dtype or found.shape != shape:
            raise ValueError(f"`{name}` must be {dtype} of shape {shape}")
        arrays[name] = found
    result: Result[Any] = kind(**arrays, **with_tuples(described["facts"]))
    return result


def with_tuples(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with tuples in place of lists, because JSON has no tuples."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in facts.items()}


def _from_columns(
    table: Mapping[str, list[Any]], kind: Any, name: str, described: Mapping[str, Any]
) -> NDArray[Any]:
    """Return an array of a result from its table, which repeats it along other axes."""
    dtype = np.dtype(described["dtypes"][name])
    shapes = described["shapes"]
    if kind is results.PersistencePairs:  # Rows are births and deaths by turns.
        rows = slice(1 if name.startswith("death") else 0, None, 2)
        if name in ("births", "deaths"):
            return _numbers(table[kind._quantity][rows], dtype)
        columns = [table[f"point_{axis}"][rows] for axis in range(shapes[name][1])]
        return np.stack([_numbers(column, dtype) for column in columns], axis=-1)
    whole = shapes["values"]
    if name == "values":
        return _numbers(table[kind._quantity], dtype).reshape(whole)
    column, axis = COLUMNS[name]
    if name == "directions":
        ndim = shapes[name][1]
        parts = [_along(table[f"{column}_{i}"], axis, whole, dtype) for i in range(ndim)]
        return np.stack(parts, axis=-1)
    return _along(table[column], axis, whole, dtype)


def _along(column: list[Any], axis: int, whole: list[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    values = _numbers(column, dtype).reshape(whole)
    found: NDArray[Any] = np.moveaxis(values, axis, -1)[(0,) * (values.ndim - 1)]
    return found


def _numbers(column: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert numbers of a table, or their text, directly to a dtype."""
    if dtype.kind == "b":
        return np.array([str(number) in ("True", "1") for number in column], dtype=dtype)
    convert = int if dtype.kind in "iu" else float
    return np.array([convert(number) for number in column], dtype=dtype)


def _read_csv(path: Path) -> tuple[Table, dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = [row for row in csv.reader(file) if row] or [[]]
    table: Table = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    described = next((cell for cell in table.get(KEY, ()) if cell), "null")
    return table, {"result": json.loads(described)}


def read_json(path: Path) -> tuple[Table, dict[str, Any]]:
    whole = json.loads(path.read_text(encoding="utf-8"))
    return whole["columns"], whole["metadata"]


def read_parquet(path: Path) -> tuple[Table, dict[str, Any]]:
    parquet = import_optional("pyarrow.parquet", extra="parquet", purpose="reading Parquet files")
    found = parquet.read_table(path)
    metadata = json.loads((found.schema.metadata or {}).get(b"ecc", b"{}"))
    return found.to_pydict(), metadata


def _read_npz(path: Path) -> tuple[Any, dict[str, Any]]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file), {"result": json.loads(file.zip.comment or "null")}
