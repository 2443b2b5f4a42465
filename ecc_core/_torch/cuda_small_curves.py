"""Soft curves of small images on CUDA devices, with few steps in Python in each pass.

A step in Python takes two or three times as long in the backward pass as elsewhere, because
autograd runs it in a thread of its own, for which the caches of the processor are cold.
"""

from typing import Any

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.curve_steps import CurvePasses, plan_curves
from ecc_core._torch.addresses import address_of
from ecc_core._torch.curve import gradients_of
from ecc_core._torch.routes import is_plain


def passes_of(*args: Any) -> CurvePasses | None:
    """Return the plan of both passes for arguments of `fused_curve`, or None if there is none."""
    image, thresholds, _, terms, mask, connectivity, superlevel, _, _, n_spatial = args
    if terms is not None or mask is not None:
        return None
    if not (image.is_contiguous() and thresholds.is_contiguous()):
        return None
    kind = image.shape, n_spatial, image.dtype, image.data_ptr() % 16
    options = connectivity, superlevel, thresholds.shape[0], image.device.index
    return plan_curves(*kind, *options)


def small_curve(passes: CurvePasses, *args: Any) -> Tensor:
    """Return the curves (..., n) of images (..., spatial), with gradients."""
    image, thresholds, sharpness, _, _, *flags, ties, keep, _ = args
    found: Tensor = _Small.apply(image, thresholds, sharpness, passes, (*flags, ties), keep)  # type: ignore[no-untyped-call]
    return found


class _Small(torch.autograd.Function):
    """The function of `small_curve`, by kernels."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        thresholds: Tensor,
        sharpness: Tensor,
        passes: CurvePasses,
        options: tuple[Any, ...],
        keep: bool,
    ) -> Tensor:
        steps = passes.steps
        windows, rows, words = steps.sizes
        with soft.launching(image) as (_, stream):
            batch = image.shape[: image.dim() - len(steps.spatial)]
            curve = image.new_empty((*batch, thresholds.shape[0]), dtype=torch.float32)
            size = windows + 2 * rows + (words if keep else 0)
            kept = image.new_empty(size, dtype=torch.float32)
            own = kept.data_ptr()
            aside = None if keep else image.new_empty(words, dtype=torch.float32)
            coefficients = own + steps.offsets[-1] if aside is None else aside.data_ptr()
            given = image.data_ptr(), thresholds.data_ptr(), sharpness.data_ptr()
            passes.forward(stream, given, (coefficients, curve.data_ptr(), own))
        ctx.save_for_backward(image, thresholds, sharpness, kept)
        ctx.passes = passes
        ctx.options = options
        ctx.keep = keep
        return curve

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        image, thresholds, sharpness, kept = ctx.saved_tensors
        passes: CurvePasses = ctx.passes
        needed = ctx.needs_input_grad
        if gradient.dim() != len(passes.steps.shape):
            gradient = gradient.reshape(passes.steps.shape)
        if not is_plain(gradient):
            return *_by_operators(ctx, gradient), None, None, None
        by_image = torch.empty_like(image) if needed[0] else None
        by_thresholds = torch.empty_like(thresholds) if needed[1] else None
        by_sharpness = torch.empty_like(sharpness) if needed[2] else None
        with soft.launching(image) as (_, stream):
            given = image.data_ptr(), thresholds.data_ptr(), sharpness.data_ptr()
            of_image, of_level = gradient.stride()
            upstream = gradient.data_ptr(), of_image, of_level
            found = address_of(by_image), address_of(by_thresholds), address_of(by_sharpness)
            passes.backward(stream, given, kept.data_ptr(), upstream, found)
        return by_image, by_thresholds, by_sharpness, None, None, None


def _by_operators(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    """Return the gradients by operators of torch, which can be recorded and batched."""
    image, thresholds, sharpness, kept = ctx.saved_tensors
    steps = ctx.passes.steps
    images = steps.shape[0]
    windows, rows, words = steps.sizes
    words = words if ctx.keep else 0
    _, slopes, spreads, packed = torch.split_with_sizes(kept, [windows, rows, rows, words])
    points = image.numel() // images
    weights = packed.view(torch.int8)[: images * points if words else 0]
    flat = image.reshape(images, *steps.spatial)
    derivatives = slopes.view(images, -1), spreads.view(images, -1)
    saved = *derivatives, weights.view(images, -1), flat, thresholds, sharpness, None, None
    needed = (*ctx.needs_input_grad[:3], False)
    by_image, *others = gradients_of(needed, saved, ctx.options, gradient)
    return None if by_image is None else by_image.reshape(image.shape), *others[:2]
