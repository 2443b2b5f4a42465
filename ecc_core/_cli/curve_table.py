"""The curves of images, as they are computed, and as tables and figures."""

import argparse
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.results import describe_result
from ecc_core._io.write import printable
from ecc_core._request.levels import distinct_values
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure
from ecc_core.results import (
    STATISTICS,
    BettiCurves,
    ComponentCurves,
    CurveResult,
    EulerCurve,
    MinkowskiCurves,
    RegionCurves,
)

Array = NDArray[Any]

MOST_COLUMNS = 1 << 16
EULER = "euler_number"


class Curves(NamedTuple):
    """Curves of an image: one for each index of its batch axes, or for each label there.

    Attributes
    ----------
    axes : str
        Letters of the batch axes.
    thresholds : (n,) array
    places : (k, batch axes) int64 array
        Indices in the file.
    labels : (k,) array or None
    measures : mapping of str to (k, n) arrays
        The Euler characteristic, and then Betti numbers, Minkowski functionals or component
        curves, as the columns of a table are called; float64 for densities.
    channels : mapping of int to str
        Names of the channels by their indices, if they have names.
    density : bool
        Whether the values are per unit of length, area or volume of the image.
    """

    axes: str
    thresholds: Array
    places: NDArray[np.int64]
    labels: Array | None
    measures: Mapping[str, Array]
    channels: Mapping[int, str] = MappingProxyType({})
    density: bool = False

    def divided(self, window: float) -> "Curves":
        """Return the densities in a window of this size."""
        if not window:
            raise ValueError("--density must be of an image with a size, got 0")
        densities = {name: values / window for name, values in self.measures.items()}
        return self._replace(measures=densities, density=True)


Found = Sequence[tuple[str, Curves]]
"""Paths of images and their curves; a path may come more than once."""


def places_of(batch: Sequence[int], first: Sequence[int]) -> NDArray[np.int64]:
    """Return the indices in the file of all places on the batch axes, one row for each."""
    indices = np.array([*np.ndindex(*batch)], np.int64)
    return indices.reshape((math.prod(batch), len(batch))) + np.array(first, np.int64)


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


def described(curves: Curves, batch: tuple[int, ...], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `ecc_core.io.read_result` needs; {} for labels along batch axes."""
    at, values = curves.thresholds, curves.measures[EULER]
    if curves.labels is not None and batch:
        return {}
    kind: Any = EulerCurve if curves.labels is None else RegionCurves
    known = {field.name for field in fields(kind)}
    facts = {name: fact for name, fact in facts.items() if name in known}
    if curves.density:
        facts["density"] = True
    if curves.labels is None:
        result = kind(at, values.reshape((*batch, at.size)), **facts)
    else:
        result = kind(curves.labels, at, values, **facts)
    return {"result": describe_result(result)}


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
    rows = len(next(iter(columns.values())))
    facts: dict[str, Any] = {}
    if arguments.connectivity is not None:
        facts["connectivity"] = arguments.connectivity
    if arguments.superlevel:
        facts["superlevel"] = True
    if arguments.boundary != "closed":
        facts["boundary"] = arguments.boundary
    if arguments.direction is not None:
        facts["direction"] = ",".join(map(str, map(float, arguments.direction)))
        given = arguments.direction_scale
        facts["direction_scale"] = 1.0 if given is None else float(given)
    if arguments.minkowski:
        facts["estimator"] = arguments.minkowski
    if arguments.density:
        facts["density"] = True
    if arguments.minkowski or arguments.direction is not None:
        facts["unit"] = unit
    columns |= {name: np.full(rows, fact) for name, fact in facts.items()}


def plot(path: Path, found: Found, *, superlevel: bool, unit: str | None) -> None:
    """Draw all curves, with names that tell them apart."""
    from ecc_core.plotting import plot_curves

    inputs = {name for name, _ in found}
    distinct = len({Path(name).name for name in inputs}) == len(inputs)
    named = {}
    for name, curves in found:
        shown = Path(name).name if distinct else name
        for row in range(len(curves.places)):
            words = _words(curves, row)
            if len(inputs) > 1 or not words:
                words.insert(0, shown)
            named[printable(" ".join(words))] = _result(curves, row, superlevel, unit)
    write_figure(path, plot_curves(named))


def _words(curves: Curves, row: int) -> list[str]:
    pairs = zip(curves.axes.upper(), curves.places[row], strict=True)
    words = [f"{axis} {i}" for axis, i in pairs]
    return words if curves.labels is None else [*words, f"label {curves.labels[row]}"]


def _result(curves: Curves, row: int, superlevel: bool, unit: str | None) -> Any:
    at, others = curves.thresholds, {name: of[row] for name, of in curves.measures.items()}
    euler = others.pop(EULER)
    betti, measures, sizes = (
        [others[column] for column in STATISTICS[name].columns if column in others]
        for name in ("betti", "minkowski", "components")
    )
    results: list[Any] = []
    if betti:
        results.append(BettiCurves(at, np.stack(betti), superlevel=superlevel))
    if measures:
        values = np.stack([*measures, euler])
        facts: Any = {"superlevel": superlevel, "spacing_units": unit, "density": curves.density}
        results.append(MinkowskiCurves(at, values, **facts))
    results = results or [EulerCurve(at, euler, superlevel=superlevel)]
    if sizes:
        results.append(ComponentCurves(at, np.stack(sizes), superlevel=superlevel))
    if len(results) > 1:
        return _Together(results)
    return results[0]


@dataclass
class _Together:
    """Results of an image that are drawn in one figure."""

    results: Sequence[Any]

    def _quantities(self) -> dict[str, Any]:
        return {k: curve for result in self.results for k, curve in result._quantities().items()}
