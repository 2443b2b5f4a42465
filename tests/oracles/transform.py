"""The truth for transforms: every cell of a complex at its height, in the plainest NumPy.

It is written from the definition and independently of the kernels, which are tested against it. It
takes NumPy arrays and checks nothing.

Cells lie on a grid of doubled coordinates: an even coordinate is a vertex along its axis, an odd
one spans from the vertex before it to the one behind. In the V-construction the points of the image
are the vertices; in the T-construction they are the cubes, all of whose coordinates are odd.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oracles.euler import cell_ranks

__all__ = ["cells", "euler_transform", "vertex_heights"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


def cells(weights: Array, connectivity: int) -> tuple[NDArray[np.int64], Array]:
    """Return the doubled coordinates (cells, d) and the weights of the cells of a complex.

    Points of weight 0 are no part of it. A cell has the largest weight of its vertices (V), or the
    smallest of the cubes that contain it (T).
    """
    present = weights != 0
    levels, ranks = np.unique(weights[present], return_inverse=True)
    key = np.full(weights.shape, levels.size)
    key[present] = ranks
    coordinates = []
    values = []
    for extent, found in cell_ranks(key, connectivity != 1, levels.size):
        enters = found < levels.size
        coordinates.append(2 * np.argwhere(enters) + np.array(extent))
        values.append(levels[found[enters]])
    return np.concatenate(coordinates), np.concatenate(values)


def vertex_heights(
    shape: tuple[int, ...], direction: Array, spacing: Array, connectivity: int
) -> Floats:
    """Return the heights of all vertices of the grid, (n, ...) or for T (n + 1, ...)."""
    height = np.zeros(())
    for n, component, step in zip(shape, direction, spacing, strict=True):
        # The centre of the image is (n - 1) / 2, and a corner lies 1/2 before its cube.
        index = np.arange(n) if connectivity == 1 else np.arange(n + 1) - 0.5
        height = np.add.outer(height, component * ((index - (n - 1) / 2) * step))
    return height


def euler_transform(
    weights: Array, directions: Floats, heights: Floats, connectivity: int, spacing: Array
) -> Array:
    """Return the transform (directions, heights) of weights, or of a mask as weights 0 and 1."""
    coordinates, values = cells(weights, connectivity)
    signs = (-1) ** (coordinates % 2).sum(axis=1)
    result = np.zeros((len(directions), len(heights)), dtype=values.dtype)
    for row, direction in zip(result, directions, strict=True):
        at = vertex_heights(weights.shape, direction, spacing, connectivity)
        corners = [
            at[tuple(((coordinates + side) // 2).T)]
            for side in itertools.product((0, 1), repeat=weights.ndim)
        ]
        cell_heights = np.max(corners, axis=0)
        for j, height in enumerate(heights):
            below = cell_heights <= height
            row[j] = (signs[below] * values[below]).sum()
    return result
