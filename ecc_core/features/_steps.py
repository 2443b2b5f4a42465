"""Curves as step functions, and their alignment at common levels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import on_host
from ecc_core._io.tables import CurveTable, curves_of_table, quantity_of
from ecc_core._transform_distances import height_weights
from ecc_core.results import (
    CurveResult,
    EulerTransform,
    RegionTransforms,
    TransformResult,
    check_agreement,
    functionals_of,
)
from ecc_core.results._words import EULER

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = NDArray[np.float64]
Curve: TypeAlias = CurveResult[Any] | TransformResult[Any] | tuple[ArrayLike, ArrayLike]
Curves: TypeAlias = "Curve | list[Curve] | CurveTable | DataFrame"
Metric: TypeAlias = Literal["L1", "L2", "W1"]


class Steps(NamedTuple):
    """A step function: each value holds from its level to the next. Before the first it is 0."""

    levels: Floats
    """(n,) increasing levels. Thresholds of superlevel sets are negated and reversed."""
    values: Floats
    """(..., n) values."""


def as_steps(curve: Curve, superlevel: bool, name: str = "curve") -> Steps:
    """Return a curve, or a batch of curves, as step functions, checked."""
    pair: Any = curve
    if isinstance(curve, CurveResult):
        pair = curve.thresholds, curve.values
    elif isinstance(curve, TransformResult):
        if superlevel:
            raise ValueError("`superlevel` must be left out for transforms, got True")
        pair = curve.heights, curve.values
    if not isinstance(pair, tuple) or len(pair) != 2:
        got = f"tuple of {len(pair)}" if isinstance(pair, tuple) else type(pair).__name__
        raise TypeError(f"`{name}` must be a pair of thresholds and values, got a {got}")
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


def _numbers(part: Any, name: str) -> Floats:
    array = on_host(part)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`{name}` must be of real numbers, got {array.dtype}")
    return array.astype(np.float64)


def join(*curves: Steps) -> tuple[Floats, list[Floats]]:
    """Return the union of the levels of curves, and the values of each at them."""
    levels = curves[0].levels
    if all(np.array_equal(curve.levels, levels) for curve in curves):
        return levels, [curve.values for curve in curves]
    levels = np.unique(np.concatenate([curve.levels for curve in curves]))
    return levels, [_at(levels, curve) for curve in curves]


def _at(levels: Floats, curve: Steps) -> Floats:
    """Return the values of a step function at levels."""
    place = np.searchsorted(curve.levels, levels, side="right")
    before = np.zeros((*curve.values.shape[:-1], 1))
    return np.concatenate([before, curve.values], axis=-1)[..., place]


def check_level(level: float) -> float:
    """Return a probability, which must be neither 0 nor 1."""
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got {level!r}")
    return level


class Aligned(NamedTuple):
    """Groups of curves as step functions at common levels.

    A row of a transform has the curves of all directions, one after another. A row of all
    functionals has the curve of each, divided by its largest absolute value. The differences of
    their levels are then the weights of values in integrals.
    """

    levels: Floats
    """(n,) increasing levels. Thresholds of superlevel sets are negated and reversed."""
    groups: list[Floats]
    """For each argument, (k, n) values: a row for each curve."""
    superlevel: bool
    at: Floats | None
    """The heights or thresholds of each curve in a row if there are several, otherwise None."""
    quantity: tuple[str, str | None, str]
    """Words for the values, the unit of the thresholds, and the word for the thresholds."""

    def restored(self, *rows: Floats) -> tuple[Any, ...]:
        """Return thresholds or heights (m,), and rows (n,) as (m,) or (curves, m) arrays."""
        if self.at is not None:
            return self.at, *(row[:-1].reshape(-1, self.at.size) for row in rows)
        if self.superlevel:
            return tuple(part[..., ::-1] for part in (-self.levels, *rows))
        return self.levels, *rows


def _first_of(table: Any) -> Any:
    """Return the first curve of a list. Other arguments are returned unchanged."""
    if isinstance(table, list) and table:
        return table[0]
    return table


def align(
    given: Mapping[str, Curves],
    superlevel: bool | None,
    functional: str | None,
    metric: Metric = "L2",
    *,
    single: bool = False,
) -> Aligned:
    """Check that curves, by the names of arguments, can be compared, and align them.

    With `single` each argument must be one curve. The others are as for
    :func:`ecc_core.features.distance_matrix`.
    """
    if metric not in ("L1", "L2", "W1"):
        raise ValueError(f'`metric` must be "L1", "L2" or "W1", got {metric!r}')
    tables = {name: from_table(curves, functional, name) for name, curves in given.items()}
    firsts = [_first_of(table) for table in tables.values()]
    first = firsts[0]
    transforms = any(isinstance(one, TransformResult) for one in firsts)
    if metric == "W1" and (transforms or functional == "all"):
        raise ValueError(
            f'`metric` must be "L1" or "L2" for transforms and functional="all", got {metric!r}'
        )
    if transforms:
        at, groups, widths = _transforms(superlevel, functional, **tables)
        return Aligned(*_in_rows(groups, widths), False, at, (EULER, first.units, "height"))
    several = functional == "all"
    wanted = functionals_of(first) if several else (functional,)
    if several and len(wanted) == 1:
        raise ValueError(f"`functional` must be {wanted[0]!r} or left out, got 'all'")
    above = check_agreement(superlevel, None if several else functional, **tables)
    steps = [
        _steps(curves, wanted, above=above, name=name, single=single)
        for name, curves in tables.items()
    ]
    levels, groups = join(*steps)
    quantity = _quantity(first, functional)
    if not several:
        return Aligned(
            levels=levels,
            groups=[values[:, 0] for values in groups],
            superlevel=above,
            at=None,
            quantity=quantity,
        )
    largest_of_each = [np.abs(part).max(axis=(0, 2), initial=0) for part in groups]
    largest = np.maximum.reduce(largest_of_each)
    scale = np.where(largest, largest, 1)[:, None]
    groups = [values / scale for values in groups]
    widths = np.append(np.diff(levels), 0)
    if above:
        levels = -levels[::-1]
        widths = widths[::-1]
        groups = [part[..., ::-1] for part in groups]
    return Aligned(*_in_rows(groups, widths), False, levels, quantity)


def from_table(curves: Any, functional: str | None = None, name: str = "curves") -> Any:
    """Return the curves of a table or data frame. Other arguments are returned unchanged."""
    table = read_frame(curves, functional, name)
    return table.curves if isinstance(table, CurveTable) else table


def read_frame(curves: Any, functional: str | None = None, name: str = "curves") -> Any:
    """Return the table of a data frame, of the quantity that has a functional.

    Other arguments are returned unchanged.
    """
    if not hasattr(curves, "iloc"):
        return curves
    measure: Any = None
    if functional is not None and functional not in ("euler", "all"):
        measure = quantity_of(functional)
    try:
        if functional == "euler":
            with suppress(ValueError):  # Betti numbers have an Euler characteristic, too.
                return curves_of_table(curves, "euler")
        return curves_of_table(curves, measure)
    except ValueError as error:
        reason = str(error).replace("`measure` must be one of", "`functional` must be of one of")
        raise ValueError(f"`{name}` must be curves or a table of curves: {reason}") from error


def _in_rows(groups: list[Floats], widths: Floats) -> tuple[Floats, list[Floats]]:
    """Return levels, and the curves (k, count, m) of each group as rows (k, count * m + 1).

    The differences of levels are the widths of the values. A row ends with the value 0.
    """
    widths_of_row = np.tile(widths, groups[0].shape[1])
    levels = np.append(0, np.cumsum(widths_of_row))
    rows = [part.reshape(len(part), -1) for part in groups]
    return levels, [np.pad(part, ((0, 0), (0, 1))) for part in rows]


def _quantity(curve: Any, functional: str | None) -> tuple[str, str | None, str]:
    if not isinstance(curve, CurveResult):
        return EULER, None, "threshold"
    names = functionals_of(curve)
    chosen = "relative size"
    if functional != "all":
        chosen = curve._labels[names.index(functional or names[0])]
    return chosen, curve.facts.get("units"), "threshold"


def _steps(
    curves: Any, wanted: tuple[str | None, ...], above: bool, name: str, single: bool
) -> Steps:
    """Return functionals (k, functionals, n) of several curves on a common grid."""
    if isinstance(curves, list):
        each = [_selected(one, wanted, above, f"{name}[{i}]") for i, one in enumerate(curves)]
        for i, one in enumerate(each):
            if one.values.ndim != 2:
                raise ValueError(
                    f"`{name}[{i}]` must be a single curve, got values of {_shape(one)}"
                )
        if not each:
            raise ValueError(f"`{name}` must hold at least one curve, got none")
        levels = np.unique(np.concatenate([one.levels for one in each]))
        values = [_at(levels, one) for one in each]
        return Steps(levels, np.stack(values))
    found = _selected(curves, wanted, above, name)
    if single and found.values.ndim != 2:
        raise ValueError(
            f"`{name}` must be a single curve, got values of {_shape(found)} "
            "(use `distance_matrix` for batches)"
        )
    if not single and found.values.ndim != 3:
        raise ValueError(f"`{name}` must have (k, n) values, got {_shape(found)}")
    return Steps(found.levels, found.values[None] if single else found.values)


def _shape(steps: Steps) -> str:
    return f"shape {steps.values[..., 0, :].shape}"


def _selected(curves: Any, wanted: tuple[str | None, ...], above: bool, name: str) -> Steps:
    """Return functionals (..., functionals, n)."""
    is_result = isinstance(curves, CurveResult)
    names = functionals_of(curves)
    for functional in wanted:
        if functional is not None and not is_result:
            raise ValueError(f"`functional` must be None for a pair of arrays, got {functional!r}")
        if functional not in names and (functional is not None or len(names) > 1):
            one_of = " or ".join(map(repr, names))
            raise ValueError(f"`functional` must be {one_of} for `{name}`, got {functional!r}")
    levels, values = as_steps(curves, above, name)
    if len(names) == 1:
        return Steps(levels, values[..., None, :])
    rows = [names.index(str(functional)) for functional in wanted]
    return Steps(levels, values[..., rows, :])


def _transforms(
    superlevel: Any, functional: Any, **given: Any
) -> tuple[Floats, list[Floats], Floats]:
    """Return heights, the values (k, directions, heights) of transforms, and their weights.

    Weights are those of the trapezoidal rule, divided by the number of directions, as in
    :func:`ecc_core.transform_distance`.
    """
    for name, value in (("superlevel", superlevel), ("functional", functional)):
        if value:
            raise ValueError(f"`{name}` must be left out for transforms, got {value!r}")
    named = {name: part if isinstance(part, list) else [part] for name, part in given.items()}
    singles = {f"{name}[{i}]": one for name, parts in named.items() for i, one in enumerate(parts)}
    for name, one in singles.items():
        if not isinstance(one, EulerTransform | RegionTransforms):
            raise TypeError(
                f"`{name.partition('[')[0]}` must be transforms, as the others are, "
                f"got a {type(one).__name__}"
            )
    check_agreement(**singles)
    grids = {name: [on_host(one.directions), on_host(one.heights)] for name, one in singles.items()}
    directions, heights = next(iter(grids.values()))
    for name, own in grids.items():
        if not all(map(np.array_equal, own, (directions, heights))):
            raise ValueError(f"transforms must have the same directions and heights, not `{name}`")
    if heights.size < 2 or not np.isfinite(heights).all():
        raise ValueError("transforms must have at least 2 heights, and finite ones")
    widths = height_weights(heights) / len(directions)
    shape = (-1, len(directions), heights.size)
    groups = []
    for parts in named.values():
        values = [on_host(one.values).reshape(shape) for one in parts]
        groups.append(np.concatenate(values).astype(np.float64))
    return heights, groups, widths


def norms(values: Floats, levels: Floats, metric: Metric) -> Floats:
    """Return the norm of step functions (..., n) from the first level to the last."""
    widths = np.diff(levels)
    held = values[..., :-1]
    if metric == "L1":
        norm = np.abs(held) @ widths
    elif metric == "L2":
        norm = np.sqrt(held**2 @ widths)
    else:
        # The norm of the integral, which is linear in each interval and may change its sign there.
        areas = held * widths
        end = np.cumsum(areas, axis=-1)
        begin = end - areas
        total = np.abs(begin) + np.abs(end)
        crossing = begin * end < 0
        squares = np.divide(begin**2 + end**2, total, out=np.zeros_like(total), where=crossing)
        norm = np.where(crossing, squares, total) / 2 @ widths
    return norm
