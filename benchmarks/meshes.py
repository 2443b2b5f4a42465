"""Triangle meshes of any size, and batches of shapes for soft transforms."""

from typing import NamedTuple

import numpy as np
import torch


class Mesh(NamedTuple):
    points: np.ndarray
    edges: np.ndarray
    triangles: np.ndarray


def torus(rows: int, columns: int) -> Mesh:
    """Return a bumpy torus of 2 * rows * columns triangles."""
    long, short = (np.arange(n) * 2 * np.pi / n for n in (rows, columns))
    a, b = np.meshgrid(long, short, indexing="ij")
    radius = 1 + 0.1 * np.sin(5 * a) * np.cos(7 * b)
    far = 3 + radius * np.cos(b)
    points = np.stack([far * np.cos(a), far * np.sin(a), radius * np.sin(b)], -1).reshape(-1, 3)
    i, j = np.indices((rows, columns))

    def corner(down: int, right: int) -> np.ndarray:
        return ((i + down) % rows * columns + (j + right) % columns).ravel()

    here = corner(0, 0)
    below = corner(1, 0)
    right = corner(0, 1)
    across = corner(1, 1)
    edges = [(here, below), (here, right), (here, across)]
    triangles = [(here, below, across), (here, across, right)]
    edge_rows, triangle_rows = (np.hstack(rows).T.copy() for rows in (edges, triangles))
    return Mesh(points, edge_rows, triangle_rows)


class Shapes(NamedTuple):
    points: torch.Tensor
    simplices: list[torch.Tensor]
    batch: torch.Tensor
    count: int


def shapes_of(name: str) -> Shapes:
    """Return 64 graphs of the size of DECT's letters, or 8 meshes of 4000 triangles."""
    if name == "letters":
        count = 64
        path = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])
        points = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
        rows = [path]
    else:
        count = 8
        mesh = torus(50, 40)
        points = torch.tensor(mesh.points / 4.2, dtype=torch.float32)
        rows = [torch.tensor(part) for part in mesh[1:]]
    size = len(points)
    shifts = size * torch.arange(count)[:, None, None]
    simplices = [(part + shifts).flatten(0, 1) for part in rows]
    batch = torch.arange(count).repeat_interleave(size)
    return Shapes(points.repeat(count, 1), simplices, batch, count)


def direct_sum(
    points: torch.Tensor,
    simplices: list[torch.Tensor],
    directions: torch.Tensor,
    heights: torch.Tensor,
    batch: torch.Tensor,
    shapes: int,
    sharpness: float,
) -> torch.Tensor:
    """Return the transform by DECT's method: a step for each simplex, direction and height."""
    tops = [points @ directions.T]
    tops += [tops[0][rows].amax(dim=1) for rows in simplices]
    owners = [batch, *(batch[rows[:, 0]] for rows in simplices)]
    found = points.new_zeros(len(heights), shapes, len(directions))
    for dimension, (top, owner) in enumerate(zip(tops, owners, strict=True)):
        steps = torch.sigmoid(sharpness * (heights[:, None, None] - top))
        found = found.index_add(1, owner, (-1) ** dimension * steps)
    return found.permute(1, 2, 0)
