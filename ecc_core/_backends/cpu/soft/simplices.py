"""Soft transforms of batches of simplicial complexes, whose shapes may differ in size.

A simplex contributes weight * s(l * (t - h)) with the height h of its highest point. So each point
has a coefficient in each direction, the signed weights of the simplices that belong to it, and a
curve is a sum over points. As for exact transforms, LANES directions of a point are next to each
other: coefficients, steps, sums and gradients are all vectors over directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.simplicial.counts import LANES, add_simplices
from ecc_core._backends.cpu.soft.points import DOUBLE_REACH
from ecc_core._backends.cpu.soft.simplex_kernels import (
    add_to_heaviest,
    find_offsets,
    write_curves,
    write_gradients,
)
from ecc_core._backends.cpu.soft.transform import FEW_TERMS

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SoftComplexes(NamedTuple):
    """Points (n, d) of shapes, their simplices and weights, and unit vectors (k, d).

    Numbers are floats of one dtype, whose precision sums have.
    """

    points: Array
    weights: Array | None
    """(n,); None if all weigh 1. A simplex weighs as much as its heaviest point."""
    simplices: Sequence[Integers]
    vectors: Array
    levels: Floats
    sharpness: float
    shapes: Integers
    """The shape of each point."""
    shape_count: int
    """Number of shapes."""
    workers: int | None

    def curves(self, derivatives: bool) -> tuple[Array, Array, Array]:
        """Curves (shapes, k, n), and their derivatives by the level and by the sharpness.

        Unless `derivatives`, these are empty: (0, k, n).
        """
        order, levels = self._levels()
        members, offsets = self._members()
        heaviest = self._heaviest()
        one = len(self.vectors), levels.size
        counts = self.shape_count, *[self.shape_count if derivatives else 0] * 2
        results = tuple(np.empty((count, *one), self.points.dtype) for count in counts)

        def work(starts: Iterator[int]) -> None:
            for start in starts:
                part = start, min(start + LANES, len(self.vectors))
                heights = self._heights(part)
                own = self._coefficients(heights, heaviest)
                given = heights, own, members, levels, self.sharpness
                write_curves(given, offsets, part, results)

        self._share(work)
        if order is not None:
            places = np.argsort(order)
            results = tuple(found[..., places] for found in results)
        curves, slopes, spreads = results
        return curves, slopes, spreads

    def gradients(self, upstream: Array, of_weights: bool) -> tuple[Array, Array, Array]:
        """Gradients of points, of weights (zero unless `of_weights`) and of vectors."""
        order, levels = self._levels()
        members, offsets = self._members()
        heaviest = self._heaviest()
        by_vectors = np.zeros(self.vectors.shape, self.points.dtype)
        sorted_upstream = upstream if order is None else upstream[..., order]

        def work(starts: Iterator[int]) -> tuple[Array, Array]:
            by_points = np.zeros(self.points.shape)
            by_weights = np.zeros(len(self.points))
            for start in starts:
                part = start, min(start + LANES, len(self.vectors))
                lanes = part[1] - part[0]
                heights = self._heights(part)
                own = self._coefficients(heights, heaviest)
                entered = np.empty_like(own)
                rates = np.empty_like(own)
                given = heights, own, members, levels, self.sharpness
                write_gradients(given, offsets, part, sorted_upstream, entered, rates)
                by_points += rates[:, :lanes] @ self.vectors[slice(*part)]
                by_vectors[slice(*part)] = rates[:, :lanes].T @ self.points
                if of_weights:
                    by_weights += entered[:, :lanes].sum(axis=1)
                    for rows, top in zip(self.simplices, heaviest, strict=True):
                        sign = _sign_of(rows)
                        add_to_heaviest(rows, top, sign, heights, lanes, entered, by_weights)
            return by_points, by_weights

        parts = self._share(work)
        points, weights = (sum(found[1:], found[0]) for found in zip(*parts, strict=True))
        return points, weights, by_vectors

    def _levels(self) -> tuple[NDArray[np.intp] | None, Floats]:
        """The order of the levels, and the sorted levels; infinite ones are beyond all heights.

        The order is None if levels increase.
        """
        reach = float(np.abs(self.points).max(initial=0)) * self.points.shape[1]
        beyond = reach + 2 * DOUBLE_REACH / self.sharpness
        order = None
        levels = self.levels
        if (levels[1:] < levels[:-1]).any():
            order = levels.argsort()
            levels = levels[order]
        return order, levels.clip(-beyond, beyond)

    def _members(self) -> tuple[Integers, Integers]:
        """The points in the order of their shapes, and where those of each shape begin."""
        offsets = np.empty(self.shape_count + 1, np.int64)
        if find_offsets(self.shapes, offsets):
            return np.arange(len(self.shapes)), offsets
        return np.argsort(self.shapes, kind="stable"), offsets

    def _heaviest(self) -> list[Integers]:
        """The heaviest point of each simplex, by dimension; empty lists without weights."""
        if self.weights is None:
            return []
        tops = [self.weights[rows].argmax(axis=1)[:, None] for rows in self.simplices]
        return [
            np.take_along_axis(rows, top, axis=1)[:, 0]
            for rows, top in zip(self.simplices, tops, strict=True)
        ]

    def _heights(self, part: tuple[int, int]) -> Array:
        """Heights (n, LANES) in some directions, of which the first is repeated."""
        vectors = self.vectors[slice(*part)]
        chosen = np.zeros(LANES, np.intp)
        chosen[: len(vectors)] = np.arange(len(vectors))
        heights: Array = self.points @ np.ascontiguousarray(vectors[chosen].T)
        return heights

    def _coefficients(self, heights: Array, heaviest: Sequence[Integers]) -> Array:
        """The signed weights of the simplices that belong to each point: (n, LANES)."""
        dtype = self.points.dtype
        own = np.ones(1, dtype) if self.weights is None else self.weights
        sums = np.empty(heights.shape, dtype)
        sums[:] = own[:, None]
        for i, rows in enumerate(self.simplices):
            sign = dtype.type(_sign_of(rows))
            weights = sign * (own if self.weights is None else self.weights[heaviest[i]])
            add_simplices(rows, weights, int(self.weights is not None), heights, sums)
        return sums

    def _share(self, work: Any) -> list[Any]:
        terms = len(self.points) * len(self.vectors) * self.levels.size
        starts = range(0, len(self.vectors), LANES)
        return share(starts, work, thread_count(self.workers, terms // FEW_TERMS))


def _sign_of(simplices: Integers) -> int:
    """Return (-1)^dimension of simplices, of which each row has the points."""
    return -1 if simplices.shape[1] % 2 == 0 else 1
