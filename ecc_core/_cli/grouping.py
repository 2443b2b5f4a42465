"""The groups of ``ecc compare``: curves of a table with their metadata and units."""

from argparse import Namespace
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ecc_core._io.metadata import folders_of, join_columns, rows_where, some_of, texts_of
from ecc_core._io.tables import kinds_of, scores_of_table, several_of, table_of
from ecc_core._optional import import_optional
from ecc_core.errors import InputFileError
from ecc_core.features._replicates import IMAGE, images_as_units, unit_ids
from ecc_core.io import CurveTable

KEYS = (IMAGE, "name", "folder", "plate", "well", "row", "column", "field", "channel", "label")
"""Columns by which rows of another table are matched to curves, besides the indices of axes."""
MATCHED = "(matched)"
"""A temporary column that marks the curves for which another table has a row."""


@dataclass(frozen=True)
class Groups:
    """Groups of the curves of a table.

    Attributes
    ----------
    parts : dict of str to CurveTable
        The curves of each group.
    units : list of list of str, or None
        For each group, the id of the unit of each curve; None if each curve is a unit.
    column : str or None
        The column with the ids of units.
    scores : bool
        Whether the curves are scores, which are constant.
    """

    parts: dict[str, CurveTable]
    units: list[list[str]] | None
    column: str | None
    scores: bool

    @property
    def row(self) -> str:
        """The word for a row of the table."""
        return "score" if self.scores else "curve"

    @property
    def unit(self) -> str:
        """The word for what is permuted."""
        return self.column or self.row

    @property
    def frames(self) -> list[Any]:
        """The metadata of the curves of each group."""
        return [part.metadata for part in self.parts.values()]


def read_groups(arguments: Namespace) -> Groups:
    """Read the table, and divide its curves into groups."""
    table, scores = _table(arguments)
    values = np.array(texts_of(table.metadata[arguments.by]))
    parts = {name: table.select(values == name) for name in _names(values, arguments)}
    frames = [part.metadata for part in parts.values()]
    if arguments.unit:
        ids = unit_ids(frames, arguments.unit, arguments.paired)
        return Groups(parts, ids, arguments.unit, scores)
    if arguments.paired:
        raise InputFileError("--paired needs --unit, which says which curves belong together")
    images = images_as_units(frames)
    return Groups(parts, images, None if images is None else IMAGE, scores)


def _table(arguments: Namespace) -> tuple[CurveTable, bool]:
    """Return the table with the columns of --join and `folder`, and whether it has scores.

    The table has only the curves that --where selects.
    """
    if not arguments.input.is_file():
        raise InputFileError(f"{arguments.input}: no such file")
    try:
        scores = scores_of_table(arguments.input, arguments.measure)
        table = scores or table_of(arguments.input, partial(_kind_of, arguments.measure))
    except ValueError as error:
        raise InputFileError(str(error)) from None
    if IMAGE in table.metadata and "folder" not in table.metadata:
        folders = folders_of(map(str, table.metadata[IMAGE]))
        table = replace(table, metadata=table.metadata.assign(folder=folders))
    try:
        if arguments.join:
            table = replace(table, metadata=_joined(table.metadata, arguments.join))
        table = table.select(rows_where(table.metadata, arguments.where, "--where"))
    except ValueError as error:
        raise InputFileError(f"{arguments.input}: {error}") from None
    for option in ("by", "unit"):
        _check_column(option, getattr(arguments, option), table, arguments)
    return table, scores is not None


def _check_column(option: str, column: str | None, table: CurveTable, arguments: Namespace) -> None:
    if column is None:
        return
    if column not in table.metadata:
        raise InputFileError(
            f"--{option} must be a column of {arguments.input}, got {column!r}: it has "
            f"{', '.join(map(str, table.metadata.columns))} (what the images do not say, such as a "
            "treatment, is to be added to the table, or in another one that --join names)"
        )
    missing = texts_of(table.metadata[column]).count("")
    if missing:
        raise InputFileError(
            f"--{option} must have a value for each curve, but {column} is empty for {missing}"
        )


