"""Increasing levels, which are computed from free numbers; by kernels on CUDA devices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as torch_functional

from ecc_core._backends import has_kernels
from ecc_core._torch.routes import bypasses_torch, is_plain


def increasing(free: Tensor, step: Tensor) -> Tensor:
    """Return cumulative sums of the first number and the softplus of the others, times `step`."""
    by_kernels = (
        free.is_cuda
        and not step.requires_grad
        and free.dtype in (torch.float32, torch.float64)
        and free.is_contiguous()
        and bypasses_torch((free, step))
    )
    # `has_kernels` comes last, because torch.compile cannot trace it.
    if by_kernels and has_kernels("cuda"):
        found: Tensor = _Increasing.apply(free, step)  # type: ignore[no-untyped-call]
        return found
    return increasing_in_torch(free, step)


def increasing_in_torch(free: Tensor, step: Tensor) -> Tensor:
    """Return the levels of `increasing` by operators of torch."""
    return step * torch.cat([free[:1], torch_functional.softplus(free[1:])]).cumsum(0)


class _Increasing(torch.autograd.Function):
    """Increasing levels by one kernel in each pass; torch launches thirteen in all."""

    @staticmethod
    def forward(ctx: Any, free: Tensor, step: Tensor) -> Tensor:
        from ecc_core._backends.cuda import soft_parameters

        ctx.save_for_backward(free, step)
        return soft_parameters.increasing(free, step)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        free, step = ctx.saved_tensors
        if is_plain(gradient):
            from ecc_core._backends.cuda import soft_parameters

            return soft_parameters.increasing_gradients(free, step, gradient.contiguous()), None
        with torch.enable_grad():
            levels = increasing_in_torch(free, step)
        return *torch.autograd.grad(levels, free, gradient, create_graph=True), None


def free_increasing(values: Tensor, step: Tensor) -> Tensor:
    """Return the free numbers of which `values` are the increasing levels."""
    scaled = values / step
    gaps = scaled.diff()
    return torch.cat([scaled[:1], gaps + torch.log(-torch.expm1(-gaps))])
