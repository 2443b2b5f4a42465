"""Soft curves and transforms on CUDA devices: kernels, or one pass per level for float64."""

from __future__ import annotations

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.soft import (
    Arguments,
    Forward,
    by_orthant,
    gradients_by_orthant,
    projection_gradients,
    projections,
)
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.cells import split_coefficients

__all__ = [
    "arguments",
    "by_orthant",
    "curves",
    "gradient",
    "gradients_by_orthant",
    "projection_gradients",
    "projections",
]


def arguments(images: SoftImages, fill: bool = False) -> Arguments:
    """Arguments of the kernels; with `fill`, points that the mask hides are infinite instead."""
    image, levels, sharpness, terms, mask, connectivity, superlevel = images
    fill = fill or image.dtype == torch.float64
    values, shown = soft.values(image, terms, mask, superlevel, fill)
    return Arguments(values, shown, levels.contiguous(), sharpness, connectivity, superlevel)


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves, their derivatives by thresholds and sharpness, and coefficients."""
    given = arguments(images)
    values, thresholds = given.values, given.thresholds
    kept = values.new_empty((len(values), given.points if keep else 0), dtype=torch.int8)
    shape = values.shape[0], thresholds.numel()
    if values.dtype == torch.float64:
        weights = soft.coefficients(given)
        curve, slopes, spreads = _exact_curves(*_points(given, weights), given.sharpness)
        kept = weights if keep else kept
        return curve, -slopes if given.superlevel else slopes, spreads, kept
    curve, slopes, spreads = (thresholds.new_empty(shape) for _ in range(3))
    if not (values.numel() and thresholds.numel()):
        return curve.zero_(), slopes.zero_(), spreads.zero_(), kept
    rows = curve.data_ptr(), slopes.data_ptr(), spreads.data_ptr()
    soft.curves(given, Forward(*rows, 0, kept.data_ptr() if keep else 0))
    return curve, slopes, spreads, kept


def gradient(
    upstream: Tensor,
    coefficients: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Gradient of the images, in `dtype`."""
    given = arguments(images, fill=split)
    values = given.values
    if split:
        weights = _split_weights(given)
    else:
        weights = coefficients.contiguous() if coefficients.numel() else soft.coefficients(given)
    if values.dtype == torch.float64:
        signed = upstream if given.superlevel else -upstream
        found = _exact_gradients(*_points(given, weights), given.sharpness, signed)
        return found.reshape(values.shape)
    out = torch.empty(values.shape, dtype=torch.float32 if split else dtype, device=values.device)
    if not (values.numel() and given.thresholds.numel()):
        return out.zero_()
    ones = torch.ones_like(weights, dtype=torch.int8) if split else weights
    memory = soft.windows(given)
    soft.gradients(given, Forward(0, 0, 0, memory.data_ptr(), ones.data_ptr()), upstream, out)
    return (out * weights.reshape(values.shape)).to(dtype) if split else out


def _points(given: Arguments, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Values (batch, points) of the sublevel filtration, their weights, and the levels."""
    values, levels = given.values.flatten(1), given.thresholds
    return (-values, weights, -levels) if given.superlevel else (values, weights, levels)


def _split_weights(given: Arguments) -> Tensor:
    """Coefficients (batch, points) of which cells are divided between points of equal values."""
    values = given.values if given.values.dtype == torch.float64 else given.values.float()
    values = -values if given.superlevel else values
    weights = split_coefficients(values, given.connectivity)
    return weights.masked_fill(values.isposinf(), 0).flatten(1)


def _exact_curves(
    values: Tensor, weights: Tensor, levels: Tensor, sharpness: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of weight * s(z), z = sharpness * (level - value), and derivatives by level, sharpness.

    Points at -inf have entered at every level and points at +inf never enter. Neither contributes
    to the derivatives. No temporary array is larger than the values.
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


def _exact_gradients(
    values: Tensor, weights: Tensor, levels: Tensor, sharpness: Tensor, upstream: Tensor
) -> Tensor:
    """Weight of each point times the sum of upstream * sharpness * s'(z) over the levels."""
    values, weights = _finite(values, weights)
    total = values.new_zeros((upstream.shape[0], values.shape[1]))
    for j, level in enumerate(levels):
        s = torch.sigmoid(sharpness * (level - values))
        total += upstream[:, j, None] * (s * (1 - s))
    return weights * sharpness * total
