"""Layers of curves by operators of torch, whose gradients can be batched and recorded."""

from __future__ import annotations

from torch import Tensor

from ecc_core._backends.image_cuts import Cut
from ecc_core._backends.soft import LayerOptions, LayerParameters
from ecc_core._torch.curve import soft_curve
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.transform import add_heights, unit
from ecc_core._torch.windows import cut_in_torch


def layer_by_operators(image: Tensor, parameters: LayerParameters, options: LayerOptions) -> Tensor:
    """Return the curves of `SoftCurves.layer_curves`."""
    n_spatial, connectivity, superlevel, spacing, cut = options
    levels, step, log_sharpness, directions, log_scales = parameters
    if step is not None:
        levels = increasing_in_torch(levels, step)
    images = image
    if cut is not None:
        images = cut_in_torch(image, cut.before, _after(image, cut), cut.fill, cut.side, cut.stride)
    elif directions is not None and log_scales is not None:
        images = add_heights(image, unit(directions), log_scales.exp(), spacing)
    lead = images.shape[:-n_spatial]
    flat = images.reshape(-1, *images.shape[-n_spatial:])
    sharpness = log_sharpness.exp().reshape(())
    others = None, None, connectivity, superlevel, "raster", True
    curves: Tensor = soft_curve(flat, levels, sharpness, *others)[0].reshape(*lead, len(levels))
    if cut is None:
        return curves
    channel = image.dim() - n_spatial - 1
    return curves.movedim(-1, channel + 1).flatten(channel, channel + 1)


def _after(image: Tensor, cut: Cut) -> list[int]:
    """Return by how many points the last window exceeds the image along each axis."""
    sides = image.shape[image.dim() - len(cut.positions) :]
    return [
        (count - 1) * cut.stride + cut.side - before - length
        for count, before, length in zip(cut.positions, cut.before, sides, strict=True)
    ]
