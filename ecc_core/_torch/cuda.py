"""Soft curves on CUDA devices: fused kernels, or one pass per level for float64."""

from __future__ import annotations

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.soft import Arguments
from ecc_core._torch import direct
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core._torch.packing import packed_shape, unpack

__all__ = ["arguments", "curves", "gradients", "points"]


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
    words = packed_shape(given.image, keep)
    if given.image.dtype != torch.float64:
        return soft.curves(given, words, keep)
    values, weights, levels = points(given, split=False)
    curve, slopes, spreads = direct.curves(values, weights, levels, given.sharpness)
    packed = given.image.new_empty(words, dtype=torch.int32)
    return curve, -slopes if given.superlevel else slopes, spreads, packed


def gradients(
    given: Arguments,
    upstream: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    packed: Tensor,
    split: bool,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the images, in `dtype`, and of thresholds and sharpness for each image."""
    image = given.image
    if image.dtype == torch.float64:
        values, weights, levels = points(given, split)
        signed = upstream if given.superlevel else -upstream
        found = direct.gradients(values, weights, levels, given.sharpness, signed)
        by_sharpness = (upstream * spreads).sum(1)
        return found.reshape(image.shape), upstream * slopes, by_sharpness
    rows = (upstream, slopes, spreads)
    if split:
        found, *others = soft.gradients(given, *rows, None, torch.float32)
        weights = _split_weights(given).reshape(image.shape)
        return (found * weights).to(dtype), others[0], others[1]
    if not packed.numel():
        packed = soft.coefficients(given, packed_shape(image, True))
    return soft.gradients(given, *rows, packed, dtype)


def points(given: Arguments, split: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Values and coefficients (batch, points) of the sublevel filtration, and its levels."""
    image = given.image
    values = filtration(image, given.direction_terms, given.mask, given.superlevel).flatten(1)
    if split:
        weights = _split_weights(given)
    else:
        words = soft.coefficients(given, packed_shape(image, True))
        weights = unpack(words, image.shape).flatten(1)
    return values, weights, -given.thresholds if given.superlevel else given.thresholds


def _split_weights(given: Arguments) -> Tensor:
    image = given.image if given.image.dtype == torch.float64 else given.image.float()
    values = filtration(image, given.direction_terms, given.mask, given.superlevel)
    weights = split_coefficients(values, given.connectivity)
    return weights.masked_fill(values.isposinf(), 0).flatten(1)
