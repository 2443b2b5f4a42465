"""Columns of a Labels layer's table of features."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from numpy.typing import ArrayLike

from napari_ecc._model.regions import is_own_column

__all__ = ["merged"]


def merged(
    features: pd.DataFrame,
    labels: ArrayLike,
    columns: Mapping[str, ArrayLike],
    frame: int | None = None,
) -> pd.DataFrame:
    """A layer's features with columns for some labels; earlier ones of the plugin are replaced.

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
