"""Read tables of curves that the commands have written."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._io.metadata import condition_of, rows_where
from ecc_core._io.results import read_json, read_parquet, with_tuples
from ecc_core._io.write import FORMULA, TABLE_SUFFIXES
from ecc_core._optional import import_optional
from ecc_core._request.boundary import shortest_name, words_of
from ecc_core.quantities import CURVES
from ecc_core.quantities._base import EULER_NUMBER
from ecc_core.results import CurveResult, EulerCurve
from ecc_core.results._base import known_by

if TYPE_CHECKING:
    from pandas import DataFrame

Measure = str
"""The name of a quantity."""

FACTS = (
    *("connectivity", "superlevel", "boundary", "direction", "direction_scale"),
    *("estimator", "density", "unit"),
)
"""Columns that record how curves were computed."""
OTHERS = {name: one for name, one in CURVES.items() if name != "euler"}
COLUMNS = "|".join(name for one in OTHERS.values() for name in one.columns)
HEADER = re.compile(rf"(?:({COLUMNS}) )?([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|inf)|True|False)")
"""A column of ``ecc batch``: a curve's name, none for the Euler characteristic, and a threshold."""


@dataclass(frozen=True)
class CurveTable:
    """Curves of a table, and the other columns of the table for each of them.

    Attributes
    ----------
    curves : EulerCurve, BettiCurves, MinkowskiCurves or ComponentCurves
        With one batch axis, a row of the table each.
    metadata : pandas.DataFrame
        One row for each curve: its input, and indices, labels, wells or other columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from ecc_core.io import curves_of_table
    >>> frame = pd.DataFrame({"well": ["A1", "A2"], "0.5": [3, 4], "1.0": [2, 1]})
    >>> table = curves_of_table(frame)
    >>> table.curves.thresholds, table.metadata["well"].tolist()
    (array([0.5, 1. ]), ['A1', 'A2'])
    """

    curves: CurveResult[NDArray[Any]]
    metadata: DataFrame

    def select(self, rows: ArrayLike) -> CurveTable:
        """Return some of the curves.

        Parameters
        ----------
        rows : (k,) bool array, or int array
            Which curves, such as ``table.metadata["well"] == "A1"``.

        Returns
        -------
        CurveTable

        Examples
        --------
        >>> import pandas as pd
        >>> from ecc_core.io import curves_of_table
        >>> frame = pd.DataFrame({"well": ["A1", "A2"], "0.5": [3, 4], "1.0": [2, 1]})
        >>> table = curves_of_table(frame)
        >>> table.select(table.metadata["well"] == "A2").curves.values
        array([[4, 1]])
        """
        at = np.asarray(rows)
        kind: Any = type(self.curves)
        thresholds, values = self.curves
        chosen = kind(thresholds, values[at], **self.curves.facts)
        return CurveTable(chosen, self.metadata[at] if at.dtype == bool else self.metadata.iloc[at])

    def where(self, *conditions: str) -> CurveTable:
        """Return the curves that fulfil conditions on the metadata.

        Parameters
        ----------
        *conditions : str
            Such as ``"channel=DAPI"`` or ``"label!=0"``: a column, and the value that it must have
            or must not have.

        Returns
        -------
        CurveTable

        Raises
        ------
        ValueError
            If a condition is none, there is no such column, or no curve fulfils them.

        Examples
        --------
        >>> import pandas as pd
        >>> from ecc_core.io import curves_of_table
        >>> frame = pd.DataFrame({"well": ["A1", "A2"], "0.5": [3, 4], "1.0": [2, 1]})
        >>> curves_of_table(frame).where("well=A2").curves.values
        array([[4, 1]])
        """
        parsed = []
        for text in conditions:
            try:
                parsed.append(condition_of(text))
            except ValueError as error:
                raise ValueError(f"`conditions` {error}") from None
        return self.select(rows_where(self.metadata, parsed, "`conditions`"))


def read_table(path: str | os.PathLike[str], measure: Measure | None = None) -> CurveTable:
    """Read the curves of a table that ``ecc curve``, ``ecc stack`` or ``ecc batch`` wrote.

    Parameters
    ----------
    path : path-like
        A ``.csv``, ``.parquet`` or ``.json`` file.
    measure : str, optional
        Which curves, by the name of the quantity in the commands: "euler", "betti", "minkowski" or
        "components". Default: Betti or Minkowski curves if the table has them, otherwise Euler
        characteristic curves. Required if it has both.

    Returns
    -------
    CurveTable

    Raises
    ------
    ValueError
        If the table has no curves or not those, curves have different thresholds, rows differ in
        how they were computed, or the suffix is not supported.
    OSError
        If the file cannot be read.
    ImportError
        If pandas is not installed, or pyarrow for a Parquet file.

    See Also
    --------
    read_result : one result, as it was written.

    Examples
    --------
    >>> import os, tempfile
    >>> from ecc_core.io import read_table, write_table
    >>> columns = {"input": ["a", "a", "b", "b"], "threshold": [1, 2] * 2, "euler_number": range(4)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "curves.csv")
    ...     write_table(path, columns)
    ...     table = read_table(path)
    >>> table.curves.thresholds, table.curves.values
    (array([1, 2]), array([[0, 1],
           [2, 3]]))
    >>> table.metadata["input"].tolist()
    ['a', 'b']
    """
    return table_of(path, lambda _: measure)


