"""Soft curves of the heights of weighted points.

Points lie on a grid and have a weight for each orthant of directions. Curves are those of
:mod:`ecc_core._backends.cpu.soft.sums`; the heights of a few directions exist at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.soft.sums import Sums

__all__ = ["Projection", "curves", "gradients"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]

AT_ONCE = 1 << 18  # points times directions
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
    exact : bool
        As for :func:`ecc_core._backends.cpu.soft.sums.Sums`.
    """

    weights: Array
    positions: Floats
    directions: Floats
    orthants: Places
    levels: Floats
    sharpness: float
    workers: int | None
    exact: bool


def curves(given: Projection) -> Floats:
    """Curves (3, batch, k, n): the sums, their derivatives by the level and by the sharpness."""
    results = np.zeros((3, len(given.weights), len(given.directions), given.levels.size))

    def add(batch: int, orthant: int, chosen: Places) -> None:
        weights, positions = _present(given, batch, orthant)
        heights = given.directions[chosen] @ positions
        rows = weights[None].repeat(len(chosen), 0)
        results[:, batch, chosen] = _sums(given, heights, rows).curves()

    _share(given, add)
    return results


def gradients(given: Projection, upstream: Floats) -> tuple[Floats, Floats]:
    """Gradients of the weights and, image by image, of the directions: (batch, k, d)."""
    by_weights = np.zeros(given.weights.shape)
    by_directions = np.zeros((len(given.weights), *given.directions.shape))

    def add(batch: int, orthant: int, chosen: Places) -> None:
        weights, positions = _present(given, batch, orthant)
        own = upstream[batch, chosen]
        heights = given.directions[chosen] @ given.positions
        entered = _sums(given, heights, np.ones_like(heights)).gradients(own, steps=True)
        by_weights[batch, orthant] += entered.sum(0)
        heights = given.directions[chosen] @ positions
        rows = weights[None].repeat(len(chosen), 0)
        slopes = _sums(given, heights, rows).gradients(own)
        by_directions[batch, chosen] = -slopes @ positions.T

    _share(given, add)
    return by_weights, by_directions


def _present(given: Projection, batch: int, orthant: int) -> tuple[Floats, Floats]:
    """The weights of an image that are not zero, and their positions."""
    weights = given.weights[batch, orthant]
    places = np.flatnonzero(weights)
    return weights[places].astype(np.float64), given.positions[:, places]


def _sums(given: Projection, heights: Floats, weights: Floats) -> Sums:
    return Sums(heights, weights, given.levels, given.sharpness, 1, given.exact)


def _share(given: Projection, work: Callable[[int, int, Places], None]) -> None:
    """Call `work` on each image and orthant with directions that lie in it, a few at a time."""
    points = given.positions.shape[1]
    step = max(1, AT_ONCE // max(points, 1))
    pieces = [
        (batch, int(orthant), np.flatnonzero(given.orthants == orthant))
        for batch in range(len(given.weights))
        for orthant in np.unique(given.orthants)
    ]

    def each(queue: Iterator[tuple[int, int, Places]]) -> None:
        for batch, orthant, chosen in queue:
            for first in range(0, len(chosen), step):
                work(batch, orthant, chosen[first : first + step])

    size = len(given.weights) * points * len(given.directions)
    share(pieces, each, thread_count(given.workers, size // ALONE))
