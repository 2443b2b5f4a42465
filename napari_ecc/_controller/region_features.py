"""Columns of a Labels layer's table of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from napari_ecc._model.regions import is_own_column

__all__ = ["CLASS", "classes_of", "classified", "merged", "rows_of"]

CLASS = "class"
"""Column of the class that the user puts an object in."""


def merged(
    features: pd.DataFrame,
    labels: ArrayLike,
    columns: Mapping[str, ArrayLike],
    frame: int | None = None,
) -> pd.DataFrame:
    """Return a layer's features with columns for some labels, replacing those of the plugin.

    Parameters
    ----------
    features : DataFrame
        Of a Labels layer: row i is that of label i, or of the label in the column ``index``.
    labels : (k,) integer array
    columns : mapping of str to (k,) array
    frame : int or None, default None
        Of a time series: the rows get it as a column ``frame``, and those of other frames stay.

    Returns
    -------
    DataFrame
        With a column ``index`` of labels, increasing; NaN where a label has no value.
    """
    old = pd.DataFrame(features)
    others = old.iloc[:0]
    if frame is not None and "frame" in old.columns:
        others, old = old[old["frame"] != frame], old[old["frame"] == frame]
    old = old[[name for name in old.columns if name != "frame" and not is_own_column(name)]]
    if "index" in old.columns:
        old = old.set_index("index")
    new = pd.DataFrame(dict(columns), index=pd.Index(labels))
    table = old.join(new, how="outer") if old.shape[1] else new
    table = table.rename_axis("index").reset_index()
    if frame is None:
        return table
    table.insert(1, "frame", frame)
    if others.empty:
        return table
    return pd.concat([others, table]).sort_values(["frame", "index"], ignore_index=True)


def classified(
    features: pd.DataFrame, labels: ArrayLike, name: str, frame: int | None = None
) -> pd.DataFrame:
    """Return a layer's features with some objects put into a class.

    Parameters
    ----------
    features : DataFrame
        With a column ``index`` of labels.
    labels : (k,) integer array
    name : str
        Of the class; "" takes the objects out of theirs.
    frame : int or None, default None
        Of a time series.

    Returns
    -------
    DataFrame
        With a column `CLASS`.

    Raises
    ------
    ValueError
        If the objects have no rows.
    """
    table = pd.DataFrame(features).copy()
    rows = _rows(table, labels, frame)
    if (rows < 0).any():
        raise ValueError("The features have no rows for these objects: measure again.")
    if CLASS not in table.columns:
        table[CLASS] = ""
    table.iloc[rows, table.columns.get_loc(CLASS)] = name
    return table


def classes_of(features: pd.DataFrame, labels: ArrayLike, frame: int | None = None) -> list[str]:
    """Return the class of each object, or ""."""
    table = pd.DataFrame(features)
    if CLASS not in table.columns:
        return [""] * np.size(labels)
    classes = [*table[CLASS].astype(object).where(table[CLASS].notna(), "").astype(str), ""]
    return [classes[row] for row in _rows(table, labels, frame)]


def rows_of(
    features: pd.DataFrame, labels: ArrayLike, frame: int | None = None
) -> list[dict[str, Any]]:
    """Return the class and the columns not made by the plugin for each object."""
    table = pd.DataFrame(features)
    table = table[[name for name in table.columns if not is_own_column(str(name))]]
    rows = table.to_dict("records")
    return [rows[at] if at >= 0 else {} for at in _rows(table, labels, frame)]


def _rows(table: pd.DataFrame, labels: ArrayLike, frame: int | None) -> NDArray[Any]:
    """Return the rows of labels in a table, or -1."""
    if "index" not in table.columns:
        return np.full(np.size(labels), -1)
    keys = table["index"]
    if frame is not None and "frame" in table.columns:
        keys = keys.where(table["frame"] == frame, -1)
    found = pd.Series(np.arange(len(table)), index=keys)
    found = found[~found.index.duplicated()]
    rows: NDArray[Any] = found.reindex(np.asarray(labels), fill_value=-1).to_numpy()
    return rows
