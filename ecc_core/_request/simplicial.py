"""Checks of simplices, and of the coordinates and weights of points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import largest_magnitude
from ecc_core._request.dtypes import dtype_in_words
from ecc_core._request.transform import LEAST_REACH, MOST_REACH

Array = NDArray[Any]
Floats = NDArray[np.float64]

MOST_SUM = 2**63
NAMES = {2: "edge", 3: "triangle", 4: "tetrahedron"}
WANTED = "an (m, k) array of indices of points, or a sequence of such arrays, one for each k"


def name_of(size: int) -> str:
    """Return the word for a simplex with this number of points."""
    return NAMES.get(size, f"simplex of {size} points")


def _shown(row: Array) -> str:
    return f"{name_of(row.size)} ({', '.join(map(str, row.tolist()))})"


def outside_error(row: Array, points: int) -> ValueError:
    """Return the error for a simplex with an index that no point has."""
    return ValueError(
        f"`simplices` must hold indices of points from 0 to {points - 1}, got the {_shown(row)}"
    )


def repeated_error(row: Array) -> ValueError:
    """Return the error for a simplex that has a point twice."""
    return ValueError(
        f"`simplices` must not repeat a point within a simplex, got the {_shown(row)}"
    )


def apart_error(row: Array) -> ValueError:
    """Return the error for a simplex with points of several shapes of a batch."""
    return ValueError(f"`simplices` must have all their points in one shape, got the {_shown(row)}")


def open_error(row: Array, left_out: int) -> ValueError:
    """Return the error for a simplex one of whose faces is missing.

    The face has all points of the simplex but that at the position `left_out`.
    """
    return ValueError(
        "`simplices` must hold all faces of each simplex unless `complete` is True, got the "
        f"{_shown(row)} without its {_shown(np.delete(row, left_out))}"
    )


def as_simplices(
    given: Any, unwrap: Callable[[Any], Any], place: Callable[[Any], Any] = lambda array: array
) -> tuple[list[NDArray[np.int64]], bool]:
    """Return arrays of simplices in order of their size, and whether one array was given.

    `unwrap` converts an array of any library to one of the backend. `place` moves this array, or
    the NumPy array of a list, to where the simplices are checked.
    """
    alone = getattr(given, "ndim", None) == 2 or _is_table(given)
    if not alone and not isinstance(given, list | tuple):
        raise TypeError(f"`simplices` must be {WANTED}, got {_described(given)}")
    arrays = []
    for part in [given] if alone else given:
        table = _as_table(part) if isinstance(part, list | tuple) else unwrap(part)
        arrays.append(_as_rows(place(table), getattr(part, "dtype", None)))
    sizes = [rows.shape[1] for rows in arrays]
    if len(set(sizes)) < len(sizes):
        raise ValueError(
            f"`simplices` must hold one array for each number of points, got sizes {sizes}"
        )
    return sorted(arrays, key=lambda rows: rows.shape[1]), alone


def _is_table(given: Any) -> bool:
    """Whether this is a list of simplices, each of which is a list of numbers."""
    if not isinstance(given, list | tuple) or not given:
        return False
    are_lists = all(isinstance(row, list | tuple) for row in given)
    return are_lists and not any(_holds_rows(row) for row in given)


def _holds_rows(row: Sequence[Any]) -> bool:
    return any(hasattr(entry, "__len__") for entry in row)


def _described(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return type(given).__name__ if shape is None else f"an array of shape {tuple(shape)}"


def _as_table(part: Sequence[Any]) -> Array:
    """Return a list of simplices as an array."""
    try:
        return np.asarray(part)
    except ValueError:
        raise ValueError(f"`simplices` must be {WANTED}, got rows of different lengths") from None


def _as_rows(array: Array, stored: Any) -> NDArray[np.int64]:
    """Return one array of simplices as int64; `stored` is its dtype as it was given."""
    if array.ndim != 2:
        got = _described(array) if array.ndim else f"the number {array.item()!r} for an array"
        raise ValueError(f"`simplices` must be {WANTED}, got {got}")
    if array.size == 0 and array.dtype.kind == "f":  # NumPy converts an empty list to floats.
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        found = array.dtype if stored is None else stored
        raise TypeError(f"`simplices` must hold integers, got {dtype_in_words(found)}")
    if array.shape[1] < 2:
        raise ValueError(
            "`simplices` must have at least 2 points each, since every point is in the complex "
            f"anyway, got an array of shape {array.shape}"
        )
    if array.dtype == np.uint64 and int(_largest(array)) >= 2**63:
        raise ValueError(f"`simplices` must hold indices of points, got {array.max()}")
    return array.astype(np.int64, order="C", copy=False)


def _largest(array: Array) -> Any:
    """Return the largest number of an array, 0 if it has none. NaN counts as the largest."""
    return array.max() if array.size else 0


def _least(array: Array) -> Any:
    """Return the smallest number of an array, 0 if it has none. NaN counts as the smallest."""
    return array.min() if array.size else 0


def as_points(points: Array) -> Floats:
    """Return finite coordinates (n, d) in float64."""
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(
            f"`points` must have shape (n, d), one row of coordinates each, got {points.shape}"
        )
    found: Floats = points.astype(np.float64, order="C", copy=False)
    most = max(float(_largest(found)), -float(_least(found)))
    if not math.isfinite(most):
        is_finite = np.isfinite(found).all(axis=1)
        i = int(np.argmin(is_finite))
        raise ValueError(f"`points` must be finite, got {found[i].tolist()} in row {i}")
    if most >= MOST_REACH:
        raise ValueError(f"`points` must be below {MOST_REACH:g} in magnitude, got {most:g}")
    return found


def place_points(points: Floats, center: Any, normalize: Any) -> Floats:
    """Return points moved to their centre and divided by their radius, if the options say so."""
    if center is not None and not (isinstance(center, str) and center in ("mean", "box")):
        raise ValueError(f'`center` must be None, "mean" or "box", got {center!r}')
    if normalize is not None and not (isinstance(normalize, str) and normalize == "radius"):
        raise ValueError(f'`normalize` must be None or "radius", got {normalize!r}')
    if center is not None and len(points):
        middle = points.mean(axis=0)
        if center == "box":
            low = points.min(axis=0)
            high = points.max(axis=0)
            middle = low + (high - low) / 2
        points = points - middle
    if normalize is not None:
        radius = radius_of(points)
        if radius < LEAST_REACH:
            raise ValueError(
                f'`normalize` must be None for points that are all at the origin, got "radius" and '
                f"a largest distance of {radius:g}"
            )
        points = points / radius
    return points


def radius_of(points: Floats) -> float:
    """Return the largest distance of a point from the origin."""
    most = float(_largest(np.abs(points)))
    if most == 0.0:
        return 0.0
    # Coordinates of at most 1 have squares that neither overflow nor vanish together.
    scale = 2.0 ** math.frexp(most)[1]
    squares = np.square(points / scale)
    # A loop sums in the same order for arrays of every library.
    total = squares[:, 0]
    for axis in range(1, points.shape[1]):
        total = total + squares[:, axis]
    return math.sqrt(float(total.max())) * scale


def as_point_weights(weights: Array, points: int, simplices: int) -> Array:
    """Return the weights of points as int64 or float64.

    Refuse weights whose sum over the complex could overflow. It has `simplices` besides its points,
    none of which weighs more than one of its points.
    """
    if weights.shape != (points,):
        raise ValueError(
            f"`weights` must have shape ({points},), one for each point, got {weights.shape}"
        )
    if weights.dtype.kind == "f":
        found = weights.astype(np.float64)
        most = float(_largest(np.abs(found)))
        if not math.isfinite(most):
            i = int(np.argmin(np.isfinite(found)))
            raise ValueError(f"`weights` must be finite, got {found[i]} at point {i}")
        if not math.isfinite(most * (points + simplices)):
            raise ValueError(f"`weights` must have finite sums, got values up to {most:g}")
        return found
    largest = largest_magnitude(weights)
    if largest * (points + simplices) >= MOST_SUM:
        raise ValueError(
            "`weights` must be integers whose sums over all simplices are below 2**63 (or floats), "
            f"got values up to {largest} for {points + simplices} simplices"
        )
    return weights.astype(np.int64)
