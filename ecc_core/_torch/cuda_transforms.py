"""Soft transforms on CUDA devices: plain tensors of float32 in few launches.

Levels and sharpness may be given by the parameters of a layer, so that a step of it is one node.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.transform_steps import Form, Steps, plan_steps
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.operators import gradients_in_torch, is_plain
from ecc_core._torch.transform import Transformed, shape_of, transform


def fuses_transform(given: Transformed, step: Tensor | None = None) -> bool:
    """Whether `fused_transform` takes these: float32 on one device, not empty nor negated."""
    place = given.weights.get_device()
    for tensor in (*given[:4], step):
        if tensor is None:
            continue
        if tensor.dtype is not torch.float32 or tensor.get_device() != place:
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
    weights, directions, heights, sharpness = (tensor.contiguous() for tensor in given[:4])
    form = Form(is_increasing=step is not None, is_logarithm=is_logarithm)
    counts = directions.shape[0], heights.shape[0]
    options = given.connectivity, given.extension, *counts, given.spacing
    steps = plan_steps(weights.shape, *options, form, weights.get_device())
    kind = _Kind(steps, shape_of(given), is_logarithm, given[4:])
    tensors = weights, directions, heights, sharpness, step
    found: Tensor = _FusedTransform.apply(*tensors, kind)  # type: ignore[no-untyped-call]
    return found


class _Kind(NamedTuple):
    """What is computed of tensors."""

    steps: Steps
    shape: tuple[int, ...]
    """Of the transforms."""
    is_logarithm: bool
    options: tuple[Any, ...]
    """Those of `Transformed`."""


class _FusedTransform(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        weights: Tensor,
        directions: Tensor,
        heights: Tensor,
        sharpness: Tensor,
        step: Tensor | None,
        kind: _Kind,
    ) -> Tensor:
        steps = kind.steps
        given = _addresses(weights, directions, heights, sharpness, step)
        with soft.launching(weights) as (_, stream):
            curves: Tensor = weights.new_empty(kind.shape)
            kept = weights.new_empty(steps.kept)
            sums = weights.new_empty(steps.sums, dtype=torch.float64)
            steps.forward(stream, given, curves.data_ptr(), kept.data_ptr(), sums.data_ptr())
        ctx.save_for_backward(weights, directions, heights, sharpness, step, kept)
        ctx.kind = kind
        return curves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        weights, directions, heights, sharpness, step, kept = ctx.saved_tensors
        tensors = weights, directions, heights, sharpness
        needed = ctx.needs_input_grad[:4]
        kind: _Kind = ctx.kind
        if not is_plain(gradient):
            with torch.enable_grad():
                given = Transformed(*tensors, *kind.options)
                values = _by_operators(given, step, kind.is_logarithm)
            return *gradients_in_torch(values, tensors, needed, gradient), None, None
        upstream = gradient.contiguous()
        found = [
            torch.empty_like(tensor) if is_needed else None
            for tensor, is_needed in zip(tensors, needed, strict=True)
        ]
        places = tuple([0 if tensor is None else tensor.data_ptr() for tensor in found])
        with soft.launching(kept) as (_, stream):
            work = kept.new_empty(kind.steps.work, dtype=torch.float64)
            read = _addresses(*tensors, step=step), kept.data_ptr(), upstream.data_ptr()
            kind.steps.backward(stream, *read, places, work.data_ptr())
        return *found, None, None


def _addresses(
    weights: Tensor, directions: Tensor, heights: Tensor, sharpness: Tensor, step: Tensor | None
) -> tuple[int, ...]:
    return (
        weights.data_ptr(),
        directions.data_ptr(),
        heights.data_ptr(),
        sharpness.data_ptr(),
        0 if step is None else step.data_ptr(),
    )


def _by_operators(given: Transformed, step: Tensor | None, is_logarithm: bool) -> Tensor:
    """The same by operators, which can be batched and are recorded."""
    if step is not None:
        given = given._replace(heights=increasing_in_torch(given.heights, step))
    if is_logarithm:
        given = given._replace(sharpness=given.sharpness.exp().reshape(()))
    return transform(given)
