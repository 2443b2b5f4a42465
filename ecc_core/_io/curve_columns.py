"""The columns of tables: curves, the indices that identify them, and how they were computed."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ecc_core._io.lazy import Array
from ecc_core._request.boundary import shortest_name, words_of
from ecc_core._request.levels import distinct_values
from ecc_core.errors import InputFileError
from ecc_core.quantities.registry import quantities_of

MOST_COLUMNS = 1 << 16


def plain(value: Any) -> Any:
    """Return an argument as types that JSON supports."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, slice):
        return [value.start, value.stop]
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value) if value in (np.inf, -np.inf) else value


class Curves(NamedTuple):
    """Curves of an image: one for each index of its batch axes, or for each label there."""

    path: str
    thresholds: Array
    heads: Mapping[str, Array]
    """Columns that identify a curve within the image: indices, channel and label, (k,) each."""
    measures: Mapping[str, Array]
    """Curves by the name of their column, (k, n) each: the Euler characteristic, Betti numbers,
    Minkowski functionals or component curves. Densities are float64. Of lasting classes in a volume
    that does not fit in memory, there are two of the Betti numbers."""

    @property
    def rows(self) -> int:
        return len(next(iter(self.measures.values())))

    def distinct(self) -> "Curves":
        """Return the curves without repeated thresholds, which a range of one value gives."""
        thresholds, first = np.unique(self.thresholds, return_index=True)
        if thresholds.size == self.thresholds.size:
            return self
        measures = {name: values[:, first] for name, values in self.measures.items()}
        return self._replace(thresholds=thresholds, measures=measures)


def columns_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    thresholds = [own.thresholds for own in found]
    times = np.repeat([at.size for at in thresholds], [own.rows for own in found])
    columns = {name: np.repeat(column, times) for name, column in heads_of(found, axes).items()}
    _check_one_type(thresholds)
    columns["threshold"] = np.concatenate([np.tile(own.thresholds, own.rows) for own in found])
    for name, parts in measures_of(found).items():
        columns[name] = np.concatenate([part.ravel() for part in parts])
    return columns


def heads_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return the columns that identify each curve: path, indices, channel and label."""
    heads = {"input": np.concatenate([np.full(own.rows, own.path) for own in found])}
    names = {name for own in found for name in own.heads}
    more = [name for name in ("channel", "label") if name in names]
    for name in (*(axes or sorted(names.difference(more))), *more):
        # The value for an image without this axis, or without names of channels.
        missing = "" if name == "channel" else -1
        parts = [own.heads.get(name, np.full(own.rows, missing)) for own in found]
        heads[name] = np.concatenate(parts)
        if heads[name].dtype.kind == "f":  # Integers have no common type, such as int64 and uint64.
            heads[name] = np.array([each for part in parts for each in part.tolist()])
    return heads


def measures_of(curves: Sequence[Curves]) -> dict[str, list[Array]]:
    """Return the curves of each image by measure, zeros or NaN if an image lacks the measure."""
    every = {name: values.dtype for own in curves for name, values in own.measures.items()}
    found: dict[str, list[Array]] = {}
    for name, dtype in every.items():
        found[name] = []
        for own in curves:
            shape = own.rows, own.thresholds.size
            missing = np.full(shape, np.nan if dtype.kind == "f" else 0, dtype)
            found[name].append(own.measures.get(name, missing))
    return found


def _check_one_type(thresholds: list[Array]) -> None:
    """Raise an error if a conversion to a common type would change thresholds."""
    common = np.result_type(*thresholds, np.uint8)
    unchanged = [at.astype(common).tolist() == at.tolist() for at in thresholds]
    if not all(unchanged):
        dtypes = sorted({at.dtype.name for at in thresholds})
        raise InputFileError(
            f"thresholds of types {', '.join(dtypes)} do not fit into one table exactly; "
            "write one table for each type"
        )


def at_common_thresholds(found: list[Curves], *, superlevel: bool) -> list[Curves]:
    """Return all curves at the union of their thresholds.

    Unless all have the same thresholds, those of each curve must be all at which it changes.
    """
    own = [curves.thresholds for curves in found]
    if all(np.array_equal(at, own[0]) for at in own):
        return found
    _check_one_type(own)
    every = distinct_values(np.concatenate(own))
    if every.size > MOST_COLUMNS:
        raise InputFileError(
            f"--thresholds exact gives {every.size} thresholds, and a table has at most "
            f"{MOST_COLUMNS}: give a number and --range"
        )
    # A curve is 0 above the last level of superlevel sets, and below the first of sublevel sets.
    empty = (0, 1) if superlevel else (1, 0)
    spread = []
    for curves in found:
        places = np.searchsorted(curves.thresholds, every, "left" if superlevel else "right")
        padded = {name: np.pad(of, ((0, 0), empty)) for name, of in curves.measures.items()}
        measures = {name: values[:, places] for name, values in padded.items()}
        spread.append(curves._replace(thresholds=every, measures=measures))
    return spread


def add_facts(columns: dict[str, Array], arguments: Namespace, unit: str) -> None:
    """Add columns to a table for options that are not the default, and for the unit of lengths."""
    directed = arguments.direction is not None
    direction = None
    scale = None
    if directed:
        direction = ",".join(map(str, map(float, arguments.direction)))
        given = arguments.direction_scale
        scale = 1.0 if given is None else float(given)
    wanted = quantities_of(arguments)
    boundary = shortest_name(words_of(arguments.boundary))
    has_lengths = directed or any(one.has_lengths for one in wanted)
    facts: dict[str, Any] = {
        "connectivity": arguments.connectivity,
        "superlevel": arguments.superlevel or None,
        "boundary": None if boundary == "closed" else ",".join(words_of(boundary)),
        "direction": direction,
        "direction_scale": scale,
        **_chosen(arguments),
        "density": arguments.density or None,
        "unit": unit if has_lengths else None,
    }
    rows = len(next(iter(columns.values())))
    columns |= {name: np.full(rows, fact) for name, fact in facts.items() if fact is not None}


def _chosen(arguments: Namespace) -> dict[str, Any]:
    """Return the values of the options of quantities, by the column that a table has for them."""
    with_option = [one for one in quantities_of(arguments) if one.option is not None]
    return {
        one.option.column: getattr(arguments, one.name)
        for one in with_option
        if one.option is not None and one.option.column
    }