def _joined(metadata: Any, path: Path) -> Any:
    """Return the metadata with the columns of another table, by some of `KEYS`."""
    pandas = import_optional("pandas", extra="features", purpose="--join")
    parquet = path.suffix.lower() == ".parquet"
    features = pandas.read_parquet(path) if parquet else pandas.read_csv(path, comment="#")
    names = {"name"} & {*features} - {*metadata}
    if names and IMAGE in metadata:
        known = set(texts_of(features["name"]))
        metadata = metadata.assign(name=_file_names(texts_of(metadata[IMAGE]), known))
    indices = [column for column in metadata if len(str(column)) == 1]
    keys = [*KEYS, *indices]
    joined = join_columns(metadata, features, keys, f"--join {path}")
    marked = features.assign(**{MATCHED: True})
    if join_columns(metadata, marked, keys)[MATCHED].isna().all():
        raise ValueError(_without_match(metadata, features, keys, path))
    return joined.drop(columns=[*names])


def _without_match(metadata: Any, features: Any, keys: Sequence[str], path: Path) -> str:
    """Return a message that shows how the keys of two tables differ."""
    if features.empty or metadata.empty:
        return f"--join {path} must have a row for some of the curves, got no rows or no curves"
    shared = [key for key in keys if key in metadata and key in features]
    wanted = [texts_of(metadata[key])[0] for key in shared]
    given = [texts_of(features[key])[0] for key in shared]
    return (
        f"--join {path} must have a row for some of the curves, but none has their "
        f"{', '.join(shared)}: the first curve has {', '.join(wanted)!r}, the first row "
        f"{', '.join(given)!r}"
    )


def _file_names(paths: list[str], known: Set[str]) -> list[str]:
    """Return the name of each file, without suffixes if only this name is among those known."""
    found: dict[str, str] = {}
    for path in dict.fromkeys(paths):
        name = PurePath(path).name
        stem = name.partition(".")[0]
        found[path] = stem if stem in known and name not in known else name
    owners: dict[str, str] = {}
    for path, name in found.items():
        other = owners.setdefault(name, path)
        if name in known and other != path:
            raise ValueError(
                f"--join must tell images apart, but the name {name!r} is that of {other} and "
                f"{path}: give the column {IMAGE} in its place"
            )
    return [found[path] for path in paths]


def _kind_of(measure: str, columns: Set[str]) -> Any:
    """Return the kind of curves that `--measure` names, None if a table has no curves."""
    held = kinds_of(columns)
    names = {"euler": "euler"} if "euler" in held else {}
    for kind, own in held.items():
        names |= {name: kind for name in own if name != "euler_number"}
    others = [kind for kind in held if kind != "euler"]
    every = several_of(held) or others[:1] or [*held]
    if measure == "all":
        kinds = every
    elif measure in names:
        kinds = [names[measure]]
    else:
        kinds = []
    if len(kinds) == 1 or not held:
        return kinds[0] if kinds else None
    message = f"--measure must be one of {', '.join(map(repr, names))}, got {measure!r}"
    more = " of a table with several kinds of curves" if kinds else ""
    raise ValueError(message + more)


def _names(values: Any, arguments: Namespace) -> list[str]:
    known = sorted(set(values.tolist()))
    names = arguments.groups.split(",") if arguments.groups else known
    if len(names) < 2 or len(set(names)) < len(names):
        option = "--groups" if arguments.groups else "--by"
        raise InputFileError(
            f"{option} must name two or more groups in {arguments.by}, got {some_of(names)}"
        )
    if missing := [name for name in names if name not in known]:
        raise InputFileError(
            f"--groups must be in the column {arguments.by}, got {missing[0]!r}: it has "
            f"{some_of(known)}"
        )
    return [*names]
