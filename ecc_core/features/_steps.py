"""Curves as step functions, and integrals of step functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import on_host
from ecc_core._io.tables import CurveTable, curves_of_table
from ecc_core.features._layouts import Layout, is_transform, one_row, transform_rows
from ecc_core.plotting._figures import EULER
from ecc_core.results import CurveResult, check_agreement, functionals_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "Curve",
    "Curves",
    "Floats",
    "Metric",
    "Steps",
    "as_steps",
    "check_level",
    "check_metric",
    "comparable",
    "from_table",
    "join",
    "norms",
    "one_grid",
    "quantity_of",
    "rows_of",
]

Floats = NDArray[np.float64]
Curve: TypeAlias = CurveResult[Any] | tuple[ArrayLike, ArrayLike]
Curves: TypeAlias = "Curve | list[Curve] | CurveTable | DataFrame"
Metric: TypeAlias = Literal["L1", "L2", "W1"]


class Steps(NamedTuple):
    """A step function: a value holds from its level up to the next, 0 before the first level."""

    levels: Floats
    """(n,), increasing; thresholds of superlevel sets are negated and reversed."""
    values: Floats
    """batch + (n,)"""


def comparable(superlevel: bool | None, functional: str | None, **given: Curves) -> tuple[Any, ...]:
    """Check that curves can be compared, and return their direction, layout and curves to compare.

    These are one functional of each, or rows if there is a layout: of all functionals, each divided
    by its largest size, or of all directions of transforms.

    Raises
    ------
    ValueError
        If curves do not agree, or if `functional` does not name one of theirs.
    """
    given = {name: from_table(curves, functional) for name, curves in given.items()}
    if any(map(is_transform, given.values())):
        layout, rows = transform_rows(superlevel, functional, **given)
        return False, layout, *rows
    if functional == "all":
        return False, *_functional_rows(superlevel, **given)
    chosen = [_one_functional(curves, functional, name) for name, curves in given.items()]
    return check_agreement(superlevel, functional, **given), None, *chosen


def _functional_rows(superlevel: bool | None, **given: Curves) -> list[Any]:
    """Return the layout, and levels and values (k, n) of all functionals in one row."""
    above = check_agreement(superlevel, **given)
    first = next(iter(given.values()))
    names = functionals_of(first[0] if isinstance(first, list) else first)
    if len(names) == 1:
        raise ValueError(f"`functional` must be {names[0]!r} or left out, got 'all'")
    scaled = []
    for name in names:
        one = {key: _one_functional(curves, name, key) for key, curves in given.items()}
        levels, parts = join(*(rows_of(curves, above, key) for key, curves in one.items()))
        largest = max(float(np.abs(part).max(initial=0)) for part in parts) or 1.0
        scaled.append([part / largest for part in parts])
    widths = np.append(np.diff(levels), 0)
    groups = [np.stack(group, axis=1) for group in zip(*scaled, strict=True)]
    if above:
        levels, widths = -levels[::-1], widths[::-1]
        groups = [values[..., ::-1] for values in groups]
    return [Layout(levels, len(names)), *(one_row(values, widths) for values in groups)]


def from_table(curves: Any, functional: str | None = None) -> Any:
    """Return the curves of a table or data frame that have a functional; others as they are."""
    if isinstance(curves, CurveTable):
        return curves.curves
    if not hasattr(curves, "iloc"):
        return curves
    measure: Any = None
    if functional is not None and functional not in ("euler", "all"):
        measure = "betti" if functional[1:].isdigit() else "minkowski"
    return curves_of_table(curves, measure).curves


def quantity_of(curves: Curves, functional: str | None) -> tuple[str, str | None, str]:
    """Return what curves count or measure, the unit of their thresholds, and what these are."""
    given = from_table(curves, functional)
    first = given[0] if isinstance(given, list) else given
    if not isinstance(first, CurveResult):
        return (
            EULER,
            getattr(first, "units", None),
            "height" if is_transform(first) else "threshold",
        )
    labels, names = [*first._quantities()], functionals_of(first)
    chosen = "relative size" if functional == "all" else labels[names.index(functional or names[0])]
    return chosen, first.facts.get("units"), "threshold"


def _one_functional(curves: Curves, functional: str | None, name: str) -> Any:
    if isinstance(curves, list):
        each = enumerate(curves)
        return [_one_functional(curve, functional, f"{name}[{i}]") for i, curve in each]
    if not isinstance(curves, CurveResult):
        if functional is not None:
            raise ValueError(f"`functional` must be None for a pair of arrays, got {functional!r}")
        return curves
    names = functionals_of(curves)
    if functional not in names and (functional is not None or len(names) > 1):
        one_of = " or ".join(map(repr, names))
        raise ValueError(f"`functional` must be {one_of} for `{name}`, got {functional!r}")
    if len(names) == 1:
        return curves
    assert functional is not None
    return curves.thresholds, curves.values[..., names.index(functional), :]


def as_steps(curve: Curve, superlevel: bool, name: str = "curve") -> Steps:
    """Check a curve or a batch of curves."""
    pair: Any = (curve.thresholds, curve.values) if isinstance(curve, CurveResult) else curve
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"`{name}` must be a pair of thresholds and values, got {_kind(pair)}")
    thresholds, values = (_numbers(part, name) for part in pair)
    if thresholds.ndim != 1 or values.ndim < 1 or values.shape[-1] != thresholds.size:
        raise ValueError(
            f"`{name}` must have (n,) thresholds and (..., n) values, "
            f"got shapes {thresholds.shape} and {values.shape}"
        )
    if not thresholds.size:
        raise ValueError(f"`{name}` must have at least one threshold, got none")
    if not (np.isfinite(thresholds).all() and np.isfinite(values).all()):
        raise ValueError(f"`{name}` must have finite thresholds and values, got infinity or NaN")
    if (np.diff(thresholds) < 0).any():
        raise ValueError(f"`{name}` must have increasing thresholds, got some that decrease")
    if superlevel:
        return Steps(-thresholds[::-1], values[..., ::-1])
    return Steps(thresholds, values)


def _kind(curve: Any) -> str:
    is_tuple = isinstance(curve, tuple)
    return f"a tuple of {len(curve)}" if is_tuple else f"a {type(curve).__name__}"


def _numbers(part: Any, name: str) -> Floats:
    array = on_host(part)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must be of real numbers, got {array.dtype}")
    return array.astype(np.float64)


def one_grid(curves: Sequence[Steps]) -> Steps:
    """Represent single curves at the union of their levels, without changing them."""
    levels = np.unique(np.concatenate([curve.levels for curve in curves]))
    return Steps(levels, np.stack([evaluate(curve, levels) for curve in curves]))


def evaluate(curve: Steps, levels: Floats) -> Floats:
    """Return the values of the step function at levels."""
    place = np.searchsorted(curve.levels, levels, side="right")
    before = np.zeros((*curve.values.shape[:-1], 1))
    values: Floats = np.concatenate([before, curve.values], axis=-1)[..., place]
    return values


def rows_of(curves: Any, superlevel: bool, name: str) -> Steps:
    """Return several curves on a common grid, values (k, n), from a batch or a list of curves."""
    if isinstance(curves, list):
        steps = [as_steps(curve, superlevel, f"{name}[{i}]") for i, curve in enumerate(curves)]
        for i, one in enumerate(steps):
            if one.values.ndim != 1:
                raise ValueError(
                    f"`{name}[{i}]` must be a single curve, got values of shape {one.values.shape}"
                )
        if not steps:
            raise ValueError(f"`{name}` must hold at least one curve, got none")
        return one_grid(steps)
    batch = as_steps(curves, superlevel, name)
    if batch.values.ndim != 2:
        raise ValueError(f"`{name}` must have (k, n) values, got shape {batch.values.shape}")
    return batch


def join(*batches: Steps) -> tuple[Floats, list[Floats]]:
    """Return the union of the levels of batches, and the values of each at them."""
    levels = batches[0].levels
    if all(np.array_equal(batch.levels, levels) for batch in batches):
        return levels, [batch.values for batch in batches]
    levels = np.unique(np.concatenate([batch.levels for batch in batches]))
    return levels, [evaluate(batch, levels) for batch in batches]


def check_metric(metric: str, layout: Layout | None) -> None:
    if metric not in ("L1", "L2", "W1"):
        raise ValueError(f'`metric` must be "L1", "L2" or "W1", got {metric!r}')
    if metric == "W1" and layout:
        raise ValueError(
            f'`metric` must be "L1" or "L2" for transforms and functional="all", got {metric!r}'
        )


def norms(values: Floats, levels: Floats, metric: Metric) -> Floats:
    """Return the norm of step functions (..., n) from the first level to the last."""
    widths = np.diff(levels)
    held = values[..., :-1]
    result: Floats
    if metric == "L1":
        result = np.abs(held) @ widths
    elif metric == "L2":
        result = np.sqrt(held**2 @ widths)
    else:
        result = _absolute_area_of_integral(held * widths) @ widths
    return result


def _absolute_area_of_integral(areas: Floats) -> Floats:
    """Return the mean over each interval of the absolute value of the integral."""
    end = np.cumsum(areas, axis=-1)
    begin = end - areas
    total = np.abs(begin) + np.abs(end)
    crossing = begin * end < 0
    squares = np.divide(begin**2 + end**2, total, out=np.zeros_like(total), where=crossing)
    return np.where(crossing, squares, total) / 2


def check_level(level: float) -> float:
    """A probability, neither 0 nor 1."""
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got {level!r}")
    return level
