"""Curves and transforms of simplicial complexes: memory, threads and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import share
from ecc_core._backends.cpu.simplicial.codes import Cells, divide_bins, encode_heights, in_lanes
from ecc_core._backends.cpu.simplicial.complexes import Rows, make_complex
from ecc_core._backends.cpu.simplicial.components import component_pairs
from ecc_core._backends.cpu.simplicial.counts import LANES, add_simplices, add_sums, count_simplices
from ecc_core._backends.cpu.transforms.heights import Floats, make_grid, workers_for
from ecc_core._request.levels import Levels

__all__ = ["component_pairs", "make_complex", "place", "simplicial_transform", "value_curves"]

Array = NDArray[Any]
Encode = Callable[[slice, Array], None]

MOST_SHORT = 2**15 - 1  # simplices of a point, which 16-bit sums can count


class Complex(NamedTuple):
    """The simplices of a complex, and their weights."""

    points: int
    simplices: Sequence[Rows]
    """Edges, triangles and so on, by dimension."""
    weights: Sequence[Array] | None
    """Of the points, the edges and so on, all int64 or all float64; None if all weigh 1."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the curves."""
        return np.dtype(np.int64) if self.weights is None else self.weights[0].dtype

    @property
    def dtype_of_sums(self) -> np.dtype[Any]:
        """Dtype of the sums of points: of signs as short as the point with most of them allows."""
        if self.weights is not None:
            return self.dtype
        if sum(map(len, self.simplices)) <= MOST_SHORT:
            return np.dtype(np.int16)
        counts = np.zeros(self.points, np.int64)
        for rows in self.simplices:
            count_simplices(rows, counts)
        return np.dtype(np.int16 if counts.max() < MOST_SHORT else np.int64)

    def add_to(self, histograms: Array, codes: Array, shift: int, sums: Array) -> None:
        """Add the signed weights of all simplices to the histograms (k, bins) of k orders.

        `sums` is memory for the sums of the points.
        """
        sums[:] = 1 if self.weights is None else self.weights[0][:, None]
        for dimension, rows in enumerate(self.simplices, start=1):
            sign = sums.dtype.type(-1 if dimension % 2 else 1)
            own = np.full(1, sign) if self.weights is None else sign * self.weights[dimension]
            add_simplices(rows, own, int(self.weights is not None), codes, sums)
        add_sums(codes, sums, shift, len(histograms), histograms)

    def curves(
        self, orders: tuple[int, int], encode: Encode, cells: Cells, workers: int | None
    ) -> Array:
        """Return the curves (k, bins - 1) of `orders`: k orders of the points, in so many bins.

        `encode` writes the codes of some orders, which divide bins into `cells`.
        """
        count, bins = orders
        shift, dtype = cells
        dtype_of_sums = self.dtype_of_sums
        histograms = np.zeros((count, bins), self.dtype)

        def work(starts: Iterator[int]) -> None:
            codes = np.empty((self.points, LANES), dtype)
            sums = np.empty((self.points, LANES), dtype_of_sums)
            for start in starts:
                part = slice(start, min(start + LANES, count))
                encode(part, codes)
                self.add_to(histograms[part], codes, shift, sums)

        threads = workers_for(workers, self.points * count)
        share(range(0, count, LANES), work, threads)
        return np.cumsum(histograms[:, :-1], axis=1, dtype=self.dtype)


def place(array: Array) -> Array:
    """Return the array itself, which is where it is needed."""
    return array


def simplicial_transform(
    points: Floats,
    simplices: Sequence[Rows],
    weights: Array | None,
    directions: Floats,
    heights: Floats,
    workers: int | None = 1,
) -> Array:
    """Return the transform (directions, heights) of a complex, in int64 or the dtype of weights.

    `points` (n, d) are C-contiguous. A simplex weighs as much as its heaviest point.
    """
    reach = float(np.abs(points).max(initial=0.0)) * points.shape[1]
    grid = make_grid(heights, reach)
    cells = divide_bins(grid)

    def encode(part: slice, codes: Array) -> None:
        encode_heights(points, in_lanes(directions[part]), grid, cells.shift, codes)

    own = None
    if weights is not None:
        own = [weights, *(weights[rows].max(axis=1) for rows in simplices)]
    found = Complex(len(points), simplices, own)
    return found.curves((len(directions), heights.size + 1), encode, cells, workers)


def value_curves(
    values: Array, levels: Levels, simplices: Sequence[Rows], workers: int | None = 1
) -> NDArray[np.int64]:
    """Return the curves (orders, thresholds) of values (orders, points) in native byte order."""
    ranks = _ranks(values, levels)
    bins = levels.values.size + 1
    cells = Cells(0, np.dtype(np.uint16 if bins <= 2**16 else np.uint32))

    def encode(part: slice, codes: Array) -> None:
        codes[:] = 0
        own = ranks[part]
        codes[:, : len(own)] = own.T

    found = Complex(ranks.shape[1], simplices, None)
    curves = found.curves((len(ranks), bins), encode, cells, workers)
    before = np.zeros((len(ranks), 1), np.int64)
    return np.concatenate([before, curves], axis=1)[:, levels.entered]


def _ranks(values: Array, levels: Levels) -> NDArray[np.int64]:
    """Return the number of levels at which each value has not entered yet."""
    if values.dtype == np.bool_:  # True may be stored as any byte but 0
        values = np.where(values, levels.values.dtype.type(1), levels.values.dtype.type(0))
    side: Literal["left", "right"] = "right" if levels.superlevel else "left"
    ranks = np.searchsorted(levels.values, values, side=side)
    return levels.values.size - ranks if levels.superlevel else ranks
