"""What leaves a dock: Python code that reproduces what it shows, and files of its results."""

from __future__ import annotations

from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any

import numpy as np
from napari.layers import Layer
from numpy.typing import ArrayLike
from pandas import DataFrame

from ecc_core.io import atomic_file, check_output, write_csv, write_table


def call(target: str, action: str, *arguments: Any, **options: Any) -> str:
    """A statement that assigns the result of one of `napari_ecc.actions`.

    Layers become ``viewer.layers[name]``, indices ``np.s_[...]``; None is left out.

    Examples
    --------
    >>> from napari_ecc._controller.output import call
    >>> print(call("t, chi", "layer_curve", part=(3, slice(None)), superlevel=True, region=None))
    t, chi = actions.layer_curve(
        part=np.s_[3, :],
        superlevel=True,
    )
    """
    written = [_written(argument) for argument in arguments]
    written += [f"{name}={_written(at)}" for name, at in options.items() if at is not None]
    lines = [f"    {argument}," for argument in written]
    return "\n".join([f"{target} = actions.{action}(", *lines, ")"])


def _written(value: Any) -> str:
    if isinstance(value, Layer):
        return f"viewer.layers[{value.name!r}]"
    if isinstance(value, tuple) and any(isinstance(at, slice) for at in value):
        return f"np.s_[{', '.join(':' if isinstance(at, slice) else str(at) for at in value)}]"
    if isinstance(value, list):
        return f"[{', '.join(_written(at) for at in value)}]"
    if isinstance(value, np.ndarray | np.generic):
        return repr(value.tolist())
    return repr(value)


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
