"""Soft curves and transforms on the CPU, as sums over points weighted by their coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends import backend
from ecc_core._backends.cpu.soft import coefficients as soft_coefficients
from ecc_core._backends.cpu.soft import sums as soft
from ecc_core._backends.cpu.soft import transform as soft_transform
from ecc_core._request.filtration import Filtration
from ecc_core._request.resources import AtMost
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core.errors import NAN_MESSAGE

__all__ = ["curves", "gradient", "projection_gradients", "projections", "threads"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


def curves(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves, their derivatives with respect to thresholds and sharpness, and coefficients."""
    values = _values(image, thresholds, direction_terms, mask, superlevel)
    levels, slope = _checked(thresholds, sharpness, "thresholds")
    weights = _coefficients(values, connectivity)
    given = _points(values), weights, -levels if superlevel else levels, slope
    sums = soft.curves(*given, threads(), exact=_is_exact(values))
    if superlevel:
        sums[1] *= -1
    curve, slopes, spreads = map(torch.from_numpy, sums.astype(values.dtype))
    return curve, slopes, spreads, torch.from_numpy(weights if keep else weights[:, :0].copy())


def gradient(
    upstream: Tensor,
    packed: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Gradient of the images.

    That of a point is its coefficient times the sum of upstream * sharpness * s'(z) over the
    levels. `double` asks for sums in double precision, for gradients of directions, whose terms
    cancel.
    """
    values = _values(image, thresholds, direction_terms, mask, superlevel)
    weights = packed.contiguous().numpy()
    if split:
        weights = _points(split_coefficients(torch.from_numpy(values), connectivity).numpy())
    elif not packed.shape[1]:
        weights = _coefficients(values, connectivity)
    levels, rows = _doubles(thresholds), _doubles(upstream)
    found = soft.gradients(
        _points(values),
        weights,
        -levels if superlevel else levels,
        float(sharpness),
        rows if superlevel else -rows,
        threads(),
        exact=_is_exact(values),
        double=double,
    )
    return torch.from_numpy(found.reshape(values.shape)).to(dtype)


def projections(
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves of weighted points, and their derivatives with respect to heights and sharpness."""
    _checked(heights, sharpness, "heights")
    if not bool(directions.isfinite().all()):
        raise ValueError("`directions` must be finite and not zero")
    if not bool(weights.isfinite().all()):
        raise ValueError("`weights` must be finite")
    given = _projection(weights, positions, directions, orthants, heights, sharpness)
    sums = soft_transform.curves(given).astype(given.weights.dtype)
    curve, slopes, spreads = map(torch.from_numpy, sums)
    return curve, slopes, spreads


def projection_gradients(
    upstream: Tensor, weights: Tensor, positions: Tensor, directions: Tensor, *others: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and, for each image, of the directions."""
    given = _projection(weights, positions, directions, *others)
    found = soft_transform.gradients(given, _doubles(upstream))
    by_weights, by_directions = (torch.from_numpy(rows).to(weights.dtype) for rows in found)
    return by_weights, by_directions


def _projection(
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> soft_transform.Projection:
    numbers = weights.numpy()
    points, unit, levels = _doubles(positions), _doubles(directions), _doubles(heights)
    numbered = orthants.numpy().astype(np.intp)
    options = float(sharpness), threads(), _is_exact(numbers)
    return soft_transform.Projection(numbers, points, unit, numbered, levels, *options)


def _values(
    image: Tensor,
    thresholds: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    superlevel: bool,
) -> Array:
    """Values (batch, *spatial) of the sublevel filtration, contiguous and of the levels' dtype."""
    if direction_terms is not None and not bool(direction_terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{direction_terms[~direction_terms.isfinite()][0]:g} * x"
        )
    values = filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel)
    return values.contiguous().numpy()


def _points(values: Array) -> Array:
    """Values (batch, points) of images."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _coefficients(values: Array, connectivity: int) -> Array:
    """Coefficients (batch, points); those of points at +inf are undefined."""
    spatial = values.shape[1:]
    filtration = Filtration(len(spatial), connectivity)
    try:
        if len(spatial) < 3 and math.prod(spatial) <= soft_coefficients.LARGEST:
            rows = values if len(spatial) == 2 else values[:, None]
            found = soft_coefficients.coefficients(rows, filtration.cubes, threads())
        else:
            found = backend("cpu").coefficients(values, filtration, workers=threads())
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        message = "`image` must not contain NaN where `mask` keeps it, got NaN"
        raise ValueError(message) from None
    return _points(found.reshape(values.shape))


def _doubles(numbers: Tensor) -> Floats:
    return numbers.numpy().astype(np.float64)


def _checked(levels: Tensor, sharpness: Tensor, name: str) -> tuple[Floats, float]:
    """Check levels and sharpness, and return them in double precision."""
    numbers = _doubles(levels)
    if np.isnan(numbers).any():
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    slope = float(sharpness)
    if not 0 < slope < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {slope:g}")
    return numbers, slope


def _is_exact(values: Array) -> bool:
    return values.dtype == np.float64


def threads() -> int:
    """Use at most as many threads as torch."""
    return AtMost(torch.get_num_threads())
