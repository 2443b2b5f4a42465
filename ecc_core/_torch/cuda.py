"""Soft curves and transforms on CUDA devices, by kernels; those of float64 images by torch.

For plain tensors, `fused_curve` computes curves without the operator, in fewer launches.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import soft, soft_heights, soft_parameters, soft_simplices
from ecc_core._backends.cuda.soft import Arguments, Forward
from ecc_core._backends.cuda.soft_plans import window_words
from ecc_core._backends.cuda.soft_transforms import by_orthant as by_orthant
from ecc_core._backends.cuda.soft_transforms import gradients_by_orthant as gradients_by_orthant
from ecc_core._backends.cuda.soft_transforms import projection_gradients as projection_gradients
from ecc_core._backends.cuda.soft_transforms import projections as projections
from ecc_core._backends.soft import SoftImages, SoftShapeGradients, SoftShapes
from ecc_core._torch import plain
from ecc_core._torch.cells import coefficients_of
from ecc_core._torch.cuda_layers import layer_curves as layer_curves
from ecc_core._torch.cuda_small_curves import passes_of, small_curve
from ecc_core._torch.cuda_transforms import fused_transform as fused_transform
from ecc_core._torch.curve import by_direction_terms, gradients_of
from ecc_core._torch.host_shapes import raise_for_values
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.plain import weighted_curves as weighted_curves
from ecc_core._torch.routes import is_plain
from ecc_core._torch.transform import add_heights, unit


def arguments(images: SoftImages, fill: bool = False) -> Arguments:
    """Return the arguments of the kernels.

    With `fill`, or for float64, points outside the mask are infinite, and there is no mask.
    """
    image, levels, sharpness, terms, mask, connectivity, superlevel = images
    fill = fill or image.dtype == torch.float64
    values, shown = soft.values(image, terms, mask, superlevel, fill)
    return Arguments(values, shown, levels.contiguous(), sharpness, connectivity, superlevel)


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    given = arguments(images)
    values = given.values
    thresholds = given.thresholds
    kept = values.new_empty((len(values), given.points if keep else 0), dtype=torch.int8)
    shape = values.shape[0], thresholds.numel()
    if values.dtype == torch.float64:
        weights = soft.coefficients(given)
        return *plain.weighted_curves(images, weights), weights if keep else kept
    curve, slopes, spreads = (thresholds.new_empty(shape) for _ in range(3))
    if not (values.numel() and thresholds.numel()):
        return curve.zero_(), slopes.zero_(), spreads.zero_(), kept
    addresses = Forward(
        curve.data_ptr(),
        slopes.data_ptr(),
        spreads.data_ptr(),
        0,
        kept.data_ptr() if keep else 0,
    )
    soft.curves(given, addresses)
    return curve, slopes, spreads, kept


def gradient(
    upstream: Tensor,
    coefficients: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Return the gradient of the images, in `dtype`."""
    given = arguments(images, fill=split)
    values = given.values
    if split:
        wide = values if values.dtype == torch.float64 else values.float()
        signed = -wide if given.superlevel else wide
        weights = coefficients_of(signed, given.connectivity, "split")
        weights = weights.masked_fill(signed.isposinf(), 0).flatten(1)
    else:
        weights = coefficients.contiguous() if coefficients.numel() else soft.coefficients(given)
    if values.dtype == torch.float64:
        return plain.gradient(upstream, weights, images, False, dtype, double)
    out = torch.empty(values.shape, dtype=torch.float32 if split else dtype, device=values.device)
    if not (values.numel() and given.thresholds.numel()):
        return out.zero_()
    ones = torch.ones_like(weights, dtype=torch.int8) if split else weights
    memory = soft.windows(given)
    soft.gradients(given, Forward(0, 0, 0, memory.data_ptr(), ones.data_ptr()), upstream, out)
    return (out * weights.reshape(values.shape)).to(dtype) if split else out


def simplicial_curves(given: SoftShapes) -> Tensor:
    found = soft_simplices.curves(given)
    if found is None:
        raise_for_values(given)
        raise RuntimeError("a CUDA kernel refused what is valid")
    return found


def simplicial_gradients(
    given: SoftShapes, upstream: Tensor, all_arguments: bool
) -> SoftShapeGradients:
    return soft_simplices.gradients(given, upstream, all_arguments)


def can_fuse(image: Tensor, thresholds: Tensor, *others: Any) -> bool:
    """Whether `fused_curve` takes these arguments of the operator of `curve.py`.

    It does not take float64, empty tensors, negated views or split ties. The caller has excluded
    compiled graphs, `torch.func` and tensor subclasses.
    """
    exact = image.dtype == torch.float64
    empty = not (image.numel() and thresholds.numel())
    if exact or empty or others[-2] == "split":
        return False
    for tensor in (image, thresholds, *others[:3]):
        if tensor is not None and tensor.is_neg():
            return False
    return True


def fused_curve(*args: Any) -> Tensor:
    """Return the curves (..., n) of images (..., spatial), in as few launches as possible.

    The arguments are those of the operator of `curve.py`, for which `can_fuse` is true, followed by
    the number of spatial axes. The curves have gradients.
    """
    tensors = args[:5]
    options = args[5:]
    needed = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors[:4])
    if not needed:
        curves: Tensor = _compute(tensors, options)[0]
        return curves
    passes = passes_of(*args)
    if passes is not None:
        return small_curve(passes, *args)
    with_gradients: Tensor = _Fused.apply(*tensors, options)  # type: ignore[no-untyped-call]
    return with_gradients


