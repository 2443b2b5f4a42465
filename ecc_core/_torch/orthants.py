"""Weights of vertices by orthant of the direction, which decides a cell's highest vertex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ecc_core._backends import soft_curves
from ecc_core._torch.operators import bypasses_torch, is_plain


def orthant_coefficients(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Sum the signed weights of the cells of which each vertex is the highest, for each orthant.

    Weights of shape (batch, *spatial) give (batch, 2**d, *grid). The vertices are the points
    for connectivity 1 and otherwise the corners of their cubes. Orthants are numbered as in
    :func:`orthants_of`.
    """
    if bypasses_torch((weights,)):
        found: Tensor = _Orthants.apply(weights, connectivity, extension)  # type: ignore[no-untyped-call]
        return found
    return _in_torch(weights, connectivity, extension)


def _in_torch(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """The same in operators of torch, for compiled graphs, `torch.func` and exported models."""
    ndim, sign, cubes = weights.dim() - 1, 1 if extension == "max" else -1, connectivity != 1
    weights = weights.masked_fill(weights.isinf(), torch.nan)  # which no sum hides
    placed = (weights if sign == 1 else -weights).masked_fill(weights == 0, torch.inf)
    cells = functional.pad(placed, [int(cubes), 1] * ndim, value=torch.inf)
    # By the last axis first: of equal points the first in raster order gets the gradient.
    for axis in range(-1, -ndim - 1, -1):
        first, second = (cells.narrow(axis, i, cells.shape[axis] - 1) for i in (0, 1))
        if cubes:
            pair = torch.where(second < first, second, first), second
        else:
            pair = first, torch.where(second > first, second, first)
        cells = torch.stack(pair, 1)  # those of extent 0 and 1 along the axis
    cells = cells.masked_fill(cells.isinf(), 0)
    for axis in range(1, ndim + 1):
        # A cell that extends along the axis is assigned to its upper or lower end.
        points, edges = cells.unbind(axis)
        negate = sign == -1 and axis == 1
        ends = edges.roll(1, axis - ndim - 1), edges
        cells = torch.stack([e - points if negate else points - e for e in ends], axis)
    return cells.flatten(1, ndim)


class _Orthants(torch.autograd.Function):
    """The same by kernels, which take a fifth of the time of operators of torch or less."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, *options: Any) -> Tensor:
        weights = weights.contiguous()
        ctx.save_for_backward(weights)
        ctx.options = options
        found: Tensor = soft_curves(weights.device.type).by_orthant(weights, *options)
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        if is_plain(gradient):
            gradients = soft_curves(weights.device.type).gradients_by_orthant
            return gradients(weights, gradient, *ctx.options), None, None
        with torch.enable_grad():
            sums = _in_torch(weights, *ctx.options)
        return *torch.autograd.grad(sums, weights, gradient, create_graph=True), None, None


def orthants_of(directions: Tensor) -> Tensor:
    """Number of the orthant of each direction: the bits tell which components are negative.

    The first axis has the highest bit.
    """
    ndim = directions.shape[1]
    bits = [(directions[:, axis] < 0).to(torch.int32) << (ndim - axis - 1) for axis in range(ndim)]
    return torch.stack(bits).sum(0, dtype=torch.int32)


def coordinates(count: int, step: float, like: Tensor) -> Tensor:
    """Coordinates of `count` points, `step` apart, relative to their centre."""
    places = torch.arange(count, dtype=like.dtype, device=like.device)
    return (places - (count - 1) / 2) * step


def scaled(vectors: Tensor, spacing: Sequence[float]) -> Tensor:
    """Multiply the components (k, d) of vectors by the spacing, without copies to a device."""
    if all(step == 1 for step in spacing):
        return vectors
    return torch.stack([vectors[:, axis] * step for axis, step in enumerate(spacing)], 1)


def positions(shape: Sequence[int], like: Tensor) -> Tensor:
    """Indices (d, points) of a grid relative to its centre."""
    axes = [coordinates(n, 1, like) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
