"""Soft curves and transforms in plain PyTorch, from the definition, to test the kernels.

They take memory for cells times thresholds, and autograd computes their gradients.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ecc_core._torch.cells import Ties, cell_values, filtration

__all__ = ["soft_curve", "soft_transform"]


def soft_curve(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    *,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: Ties,
) -> Tensor:
    """Return curves (batch, n) of images (batch, *spatial): sums of the sigmoids of their cells."""
    points = filtration(image, direction_terms, mask, superlevel)
    levels = -thresholds if superlevel else thresholds
    curve = points.new_zeros(image.shape[0], levels.numel())
    if points.numel() == 0:
        return curve
    for extent, values in cell_values(points, connectivity, ties):
        entered = _sigmoid(values.flatten(1)[:, :, None], levels, sharpness).sum(1)
        curve = curve + (-1) ** sum(extent) * entered
    return curve


def _sigmoid(values: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
    """Return sigmoid(sharpness * (level - value)); infinite values are steps without a gradient."""
    infinite = values.isinf()
    soft = torch.sigmoid(sharpness * (levels - values.masked_fill(infinite, 0)))
    return torch.where(infinite, (values < 0).to(soft.dtype), soft)


def soft_transform(
    weights: Tensor,
    directions: Tensor,
    heights: Tensor,
    sharpness: Tensor,
    *,
    connectivity: int,
    spacing: tuple[float, ...],
    extension: str,
) -> Tensor:
    """Return transforms (batch, k, n) of weights (batch, *spatial) along unit vectors (k, d)."""
    values = weights.new_zeros(weights.shape[0], directions.shape[0], heights.numel())
    if weights.numel() == 0:
        return values
    sign = 1 if extension == "max" else -1
    steps = directions.new_tensor(spacing)
    weighed = _owners(sign * weights, connectivity)
    for extent, cells in weighed:
        reach = 0.5 * directions.abs() @ (steps * directions.new_tensor(extent))
        tops = directions @ _centres(cells.shape[1:], steps) + reach[:, None]
        entered = torch.sigmoid(sharpness * (heights - tops[:, :, None]))
        part = torch.einsum("bc,kcn->bkn", cells.flatten(1), entered)
        values = values + sign * (-1) ** sum(extent) * part
    return values


def _owners(weights: Tensor, connectivity: int) -> list[tuple[tuple[int, ...], Tensor]]:
    """Return the weight of each cell, zero where it is no part of the object."""
    absent = weights == 0
    placed = weights.masked_fill(absent, torch.inf)
    return [
        (extent, cells.masked_fill(cells.isinf(), 0))
        for extent, cells in cell_values(placed, connectivity)
    ]


def _centres(shape: torch.Size, steps: Tensor) -> Tensor:
    """Return coordinates (d, cells) of the centres of cells, counted from the image's centre."""
    axes = [
        (torch.arange(n, dtype=steps.dtype, device=steps.device) - (n - 1) / 2) * step
        for n, step in zip(shape, steps, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
