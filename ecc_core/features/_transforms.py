"""Transforms as rows of numbers, so that they have the statistics of curves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._arrays import on_host
from ecc_core.results import EulerTransform, RegionTransforms, agree

__all__ = ["Sampling", "flattened", "sampling_of"]


class Sampling(NamedTuple):
    """Where transforms have values."""

    directions: Any
    heights: Any

    def unflatten(self, row: Any) -> Any:
        """Return what belongs to the values of a flattened transform, (directions, heights)."""
        return row[:-1].reshape(len(self.directions), self.heights.size)


def sampling_of(curves: Any) -> Sampling | None:
    """Return the directions and heights of transforms, None for anything else."""
    first = curves[0] if isinstance(curves, list) and curves else curves
    if not isinstance(first, EulerTransform | RegionTransforms):
        return None
    return Sampling(on_host(first.directions), on_host(first.heights))


def flattened(superlevel: Any, functional: Any, **given: Any) -> list[tuple[Any, Any]]:
    """Return levels and values (k, n) of transforms, with the distances of transforms.

    Levels are such that a value counts as long as the trapezoidal rule counts its height, divided
    by the number of directions, as in :func:`ecc_core.transform_distance`.
    """
    for name, value in (("superlevel", superlevel), ("functional", functional)):
        if value:
            raise ValueError(f"`{name}` must be left out for transforms, got {value!r}")
    named = {name: _several(transforms, name) for name, transforms in given.items()}
    singles = {f"{name}[{i}]": one for name, parts in named.items() for i, one in enumerate(parts)}
    agree({name: _meaning(one) for name, one in singles.items()})
    grids = {name: sampling_of(one) for name, one in singles.items()}
    sampling: Any = next(iter(grids.values()))
    for name, own in grids.items():
        if not all(map(np.array_equal, own, sampling)):  # type: ignore[arg-type]
            raise ValueError(f"transforms must have the same directions and heights, not `{name}`")
    heights = sampling.heights
    if heights.size < 2 or not np.isfinite(heights).all():
        raise ValueError("transforms must have at least 2 heights, and finite ones")
    gaps = np.diff(heights) / 2
    widths = np.append(gaps, 0) + np.insert(gaps, 0, 0)
    each = np.tile(widths, len(sampling.directions)) / len(sampling.directions)
    levels = np.concatenate([[0], np.cumsum(each)])
    return [(levels, np.concatenate([_rows(one) for one in parts])) for parts in named.values()]


def _several(transforms: Any, name: str) -> list[Any]:
    parts = transforms if isinstance(transforms, list) else [transforms]
    for one in parts:
        if not isinstance(one, EulerTransform | RegionTransforms):
            raise TypeError(
                f"`{name}` must be transforms, as the others are, got a {type(one).__name__}"
            )
    return parts


def _rows(transform: Any) -> Any:
    """Return a row for each transform, and a 0 at the level behind the last value."""
    values = on_host(transform.values)
    rows = values.reshape(-1, values.shape[-2] * values.shape[-1])
    return np.pad(rows, ((0, 0), (0, 1)))


def _meaning(transform: Any) -> dict[str, Any]:
    facts = transform.facts
    known = ("connectivity", "spacing", "normalize", "smooth", "weighted", "units", "axes")
    return {name: facts[name] for name in known if facts.get(name) is not None}
