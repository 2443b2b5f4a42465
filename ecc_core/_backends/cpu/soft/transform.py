"""Soft curves of the heights of weighted points: pieces of work, threads and sums of the pieces.

Points lie on a grid and have a weight for each orthant of directions. Sums are taken in an order
that depends on sizes only, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.soft import projection
from ecc_core._backends.cpu.soft.points import DOUBLE_REACH

Array = NDArray[Any]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]

PARTS = 16  # of the points, at most
PART = 1 << 12  # points that one thread takes at once, at least
FEW_TERMS = 1 << 19  # points times levels times directions that do not pay for waking a thread


class Piece(NamedTuple):
    """Points, the chosen directions of one orthant, and what kernels are `given` of them."""

    part: int
    points: Any
    orthant: int
    chosen: Places
    given: tuple[Array, Floats, Floats, Floats, float]


class Projection(NamedTuple):
    """Weights (batch, orthants, points) at positions (d, points), projected on directions (k, d).

    `orthants` are those of the directions. Sums are in double precision if the weights are.
    """

    weights: Array
    positions: Floats
    directions: Floats
    orthants: Places
    levels: Floats
    sharpness: float
    workers: int | None

    def curves(self) -> Floats:
        """Curves (3, batch, k, n): the sums, their derivatives by the level and the sharpness."""
        order, _ = self._levels()
        shape = self._parts()[0], 3, len(self.weights), len(self.directions), order.size
        results: Floats = np.zeros(shape)

        def add(piece: Piece) -> None:
            own = np.zeros((3, len(self.weights), piece.chosen.size, order.size))
            projection.curves(piece.given, own)
            results[piece.part][:, :, piece.chosen[:, None], order] = own

        self._share(add, everywhere=False)
        total: Floats = results.sum(0)
        return total

    def gradients(self, upstream: Floats, of_weights: bool) -> tuple[Floats, Floats]:
        """Gradients of the weights and, image by image, of the directions: (batch, k, d).

        Unless `of_weights`, those of weights that are zero in all images are not computed.
        """
        order, _ = self._levels()
        by_weights = np.zeros(self.weights.shape)
        by_directions = np.zeros((self._parts()[0], len(self.weights), *self.directions.shape))

        def add(piece: Piece) -> None:
            entered = np.zeros(piece.given[0].shape)
            turned = np.zeros((len(self.weights), *piece.given[2].shape))
            own = upstream[:, piece.chosen][..., order]
            projection.gradients(piece.given, own, entered, turned)
            by_weights[:, piece.orthant, piece.points] = entered
            by_directions[piece.part][:, piece.chosen] = turned

        self._share(add, everywhere=of_weights)
        return by_weights, by_directions.sum(0)

    def _levels(self) -> tuple[Places, Floats]:
        """The order of the levels, and the sorted levels; infinite ones are beyond all heights."""
        reach = np.abs(self.directions) @ np.abs(self.positions).max(1, initial=0)
        beyond = reach.max(initial=0) + 2 * DOUBLE_REACH / self.sharpness
        order = self.levels.argsort()
        return order, self.levels[order].clip(-beyond, beyond)

    def _parts(self) -> tuple[int, int]:
        """How many parts the points are divided into, and the points of a part."""
        count = self.positions.shape[1]
        step = max(PART, -(-count // PARTS))
        return -(-count // step), step

    def _share(self, work: Callable[[Piece], None], everywhere: bool) -> None:
        """Call `work` on pieces, without points that are zero in all images unless `everywhere`."""
        (_, levels), (count, step) = self._levels(), self._parts()
        pieces = [(part, int(orthant)) for part in range(count) for orthant in set(self.orthants)]

        def each(queue: Iterator[tuple[int, int]]) -> None:
            for part, orthant in queue:
                points: Any = slice(part * step, (part + 1) * step)
                if not everywhere:
                    present = self.weights[:, orthant, points].any(0)
                    if not present.all():
                        points = part * step + np.flatnonzero(present)
                weights = np.ascontiguousarray(self.weights[:, orthant, points])
                positions = np.ascontiguousarray(self.positions[:, points])
                (chosen,) = (self.orthants == orthant).nonzero()
                given = weights, positions, self.directions[chosen], levels, self.sharpness
                work(Piece(part, points, orthant, chosen, given))

        terms = self.positions.shape[1] * self.levels.size * len(self.directions)
        share(pieces, each, thread_count(self.workers, terms // FEW_TERMS))