def table_of(
    path: str | os.PathLike[str], choose: Callable[[Set[str]], Measure | None]
) -> CurveTable:
    """Return the curves of a table, of the quantity that `choose` returns.

    `choose` takes the names of all columns of curves.
    """
    path = Path(path)
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise ValueError(f"{path}: type not supported, must be one of {', '.join(TABLE_SUFFIXES)}")
    try:
        frame, metadata = _read(path)
        return _table(frame, choose, _recorded(metadata))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def scores_of_table(path: str | os.PathLike[str], score: str) -> CurveTable | None:
    """Return the numbers in a column of a table of scores as curves that are constant on 0 to 1.

    The distance of two such curves is the difference of their scores. None if the table has curves,
    or if the column does not hold numbers.
    """
    frame, _ = _read(Path(path))
    headers = [HEADER.fullmatch(str(name)) for name in frame]
    has_curves = "threshold" in frame or any(headers)
    if has_curves or score not in frame or frame[score].dtype.kind not in "iuf":
        return None
    values = np.repeat(frame[score].to_numpy(np.float64)[:, None], 2, axis=1)
    return CurveTable(EulerCurve(np.arange(2.0), values), frame.drop(columns=[score]))


def curves_of_table(frame: DataFrame, measure: Measure | None = None) -> CurveTable:
    """Return the curves of a data frame with the columns of a table of `read_table`.

    Parameters
    ----------
    frame : pandas.DataFrame
        As of :func:`read_table`: with a row for each threshold of each curve and the columns
        ``threshold`` and ``euler_number``, ``b0``, ... or ``area``, ...; or with a row for each
        curve, and columns such as ``12.5`` and ``b0 12.5``. The columns connectivity, superlevel,
        boundary, direction, estimator, density and unit tell how curves were computed; all
        others are metadata.
    measure
        As for :func:`read_table`.

    Returns
    -------
    CurveTable

    Raises
    ------
    ValueError
        As for :func:`read_table`.

    Examples
    --------
    >>> import pandas as pd
    >>> from ecc_core.io import curves_of_table
    >>> frame = pd.DataFrame({"well": ["A1", "A2"], "b0 1": [3, 4], "b1 1": [2, 1]})
    >>> curves_of_table(frame).curves
    BettiCurves(thresholds=[1], values=<int64 (2, 2, 1)>)
    """
    return _table(frame, lambda _: measure, {})


def _read(path: Path) -> tuple[DataFrame, dict[str, Any]]:
    """Return a table without the apostrophes that precede formulas, and its metadata."""
    pandas = import_optional("pandas", extra="features", purpose="reading tables")
    if path.suffix.lower() == ".csv":
        frame = pandas.read_csv(path, keep_default_na=False, na_values=["nan"])
        return frame.replace(f"^'(?={FORMULA.pattern})", "", regex=True), {}
    columns, metadata = (read_json if path.suffix.lower() == ".json" else read_parquet)(path)
    cells = {name: [_as_number(cell) for cell in column] for name, column in columns.items()}
    return pandas.DataFrame(cells), metadata


def _as_number(cell: Any) -> Any:
    """Return a cell of JSON, in which infinity and NaN are text, as a number if it is one."""
    return float(cell) if cell in ("inf", "-inf", "nan") else cell


