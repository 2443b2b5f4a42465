"""The cells of a batch of images, and what the points around each cell give it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Ties", "cell_values", "filtration", "split_coefficients", "spread"]

Ties = Literal["raster", "split"]

POOLS = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)


def filtration(image: Tensor, tilt: Tensor | None, mask: Tensor | None, superlevel: bool) -> Tensor:
    """The image (batch, *spatial) as a sublevel filtration: tilted, negated for superlevel sets.

    `tilt` holds the terms of each spatial axis one after another. Points outside of the mask never
    enter: they are infinite.
    """
    if tilt is not None:
        image = image + spread(tilt, image.shape[1:])
    if superlevel:
        image = -image
    return image if mask is None else image.masked_fill(~mask, torch.inf)


def spread(tilt: Tensor, shape: torch.Size) -> Tensor:
    """The sum over the axes of their terms at each point."""
    total: Tensor | None = None
    for axis, terms in reversed(list(enumerate(torch.split(tilt, list(shape))))):
        term = terms.reshape((-1,) + (1,) * (len(shape) - axis - 1))
        total = term if total is None else term + total
    assert total is not None
    return total


def cell_values(
    values: Tensor, construction: str, ties: Ties = "raster"
) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Yield for each kind of cell its extent, 0 or 1 along each axis, and the value of each cell.

    That is the largest of the cell's vertices (V) or the smallest of the cubes that contain it (T),
    of shape (batch, *cells). Its gradient goes to the first such point in raster order, or is split
    among all of them.
    """
    sign = 1.0 if construction == "V" else -1.0
    for extent, grid, size in _kinds(sign * values, construction):
        counts = _counts(grid, size)
        if 0 in counts:  # an axis of one point has no cells along it
            yield extent, grid.new_zeros((grid.shape[0], *counts))
        elif ties == "raster":
            pool = POOLS[len(size) - 1]
            yield extent, sign * pool(grid.unsqueeze(1), size, 1).squeeze(1)
        else:
            yield extent, sign * torch.stack(_points_of_cells(grid, size)).amax(0)


def split_coefficients(values: Tensor, construction: str) -> Tensor:
    """Coefficients of points when equal points of a cell share it evenly: the values' dtype."""
    sign = 1.0 if construction == "V" else -1.0
    total = torch.zeros_like(values)
    for extent, grid, size in _kinds(sign * values, construction):
        views = _points_of_cells(grid, size)
        owners = torch.stack(views)
        owners = (owners == owners.amax(0)).to(values.dtype)
        owners *= (-1) ** sum(extent) / owners.sum(0)
        shares = torch.zeros_like(grid)
        for own, share in zip(owners, _points_of_cells(shares, size), strict=True):
            share += own
        rim = 1 if construction == "T" else 0
        inner = tuple(
            slice(rim * (1 - e), rim * (1 - e) + n)
            for e, n in zip(extent, values.shape[1:], strict=True)
        )
        total += shares[(slice(None), *inner)]
    return total


def _kinds(grid: Tensor, construction: str) -> Iterator[tuple[tuple[int, ...], Tensor, list[int]]]:
    """For each kind of cell its extent, the points, and how many are around a cell on each axis.

    In the T-construction the image lies in a rim of points that no cell prefers.
    """
    for extent in itertools.product((0, 1), repeat=grid.dim() - 1):
        if construction == "V":
            yield extent, grid, [1 + e for e in extent]
        else:
            rim = [1 - e for e in extent[::-1] for _ in range(2)]
            yield extent, functional.pad(grid, rim, value=-torch.inf), [2 - e for e in extent]


def _counts(grid: Tensor, size: list[int]) -> list[int]:
    """How many cells there are along each axis that have so many points around them."""
    return [max(n - s + 1, 0) for n, s in zip(grid.shape[1:], size, strict=True)]


def _points_of_cells(grid: Tensor, size: list[int]) -> list[Tensor]:
    """For each place in a cell the view of the points that have it."""
    counts = _counts(grid, size)
    return [
        grid[(slice(None), *(slice(o, o + n) for o, n in zip(start, counts, strict=True)))]
        for start in itertools.product(*map(range, size))
    ]
