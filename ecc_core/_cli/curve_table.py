"""The curves of images, as they are computed, and as tables and figures."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.tables import result_of
from ecc_core._io.write import printable
from ecc_core._request.levels import distinct_values
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure
from ecc_core.results import STATISTICS, CurveResult

Array = NDArray[Any]

MOST_COLUMNS = 1 << 16
EULER = "euler_number"


class Curves(NamedTuple):
    """Curves of an image: one for each index of its batch axes, or for each label there.

    The measures, (k, n) arrays, are the Euler characteristic, and then Betti numbers, Minkowski
    functionals or component curves, as the columns of a table are called; float64 for densities.
    """

    axes: str  # letters of the batch axes
    thresholds: Array
    places: NDArray[np.int64]  # indices in the file, (k, batch axes)
    labels: Array | None
    measures: Mapping[str, Array]
    channels: Mapping[int, str] = MappingProxyType({})  # their names by their indices, if any
    density: bool = False  # whether values are per unit of length, area or volume of the image

    def divided(self, window: float) -> "Curves":
        """Return the densities in a window of this size."""
        if not window:
            raise ValueError("--density must be of an image with a size, got 0")
        densities = {name: values / window for name, values in self.measures.items()}
        return self._replace(measures=densities, density=True)


Found = list[tuple[str, Curves]]
"""Paths of images and their curves; a path may come more than once."""


def curves_in(result: CurveResult[Any], axes: str, places: NDArray[np.int64]) -> Curves:
    """Return the curves of a result, which are at these places on the batch axes."""
    at = result.thresholds
    return Curves(
        axes,
        at.astype(np.uint8) if at.dtype == np.bool_ else at,
        places,
        getattr(result, "labels", None),
        {name: each.reshape((len(places), at.size)) for name, each in result.by_name().items()},
    )


def joined_places(parts: Sequence[Curves]) -> Curves:
    """Return the curves of one image at several places, which have the same thresholds."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        raise ValueError("its axes other than Z, Y and X are empty")
    return parts[0]._replace(
        places=joined(own.places for own in parts),
        labels=joined(own.labels for own in parts if own.labels is not None),
        measures={name: joined(own.measures[name] for own in parts) for name in parts[0].measures},
    )


def columns_of(found: Found, axes: str | None = None) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    curves = [own for _, own in found]
    thresholds = [own.thresholds for own in curves]
    sizes = [at.size for at in thresholds]
    heads = heads_of(found, axes).items()
    columns = {name: joined(map(np.repeat, parts, sizes)) for name, parts in heads}
    _check_one_type(thresholds)
    columns["threshold"] = joined(np.tile(own.thresholds, len(own.places)) for own in curves)
    measures = measures_of(curves).items()
    return columns | {name: joined(part.ravel() for part in parts) for name, parts in measures}


def joined(parts: Iterable[Array]) -> Array:
    """Return arrays one after the other; there may be none."""
    return np.concatenate([*parts] or [np.empty(0)])


def heads_of(found: Found, axes: str | None = None) -> dict[str, list[Array]]:
    """Return what tells the curves of each image from others: its path, indices and labels."""
    heads = {"input": [np.full(len(own.places), path) for path, own in found]}
    for axis in axes or sorted({letter for _, own in found for letter in own.axes}):
        heads[axis] = [
            own.places[:, own.axes.index(axis)]
            if axis in own.axes
            else np.full(len(own.places), -1)  # it has no such axis
            for _, own in found
        ]
    if any(own.channels for _, own in found):
        heads["channel"] = [_channels_of(own) for _, own in found]
    labels = [own.labels for _, own in found if own.labels is not None]
    if labels:
        heads["label"] = _with_common_type(labels)
    return heads


def _channels_of(curves: Curves) -> Array:
    """Return the name of the channel of each curve, "" if it has none."""
    if "c" in curves.axes:
        indices = curves.places[:, curves.axes.index("c")].tolist()
    else:
        indices = [*curves.channels][:1] * len(curves.places) or [-1] * len(curves.places)
    return np.array([curves.channels.get(i, "") for i in indices], str)


def _with_common_type(labels: list[Array]) -> list[Array]:
    """Return labels that remain integers when they are joined."""
    if np.result_type(*labels).kind != "f":
        return labels
    every = np.array([label for own in labels for label in own.tolist()])
    return np.split(every, np.cumsum([own.size for own in labels])[:-1])


def measures_of(curves: Sequence[Curves]) -> dict[str, list[Array]]:
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


def at_common_thresholds(found: Found, *, superlevel: bool) -> Found:
    """Return curves at the thresholds of all of them.

    They are the same, or each curve has every level at which it changes.
    """
    own = [curves.thresholds for _, curves in found]
    if all(np.array_equal(at, own[0]) for at in own):
        return found
    _check_one_type(own)
    every = distinct_values(joined(own))
    if every.size > MOST_COLUMNS:
        raise InputFileError(
            f"--thresholds exact gives {every.size} thresholds, and a table has at most "
            f"{MOST_COLUMNS}: give a number and --range"
        )

    def spread(values: Array, at: Array) -> Array:
        edge = np.zeros((len(values), 1), values.dtype)
        if superlevel:
            return np.hstack([values, edge])[:, np.searchsorted(at, every, "left")]
        return np.hstack([edge, values])[:, np.searchsorted(at, every, "right")]

    return [
        (
            path,
            curves._replace(
                thresholds=every,
                measures={k: spread(v, curves.thresholds) for k, v in curves.measures.items()},
            ),
        )
        for path, curves in found
    ]


def add_facts(columns: dict[str, Array], arguments: argparse.Namespace, unit: str) -> None:
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


def plot(found: Found, arguments: argparse.Namespace, unit: str | None) -> None:
    """Draw all curves, with names that tell them apart, if a figure is wanted."""
    if not arguments.plot:
        return
    from ecc_core.plotting import plot_curves

    inputs = {name for name, _ in found}
    distinct = len({Path(name).name for name in inputs}) == len(inputs)
    named: dict[str, Any] = {}
    for name, curves in found:
        shown = Path(name).name if distinct else name
        for row, place in enumerate(curves.places):
            words = [f"{axis} {i}" for axis, i in zip(curves.axes.upper(), place, strict=True)]
            if curves.labels is not None:
                words.append(f"label {curves.labels[row]}")
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
        if {"betti", "minkowski"} & {*kinds}:
            kinds.remove("euler")  # it has no panel, or is drawn with the functionals
        self.results = [result_of(curves.thresholds, values, kind, facts) for kind in kinds]

    def _quantities(self) -> dict[str, Any]:
        return {k: curve for result in self.results for k, curve in result._quantities().items()}
