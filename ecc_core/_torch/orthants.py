"""Weights of vertices by orthant of the direction, which decides a cell's highest vertex."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ecc_core._torch.cells import cell_values

__all__ = ["coordinates", "orthant_coefficients", "orthants_of", "positions"]


def orthant_coefficients(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Sum the signed weights of the cells of which each vertex is the highest, for each orthant.

    Weights of shape (batch, *spatial) give (batch, 2**d, *vertices). The vertices are the points
    for connectivity 1 and otherwise the corners of their cubes. Orthants are numbered as in
    :func:`orthants_of`.
    """
    ndim, sign = weights.dim() - 1, 1 if extension == "max" else -1
    placed = (sign * weights).masked_fill(weights == 0, torch.inf)
    cells = {
        extent: sign * (-1) ** sum(extent) * values.masked_fill(values.isinf(), 0)
        for extent, values in cell_values(placed, connectivity)
    }
    for axis in range(ndim):
        rims = [[0, 0] * (ndim - axis - 1) + rim for rim in ([1, 0], [0, 1])]
        owned = {}
        for extent in cells:
            # A cell that extends along the axis is assigned to its upper or lower end.
            points, edges = (cells[(*extent[:axis], e, *extent[axis + 1 :])] for e in (0, 1))
            owned[extent] = points + functional.pad(edges, rims[extent[axis]])
        cells = owned
    return torch.stack([cells[key] for key in itertools.product((0, 1), repeat=ndim)], 1)


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


def positions(shape: torch.Size, spacing: Sequence[float], like: Tensor) -> Tensor:
    """Coordinates (d, points) of a grid relative to its centre."""
    axes = [coordinates(n, step, like) for n, step in zip(shape, spacing, strict=True)]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)
