"""Tables as files."""

from __future__ import annotations

from collections.abc import Mapping
from io import TextIOWrapper

from numpy.typing import ArrayLike

from ecc_core.io import atomic_file, check_output, write_csv, write_table

__all__ = ["write_columns"]


def write_columns(
    path: str, columns: Mapping[str, ArrayLike], facts: Mapping[str, str] | None = None
) -> None:
    """Write columns as CSV or Parquet.

    Parameters
    ----------
    path : str
        Its suffix decides.
    columns : mapping of str to 1-D array
    facts : mapping of str to str, optional
        How they were computed: lines of CSV that begin with ``#``, before the table; in Parquet the
        key ``ecc`` of the schema's metadata.

    Raises
    ------
    ValueError, OSError
        For another suffix, or if it cannot be written.
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
