"""Curves as step functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import on_host
from ecc_core.results import CurveResult, TransformResult

Floats = NDArray[np.float64]
Curve: TypeAlias = CurveResult[Any] | TransformResult[Any] | tuple[ArrayLike, ArrayLike]


class Steps(NamedTuple):
    """A step function: a value holds from its level up to the next, 0 before the first level."""

    levels: Floats
    """(n,), increasing; thresholds of superlevel sets are negated and reversed."""
    values: Floats
    """batch + (n,)"""


def as_steps(curve: Curve, superlevel: bool, name: str = "curve") -> Steps:
    """Check a curve or a batch of curves."""
    pair: Any = curve
    if isinstance(curve, CurveResult):
        pair = curve.thresholds, curve.values
    elif isinstance(curve, TransformResult):
        if superlevel:
            raise ValueError("`superlevel` must be left out for transforms, got True")
        pair = curve.heights, curve.values
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
    """Represent curves at the union of their levels, without changing them."""
    levels = np.unique(np.concatenate([curve.levels for curve in curves]))
    return Steps(levels, np.stack([_at(levels, curve) for curve in curves]))


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
    values: Floats = np.concatenate([before, curve.values], axis=-1)[..., place]
    return values


def check_level(level: float) -> float:
    """A probability, neither 0 nor 1."""
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got {level!r}")
    return level
