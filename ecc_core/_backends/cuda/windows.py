"""Sums of the coefficients of windows of any shape, on a device."""

from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cuda.arrays import adopt, as_cupy, comparable, numbers
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import Levels, excluding, reached_at, round_to_levels
from ecc_core.errors import NAN_MESSAGE


def window_sums(
    images: Any, coefficients: Any, windows: Any, thresholds: NDArray[Any], filtration: Filtration
) -> Any:
    """Return the sums of the coefficients of windows that have entered, (images, n) int64."""
    with adopt(images) as view:
        values = numbers(view)
        own = as_cupy(coefficients)
        inside = as_cupy(windows)
        if filtration.nan == "raise":
            _check_no_nan(values, inside)
        counted = inside & (own != 0)
        levels = round_to_levels(thresholds, _own_dtype(values), filtration.superlevel)
        rows = [
            _sums_of_entered(values[i][counted[i]], own[i][counted[i]], levels)
            for i in range(len(values))
        ]
        found = cupy.stack(rows) if rows else cupy.zeros((0, thresholds.size), np.int64)
        return view.wrap(found)


def region_window_sums(
    image: Any, coefficients: Any, labels: Any, thresholds: NDArray[Any], filtration: Filtration
) -> tuple[Any, Any]:
    """Return the increasing ids of regions, and these sums for each of them, (ids, n) int64."""
    with adopt(image) as view:
        values = numbers(view)
        own = as_cupy(coefficients)
        marks = as_cupy(labels)
        _check_no_nan(values, marks != 0)
        ids = cupy.unique(marks[marks != 0])
        levels = round_to_levels(thresholds, _own_dtype(values), filtration.superlevel)
        rows = []
        for label in ids:
            counted = (marks == label) & (own != 0)
            rows.append(_sums_of_entered(values[counted], own[counted], levels))
        found = cupy.stack(rows) if rows else cupy.zeros((0, thresholds.size), np.int64)
        return view.wrap(ids), view.wrap(found)


def window_levels(images: Any, coefficients: Any, windows: Any) -> Any:
    """Return the distinct values of the points of windows that have a coefficient."""
    with adopt(images) as view:
        values = numbers(view)
        own = as_cupy(coefficients)
        return view.wrap_levels(cupy.unique(values[as_cupy(windows) & (own != 0)]))


def _check_no_nan(values: Any, inside: Any) -> None:
    if values.dtype.kind == "f" and bool(cupy.isnan(values[inside]).any()):
        raise ValueError(NAN_MESSAGE)


def _own_dtype(values: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = values.dtype
    return dtype


def _sums_of_entered(values: Any, weights: Any, levels: Levels) -> Any:
    """Return the sums of integer weights whose values have entered at each threshold."""
    values, bounds = comparable(values, levels.values)
    first = excluding(cupy.asarray(bounds), values, levels.superlevel, cupy.searchsorted)
    counts = cupy.zeros(levels.values.size + 1, np.int64)
    # `cupy.bincount` would wait for the device twice.
    cupy.add.at(counts, first, weights.astype(np.int64))
    return reached_at(cupy.cumsum(counts[:-1]), levels.entered, cupy)
