"""The operators of soft curves on CUDA devices: kernels, or one pass per level for float64."""

from __future__ import annotations

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.soft import Arguments, Forward
from ecc_core._torch import direct
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core._torch.packing import packed_shape, unpack

__all__ = ["arguments", "curves", "gradient", "points"]


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


def curves(given: Arguments, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves, their derivatives by thresholds and sharpness, and packed coefficients."""
    image, thresholds = given.image, given.thresholds
    packed = image.new_empty(packed_shape(image, keep), dtype=torch.int32)
    if image.dtype == torch.float64:
        values, weights, levels = points(given, split=False)
        curve, slopes, spreads = direct.curves(values, weights, levels, given.sharpness)
        return curve, -slopes if given.superlevel else slopes, spreads, packed
    shape = image.shape[0], thresholds.numel()
    curve, slopes, spreads = (thresholds.new_empty(shape) for _ in range(3))
    if not (image.numel() and thresholds.numel()):
        return curve.zero_(), slopes.zero_(), spreads.zero_(), packed
    rows = curve.data_ptr(), slopes.data_ptr(), spreads.data_ptr()
    soft.curves(given, Forward(*rows, 0, packed.data_ptr() if keep else 0))
    return curve, slopes, spreads, packed


def gradient(
    given: Arguments, upstream: Tensor, packed: Tensor, split: bool, dtype: torch.dtype
) -> Tensor:
    """The gradient of the images, in `dtype`."""
    image = given.image
    if image.dtype == torch.float64:
        values, weights, levels = points(given, split)
        signed = upstream if given.superlevel else -upstream
        return direct.gradients(values, weights, levels, given.sharpness, signed).reshape(
            image.shape
        )
    out = torch.empty(image.shape, dtype=torch.float32 if split else dtype, device=image.device)
    if not (image.numel() and given.thresholds.numel()):
        return out.zero_()
    if not split and not packed.numel():
        packed = coefficients(given)
    memory = soft.windows(given)
    forward = Forward(0, 0, 0, memory.data_ptr(), 0 if split else packed.data_ptr())
    soft.gradients(given, forward, upstream, out)
    return (out * _split_weights(given).reshape(image.shape)).to(dtype) if split else out


def coefficients(given: Arguments) -> Tensor:
    """Packed coefficients of images of any float type, zero outside of the mask."""
    packed = given.image.new_empty(packed_shape(given.image, True), dtype=torch.int32)
    soft.coefficients(given, packed)
    return packed


def points(given: Arguments, split: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Values and coefficients (batch, points) of the sublevel filtration, and its levels."""
    image = given.image
    values = filtration(image, given.direction_terms, given.mask, given.superlevel).flatten(1)
    if split:
        weights = _split_weights(given)
    else:
        weights = unpack(coefficients(given), image.shape).flatten(1)
    return values, weights, -given.thresholds if given.superlevel else given.thresholds


def _split_weights(given: Arguments) -> Tensor:
    image = given.image if given.image.dtype == torch.float64 else given.image.float()
    values = filtration(image, given.direction_terms, given.mask, given.superlevel)
    weights = split_coefficients(values, given.connectivity)
    return weights.masked_fill(values.isposinf(), 0).flatten(1)
