"""Soft curves for float64, one level at a time and with the accuracy of the sigmoid.

Values have shape (batch or 1, points) and weights (batch, points). No temporary array is larger.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["curves", "entered", "gradients"]


def curves(
    values: Tensor, weights: Tensor, levels: Tensor, sharpness: Tensor | float
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of weight * s(z), z = sharpness * (level - value), and derivatives by level, sharpness.

    Points at -inf have entered at every level and points at +inf never enter. Neither contributes
    to the derivatives.
    """
    sums = weights.new_zeros((3, weights.shape[0], levels.numel()), dtype=values.dtype)
    first = (weights * (values == -torch.inf)).sum(1)
    values, weights = _finite(values, weights)
    for j, level in enumerate(levels):
        s = torch.sigmoid(sharpness * (level - values))
        slope = weights * s * (1 - s)
        sums[0, :, j] = first + (weights * s).sum(1)
        sums[1, :, j] = sharpness * slope.sum(1)
        sums[2, :, j] = (slope * (level - values)).sum(1)
    sums[2].masked_fill_(levels.isinf(), 0)
    return sums[0].clone(), sums[1].clone(), sums[2].clone()


def _finite(values: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Set infinite values and their weights to zero, since they have no derivatives."""
    return values.masked_fill(values.isinf(), 0), weights * values.isfinite()


def gradients(
    values: Tensor, weights: Tensor, levels: Tensor, sharpness: Tensor, upstream: Tensor
) -> Tensor:
    """Weight of each point times the sum of upstream * sharpness * s'(z) over the levels."""
    values, weights = _finite(values, weights)
    total = values.new_zeros((upstream.shape[0], values.shape[1]))
    for j, level in enumerate(levels):
        s = torch.sigmoid(sharpness * (level - values))
        total += upstream[:, j, None] * (s * (1 - s))
    return weights * sharpness * total


def entered(values: Tensor, levels: Tensor, sharpness: Tensor, upstream: Tensor) -> Tensor:
    """Derivative by the weight of each point: the sum of upstream * s(z) over the levels."""
    total = values.new_zeros((upstream.shape[0], values.shape[1]))
    for j, level in enumerate(levels):
        total += upstream[:, j, None] * torch.sigmoid(sharpness * (level - values))
    return total
