"""Layers of curves of small images on CUDA devices, as one function of autograd.

Thresholds, sharpness and vectors follow from parameters, and images get heights or are cut into
windows, by kernels of the same pass, so that a training step has few launches and few nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ecc_core._backends.cuda import soft
from ecc_core._backends.cuda.layer_steps import Kind, plan_layer
from ecc_core._backends.cuda.soft_heights import MOST_DIRECTIONS
from ecc_core._backends.cuda.soft_windows import Cut as Cut
from ecc_core._torch.curve import soft_curve
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.operators import gradients_in_torch, is_plain
from ecc_core._torch.transform import add_heights, unit
from ecc_core._torch.windows import cut_in_torch

NUMBER_OF_OPTIONS = 3  # of the function of autograd, besides tensors


class Parameters(NamedTuple):
    """Parameters of a layer of curves."""

    levels: Tensor
    """Thresholds (n,), or with a step the free numbers that increasing thresholds follow from."""
    step: Tensor | None
    log_sharpness: Tensor
    directions: Tensor | None
    """(k, d), of any length."""
    log_scales: Tensor | None
    """(k,), of the directions."""


def layer_curves(
    image: Tensor,
    parameters: Parameters,
    *,
    n_spatial: int,
    connectivity: int,
    superlevel: bool,
    spacing: tuple[float, ...],
    cut: Cut | None = None,
) -> Tensor | None:
    """Curves of images (..., spatial), with gradients, or None where there are no kernels for them.

    They are (..., n), or (..., k, n) along directions. Those of windows are (..., channel * n,
    *positions) for images (..., channel, spatial). Compiled graphs, `torch.func` and subclasses do
    not come here.
    """
    levels, step, _, directions, _ = parameters
    given = image, *parameters
    if not _are_alike(given):
        return None
    count = 0 if directions is None else directions.shape[0]
    if count > MOST_DIRECTIONS:
        return None
    kind = Kind(
        n_spatial=n_spatial,
        connectivity=connectivity,
        superlevel=superlevel,
        levels=levels.shape[0],
        is_increasing=step is not None,
        directions=count,
        spacing=spacing if count else (1.0,),
        cut=cut,
    )
    place = image.data_ptr() % 16
    steps = plan_layer(kind, image.shape, place, image.get_device())
    if steps is None:
        return None
    found: Tensor = _Layer.apply(*given, kind, steps, _shape(image, kind))  # type: ignore[no-untyped-call]
    return found


def _are_alike(given: tuple[Tensor | None, ...]) -> bool:
    """Whether these are contiguous floats of 32 bits on one device, not empty nor negated."""
    image = given[0]
    assert image is not None
    place = image.get_device()
    for tensor in given:
        if tensor is None:
            continue
        if tensor.dtype is not torch.float32 or tensor.get_device() != place:
            return False
        if tensor.is_neg() or not tensor.is_contiguous() or not tensor.numel():
            return False
    return True


def _shape(image: Tensor, kind: Kind) -> tuple[int, ...]:
    """The shape of curves."""
    batch = image.shape[: -kind.n_spatial]
    if kind.cut is not None:
        *lead, channels = batch
        return (*lead, channels * kind.levels, *kind.cut.positions)
    if kind.directions:
        return (*batch, kind.directions, kind.levels)
    return (*batch, kind.levels)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        *tensors, kind, steps, shape = args
        image = tensors[0]
        with soft.launching(image) as (_, stream):
            curves: Tensor = image.new_empty(shape)
            kept = image.new_empty(steps.kept)
            steps.forward(stream, _addresses(tensors), curves.data_ptr(), kept.data_ptr())
        ctx.save_for_backward(*tensors, kept)
        ctx.kind = kind
        ctx.steps = steps
        return curves

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *tensors, kept = ctx.saved_tensors
        needed = ctx.needs_input_grad[: len(tensors)]
        kind: Kind = ctx.kind
        if not is_plain(gradient):
            with torch.enable_grad():
                values = _by_operators(tensors[0], Parameters(*tensors[1:]), kind)
            found = gradients_in_torch(values, tensors, needed, gradient)
            return *found, *[None] * NUMBER_OF_OPTIONS
        gradient = gradient.contiguous()
        written = [
            torch.empty_like(tensor) if is_needed else None
            for tensor, is_needed in zip(tensors, needed, strict=True)
        ]
        with soft.launching(kept) as (_, stream):
            work = kept.new_empty(ctx.steps.work)
            read = _addresses(tensors), kept.data_ptr(), gradient.data_ptr()
            ctx.steps.backward(stream, *read, _addresses(written), work.data_ptr())
        return *written, *[None] * NUMBER_OF_OPTIONS


def _addresses(tensors: list[Tensor | None]) -> tuple[int, ...]:
    return tuple([0 if tensor is None else tensor.data_ptr() for tensor in tensors])


def _by_operators(image: Tensor, parameters: Parameters, kind: Kind) -> Tensor:
    """The same by operators, which can be batched and are recorded."""
    levels, step, log_sharpness, directions, log_scales = parameters
    if step is not None:
        levels = increasing_in_torch(levels, step)
    cut = kind.cut
    images = image
    if cut is not None:
        images = cut_in_torch(image, cut.before, _after(image, cut), cut.fill, cut.side, cut.stride)
    elif directions is not None and log_scales is not None:
        images = add_heights(image, unit(directions), log_scales.exp(), kind.spacing)
    lead = images.shape[: -kind.n_spatial]
    flat = images.reshape(-1, *images.shape[-kind.n_spatial :])
    sharpness = log_sharpness.exp().reshape(())
    options = None, None, kind.connectivity, kind.superlevel, "raster", True
    curves: Tensor = soft_curve(flat, levels, sharpness, *options)[0].reshape(*lead, kind.levels)
    if cut is None:
        return curves
    channel = image.dim() - kind.n_spatial - 1
    return curves.movedim(-1, channel + 1).flatten(channel, channel + 1)


def _after(image: Tensor, cut: Cut) -> list[int]:
    """How far the last window ends behind the image, along each axis."""
    sides = image.shape[image.dim() - len(cut.positions) :]
    return [
        (count - 1) * cut.stride + cut.side - before - length
        for count, before, length in zip(cut.positions, cut.before, sides, strict=True)
    ]
