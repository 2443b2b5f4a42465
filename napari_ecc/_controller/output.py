"""Tables of results, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from io import TextIOWrapper

import numpy as np
from numpy.typing import ArrayLike

from ecc_core import EulerTransform
from ecc_core.io import atomic_file, check_output, write_csv, write_table

__all__ = ["long_columns", "transform_columns", "write_columns"]

COMPONENTS = ("u_z", "u_y", "u_x")


def long_columns(
    rows: Mapping[str, ArrayLike], level: str, levels: ArrayLike, values: ArrayLike
) -> dict[str, ArrayLike]:
    """Columns with an entry for each row of a table of curves and each of their levels.

    `rows` are columns that describe the rows of the table, `level` is the name of the column of
    levels.
    """
    table = np.asarray(values)
    columns = {name: np.repeat(column, table.shape[1]) for name, column in rows.items()}
    columns[level] = np.tile(levels, len(table))
    return {**columns, "euler_characteristic": table.ravel().astype(np.int64)}


def transform_columns(transform: EulerTransform, level: str) -> dict[str, ArrayLike]:
    """Columns of a table with a row for each direction and level of a complete transform."""
    if np.isnan(transform.values).any():
        raise ValueError("The transform is not complete yet.")
    directions, levels, values = transform
    names = COMPONENTS[3 - directions.shape[1] :]
    return long_columns(dict(zip(names, directions.T, strict=True)), level, levels, values)


def write_columns(
    path: str, columns: Mapping[str, ArrayLike], facts: Mapping[str, str] | None = None
) -> None:
    """Write columns as CSV or Parquet; the suffix decides.

    `facts` say how they were computed: lines of CSV that begin with ``#``, before the table; in
    Parquet the key ``ecc`` of the schema's metadata.
    """
    target = check_output(path, (".csv", ".parquet"))
    facts = facts or {}
    if target.suffix.lower() == ".parquet":
        write_table(target, columns, metadata=facts)
        return
    with atomic_file(target) as file:
        stream = TextIOWrapper(file, encoding="utf-8", newline="")
        for name, text in facts.items():
            stream.writelines(f"# {name}: {line}\n" for line in text.splitlines())
        write_csv(stream, columns)
        stream.flush()
        stream.detach()
