"""Soft curves on the CPU, as sums over points weighted by their coefficients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cpu import launch
from ecc_core._backends.cpu.soft import sums as soft
from ecc_core._request.filtration import Filtration
from ecc_core._request.resources import AtMost
from ecc_core._torch import direct
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core.errors import NAN_MESSAGE

__all__ = ["Points", "curves", "gradient", "points"]


class Points(NamedTuple):
    """Values and coefficients (batch, points) of a sublevel filtration, levels and sharpness.

    `levels` are the thresholds of the sublevel filtration: negated if `superlevel` is set.
    """

    values: Tensor
    coefficients: Tensor
    levels: Tensor
    sharpness: Tensor
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
    if kept is not None and kept.shape[1] and ties == "raster":
        values = filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel).flatten(
            1
        )
        levels = -thresholds if superlevel else thresholds
        return Points(values.contiguous(), kept, levels, sharpness, superlevel)
    check_numbers(thresholds, sharpness, "thresholds")
    if direction_terms is not None and not bool(direction_terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{direction_terms[~direction_terms.isfinite()][0]:g} * x"
        )
    values = filtration(image.to(thresholds.dtype), direction_terms, None, superlevel).contiguous()
    if mask is not None:
        mask = mask.expand(image.shape)
    ndim = image.ndim - 1
    try:
        found = launch.coefficients(
            values.numpy(),
            Filtration(ndim, connectivity),
            mask=None if mask is None else mask.numpy(),
            workers=threads(),
        )
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError("`image` must not contain NaN where `mask` keeps it, got NaN") from None
    coefficients = torch.from_numpy(found)
    if mask is not None:  # points outside of it may be NaN
        values = values.masked_fill(~mask, torch.inf)
    if ties == "split":
        coefficients = split_coefficients(values, connectivity)
    levels = -thresholds if superlevel else thresholds
    return Points(values.flatten(1), coefficients.flatten(1), levels, sharpness, superlevel)


def check_numbers(levels: Tensor, sharpness: Tensor, name: str) -> None:
    if bool(levels.isnan().any()):
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    if not 0 < float(sharpness) < torch.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {float(sharpness):g}")


def curves(points: Points) -> tuple[Tensor, Tensor, Tensor]:
    """Curves, and their derivatives with respect to thresholds and sharpness."""
    values, weights, levels, sharpness, superlevel = points
    given = values.numpy(), weights.numpy(), levels.double().numpy(), float(sharpness)
    if values.dtype == torch.float64 and not soft.point_by_point(given[0], *given[2:]):
        curve, slopes, spreads = direct.curves(values, weights, levels, sharpness)
    else:
        sums = torch.from_numpy(soft.curves(*given, workers=threads()))
        curve, slopes, spreads = (rows.to(values.dtype, copy=True) for rows in sums)
    return curve, -slopes if superlevel else slopes, spreads


def gradient(points: Points, upstream: Tensor) -> Tensor:
    """Coefficient of each point times the sum of upstream * sharpness * s'(z) over the levels."""
    values, weights, levels, sharpness, _ = points
    given = values.numpy(), weights.numpy(), levels.double().numpy(), float(sharpness)
    if values.dtype == torch.float64 and not soft.point_by_point(given[0], *given[2:]):
        return direct.gradients(values, weights, levels, sharpness, upstream)
    out = torch.empty_like(values)
    rows = np.ascontiguousarray(upstream.double().numpy())
    soft.gradients(*given, rows, out.numpy(), workers=threads())
    return out


def threads() -> int:
    """Use at most as many threads as torch."""
    return AtMost(torch.get_num_threads())
