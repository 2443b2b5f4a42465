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
from ecc_core._backends.cpu.soft.simplex_kernels import (
    add_to_heaviest,
    write_all_gradients,
    write_curves,
    write_gradients,
)
from ecc_core._backends.cpu.soft.transform import FEW_TERMS

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SoftGradients(NamedTuple):
    """Gradients of the arguments of soft transforms."""

    points: Array
    vectors: Array
    weights: Array | None = None
    levels: Array | None = None
    sharpness: float | None = None


class SoftComplexes(NamedTuple):
    """Points (n, d) of shapes, their simplices and weights, and vectors (k, d).

    Numbers are floats of one dtype, whose precision sums have. They are valid.
    """

    points: Array
    weights: Array | None
    """(n,); None if all weigh 1. A simplex weighs as much as its heaviest point."""
    simplices: Sequence[Integers]
    vectors: Array
    levels: Floats
    """Finite, and increasing."""
    order: NDArray[np.intp] | None
    """The places of these levels among the given ones; None if those increase."""
    sharpness: float
    members: Integers
    """The points in the order of their shapes."""
    offsets: Integers
    """Where the points of each shape begin among the members, and the number of points."""
    workers: int | None

    def curves(self) -> Array:
        """Return curves (shapes, k, n)."""
        heaviest = self._heaviest()
        one = len(self.vectors), self.levels.size
        curves = np.empty((len(self.offsets) - 1, *one), self.points.dtype)

        def work(starts: Iterator[int]) -> None:
            for start in starts:
                part = self._part(start)
                heights = self._heights(part)
                own = self._coefficients(heights, heaviest)
                write_curves(self._given(heights, own), self.offsets, part, curves)

        self._share(work)
        return curves if self.order is None else curves[..., np.argsort(self.order)]

    def gradients(self, upstream: Array) -> SoftGradients:
        """Return the gradients of points and vectors alone, by those of the curves."""
        upstream = self._sorted(upstream)
        heaviest = self._heaviest()
        by_vectors = np.empty_like(self.vectors)

        def work(starts: Iterator[int]) -> Array:
            by_points = np.zeros(self.points.shape)
            for start in starts:
                part = self._part(start)
                heights = self._heights(part)
                own = self._coefficients(heights, heaviest)
                rates = np.empty_like(own)
                write_gradients(self._given(heights, own), self.offsets, part, upstream, rates)
                self._add_rates(rates, part, by_points, by_vectors)
            return by_points

        parts = self._share(work)
        return SoftGradients(sum(parts[1:], parts[0]), by_vectors)

    def all_gradients(self, upstream: Array) -> SoftGradients:
        """Return the gradients of all arguments, by those of the curves."""
        upstream = self._sorted(upstream)
        heaviest = self._heaviest()
        by_vectors = np.empty_like(self.vectors)

        def work(starts: Iterator[int]) -> tuple[Array, ...]:
            by_points = np.zeros(self.points.shape)
            by_weights = np.zeros(len(self.points))
            by_levels = np.zeros((self.levels.size + 1, LANES))
            by_sharpness = np.zeros(LANES)
            for start in starts:
                part = self._part(start)
                heights = self._heights(part)
                own = self._coefficients(heights, heaviest)
                entered = np.empty_like(own)
                rates = np.empty_like(own)
                found = entered, rates, by_levels, by_sharpness
                write_all_gradients(self._given(heights, own), self.offsets, part, upstream, found)
                self._add_rates(rates, part, by_points, by_vectors)
                lanes = part[1] - part[0]
                by_weights += entered[:, :lanes].sum(axis=1)
                for rows, top in zip(self.simplices, heaviest, strict=False):
                    sign = _sign_of(rows)
                    add_to_heaviest(rows, top, sign, heights, lanes, entered, by_weights)
            return by_points, by_weights, by_levels.sum(axis=1), by_sharpness.sum()

        parts = self._share(work)
        columns = zip(*parts, strict=True)
        points, weights, levels, spread = (sum(found[1:], found[0]) for found in columns)
        by_levels = np.empty(self.levels.size)
        by_levels[slice(None) if self.order is None else self.order] = self.sharpness * levels[:-1]
        return SoftGradients(points, by_vectors, weights, by_levels, float(spread))

    def _sorted(self, upstream: Array) -> Array:
        return upstream if self.order is None else upstream[..., self.order]

    def _part(self, start: int) -> tuple[int, int]:
        """Return the directions, from a first one on, that are computed together."""
        return start, min(start + LANES, len(self.vectors))

    def _given(self, heights: Array, coefficients: Array) -> tuple[Any, ...]:
        """Return what kernels take besides shapes."""
        return heights, coefficients, self.members, self.levels, self.sharpness

    def _add_rates(
        self, rates: Array, part: tuple[int, int], by_points: Array, by_vectors: Array
    ) -> None:
        """Add the gradients of points, and write those of vectors, by those of heights.

        The gradients of points are summed in double precision: which thread has which directions
        changes from call to call, and sums in single precision would change with it.
        """
        own = rates[:, : part[1] - part[0]]
        by_points += own @ self.vectors[slice(*part)]
        by_vectors[slice(*part)] = own.T @ self.points

    def _heaviest(self) -> list[Integers]:
        """Return the heaviest point of each simplex, by dimension; nothing without weights."""
        if self.weights is None:
            return []
        tops = [self.weights[rows].argmax(axis=1)[:, None] for rows in self.simplices]
        return [
            np.take_along_axis(rows, top, axis=1)[:, 0]
            for rows, top in zip(self.simplices, tops, strict=True)
        ]

    def _heights(self, part: tuple[int, int]) -> Array:
        """Return heights (n, LANES) in some directions; the first one fills lanes that are left."""
        vectors = self.vectors[slice(*part)]
        missing = LANES - len(vectors)
        if missing:
            vectors = np.concatenate([vectors, vectors[:1].repeat(missing, axis=0)])
        heights: Array = self.points @ vectors.T
        return heights

    def _coefficients(self, heights: Array, heaviest: Sequence[Integers]) -> Array:
        """Return the signed weights of the simplices that belong to each point, (n, LANES)."""
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
