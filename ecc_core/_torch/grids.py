"""Positions of the points of a grid and coefficients by orthant, in operators of torch.

The highest vertex of a cell along a direction depends only on the orthant of the direction.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def orthants_in_torch(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Compute :func:`ecc_core._torch.transform.orthant_coefficients` by operators of torch.

    Compiled graphs, `torch.func`, exported models and devices without kernels use it.
    """
    ndim = weights.dim() - 1
    sign = 1 if extension == "max" else -1
    cubes = connectivity != 1
    # Sums with NaN are NaN, whereas infinite values are filled and replaced below.
    weights = weights.masked_fill(weights.isinf(), torch.nan)
    placed = (weights if sign == 1 else -weights).masked_fill(weights == 0, torch.inf)
    cells = functional.pad(placed, [int(cubes), 1] * ndim, value=torch.inf)
    # The last axis comes first, so that of equal points the first in raster order has the gradient.
    for axis in range(-1, -ndim - 1, -1):
        first, second = (cells.narrow(axis, i, cells.shape[axis] - 1) for i in (0, 1))
        if cubes:
            pair = torch.where(second < first, second, first), second
        else:
            pair = first, torch.where(second > first, second, first)
        cells = torch.stack(pair, 1)  # The new axis is the extent, 0 or 1, along this axis.
    cells = cells.masked_fill(cells.isinf(), 0)
    for axis in range(1, ndim + 1):
        # A cell that extends along the axis is assigned to its upper or lower end.
        points, edges = cells.unbind(axis)
        negate = sign == -1 and axis == 1
        ends = edges.roll(1, axis - ndim - 1), edges
        differences = [points - end for end in ends]
        if negate:
            differences = [end - points for end in ends]
        cells = torch.stack(differences, axis)
    return cells.flatten(1, ndim)


def orthants_of(directions: Tensor) -> Tensor:
    """Return the number of the orthant of each direction.

    Its bits are set where components are negative; that of the first axis is the highest.
    """
    ndim = directions.shape[1]
    bits = [(directions[:, axis] < 0).to(torch.int32) << (ndim - axis - 1) for axis in range(ndim)]
    return torch.stack(bits).sum(0, dtype=torch.int32)


def coordinates(count: int, step: float, like: Tensor) -> Tensor:
    """Return the coordinates of `count` points, `step` apart, relative to their centre."""
    places = torch.arange(count, dtype=like.dtype, device=like.device)
    return (places - (count - 1) / 2) * step


def positions(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return the indices (d, points) of the points of a grid relative to its centre."""
    axes = [coordinates(n, 1, like) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
