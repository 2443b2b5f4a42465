"""Soft curves on the CPU, as sums over points weighted by their coefficients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu import launch
from ecc_core._backends.cpu.soft import coefficients as soft_coefficients
from ecc_core._backends.cpu.soft import sums as soft
from ecc_core._request.filtration import Filtration
from ecc_core._request.resources import AtMost
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core.errors import NAN_MESSAGE

__all__ = ["Points", "curves", "gradient", "points"]


class Points(NamedTuple):
    """Values and coefficients (batch, points) of a sublevel filtration, levels and sharpness.

    `levels` are the thresholds of the sublevel filtration: negated if `superlevel` is set.
    """

    values: Tensor
    coefficients: Tensor
    levels: NDArray[np.float64]
    sharpness: float
    superlevel: bool


def points(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    *,
    kept: Tensor | None = None,
) -> Points:
    """Check the values of the arguments and compute the coefficients of the points.

    `kept` are the coefficients (batch, points) that the forward pass returned, or empty.
    """
    if direction_terms is not None and not bool(direction_terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{direction_terms[~direction_terms.isfinite()][0]:g} * x"
        )
    values = filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel).contiguous()
    levels = thresholds.numpy().astype(np.float64)
    if superlevel:
        levels = -levels
    if kept is not None and kept.shape[1] and ties == "raster":
        return Points(values.flatten(1), kept, levels, float(sharpness), superlevel)
    slope = check_numbers(levels, sharpness, "thresholds")
    coefficients = torch.from_numpy(_coefficients(values.numpy(), connectivity))
    if ties == "split":
        coefficients = split_coefficients(values, connectivity)
    return Points(values.flatten(1), coefficients.flatten(1), levels, slope, superlevel)


def _coefficients(values: NDArray[Any], connectivity: int) -> NDArray[Any]:
    """Coefficients, of the shape of the values; those of points at +inf are undefined."""
    batch, *spatial = values.shape
    filtration = Filtration(len(spatial), connectivity)
    try:
        if len(spatial) < 3 and math.prod(spatial) <= soft_coefficients.LARGEST:
            images = values.reshape(batch, math.prod(spatial[:-1]), spatial[-1])
            found = soft_coefficients.coefficients(images, filtration.cubes, threads())
            return found.reshape(values.shape)
        return launch.coefficients(values, filtration, workers=threads())
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError("`image` must not contain NaN where `mask` keeps it, got NaN") from None


def check_numbers(levels: NDArray[Any], sharpness: Tensor, name: str) -> float:
    """Check levels and sharpness, and return the sharpness."""
    if np.isnan(levels).any():
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    slope = float(sharpness)
    if not 0 < slope < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {slope:g}")
    return slope


def curves(points: Points) -> tuple[Tensor, Tensor, Tensor]:
    """Curves, and their derivatives with respect to thresholds and sharpness."""
    values, weights, levels, sharpness, superlevel = points
    given = values.numpy()
    sums = soft.curves(given, weights.numpy(), levels, sharpness, workers=threads())
    curve, slopes, spreads = (torch.from_numpy(rows.astype(given.dtype)) for rows in sums)
    return curve, -slopes if superlevel else slopes, spreads


def by_levels(upstream: Tensor, slopes: Tensor, spreads: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients (batch, n) of thresholds and (batch,) of the sharpness."""
    rows = upstream.numpy()  # faster than torch for so few numbers
    by_threshold, by_sharpness = rows * slopes.numpy(), (rows * spreads.numpy()).sum(1)
    return torch.from_numpy(by_threshold), torch.from_numpy(by_sharpness)


def gradient(points: Points, upstream: Tensor, double: bool) -> Tensor:
    """Coefficient of each point times the sum of upstream * sharpness * s'(z) over the levels.

    `double` asks for sums in double precision, for gradients of directions, whose terms cancel.
    """
    values, weights, levels, sharpness, _ = points
    given = values.numpy(), weights.numpy(), levels, sharpness
    out = torch.empty_like(values)
    rows = np.ascontiguousarray(upstream.numpy(), np.float64)
    soft.gradients(*given, rows, out.numpy(), workers=threads(), double=double)
    return out


def threads() -> int:
    """Use at most as many threads as torch."""
    return AtMost(torch.get_num_threads())
