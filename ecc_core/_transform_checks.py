"""Checks of the arguments of transforms, each with one message."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _checks

__all__ = [
    "MOST_WEIGHT",
    "as_label_image",
    "as_mask",
    "as_weights",
    "check_axes",
    "check_directions",
    "check_even_circle",
    "check_height_array",
    "check_metric",
    "check_same_sampling",
    "spread_heights",
]

Array = NDArray[Any]
Floats = NDArray[np.float64]

MOST_WEIGHT = 2**62
SLACK = 1 + 8 * np.finfo(np.float64).eps  # the furthest corner must not round above the range


def check_axes(shape: tuple[int, ...], name: str) -> None:
    if not 1 <= len(shape) <= 3:
        raise ValueError(f"`{name}` must have 1 to 3 axes, got shape {shape}")


def as_mask(image: Array, shown: Array | None) -> NDArray[np.bool_]:
    """A boolean image; other dtypes must hold 0 and 1 only. Points not shown are not set."""
    if image.dtype != np.bool_:
        binary = (image == 0) | (image == 1)
        if not (binary if shown is None else binary | ~shown).all():
            raise ValueError(
                "`image` must be boolean, or 0 and 1, unless `weighted` is True, "
                f"got {image.dtype} with other values"
            )
        image = image == 1
    return image if shown is None else image & shown


def as_weights(image: Array, shown: Array | None) -> NDArray[np.int64] | Floats:
    """An image of weights as int64 or float64. Points not shown weigh nothing."""
    if shown is not None:
        image = np.where(shown, image, image.dtype.type(0))
    if image.dtype.kind == "f":
        if not np.isfinite(image).all():
            which = "NaN" if np.isnan(image).any() else "infinity"
            raise ValueError(f"`image` must be finite where it holds weights, got {which}")
        return image.astype(np.float64, copy=False)
    if image.dtype.itemsize == 8 and image.size:
        largest = max(int(image.max()), -int(image.min()))
        if largest >= MOST_WEIGHT:
            raise ValueError(f"`image` must hold weights below 2**62, got {largest}")
    return image.astype(np.int64, copy=False)


def as_label_image(labels: Array, shown: Array | None) -> Array:
    """A label image as int32 or int64. Points not shown are background."""
    _checks.check_labels(labels, labels.dtype, labels.shape)
    if labels.dtype.kind == "u" and labels.size and (largest := int(labels.max())) >= 2**63:
        raise ValueError(f"`labels` must be below 2**63, got {largest}")
    if shown is not None:
        labels = np.where(shown, labels, labels.dtype.type(0))
    small = labels.dtype.kind == "b" or np.iinfo(labels.dtype).max <= np.iinfo(np.int32).max
    return labels.astype(np.int32 if small else np.int64, copy=False)


def check_directions(directions: ArrayLike, ndim: int) -> Floats:
    """Unit vectors (k, ndim). Vectors that are of unit length but for rounding stay as they are."""
    array = np.asarray(directions)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"`directions` must be real numbers, got {array.dtype}")
    if array.ndim != 2 or array.shape[1] != ndim:
        raise ValueError(f"`directions` must have shape (k, {ndim}), got {array.shape}")
    vectors = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1) | ~vectors.any(axis=1))
    if bad.size:
        i = int(bad[0])
        raise ValueError(f"`directions` must be finite and not zero, got {array[i]} in row {i}")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = vectors / 2.0 ** np.frexp(largest)[1]  # exact; squares neither overflow nor vanish
    norm = np.linalg.norm(scaled, axis=1, keepdims=True) * 2.0 ** np.frexp(largest)[1]
    unit = np.abs(norm - 1) <= 4 * np.finfo(np.float64).eps
    return np.where(unit, vectors, scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def check_height_array(heights: Array, bounds: Any) -> Floats:
    """Given heights as float64."""
    if bounds is not None:
        raise ValueError("`range` must be None where `heights` is an array, got both")
    return _checks.check_threshold_array(heights, "heights").astype(np.float64)


def spread_heights(count: int, bounds: Any, reach: float | None) -> Floats:
    """Heights over a range; `reach` is the end of the default one, if there is one."""
    if bounds is not None:
        low, high = _checks.check_range(bounds)
    elif reach is None:
        raise ValueError("`range` must be given for an image without points, got None")
    else:
        low, high = -reach * SLACK, reach * SLACK
    return np.linspace(float(low), float(high), count)


def check_metric(metric: str) -> int:
    """The power of the metric."""
    if metric not in ("L1", "L2"):
        raise ValueError(f'`metric` must be "L1" or "L2", got {metric!r}')
    return int(metric[1])


def check_same_sampling(a: Any, b: Any) -> None:
    for name in ("directions", "heights"):
        if not np.array_equal(getattr(a, name), getattr(b, name)):
            raise ValueError(f"`a` and `b` must have the same {name}, got different ones")
    if a.values.shape != b.values.shape or a.values.ndim != 2:
        raise ValueError(
            f"`a` and `b` must be transforms of one object each, got values of shapes "
            f"{a.values.shape} and {b.values.shape}"
        )
    if len(a.heights) < 2 or not np.isfinite(a.heights).all() or len(a.directions) == 0:
        raise ValueError("`a` and `b` must have directions and at least 2 finite heights, got less")


def check_even_circle(directions: Floats) -> None:
    """Directions that go round the circle once in equal steps."""
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
