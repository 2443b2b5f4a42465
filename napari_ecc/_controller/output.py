"""Tables as files."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from ecc_core.io import check_output, write_table

__all__ = ["write_columns"]


def write_columns(path: str, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns as CSV or Parquet.

    Parameters
    ----------
    path : str
        Its suffix decides.
    columns : mapping of str to 1-D array

    Raises
    ------
    ValueError, OSError
        For another suffix, or if it cannot be written.
    """
    write_table(check_output(path, (".csv", ".parquet")), columns)
