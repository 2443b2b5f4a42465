"""Curves of the regions of blocks: tables of a row for each label, and sums of tables.

A table is int64 of shape (labels, 1 + n): in each row a label, then the curve of its region. Rows
are in the order of labels; those of unsigned labels beyond int64 keep their bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._blocks.planes import Array, Box, Term, flattened
from ecc_core._blocks.quantities import Quantity
from ecc_core._request.image import check_label_values

Table = NDArray[np.int64]


def table_of(box: Box, quantity: Quantity) -> Table:
    """Return the table of an image and its labels, each (1, *spatial)."""
    image, labels = (array[0] for array in box)
    ids, values = quantity.of_regions(image, labels)
    return np.concatenate([ids.astype(np.int64)[:, None], values], axis=1)


def without_missing(image: Array, labels: Array, nan: str) -> Box:
    """Return an image and its checked labels, in which omitted NaN are in no region."""
    check_label_values(labels, labels.dtype)
    if nan == "omit" and image.dtype.kind == "f":
        missing = np.isnan(image)
        labels = np.where(missing, labels.dtype.type(0), labels)
        image = np.where(missing, image.dtype.type(0), image)
    return image, labels


def table_with_terms(own: Table, terms: Sequence[Term], quantity: Quantity) -> Table:
    """Return the sum of a block's table and the given terms."""
    tables = [own]
    for sign, box in terms:
        table = table_of(flattened(box) if quantity.flat else box, quantity)
        table[:, 1:] *= sign
        tables.append(table)
    return add_tables(tables)


def add_tables(tables: Sequence[Table]) -> Table:
    """Return the sum of tables, with a row for each label that occurs in any of them."""
    labels = np.unique(np.concatenate([table[:, 0] for table in tables]))
    added = np.zeros_like(tables[0], shape=(labels.size, tables[0].shape[1]))
    added[:, 0] = labels
    for table in tables:
        added[np.searchsorted(labels, table[:, 0]), 1:] += table[:, 1:]
    return added


def labels_of(table: Table, *, order: np.dtype[Any]) -> Array:
    """Return the labels of a table, increasing, in the given dtype."""
    labels: Array = np.sort(table[:, 0].astype(order))
    return labels


def values_of(table: Table, *, order: np.dtype[Any]) -> Table:
    """Return the curves of a table, in the order of its labels in the given dtype."""
    return table[np.argsort(table[:, 0].astype(order)), 1:]


def rows_of(table: Table, *, ids: Array) -> Table:
    """Return the curves of given labels; zero for labels without points."""
    if table.shape[0] == 0:
        return np.zeros_like(table, shape=(ids.size, table.shape[1] - 1))
    wanted = np.asarray(ids.astype(np.int64), like=table)
    at = np.minimum(np.searchsorted(table[:, 0], wanted), len(table) - 1)
    return np.where((table[at, 0] == wanted)[:, None], table[at, 1:], 0)
