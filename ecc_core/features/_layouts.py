"""Several curves in one row, so that transforms and functionals have the statistics of a curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.results import EulerTransform, RegionTransforms, agree

__all__ = ["Layout", "is_transform", "one_row", "transform_rows"]


class Layout(NamedTuple):
    """What a row consists of: curves of all directions, or of all functionals."""

    at: Any
    """(n,), heights or thresholds."""
    parts: int
    """Number of curves."""

    def unflatten(self, row: Any) -> Any:
        """Return what belongs to the values of a row, (parts, n)."""
        return row[:-1].reshape(self.parts, self.at.size)


def one_row(values: Any, widths: Any) -> tuple[Any, Any]:
    """Return levels, and rows (k, count * n + 1) of curves (k, count, n) whose values count so far.

    The last value of a row is 0, at the level behind that before it.
    """
    levels = np.concatenate([[0], np.cumsum(np.tile(widths, values.shape[-2]))])
    rows = values.reshape(-1, values.shape[-2] * values.shape[-1])
    return levels, np.pad(rows, ((0, 0), (0, 1)))


def is_transform(curves: Any) -> bool:
    """Return whether curves are transforms, or a list of them."""
    first = curves[0] if isinstance(curves, list) and curves else curves
    return isinstance(first, EulerTransform | RegionTransforms)


def transform_rows(superlevel: Any, functional: Any, **given: Any) -> tuple[Layout, list[Any]]:
    """Return the layout, and levels and values (k, n) of transforms, with their distances.

    Levels are such that a value counts as long as the trapezoidal rule counts its height, divided
    by the number of directions, as in :func:`ecc_core.transform_distance`.
    """
    for name, value in (("superlevel", superlevel), ("functional", functional)):
        if value:
            raise ValueError(f"`{name}` must be left out for transforms, got {value!r}")
    named = {name: _several(transforms, name) for name, transforms in given.items()}
    singles = {f"{name}[{i}]": one for name, parts in named.items() for i, one in enumerate(parts)}
    agree({name: _meaning(one) for name, one in singles.items()})
    grids = {name: [on_host(one.directions), on_host(one.heights)] for name, one in singles.items()}
    directions, heights = next(iter(grids.values()))
    for name, own in grids.items():
        if not all(map(np.array_equal, own, (directions, heights))):
            raise ValueError(f"transforms must have the same directions and heights, not `{name}`")
    if heights.size < 2 or not np.isfinite(heights).all():
        raise ValueError("transforms must have at least 2 heights, and finite ones")
    gaps = np.diff(heights) / 2
    widths = (np.append(gaps, 0) + np.insert(gaps, 0, 0)) / len(directions)
    joined = [np.concatenate([_values(one) for one in parts]) for parts in named.values()]
    return Layout(heights, len(directions)), [one_row(values, widths) for values in joined]


def _values(transform: Any) -> Any:
    values = on_host(transform.values)
    return values if values.ndim == 3 else values[None]


def _several(transforms: Any, name: str) -> list[Any]:
    parts = transforms if isinstance(transforms, list) else [transforms]
    for one in parts:
        if not isinstance(one, EulerTransform | RegionTransforms):
            raise TypeError(
                f"`{name}` must be transforms, as the others are, got a {type(one).__name__}"
            )
    return parts


def _meaning(transform: Any) -> dict[str, Any]:
    facts = transform.facts
    known = ("connectivity", "spacing", "normalize", "smooth", "weighted", "units", "axes")
    return {name: facts[name] for name in known if facts.get(name) is not None}
