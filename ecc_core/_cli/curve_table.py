"""The curves of images, as they are computed, and as tables and figures."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ecc_core._io.readers.zarr_images import PLACES
from ecc_core._io.stored import Array
from ecc_core._io.tables import result_of
from ecc_core._io.write import printable
from ecc_core._request.levels import distinct_values
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure
from ecc_core.results import STATISTICS

MOST_COLUMNS = 1 << 16
EULER = "euler_number"


class Curves(NamedTuple):
    """Curves of an image: one for each index of its batch axes, or for each label there.

    The measures, (k, n) arrays, are the Euler characteristic, and then Betti numbers, Minkowski
    functionals or component curves, as the columns of a table are called; float64 for densities.
    """

    path: str
    thresholds: Array
    heads: Mapping[str, Array]  # columns that tell them apart: indices in the file, channel, label
    measures: Mapping[str, Array]
    density: bool = False  # whether values are per unit of length, area or volume of the image

    @property
    def rows(self) -> int:
        return len(self.measures[EULER])


def columns_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    thresholds = [own.thresholds for own in found]
    times = np.repeat([at.size for at in thresholds], [own.rows for own in found])
    columns = {name: np.repeat(column, times) for name, column in _heads_of(found, axes).items()}
    _check_one_type(thresholds)
    columns["threshold"] = np.concatenate([np.tile(own.thresholds, own.rows) for own in found])
    for name, parts in _measures_of(found).items():
        columns[name] = np.concatenate([part.ravel() for part in parts])
    return columns


def wide_columns_of(
    found: Sequence[Curves],
    places: Mapping[str, Mapping[str, str]],
    unit: str,
    arguments: Namespace,
) -> dict[str, Array]:
    """Return columns with one row for each curve; `places` are those of images on a plate."""
    heads = _heads_of(found)
    columns = {"input": heads.pop("input")}
    on_plate = [places[path] for path in columns["input"].tolist()]
    for name in PLACES:  # empty where an image is not on a plate
        if any(name in place for place in on_plate):
            columns[name] = np.array([place.get(name, "") for place in on_plate], dtype=str)
    columns |= heads
    add_facts(columns, arguments, unit)
    for name, parts in _measures_of(found).items():
        prefix = "" if name == EULER else f"{name} "
        headers = [f"{prefix}{threshold}" for threshold in found[0].thresholds.tolist()]
        columns |= dict(zip(headers, np.concatenate(parts).T, strict=True))
    return columns


def _heads_of(found: Sequence[Curves], axes: str | None = None) -> dict[str, Array]:
    """Return what tells each curve from others: paths, indices, channels and labels."""
    heads = {"input": np.concatenate([np.full(own.rows, own.path) for own in found])}
    names = {name for own in found for name in own.heads}
    more = [name for name in ("channel", "label") if name in names]
    for name in (*(axes or sorted(names.difference(more))), *more):
        missing = "" if name == "channel" else -1  # it has no such axis, or no names of channels
        parts = [own.heads.get(name, np.full(own.rows, missing)) for own in found]
        heads[name] = np.concatenate(parts)
        if heads[name].dtype.kind == "f":  # of integers without a common type
            heads[name] = np.array([each for part in parts for each in part.tolist()])
    return heads


def _measures_of(curves: Sequence[Curves]) -> dict[str, list[Array]]:
    """Return the curves of each image by measure; zeros or NaN where it has no such measure."""
    every = {name: values.dtype for own in curves for name, values in own.measures.items()}
    return {
        name: [
            own.measures.get(
                name,
                np.full(own.measures[EULER].shape, np.nan if dtype.kind == "f" else 0, dtype),
            )
            for own in curves
        ]
        for name, dtype in every.items()
    }


def _check_one_type(thresholds: list[Array]) -> None:
    """Raise an error if a conversion to a common type would change thresholds."""
    common = np.result_type(*thresholds, np.uint8)
    if any(at.astype(common).tolist() != at.tolist() for at in thresholds):
        dtypes = sorted({at.dtype.name for at in thresholds})
        raise InputFileError(
            f"thresholds of types {', '.join(dtypes)} do not fit into one table exactly; "
            "write one table for each type"
        )


def at_common_thresholds(found: list[Curves], *, superlevel: bool) -> list[Curves]:
    """Return curves at the thresholds of all of them.

    They are the same, or each curve has every level at which it changes.
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
    empty = (0, 1) if superlevel else (1, 0)  # the sets beyond the last level, or before the first

    def spread(curves: Curves) -> Curves:
        places = np.searchsorted(curves.thresholds, every, "left" if superlevel else "right")
        padded = {name: np.pad(of, ((0, 0), empty)) for name, of in curves.measures.items()}
        measures = {name: values[:, places] for name, values in padded.items()}
        return curves._replace(thresholds=every, measures=measures)

    return [spread(curves) for curves in found]


def add_facts(columns: dict[str, Array], arguments: Namespace, unit: str) -> None:
    """Add what curves are not by default, the estimator, and the unit of lengths to a table."""
    direction, scale = arguments.direction, arguments.direction_scale
    directed = direction is not None
    facts: dict[str, Any] = {
        "connectivity": arguments.connectivity,
        "superlevel": arguments.superlevel or None,
        "boundary": None if arguments.boundary == "closed" else arguments.boundary,
        "direction": ",".join(map(str, map(float, direction))) if directed else None,
        "direction_scale": float(1 if scale is None else scale) if directed else None,
        "estimator": arguments.minkowski,
        "density": arguments.density or None,
        "unit": unit if arguments.minkowski or directed else None,
    }
    rows = len(next(iter(columns.values())))
    columns |= {name: np.full(rows, fact) for name, fact in facts.items() if fact is not None}


def plot(found: Sequence[Curves], arguments: Namespace, unit: str | None) -> None:
    """Draw all curves, with names that tell them apart, if a figure is wanted."""
    if not arguments.plot:
        return
    from ecc_core.plotting import plot_curves

    inputs = {curves.path for curves in found}
    distinct = len({Path(name).name for name in inputs}) == len(inputs)
    named: dict[str, Any] = {}
    for curves in found:
        shown = Path(curves.path).name if distinct else curves.path
        for row in range(curves.rows):
            words = [
                f"{head if head == 'label' else head.upper()} {values[row]}"
                for head, values in curves.heads.items()
                if head != "channel"
            ]
            if len(inputs) > 1 or not words:
                words.insert(0, shown)
            drawn = _Drawn(curves, row, superlevel=arguments.superlevel, unit=unit)
            named[printable(" ".join(words))] = drawn
    write_figure(arguments.plot, plot_curves(named))


class _Drawn:
    """The results of a curve, which are drawn in one figure."""

    def __init__(self, curves: Curves, row: int, *, superlevel: bool, unit: str | None) -> None:
        values = {name: of[row] for name, of in curves.measures.items()}
        facts = {"superlevel": superlevel, "spacing_units": unit, "density": curves.density}
        kinds: list[Any] = [k for k, one in STATISTICS.items() if {*one.columns} & {*values}]
        if any(STATISTICS[kind].with_euler for kind in kinds[1:]):
            kinds.remove("euler")  # it has no panel, or is drawn with the functionals
        self.results = [result_of(curves.thresholds, values, kind, facts) for kind in kinds]

    def _quantities(self) -> dict[str, Any]:
        return {k: curve for result in self.results for k, curve in result._quantities().items()}
