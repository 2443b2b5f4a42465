"""Tables of results, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from io import TextIOWrapper

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame

from ecc_core.io import atomic_file, check_output, write_csv, write_table


def write_columns(
    path: str, table: Mapping[str, ArrayLike] | DataFrame, facts: Mapping[str, str]
) -> None:
    """Write a table as CSV or Parquet; the suffix decides.

    `facts` say how they were computed: lines of CSV that begin with ``#``, before the table; in
    Parquet the key ``ecc`` of the schema's metadata.
    """
    target = check_output(path, (".csv", ".parquet"))
    columns = {str(name): np.asarray(column) for name, column in table.items()}
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
