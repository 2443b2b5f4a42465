"""Layers on CUDA devices as one function of autograd, from parameters to curves.

In a training step of small images Python takes longer than the kernels, most of all in the backward
pass: autograd runs it in a thread of its own, for which the caches of the processor are cold. So
everything that depends on the shape only is computed once and kept in a `Step`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.steps import Steps
from ecc_core._torch.addresses import address_of, addresses_of
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain


class Step(NamedTuple):
    """The plan of a layer for tensors of one shape."""

    steps: Steps
    """The launches of kernels in each pass."""
    shape: tuple[int, ...]
    """The shape of the curves."""
    by_operators: Callable[..., Tensor]
    """Computes the curves by operators of torch, whose gradients can be batched and recorded."""


def are_alike(tensors: Sequence[Tensor | None]) -> bool:
    """Whether these are contiguous floats of 32 bits on the device of the first, not negated."""
    first = tensors[0]
    assert first is not None
    place = first.get_device()
    for tensor in tensors:
        if tensor is None:
            continue
        if tensor.dtype is not torch.float32 or tensor.get_device() != place:
            return False
        if tensor.is_neg() or not tensor.is_contiguous():
            return False
    return True


def curves(tensors: Sequence[Tensor | None], step: Step) -> Tensor:
    """Compute the curves of tensors that are alike, with gradients.

    The caller has excluded compiled graphs, `torch.func` and tensor subclasses.
    """
    found: Tensor = _Curves.apply(*tensors, step)  # type: ignore[no-untyped-call]
    return found


def is_learned(step: Tensor | None) -> bool:
    """Whether the step of increasing levels has a gradient, of which there are no kernels."""
    return step is not None and step.requires_grad


class _Curves(torch.autograd.Function):
    """The function of `curves`, by kernels."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        *tensors, step = args
        steps: Steps = step.steps
        image: Tensor = tensors[0]
        scratch = None
        with soft.launching(image) as (_, stream):
            found = image.new_empty(step.shape)
            kept = image.new_empty(steps.kept)
            if steps.scratch:
                scratch = image.new_empty(steps.scratch)
            written = found.data_ptr(), kept.data_ptr(), address_of(scratch)
            steps.forward(stream, addresses_of(tensors), *written)
        ctx.save_for_backward(*tensors, kept)
        ctx.step = step
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *tensors, kept = ctx.saved_tensors
        wanted = ctx.needs_input_grad[: len(tensors)]
        if not is_plain(gradient):
            with torch.enable_grad():
                values = ctx.step.by_operators(*tensors)
            return *gradients_in_torch(values, tensors, wanted, gradient), None
        steps: Steps = ctx.step.steps
        upstream = gradient.contiguous()
        found = [
            torch.empty_like(tensor) if is_wanted else None
            for tensor, is_wanted in zip(tensors, wanted, strict=True)
        ]
        with soft.launching(kept) as (_, stream):
            work = kept.new_empty(steps.work)
            read = addresses_of(tensors), kept.data_ptr(), upstream.data_ptr()
            steps.backward(stream, *read, wanted, addresses_of(found), work.data_ptr())
        return *found, None