def _recorded(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts in the metadata of a table in which all of its results agree."""
    described = [one.get("result") for one in (metadata, *metadata.get("inputs", ()))]
    facts = [one["facts"] for one in described if one]
    if not facts:
        settings = metadata.get("settings", {})
        given = {name: settings[name] for name in FACTS if settings.get(name) is not None}
        if "boundary" in given:
            given["boundary"] = shortest_name(words_of(given["boundary"]))
        return with_tuples(given)

    def is_agreed(name: str) -> bool:
        return all(own.get(name) == facts[0][name] for own in facts)

    return with_tuples({name: fact for name, fact in facts[0].items() if is_agreed(name)})


def _table(
    frame: DataFrame, choose: Callable[[Set[str]], Measure | None], recorded: dict[str, Any]
) -> CurveTable:
    frame = frame.reset_index(drop=True)
    columns = [column for column in FACTS if column in frame]
    facts = recorded | {column: _only(frame, column) for column in columns}
    if "unit" in columns:
        facts["spacing_units"] = facts.pop("unit")
    frame = frame.drop(columns=columns)
    found, metadata = _from_rows(frame) if "threshold" in frame else _from_columns(frame)
    thresholds, values = found
    curves = result_of(thresholds, values, choose(values.keys()), facts)
    return CurveTable(curves, metadata)


def _only(frame: DataFrame, column: str) -> Any:
    """Return the only value of a column, None if it is empty."""
    cells = frame[column]
    values = cells.astype(object).where(cells.notna(), "").unique().tolist()
    if len(values) > 1:
        raise ValueError(f"curves must agree in `{column}`, got {values[0]!r} and {values[1]!r}")
    if not values or values[0] == "":
        return None
    if column == "direction" and isinstance(values[0], str):
        return tuple(map(float, values[0].split(",")))
    if column == "boundary" and "," in values[0]:
        return shortest_name(values[0].split(","))
    return values[0]


def _from_rows(frame: DataFrame) -> tuple[tuple[Any, dict[str, Any]], DataFrame]:
    """Return thresholds, measures (k, n) and metadata of a table with a row for each threshold."""
    pattern = re.compile(f"{EULER_NUMBER}|{COLUMNS}")
    names = [name for name in frame if pattern.fullmatch(str(name))]
    heads = frame.drop(columns=["threshold", *names])
    thresholds = frame["threshold"].to_numpy()
    begins = np.ones(len(frame), bool)
    begins[1:] = thresholds[1:] <= thresholds[:-1]
    if heads.shape[1]:
        begins[1:] |= (heads != heads.shift()).any(axis=1).to_numpy()[1:]
    count = int(begins.sum())
    at = thresholds.reshape(count, -1) if count and len(frame) % count == 0 else None
    if count and (at is None or (at != at[0]).any()):
        raise ValueError(
            "curves must have the same thresholds, but these have their own: write the table with "
            "--range, or align them (`ecc_core.features.align_curves`)"
        )
    values = {name: frame[name].to_numpy().reshape(count, -1) for name in names}
    return (thresholds[:0] if at is None else at[0], values), heads[begins].reset_index(drop=True)


def _from_columns(frame: DataFrame) -> tuple[tuple[Any, dict[str, Any]], DataFrame]:
    """Return thresholds, measures (k, n) and metadata of a table with a row for each curve."""
    columns: dict[str, dict[str, str]] = {}
    for name in frame:
        if part := HEADER.fullmatch(str(name)):
            columns.setdefault(part[1] or EULER_NUMBER, {})[name] = part[2]
    texts = [[*own.values()] for own in columns.values()]
    if any(text != texts[0] for text in texts):
        raise ValueError(
            "all measures must have the same thresholds, got columns of different ones"
        )
    values = {name: frame[[*own]].to_numpy() for name, own in columns.items()}
    of_curves = list(itertools.chain(*columns.values()))
    thresholds = [_number(text) for text in texts[0]] if texts else []
    return (np.array(thresholds), values), frame.drop(columns=of_curves)


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def kinds_of(columns: Set[str]) -> dict[str, tuple[str, ...]]:
    """Return the quantities whose curves are all among the columns, and their columns."""
    found = {kind: one.columns_among(columns) for kind, one in CURVES.items()}
    return {kind: own for kind, own in found.items() if own}


def several_of(held: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the quantities, among `held`, of several curves with the Euler characteristic."""
    return [kind for kind in held if kind in OTHERS and OTHERS[kind].with_euler]


def quantity_of(column: str) -> str:
    """Return the name of the quantity to which a column of curves belongs."""
    for kind, one in OTHERS.items():
        if column in one.columns:
            return kind
    return "minkowski"


def result_of(
    thresholds: Any, values: dict[str, Any], measure: Measure | None, facts: dict[str, Any]
) -> CurveResult[Any]:
    """Return the result of one quantity, from all curves by the names of their columns."""
    held = kinds_of(values.keys())
    several = several_of(held)
    if measure is None and len(several) < 2:
        measure = (*several, "euler")[0]
    if measure is None or measure not in held:
        if not held:
            raise ValueError(
                'has neither the columns "threshold" and "euler_number" nor one for each threshold '
                "(read tables of objects with pandas)"
            )
        one_of = ", ".join(map(repr, held))
        raise ValueError(f"`measure` must be one of {one_of}, got {measure!r}")
    names = held[measure]
    parts = [values[name] for name in names]
    quantity = CURVES[measure]
    if (ndim := quantity.ndim_of(names)) is not None:
        facts = facts | {"ndim": ndim}
    array = np.stack(parts, axis=-2) if measure in OTHERS else parts[0]
    found: CurveResult[Any] = quantity.result(thresholds, array, **known_by(quantity.result, facts))
    return found
