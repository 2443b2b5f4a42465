"""A loss of curves of small images on CUDA devices, as one function of autograd.

The forward pass computes the gradient of the images, too. The backward pass multiplies it by the
gradient of the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.loss_steps import Kind as Kind
from ecc_core._backends.cuda.loss_steps import LossSteps, plan_loss
from ecc_core._torch.addresses import address_of, addresses_of
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain

TARGETS = (torch.float32, torch.bool)


def curve_loss(
    images: Tensor,
    targets: Tensor,
    mask: Tensor | None,
    levels: Tensor,
    kind: Kind,
    usual: Callable[[Tensor], Tensor],
) -> Tensor | None:
    """Return the loss of images (..., spatial), or None if there are no kernels for them.

    It is a number if `kind` reduces it, otherwise there is one (...) for each image. `usual` is a
    function that computes the same loss of images by operators of torch, for gradients that are
    recorded. The caller has excluded compiled graphs, `torch.func` and tensor subclasses.
    """
    place = images.get_device()
    if targets.dtype not in TARGETS:
        return None
    for tensor in (images, levels):
        if tensor.dtype is not torch.float32 or tensor.get_device() != place:
            return None
    given = images, targets, levels
    if any(t.is_neg() or not t.is_contiguous() or not t.numel() for t in given):
        return None
    steps = plan_loss(kind, images.shape, targets.dtype, place)
    if steps is None:
        return None
    mask = None if mask is None else mask.contiguous()
    found: Tensor = _Loss.apply(images, targets, mask, levels, kind, steps, usual)  # type: ignore[no-untyped-call]
    return found


class _Loss(torch.autograd.Function):
    """The function of `curve_loss`, by kernels."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Tensor,
        targets: Tensor,
        mask: Tensor | None,
        levels: Tensor,
        kind: Kind,
        steps: LossSteps,
        usual: Callable[[Tensor], Tensor],
    ) -> Tensor:
        shape = () if kind.is_reduced else images.shape[: -kind.n_spatial]
        by_images = torch.empty_like(images) if ctx.needs_input_grad[0] else None
        with soft.launching(images) as (_, stream):
            losses: Tensor = images.new_empty(shape)
            work = images.new_empty(steps.work)
            addresses = addresses_of((images, targets, mask, levels))
            written = losses.data_ptr(), address_of(by_images)
            steps.forward(stream, addresses, *written, work.data_ptr())
        ctx.save_for_backward(images, by_images)
        ctx.usual = usual
        return losses

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        images, by_images = ctx.saved_tensors
        rest = [None] * 6
        if not is_plain(gradient):
            with torch.enable_grad():
                values = ctx.usual(images)
            return *gradients_in_torch(values, [images], [True], gradient), *rest
        if gradient.dim():  # A loss of each image is a factor of all its points.
            gradient = gradient.reshape(*gradient.shape, *[1] * (images.dim() - gradient.dim()))
        return by_images * gradient, *rest