class _Fused(torch.autograd.Function):
    """Curves of a batch of images, whose forward pass is `_compute`."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *tensors, options = args
        curve, flat, values, kept, ctx.sizes = _compute(tensors, options, True)
        ctx.save_for_backward(flat, *tensors[1:], values, kept)
        ctx.shape = tensors[0].shape
        ctx.options = options[:3]
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
    """Return the curves in a tuple.

    With `keeps`, the tuple has also what the backward pass needs: the images with one batch axis,
    the values of their filtration, and memory of windows, slopes, spreads and coefficients, with
    the sizes of its parts.
    """
    (image, *others), (*flags, _, keep, n_spatial) = tensors, options
    batch = image.shape[:-n_spatial]
    flat = image
    if len(batch) != 1:
        flat = image.reshape(math.prod(batch), *image.shape[-n_spatial:])
    given = arguments(SoftImages(flat, *others, *flags))
    levels = given.thresholds.shape[0]
    device = image.device
    curve = torch.empty((*batch, levels), dtype=torch.float32, device=device)
    if not keeps:
        soft.curves(given, Forward(curve.data_ptr(), 0, 0, 0, 0))
        return (curve,)
    windows = window_words(levels)
    rows = curve.numel()
    # Four coefficients, which are bytes, fit into a word.
    words = ceil_div(flat.numel(), 4) if keep else 0
    memory = torch.empty(windows + 2 * rows + words, dtype=torch.float32, device=device)
    sizes = windows, rows, words
    soft.curves(given, _forward(curve.data_ptr(), memory, sizes))
    return curve, flat, given.values, memory, sizes


def _forward(curve: int, kept: Tensor, sizes: tuple[int, int, int]) -> Forward:
    """Return the addresses of the curve, and of the parts of the memory for the backward pass."""
    windows, rows, words = sizes
    start = kept.data_ptr()
    slopes = start + 4 * windows
    spreads = slopes + 4 * rows
    return Forward(curve, slopes, spreads, start, spreads + 4 * rows if words else 0)


def _views(kept: Tensor, sizes: tuple[int, int, int], image: Tensor) -> tuple[Tensor, ...]:
    """Return slopes, spreads and coefficients, as the operator returns them."""
    windows, rows, words = sizes
    _, slopes, spreads, packed = torch.split_with_sizes(kept, [windows, rows, rows, words])
    images = image.shape[0]
    points = math.prod(image.shape[1:]) if words else 0
    weights = packed.view(torch.int8)[: images * points]
    return slopes.view(images, -1), spreads.view(images, -1), weights.view(images, points)


def can_add_heights(images: Tensor, directions: Tensor, log_scales: Tensor) -> bool:
    """Whether `with_heights` takes these arguments.

    They must be float32 or float64 of one dtype on one device, and neither empty nor negated views.
    """
    tensors = images, directions, log_scales
    place = images.get_device()
    if images.dtype not in (torch.float32, torch.float64) or not images.numel():
        return False
    if len(directions) > soft_heights.MOST_DIRECTIONS:
        return False
    alike = [t.dtype == images.dtype and t.get_device() == place for t in tensors]
    return all(alike) and not any(t.is_neg() for t in tensors)


def with_heights(
    images: Tensor, directions: Tensor, log_scales: Tensor, spacing: tuple[float, ...]
) -> Tensor:
    """Return images (..., k, spatial), the sums of images (..., spatial) and heights of points.

    Heights are those along directions (k, d), times scales (k,), which are given by their
    logarithms. The sums have gradients. The caller has excluded compiled graphs, `torch.func` and
    tensor subclasses.
    """
    found: Tensor = _WithHeights.apply(images, directions, log_scales, spacing)  # type: ignore[no-untyped-call]
    return found


class _WithHeights(torch.autograd.Function):
    """The function of `with_heights`, by kernels."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, directions: Tensor, log_scales: Tensor, spacing: Any
    ) -> Any:
        batch = images.shape[: -len(spacing)]
        grid = images.shape[-len(spacing) :]
        flat = images.reshape(-1, *grid).contiguous()
        given = directions.contiguous(), log_scales.contiguous(), spacing
        found = soft_heights.add_heights(flat, *given)
        ctx.save_for_backward(images, directions, log_scales)
        ctx.spacing = spacing
        return found.view(*batch, len(directions), *grid)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        images, directions, log_scales = ctx.saved_tensors
        spacing = ctx.spacing
        needed = ctx.needs_input_grad[:3]
        if not is_plain(gradient):
            with torch.enable_grad():
                values = add_heights(images, unit(directions), log_scales.exp(), spacing)
            return *gradients_in_torch(values, ctx.saved_tensors, needed, gradient), None
        upstream = gradient.reshape(-1, len(directions), *images.shape[-len(spacing) :])
        upstream = upstream.contiguous()
        by_images = by_directions = by_scales = None
        if needed[0]:
            by_images = soft_heights.height_totals(upstream).view(images.shape)
        if needed[1]:
            by_directions = torch.empty_like(directions, memory_format=torch.contiguous_format)
        if needed[2]:
            by_scales = torch.empty_like(log_scales, memory_format=torch.contiguous_format)
        if needed[1] or needed[2]:
            given = directions.contiguous(), log_scales.contiguous(), spacing
            sums = soft_heights.height_sums(upstream)
            soft_parameters.vector_gradients(*given, sums, by_directions, by_scales)
        return by_images, by_directions, by_scales, None
