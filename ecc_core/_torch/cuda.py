"""Soft curves and transforms on CUDA devices: kernels, or one pass per level for float64."""

from __future__ import annotations

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.soft import Arguments, Forward
from ecc_core._backends.cuda.soft_transform import (
    by_orthant,
    gradients_by_orthant,
    projection_gradients,
    projections,
)
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core._torch.packing import packed_shape, unpack

__all__ = [
    "arguments",
    "by_orthant",
    "curves",
    "gradient",
    "gradients_by_orthant",
    "projection_gradients",
    "projections",
]


def arguments(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
) -> Arguments:
    """Arguments of the kernels: contiguous vectors, and a mask of the image's shape."""
    terms = None if direction_terms is None else direction_terms.contiguous()
    shown = None if mask is None else mask.expand(image.shape)
    return Arguments(
        image, thresholds.contiguous(), sharpness, terms, shown, connectivity, superlevel
    )


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves, their derivatives by thresholds and sharpness, and packed coefficients."""
    given = arguments(*images)
    image, thresholds, superlevel = given.image, given.thresholds, given.superlevel
    if image.dtype == torch.float64:
        packed = image.new_empty(packed_shape(image, False), dtype=torch.int32)
        curve, slopes, spreads = _exact_curves(*_points(given, False), given.sharpness)
        return curve, -slopes if superlevel else slopes, spreads, packed
    packed = image.new_empty(packed_shape(image, keep), dtype=torch.int32)
    shape = image.shape[0], thresholds.numel()
    curve, slopes, spreads = (thresholds.new_empty(shape) for _ in range(3))
    if not (image.numel() and thresholds.numel()):
        return curve.zero_(), slopes.zero_(), spreads.zero_(), packed
    rows = curve.data_ptr(), slopes.data_ptr(), spreads.data_ptr()
    soft.curves(given, Forward(*rows, 0, packed.data_ptr() if keep else 0))
    return curve, slopes, spreads, packed


def gradient(
    upstream: Tensor,
    packed: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Gradient of the images, in `dtype`."""
    given = arguments(*images)
    image = given.image
    if image.dtype == torch.float64:
        points = _points(given, split)
        signed = upstream if given.superlevel else -upstream
        return _exact_gradients(*points, given.sharpness, signed).reshape(image.shape)
    out = torch.empty(image.shape, dtype=torch.float32 if split else dtype, device=image.device)
    if not (image.numel() and given.thresholds.numel()):
        return out.zero_()
    if not split and not packed.numel():
        packed = _coefficients(given)
    memory = soft.windows(given)
    forward = Forward(0, 0, 0, memory.data_ptr(), 0 if split else packed.data_ptr())
    soft.gradients(given, forward, upstream, out)
    return (out * _split_weights(given).reshape(image.shape)).to(dtype) if split else out


def _coefficients(given: Arguments) -> Tensor:
    """Packed coefficients of images of any float type, zero outside of the mask."""
    packed = given.image.new_empty(packed_shape(given.image, True), dtype=torch.int32)
    soft.coefficients(given, packed)
    return packed


def _points(given: Arguments, split: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Values and coefficients (batch, points) of the sublevel filtration, and its levels."""
    image = given.image
    values = filtration(image, given.direction_terms, given.mask, given.superlevel).flatten(1)
    if split:
        weights = _split_weights(given)
    else:
        weights = unpack(_coefficients(given), image.shape).flatten(1)
    return values, weights, -given.thresholds if given.superlevel else given.thresholds


def _split_weights(given: Arguments) -> Tensor:
    image = given.image if given.image.dtype == torch.float64 else given.image.float()
    values = filtration(image, given.direction_terms, given.mask, given.superlevel)
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
