"""Columns of tables that describe curves: conditions on them, joins with other tables, names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MOST_NAMED = 8


class Condition(NamedTuple):
    """A column and the value that it must have, or must not have."""

    column: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.column}{'=' if self.equal else '!='}{self.value}"


def condition_of(text: str) -> Condition:
    """Return the condition of a text such as ``channel=DAPI`` or ``label!=0``."""
    found = re.fullmatch(r"\s*(.+?)\s*(!?=)\s*(.*?)\s*", text)
    if found is None:
        raise ValueError(f"must be COLUMN=VALUE or COLUMN!=VALUE, got {text!r}")
    column, sign, value = found.groups()
    return Condition(column, value, sign == "=")


def rows_where(
    metadata: DataFrame, conditions: Iterable[Condition], name: str
) -> NDArray[np.bool_]:
    """Return which rows fulfil all conditions, (k,) bool.

    Raises ValueError if a column is missing or no row is left. `name` is the argument in messages.
    """
    rows = np.ones(len(metadata), bool)
    for condition in conditions:
        column = condition.column
        if column not in metadata:
            raise ValueError(
                f"{name} must be a condition on a column of the table, got {str(condition)!r}: "
                f"it has {some_of(map(str, metadata.columns))}"
            )
        same = _equals(metadata[column], condition.value)
        kept = rows & (same if condition.equal else ~same)
        if not kept.any():
            texts = texts_of(metadata[column][rows])
            there = some_of(sorted(set(texts)))
            raise ValueError(
                f"{name} must leave some curves, but none has {condition}: {column} is {there}"
            )
        rows = kept
    return rows


def _equals(column: Series[Any], value: str) -> NDArray[np.bool_]:
    """Return which cells equal a value. Cells that are numbers are compared as numbers."""
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    same = [
        cell == number if _is_number(cell) else text == value
        for cell, text in zip(column, texts_of(column), strict=True)
    ]
    return np.array(same, bool)


def texts_of(column: Series[Any]) -> list[str]:
    """Return the cells of a column as texts. Whole floats become integers, as "1" for 1.0."""
    texts = []
    for cell in column:
        if cell is None or cell != cell:  # The cell is missing, or NaN.
            texts.append("")
        elif isinstance(cell, float | np.floating) and float(cell).is_integer():
            texts.append(str(int(cell)))
        else:
            texts.append(str(cell))
    return texts


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool | np.bool_):
        return False
    return isinstance(cell, int | float | np.integer | np.floating)


def some_of(names: Iterable[str]) -> str:
    """Return the first names as a text with commas."""
    known = [*names]
    shown = ", ".join(known[:MOST_NAMED])
    return f"{shown}, ..." if len(known) > MOST_NAMED else shown


def join_columns(
    table: DataFrame, features: DataFrame, keys: Sequence[str], name: str = "`features`"
) -> DataFrame:
    """Join the columns of another table to a table, by rows with equal values of some keys.

    Parameters
    ----------
    table : DataFrame
    features : DataFrame
        Columns of the same names, besides keys, replace those of the table.
    keys : sequence of str
        Names of columns. Those that both tables have are compared as texts, so that 1 and "1" are
        equal.
    name : str, default "`features`"
        The name of the features in errors.

    Returns
    -------
    DataFrame
        The rows of the table, in its order. Columns of the features are missing (NaN) where no row
        of them has equal keys.

    Raises
    ------
    ValueError
        If the tables share none of the keys, or `features` have several rows for one.

    Examples
    --------
    >>> import pandas as pd
    >>> from ecc_core.io import join_columns
    >>> wells = pd.DataFrame({"well": ["A1", "A2"], "drug": ["none", "taxol"]})
    >>> join_columns(pd.DataFrame({"well": ["A2", "A1", "A2"]}), wells, ["well"])
      well   drug
    0   A2  taxol
    1   A1   none
    2   A2  taxol
    """
    shared = [key for key in keys if key in table.columns and key in features.columns]
    if not shared:
        own = [key for key in keys if key in table.columns]
        raise ValueError(f"{name} must have one of the columns {own}, got {list(features)}")
    if features.duplicated(shared).any():
        raise ValueError(f"{name} must have one row for each of {shared}, got several")
    numbers = {values: number for number, values in enumerate(_rows_of(features, shared))}
    # No row has the number -1, for which `reindex` gives missing values.
    places = [numbers.get(values, -1) for values in _rows_of(table, shared)]
    more = features.drop(columns=shared).reset_index(drop=True).reindex(places)
    kept = table.drop(columns=[column for column in more if column in table])
    joined: DataFrame = kept.join(more.set_index(kept.index))
    return joined


def folders_of(paths: Iterable[str]) -> list[str]:
    """Return the folder of each path, as the shortest names that tell all of them apart."""
    folders = [os.path.dirname(_spelled(path)) or "." for path in paths]  # noqa: PTH120
    names = short_names(folders)
    return [names[folder] for folder in folders]


def _rows_of(table: DataFrame, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Return the texts of some columns for each row of a table."""
    texts = [texts_of(table[column]) for column in columns]
    return zip(*texts, strict=True)


def _spelled(path: str) -> str:
    """Return the normalized spelling of a path. Addresses are unchanged."""
    if "://" in path:
        return path
    return PurePath(os.path.normpath(path)).as_posix()


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the last names of each path, as few as tell all paths apart.

    Examples
    --------
    >>> from ecc_core._io.metadata import short_names
    >>> short_names(["data/a/s0", "data/b/s0"])
    {'data/a/s0': 'a/s0', 'data/b/s0': 'b/s0'}
    """
    parts = {path: path.split("/") for path in paths}
    deepest = max(map(len, parts.values()), default=1)
    for depth in range(1, deepest):
        names = {path: "/".join(own[-depth:]) for path, own in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {path: path for path in parts}
