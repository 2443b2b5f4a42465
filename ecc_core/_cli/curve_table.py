"""The curves of ``ecc curve`` as a table and a figure."""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.write import printable
from ecc_core.errors import InputFileError
from ecc_core.io import write_figure
from ecc_core.results import BettiCurves, EulerCurve, MinkowskiCurves

__all__ = ["Curve", "NamedCurve", "columns_of", "plot"]

Array = NDArray[Any]


Curve = EulerCurve | BettiCurves | MinkowskiCurves


class NamedCurve(NamedTuple):
    """The curve of an input at one index of its batch axes, or of one labelled region there."""

    path: str
    place: dict[str, int]
    label: np.integer[Any] | None
    curve: Curve

    @property
    def thresholds(self) -> Array:
        return self.curve.thresholds

    @property
    def euler(self) -> Array:
        found: Array = self.curve.values if isinstance(self.curve, EulerCurve) else self.curve.euler
        return found

    @property
    def others(self) -> dict[str, Array]:
        """The other columns of the table, by name."""
        if isinstance(self.curve, BettiCurves):
            return {f"b{k}": numbers for k, numbers in enumerate(self.curve.values)}
        if isinstance(self.curve, MinkowskiCurves):
            return dict(zip(self.curve.measures[:-1], self.curve.values, strict=False))
        return {}


def columns_of(
    curves: list[NamedCurve], *, labelled: bool, estimator: str | None
) -> dict[str, Array]:
    """Return columns with one row for each threshold of each curve."""
    sizes = [curve.thresholds.size for curve in curves]
    paths = np.array([curve.path for curve in curves], dtype=str)
    columns = {"input": np.repeat(paths, sizes)}
    for name in sorted({name for curve in curves for name in curve.place}):
        places = [curve.place.get(name, -1) for curve in curves]  # -1: it has no such axis
        columns[name] = np.repeat(np.array(places, np.int64), sizes)
    if labelled:
        labels = np.array([c.label for c in curves]) if curves else np.empty(0, np.int64)
        columns["label"] = np.repeat(labels, sizes)
    columns["threshold"] = _joined_thresholds([curve.thresholds for curve in curves])
    columns["euler_number"] = np.concatenate([np.empty(0, np.int64), *(c.euler for c in curves)])
    others = [curve.others for curve in curves]
    for name in dict.fromkeys(name for found in others for name in found):
        dtype = next(found[name].dtype for found in others if name in found)
        missing = np.nan if dtype.kind == "f" else 0  # for images with fewer axes
        parts = [
            found.get(name, np.full(n, missing, dtype))
            for found, n in zip(others, sizes, strict=True)
        ]
        columns[name] = np.concatenate(parts)
    if estimator:
        columns["estimator"] = np.full(sum(sizes), estimator)
    return columns


def _joined_thresholds(thresholds: list[Array]) -> Array:
    """Return all thresholds in one array, without changing any by a conversion."""
    joined = np.concatenate(thresholds) if thresholds else np.empty(0)
    parts = np.split(joined, np.cumsum([t.size for t in thresholds])[:-1]) if thresholds else []
    for part, whole in zip(parts, thresholds, strict=True):
        if part.tolist() != whole.tolist():
            dtypes = sorted({t.dtype.name for t in thresholds})
            raise InputFileError(
                f"thresholds of types {', '.join(dtypes)} do not fit into one table exactly; "
                "write one table for each type"
            )
    return joined


def plot(path: Path, curves: list[NamedCurve], arguments: argparse.Namespace) -> None:
    from ecc_core.plotting import plot_curves

    several = len(set(arguments.inputs)) > 1
    distinct = len({Path(i).name for i in arguments.inputs}) == len(set(arguments.inputs))
    named = {}
    for curve in curves:
        words = [f"{axis.upper()} {i}" for axis, i in curve.place.items()]
        if curve.label is not None:
            words.append(f"label {curve.label}")
        if several or not words:
            words.insert(0, Path(curve.path).name if distinct else curve.path)
        named[printable(" ".join(words))] = curve.curve
    write_figure(path, plot_curves(named))
