"""Soft transforms on CUDA devices: plain tensors of float32 in few launches.

Levels and sharpness may be given by the parameters of a layer, so that a step of it is one node.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.transform_steps import Form, Given, Wanted, plan_steps
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.operators import gradients_in_torch, is_plain
from ecc_core._torch.transform import Transformed, shape_of, transform


def fuses_transform(given: Transformed, step: Tensor | None = None) -> bool:
    """Whether `fused_transform` takes these: float32 on one device, not empty nor negated."""
    place = given.weights.get_device()
    for tensor in (*given[:4], step):
        if tensor is None:
            continue
        if tensor.dtype != torch.float32 or tensor.get_device() != place:
            return False
        if tensor.is_neg() or not tensor.numel():
            return False
    return True


def fused_transform(
    given: Transformed, step: Tensor | None = None, is_logarithm: bool = False
) -> Tensor:
    """Transforms (..., k, n) of weights (..., spatial), with gradients, in few launches.

    With a step, heights are free numbers of increasing levels; the sharpness may be a logarithm.
    Compiled graphs, `torch.func` and subclasses do not come here.
    """
    found: Tensor = _FusedTransform.apply(*given, step, is_logarithm)  # type: ignore[no-untyped-call]
    return found


class _FusedTransform(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        *parts, step, is_logarithm = args
        given = Transformed(*parts)
        tensors = [t.contiguous() for t in given[:4]]
        weights, directions, heights, _ = tensors
        counts = directions.shape[0], heights.shape[0]
        form = Form(is_increasing=step is not None, is_logarithm=is_logarithm)
        with soft.launching(weights) as (device, stream):
            options = given.connectivity, given.extension, *counts, given.spacing
            steps = plan_steps(weights.shape, *options, form, device)
            curves = weights.new_empty(shape_of(given))
            kept = weights.new_empty(steps.kept)
            sums = weights.new_empty(steps.sums, dtype=torch.float64)
            addresses = _addresses(tensors, step)
            steps.forward(stream, addresses, curves.data_ptr(), kept.data_ptr(), sums.data_ptr())
        ctx.save_for_backward(*args[:4], step, *tensors, kept)
        ctx.options = args[4:7]
        ctx.is_logarithm = is_logarithm
        ctx.steps = steps
        return curves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *saved, step, weights, directions, heights, sharpness, kept = ctx.saved_tensors
        needed = ctx.needs_input_grad[:4]
        if not is_plain(gradient):
            with torch.enable_grad():
                values = _by_operators(Transformed(*saved, *ctx.options), step, ctx.is_logarithm)
            return *gradients_in_torch(values, saved, needed, gradient), *[None] * 5
        tensors = weights, directions, heights, sharpness
        upstream = gradient.contiguous()
        found = [
            torch.empty_like(tensor) if is_needed else None
            for tensor, is_needed in zip(tensors, needed, strict=True)
        ]
        with soft.launching(kept) as (_, stream):
            work = kept.new_empty(ctx.steps.work, dtype=torch.float64)
            places = [0 if tensor is None else tensor.data_ptr() for tensor in found]
            wanted = Wanted(*places)
            addresses = kept.data_ptr(), upstream.data_ptr(), wanted, work.data_ptr()
            ctx.steps.backward(stream, _addresses(tensors, step), *addresses)
        return *found, *[None] * 5


def _addresses(tensors: Sequence[Tensor], step: Tensor | None) -> Given:
    weights, directions, heights, sharpness = (t.data_ptr() for t in tensors)
    return Given(weights, directions, heights, sharpness, 0 if step is None else step.data_ptr())


def _by_operators(given: Transformed, step: Tensor | None, is_logarithm: bool) -> Tensor:
    """The same by operators, which can be batched and are recorded."""
    if step is not None:
        given = given._replace(heights=increasing_in_torch(given.heights, step))
    if is_logarithm:
        given = given._replace(sharpness=given.sharpness.exp().reshape(()))
    return transform(given)
