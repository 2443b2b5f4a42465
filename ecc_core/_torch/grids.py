"""Points of a grid and their cells, in operators of torch.

These are the positions of points, and the vertex of each cell that is highest along a direction,
which depends on the orthant of the direction only.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def orthants_in_torch(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Sum the signed weights of the cells of which each vertex is the highest, for each orthant.

    Shapes are those of :func:`ecc_core._torch.transform.orthant_coefficients`, which has kernels
    for it. Compiled graphs, `torch.func`, exported models and devices without kernels use this one.
    """
    ndim = weights.dim() - 1
    sign = 1 if extension == "max" else -1
    cubes = connectivity != 1
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
        differences = [points - end for end in ends]
        if negate:
            differences = [end - points for end in ends]
        cells = torch.stack(differences, axis)
    return cells.flatten(1, ndim)


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


def positions(shape: Sequence[int], like: Tensor) -> Tensor:
    """Indices (d, points) of a grid relative to its centre."""
    axes = [coordinates(n, 1, like) for n in shape]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
