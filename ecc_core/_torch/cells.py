"""The cells of a batch of images, and what the points around each cell give it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["Construction", "Ties", "cell_values", "filtration"]

Construction = Literal["V", "T"]
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
    values: Tensor, construction: Construction, ties: Ties = "raster"
) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Yield for each kind of cell its extent, 0 or 1 along each axis, and the value of each cell.

    That is the largest of the cell's vertices (V) or the smallest of the cubes that contain it (T),
    of shape (batch, *cells). Its gradient goes to the first such point in raster order, or is split
    among all of them.
    """
    ndim = values.dim() - 1
    sign = 1.0 if construction == "V" else -1.0
    for extent in itertools.product((0, 1), repeat=ndim):
        grid = sign * values
        size = [1 + e for e in extent]
        if construction == "T":
            grid = functional.pad(
                grid, [1 - e for e in extent[::-1] for _ in "ab"], value=-torch.inf
            )
            size = [2 - e for e in extent]
        yield extent, sign * (_first if ties == "raster" else _split)(grid, size)


def _first(grid: Tensor, size: list[int]) -> Tensor:
    pooled: Tensor = POOLS[len(size) - 1](grid.unsqueeze(1), size, 1).squeeze(1)
    return pooled


def _split(grid: Tensor, size: list[int]) -> Tensor:
    counts = [n - s + 1 for n, s in zip(grid.shape[1:], size, strict=True)]
    views = []
    for start in itertools.product(*map(range, size)):
        box = tuple(slice(o, o + n) for o, n in zip(start, counts, strict=True))
        views.append(grid[(slice(None), *box)])
    return torch.stack(views).amax(0)
