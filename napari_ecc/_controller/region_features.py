"""Columns of a Labels layer's table of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from napari_ecc._model.regions import is_own_column

__all__ = ["merged"]


def merged(features: Any, labels: ArrayLike, columns: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """A layer's features with columns for some labels; earlier ones of the plugin are replaced.

    Parameters
    ----------
    features : DataFrame
        Of a Labels layer: row i is that of label i, or of the label in the column ``index``.
    labels : (k,) integer array
    columns : mapping of str to (k,) array

    Returns
    -------
    DataFrame
        With a column ``index`` of labels, increasing; NaN where a label has no value.
    """
    old = pd.DataFrame(features)
    old = old[[name for name in old.columns if not is_own_column(name)]]
    if "index" in old.columns:
        old = old.set_index("index")
    new = pd.DataFrame(dict(columns), index=pd.Index(labels))
    table = old.join(new, how="outer") if old.shape[1] else new
    return table.rename_axis("index").reset_index()
