"""Soft curves of the heights of weighted points, a direction at a time.

Points lie on a grid and have a weight for each orthant of directions. Curves are those of
:mod:`ecc_core._backends.cpu.soft.sums`; the heights of a direction exist while it is worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.soft.kernels import MOMENTS, deposit, evaluate, gather, tabulate
from ecc_core._backends.cpu.soft.sums import Windows, windows

__all__ = ["Projection", "curves", "gradients"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

ALONE = 1 << 15  # points times directions that do not pay for waking a thread


class Projection(NamedTuple):
    """Weights (batch, orthants, points), positions (d, points), and what they are projected on.

    Attributes
    ----------
    directions : (k, d) array
    orthants : (k,) array
        Of each direction.
    levels : (n,) array
    sharpness : float
    workers : int or None
    """

    weights: Array
    positions: Floats
    directions: Floats
    orthants: NDArray[np.intp]
    levels: Floats
    sharpness: float
    workers: int | None = None


@kernel(error_model="numpy")
def _project(positions: Any, direction: Any, heights: Any) -> None:
    for i in range(heights.size):
        height = direction[0] * positions[0, i]
        for axis in range(1, direction.size):
            height += direction[axis] * positions[axis, i]
        heights[i] = height


def curves(given: Projection) -> Floats:
    """Curves (3, batch, k, n): the sums, their derivatives by the level and by the sharpness."""
    results = np.zeros((3, len(given.weights), len(given.directions), given.levels.size))
    grid = windows(given.levels, given.sharpness)

    def add(batch: int, orthant: int, chosen: NDArray[np.intp]) -> None:
        weights, positions = _present(given, batch, orthant)
        heights = np.empty(weights.size)
        moments = np.zeros((1, grid.slots, MOMENTS))
        out = np.zeros((3, 1, given.levels.size))
        for k in chosen:
            _project(positions, given.directions[k], heights)
            moments[:] = out[:] = 0
            deposit(heights, weights, *grid, moments[0])
            evaluate(moments, given.levels, given.sharpness, *grid, out)
            results[:, batch, k] = out[:, 0]

    _share(given, add)
    return results


def gradients(given: Projection, upstream: Floats) -> tuple[Array, Floats]:
    """Gradients of the weights and, image by image, of the directions: (batch, k, d)."""
    by_weights = np.zeros_like(given.weights)
    by_directions = np.zeros((len(given.weights), *given.directions.shape))
    grid = windows(given.levels, given.sharpness)

    def add(batch: int, orthant: int, chosen: NDArray[np.intp]) -> None:
        weights, positions = _present(given, batch, orthant)
        ones = np.ones(given.positions.shape[1])
        heights, found = np.empty_like(ones), np.empty_like(ones)
        total = np.zeros_like(ones)
        for k in chosen:
            row, direction = upstream[batch, k : k + 1], given.directions[k]
            _project(given.positions, direction, heights)
            gather(heights, ones, *grid, _table(given, grid, row, True), True, found)
            total += found
            own, slopes = heights[: weights.size], found[: weights.size]
            _project(positions, direction, own)
            gather(own, weights, *grid, _table(given, grid, row, False), False, slopes)
            by_directions[batch, k] = -positions @ slopes
        by_weights[batch, orthant] = total

    _share(given, add)
    return by_weights, by_directions


def _present(given: Projection, batch: int, orthant: int) -> tuple[Floats, Floats]:
    """The weights of an image that are not zero, and their positions."""
    weights = given.weights[batch, orthant]
    places = np.flatnonzero(weights)
    return weights[places].astype(np.float64), given.positions[:, places]


def _table(given: Projection, grid: Windows, row: Floats, steps: bool) -> Floats:
    table = np.zeros((1, grid.slots, 2))
    tabulate(row, given.levels, given.sharpness, steps, *grid, table)
    own: Floats = table[0]
    return own


def _share(given: Projection, work: Callable[[int, int, NDArray[np.intp]], None]) -> None:
    """Call `work` on each image and orthant with the directions that lie in it."""
    pieces = [
        (batch, int(orthant), np.flatnonzero(given.orthants == orthant))
        for batch in range(len(given.weights))
        for orthant in np.unique(given.orthants)
    ]

    def each(queue: Iterator[tuple[int, int, NDArray[np.intp]]]) -> None:
        for piece in queue:
            work(*piece)

    size = len(given.weights) * given.positions.shape[1] * len(given.directions)
    share(pieces, each, thread_count(given.workers, size // ALONE))
