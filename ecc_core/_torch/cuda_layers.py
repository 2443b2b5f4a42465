"""Layers of curves of small images on CUDA devices, as one function of autograd.

The kernels of a pass also compute thresholds, sharpness and vectors from the parameters of the
layer, and add heights to images or cut them into windows. So a training step has few launches of
kernels and few nodes of autograd.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from torch import Tensor

from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.layer_steps import Kind, plan_layer
from ecc_core._backends.cuda.soft_heights import MOST_DIRECTIONS
from ecc_core._backends.cuda.soft_windows import Cut as Cut
from ecc_core._torch import cuda_steps
from ecc_core._torch.cuda_steps import Step
from ecc_core._torch.curve import soft_curve
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.transform import add_heights, unit
from ecc_core._torch.windows import cut_in_torch


class Parameters(NamedTuple):
    """Parameters of a layer of curves."""

    levels: Tensor
    """Thresholds (n,), or with a step the free numbers from which they are computed."""
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
    """Return the curves of images (..., spatial), or None if there are no kernels for them.

    They are (..., n), or (..., k, n) along directions, and have gradients. Those of windows are
    (..., channel * n, *positions) for images (..., channel, spatial). The caller has excluded
    compiled graphs, `torch.func` and tensor subclasses.
    """
    levels, step, _, directions, _ = parameters
    given = image, *parameters
    if not cuda_steps.are_alike(given) or cuda_steps.is_learned(step):
        return None
    count = 0 if directions is None else directions.shape[0]
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
    planned = _plan(kind, image.shape, image.data_ptr() % 16, image.get_device())
    return None if planned is None else cuda_steps.curves(given, planned)


@programs.plan
def _plan(kind: Kind, shape: tuple[int, ...], place: int, device: int) -> Step | None:
    """Return the plan of layers of this kind for images of a shape, or None without kernels."""
    if kind.directions > MOST_DIRECTIONS or 0 in (*shape, kind.levels):
        return None
    steps = plan_layer(kind, shape, place, device)
    if steps is None:
        return None
    return Step(steps, _shape(shape, kind), partial(_by_operators, kind))


def _shape(shape: tuple[int, ...], kind: Kind) -> tuple[int, ...]:
    """Return the shape of the curves of images of this shape."""
    batch = shape[: -kind.n_spatial]
    if kind.cut is not None:
        *lead, channels = batch
        return (*lead, channels * kind.levels, *kind.cut.positions)
    if kind.directions:
        return (*batch, kind.directions, kind.levels)
    return (*batch, kind.levels)


def _by_operators(
    kind: Kind,
    image: Tensor,
    levels: Tensor,
    step: Tensor | None,
    log_sharpness: Tensor,
    directions: Tensor | None,
    log_scales: Tensor | None,
) -> Tensor:
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
    """Return by how many points the last window exceeds the image along each axis."""
    sides = image.shape[image.dim() - len(cut.positions) :]
    return [
        (count - 1) * cut.stride + cut.side - before - length
        for count, before, length in zip(cut.positions, cut.before, sides, strict=True)
    ]
