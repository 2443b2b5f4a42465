"""Checks of the arguments of transforms: objects, weights, labels, directions and heights."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import largest_magnitude
from ecc_core._request.filtration import as_numbers
from ecc_core._request.labels import check_label_type, check_label_values
from ecc_core._request.masks import as_booleans
from ecc_core._request.thresholds import (
    MOST_CACHED,
    as_count,
    check_range,
    check_threshold_array,
    even_thresholds,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]

MOST_WEIGHT = 2**62
MOST_CELLS = 8
"""The largest number of cells of which a point is the highest vertex, in 3-D."""
LEAST_REACH = 1e-150
MOST_REACH = 1e150
"""Lengths between these have squares that are normal floats."""
MARGIN = 1 + 8 * np.finfo(np.float64).eps
"""A factor for the range of heights, so that no rounded height of a corner lies beyond it."""


def as_mask(image: Array, shown: Array | None) -> NDArray[np.bool_]:
    """Return a boolean image; others must have one value besides 0. Masked points are False."""
    if image.dtype == np.bool_:
        if isinstance(image, np.ndarray):  # On devices every byte but 0 is True.
            image = as_booleans(image)
    else:
        if shown is not None:
            image = np.where(shown, image, image.dtype.type(0))
        inside: NDArray[np.bool_] = image != 0
        value = 0 if image.size == 0 else image.max() or image.min()
        if not ((image == value) | ~inside).all():
            raise ValueError(
                "`image` must be boolean, or 0 and one other value, unless `weighted` is True, got "
                "more values"
            )
        return inside
    return image if shown is None else image & shown


def as_weights(image: Array, shown: Array | None) -> NDArray[np.int64] | Floats:
    """Return an image of weights as int64 or float64. Masked points have weight 0."""
    if shown is not None:
        image = np.where(shown, image, image.dtype.type(0))
    if image.dtype.kind == "b":
        return as_booleans(image).astype(np.int64)
    if image.dtype.kind == "f":
        return _float_weights(image)
    whole: NDArray[np.int64] = image.astype(np.int64, copy=False)
    if image.size == 0:
        return whole
    largest = largest_magnitude(image)
    if largest >= MOST_WEIGHT:
        raise ValueError(f"`image` must hold weights below 2**62, got {largest}")
    # The Euler characteristic of n cubes or points is at most 4 n, in 1-D and 2-D at most n.
    is_volume = sum(n > 1 for n in image.shape) == 3
    most = 2**61 if is_volume else 2**63
    if largest * image.size >= most:
        magnitudes = np.abs(image.astype(np.float64))
        total = float(magnitudes.sum())
        if total >= most:
            raise ValueError(
                "`image` must hold integer weights whose absolute values add up to less than "
                f"2**{most.bit_length() - 1}, got {total:g} (or pass weights that are floats)"
            )
    return whole


def _float_weights(image: Array) -> Floats:
    if image.size == 0:
        return image.astype(np.float64)
    least = float(image.min())
    most = float(image.max())
    largest = max(most, -least)
    if not math.isfinite(largest):
        which = "NaN" if np.isnan(image).any() else "infinity"
        raise ValueError(f"`image` must be finite where it holds weights, got {which}")
    image = image.astype(np.float64, copy=False)
    if not math.isfinite(largest * image.size * MOST_CELLS):
        scaled = np.abs(image * 2.0**-100)  # The sum of scaled weights does not overflow.
        total = float(scaled.sum()) * MOST_CELLS
        if total >= 2.0**923:
            raise ValueError(
                f"`image` must hold weights whose sums are finite, got values up to {largest:g}"
            )
    return image


def as_label_image(
    labels: Array, shown: Array | None, stored: Any = None, *, on_host: bool = True
) -> Array:
    """Return a label image as int32 or int64. Masked points are background.

    `stored` is the dtype that it had before it was converted, for messages. On a device, the
    backend looks for negative labels when it finds the regions, so that no call waits for that.
    """
    check_label_type(labels.dtype, labels.shape, labels.shape, stored)
    if on_host:
        check_label_values(labels, labels.dtype)
    if labels.dtype == np.uint64 and labels.size:
        largest = int(labels.max())
        if largest >= 2**63:
            raise ValueError(f"`labels` must be below 2**63, got {largest}")
    if labels.dtype.kind == "b":
        labels = as_booleans(labels)
    if shown is not None:
        labels = np.where(shown, labels, labels.dtype.type(0))
    small = labels.dtype.kind == "b" or np.iinfo(labels.dtype).max <= np.iinfo(np.int32).max
    return labels.astype(np.int32 if small else np.int64, copy=False)


def check_directions(directions: Any, ndim: int) -> Floats:
    """Return unit vectors (k, ndim). Vectors of unit length up to rounding are not changed."""
    array = as_numbers(directions, "directions")
    if array.ndim != 2 or array.shape[1] != ndim:
        raise ValueError(
            f"`directions` must have shape (k, {ndim}) for shapes of {ndim} axes, got {array.shape}"
        )
    if not 0 < array.size <= MOST_CACHED:
        return _unit_vectors(array)
    return _known_unit_vectors(array.tobytes(), array.dtype.str, ndim).copy()


@lru_cache(maxsize=64)
def _known_unit_vectors(raw: bytes, dtype: str, ndim: int) -> Floats:
    return _unit_vectors(np.frombuffer(raw, dtype).reshape(-1, ndim))


def _unit_vectors(array: Array) -> Floats:
    vectors = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1))
    if bad.size:
        i = int(bad[0])
        raise ValueError(f"`directions` must be finite and not zero, got {array[i]} in row {i}")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    # A power of 2 scales exactly, and squares of components of at most 1 do not overflow.
    exponents = np.frexp(largest)[1]
    scaled = np.ldexp(vectors, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        is_unit = np.abs(np.ldexp(lengths, exponents) - 1) <= 4 * np.finfo(np.float64).eps
    return np.where(is_unit, vectors, scaled / lengths)


def parse_heights(given: Any, bounds: Any, *, name: str = "heights") -> tuple[Floats | None, int]:
    """Return the heights as float64 and 0, or for an int None and their number.

    `given` is on the host.
    """
    count = as_count(given, name)
    if count is not None:
        return None, count
    if bounds is not None:
        raise ValueError(f"`range` must be None where `{name}` is an array, got both")
    array = check_threshold_array(given, name)
    heights = array.astype(np.float64)
    if array.dtype.kind in "iu":
        rounded = heights.astype(array.dtype) != array
        if rounded.any():
            raise ValueError(f"`{name}` must be exact in float64, got {array[rounded][0]}")
    return heights, 0


def spread_heights(
    count: int, bounds: Any, reach: float | None, *, what: str = "an image"
) -> Floats:
    """Return evenly spaced heights over a range; by default from -`reach` to `reach`."""
    if bounds is not None:
        low, high = check_range(bounds)
    elif reach is None:
        raise ValueError(f"`range` must be given for {what} without points, got None")
    else:
        low = -reach * MARGIN
        high = reach * MARGIN
    return even_thresholds(float(low), float(high), count)


def half_diagonal(shape: tuple[int, ...], spacing: Floats) -> float:
    """Return half the diagonal of an image, which no height exceeds."""
    halves = [n * step / 2 for n, step in zip(shape, spacing.tolist(), strict=True)]
    reach = math.hypot(*halves)
    if not LEAST_REACH < reach < MOST_REACH:
        raise ValueError(
            f"`spacing` must make the half diagonal lie between {LEAST_REACH:g} and "
            f"{MOST_REACH:g}, got {reach:g} from {spacing.tolist()}"
        )
    return reach


def check_even_circle(directions: Floats) -> None:
    """Refuse directions that are not evenly spaced on the circle."""
    n, ndim = directions.shape
    if ndim == 2:
        complex_ = directions[:, 0] + 1j * directions[:, 1]
        turns = complex_ * np.roll(complex_, 1).conj()
        if np.allclose(turns, np.exp(2j * np.pi / n), rtol=0, atol=1e-6):
            return
    raise ValueError(
        "`rotation_invariant` must be False unless the directions are evenly spaced on the circle "
        f"(as those of an int are), got directions of shape {directions.shape}"
    )
