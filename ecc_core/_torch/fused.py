"""Soft curves of plain tensors on CUDA devices, with gradients, in as few launches as possible.

Everything else goes through the operator of `curve.py`: compiled graphs, `torch.func`, subclasses,
float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.soft import Arguments, Forward
from ecc_core._backends.cuda.soft_plans import window_words
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.cuda import arguments
from ecc_core._torch.curve import by_direction_terms, gradients_of
from ecc_core._torch.operators import is_plain


def applies(image: Tensor, thresholds: Tensor, *others: Any) -> bool:
    """Whether the kernels can read these arguments of the operator, which bypass torch."""
    if image.dtype == torch.float64 or others[-2] == "split":
        return False
    if not (image.numel() and thresholds.numel()):
        return False
    for tensor in (image, thresholds, *others[:3]):
        if tensor is not None and tensor.is_neg():
            return False
    return True


def soft_curve(*args: Any) -> Tensor:
    """Curves (..., n) of images (..., spatial), for arguments to which this applies.

    The arguments are those of the operator, and then the number of spatial axes.
    """
    tensors, options = args[:5], args[5:]
    needed = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors[:4])
    if not needed:
        curve: Tensor = _compute(tensors, options)[0]
        return curve
    found: Tensor = _Fused.apply(*tensors, options)  # type: ignore[no-untyped-call]
    return found


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *tensors, options = args
        curve, flat, values, kept, ctx.sizes = _compute(tensors, options, True)
        ctx.save_for_backward(flat, *tensors[1:], values, kept)
        ctx.shape, ctx.options = tensors[0].shape, options[:3]
        return curve

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *args, values, kept = ctx.saved_tensors
        image, thresholds, sharpness, terms, _ = args
        if gradient.dim() != 2:
            gradient = gradient.reshape(image.shape[0], thresholds.numel())
        needed = ctx.needs_input_grad
        if not is_plain(gradient):
            saved = (*_views(kept, ctx.sizes, image), *args)
            by_image, *others = gradients_of(needed, saved, ctx.options, gradient)
            return by_image if by_image is None else by_image.reshape(ctx.shape), *others[:5]
        by_image = by_thresholds = by_sharpness = by_terms = None
        if needed[0] or needed[3]:
            dtype = torch.float32 if needed[3] else image.dtype
            by_image = torch.empty(ctx.shape, dtype=dtype, device=image.device)
        if needed[1]:
            by_thresholds = torch.empty_like(thresholds, memory_format=torch.contiguous_format)
        if needed[2]:
            by_sharpness = torch.empty_like(sharpness)
        given = Arguments(values, None, thresholds.contiguous(), sharpness, *ctx.options[:2])
        forward = _forward(0, kept, ctx.sizes)
        soft.gradients(given, forward, gradient, by_image, by_thresholds, by_sharpness)
        if terms is not None and needed[3]:
            by_terms = by_direction_terms(by_image.view(image.shape), terms.dtype)
            by_image = by_image.to(image.dtype) if needed[0] else None
        return by_image, by_thresholds, by_sharpness, by_terms, None, None


def _compute(
    tensors: Sequence[Any], options: tuple[Any, ...], keeps: bool = False
) -> tuple[Any, ...]:
    """The curves, and with `keeps` the flat batch, its values, other memory, and its sizes."""
    (image, *others), (*flags, _, keep, n_spatial) = tensors, options
    batch, flat = image.shape[:-n_spatial], image
    if len(batch) != 1:
        flat = image.reshape(math.prod(batch), *image.shape[-n_spatial:])
    given = arguments(SoftImages(flat, *others, *flags))
    levels, device = given.thresholds.shape[0], image.device
    curve = torch.empty((*batch, levels), dtype=torch.float32, device=device)
    if not keeps:
        soft.curves(given, Forward(curve.data_ptr(), 0, 0, 0, 0))
        return (curve,)
    windows, rows = window_words(levels), curve.numel()
    words = -(-flat.numel() // 4) if keep else 0  # of coefficients, which are bytes
    memory = torch.empty(windows + 2 * rows + words, dtype=torch.float32, device=device)
    sizes = windows, rows, words
    soft.curves(given, _forward(curve.data_ptr(), memory, sizes))
    return curve, flat, given.values, memory, sizes


def _forward(curve: int, kept: Tensor, sizes: tuple[int, int, int]) -> Forward:
    """The addresses of the curve and of the parts of what is kept for the backward pass."""
    windows, rows, words = sizes
    start = kept.data_ptr()
    slopes = start + 4 * windows
    spreads = slopes + 4 * rows
    return Forward(curve, slopes, spreads, start, spreads + 4 * rows if words else 0)


def _views(kept: Tensor, sizes: tuple[int, int, int], image: Tensor) -> tuple[Tensor, ...]:
    """Slopes, spreads and coefficients, as the operator returns them."""
    windows, rows, words = sizes
    _, slopes, spreads, packed = torch.split_with_sizes(kept, [windows, rows, rows, words])
    images, points = image.shape[0], math.prod(image.shape[1:]) if words else 0
    weights = packed.view(torch.int8)[: images * points]
    return slopes.view(images, -1), spreads.view(images, -1), weights.view(images, points)
