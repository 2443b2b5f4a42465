"""Curves and transforms of simplicial complexes: memory, threads and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import share
from ecc_core._backends.cpu.scans.values import keys_of, plan_of
from ecc_core._backends.cpu.simplicial.codes import (
    Cells,
    divide_bins,
    encode_heights,
    guess_for,
    in_lanes,
    round_points,
)
from ecc_core._backends.cpu.simplicial.complexes import Rows, make_rows
from ecc_core._backends.cpu.simplicial.components import component_pairs
from ecc_core._backends.cpu.simplicial.counts import LANES, add_simplices, add_sums, count_simplices
from ecc_core._backends.cpu.simplicial.star_sums import ROWS_OF_MEMORY, add_stars
from ecc_core._backends.cpu.simplicial.stars import Stars, make_stars
from ecc_core._backends.cpu.sources import scratch
from ecc_core._backends.cpu.transforms.heights import Floats, accumulate, make_grid, workers_for
from ecc_core._request.levels import Levels, reached_at

__all__ = ["component_pairs", "make_complex", "place", "simplicial_transform", "value_curves"]

Array = NDArray[Any]
Encode = Callable[[slice, Array], None]

MOST_SHORT = 2**15 - 1
"""The most simplices of a point that 16-bit sums can count."""


class HostComplex(Sequence[Rows]):
    """The edges, triangles and so on of a complex, or its stars, which are made when asked for.

    Either raises the errors of simplices that are no complex.
    """

    def __init__(self, given: Sequence[Rows], points: int, complete: bool) -> None:
        self.given = given
        self.points = points
        self.complete = complete

    @cached_property
    def rows(self) -> list[Rows]:
        """The simplices of each dimension but 0."""
        return make_rows(self.given, self.points, self.complete)

    @cached_property
    def stars(self) -> Stars | None:
        """The stars of the points; None for complexes that are not made of them."""
        return make_stars(self.given, self.points, self.complete)

    def __len__(self) -> int:
        return max((part.shape[1] for part in self.given), default=1) - 1

    @overload
    def __getitem__(self, index: int, /) -> Rows: ...

    @overload
    def __getitem__(self, index: slice, /) -> list[Rows]: ...

    def __getitem__(self, index: int | slice, /) -> Rows | list[Rows]:
        return self.rows[index]

    def weighed(self, weights: Array | None) -> Counted | Weighed:
        """Return what adds the simplices to histograms."""
        if weights is None and self.stars is not None:
            return Counted(self.stars)
        own = None
        if weights is not None:  # A simplex weighs as much as its heaviest point.
            own = [weights, *(weights[rows].max(axis=1) for rows in self.rows)]
        return Weighed(self.points, self.rows, own)


class Counted(NamedTuple):
    """A complex of edges and triangles, given by its stars."""

    stars: Stars

    @property
    def points(self) -> int:
        return self.stars.points

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the curves."""
        return np.dtype(np.int64)

    def lanes(self, orders: int, threads: int) -> int:
        """Return how many orders are taken at once."""
        return LANES if orders <= LANES * threads else 2 * LANES

    def memory(self, codes: Array) -> Array:
        """Return memory for :meth:`add_to`."""
        lanes = codes.shape[1]
        return scratch.take("signs of a star", ROWS_OF_MEMORY * lanes, np.int8).reshape(-1, lanes)

    def add_to(self, histograms: Array, codes: Array, shift: int, memory: Array) -> None:
        """Add the signs of all simplices to the histograms (k, bins) of k orders."""
        limits = scratch.take("limits of a star", 2 * codes.shape[1], codes.dtype)
        add_stars(self.stars, codes, shift, len(histograms), limits, memory, histograms)


class Weighed(NamedTuple):
    """The simplices of a complex, and their weights."""

    points: int
    simplices: Sequence[Rows]
    """Edges, triangles and so on, by dimension."""
    weights: Sequence[Array] | None
    """The weights of points, edges and so on, all int64 or all float64; None if all weigh 1."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the curves."""
        return np.dtype(np.int64) if self.weights is None else self.weights[0].dtype

    def lanes(self, orders: int, threads: int) -> int:
        """Return how many orders are taken at once."""
        return LANES

    def memory(self, codes: Array) -> Array:
        """Return memory for the sums of the points in LANES orders."""
        return np.empty((self.points, LANES), self._dtype_of_sums)

    @property
    def _dtype_of_sums(self) -> np.dtype[Any]:
        """The dtype of the sums of points, short for signs unless a point has many simplices."""
        if self.weights is not None:
            return self.dtype
        if sum(map(len, self.simplices)) <= MOST_SHORT:
            return np.dtype(np.int16)
        counts = np.zeros(self.points, np.int64)
        for rows in self.simplices:
            count_simplices(rows, counts)
        return np.dtype(np.int16 if counts.max() < MOST_SHORT else np.int64)

    def add_to(self, histograms: Array, codes: Array, shift: int, memory: Array) -> None:
        """Add the signed weights of all simplices to the histograms (k, bins) of k orders."""
        memory[:] = 1 if self.weights is None else self.weights[0][:, None]
        for dimension, rows in enumerate(self.simplices, start=1):
            sign = memory.dtype.type(-1 if dimension % 2 else 1)
            own = np.full(1, sign) if self.weights is None else sign * self.weights[dimension]
            add_simplices(rows, own, int(self.weights is not None), codes, memory)
        add_sums(codes, memory, shift, len(histograms), histograms)


def _curves(
    complex_: Counted | Weighed,
    orders: tuple[int, int],
    encode: Encode,
    cells: Cells,
    workers: int | None,
) -> Array:
    """Return the curves (k, bins - 1) of `orders`: k orders of the points, in so many bins.

    `encode` writes the codes of some orders, which divide bins into `cells`.
    """
    count, bins = orders
    shift, dtype = cells
    histograms = np.zeros((count, bins), complex_.dtype)

    threads = workers_for(workers, complex_.points * count)
    lanes = complex_.lanes(count, threads)

    def work(starts: Iterator[int]) -> None:
        codes = scratch.take("codes of points", complex_.points * lanes, dtype)
        codes = codes.reshape(complex_.points, lanes)
        memory = complex_.memory(codes)
        for start in starts:
            part = slice(start, min(start + lanes, count))
            encode(part, codes)
            complex_.add_to(histograms[part], codes, shift, memory)

    share(range(0, count, lanes), work, threads)
    curves = np.empty((count, bins - 1), complex_.dtype)
    accumulate(histograms, np.arange(count), 1, curves)
    return curves


def make_complex(given: Sequence[Rows], points: int, complete: bool) -> HostComplex:
    """Return the edges, triangles and so on of a complex, by dimension.

    `given` are int64 arrays of increasing width, not more than one of each. With `complete` faces
    that are missing are added, otherwise they are an error.
    """
    return HostComplex(given, points, complete)


def place(array: Array) -> Array:
    """Return the array itself, which is where it is needed."""
    return array


def simplicial_transform(
    points: Floats,
    simplices: HostComplex,
    weights: Array | None,
    directions: Floats,
    heights: Floats,
    workers: int | None = 1,
) -> Array:
    """Return the transform (directions, heights) of a complex, in int64 or the dtype of weights.

    `points` (n, d) are C-contiguous. A simplex weighs as much as its heaviest point.
    """
    axes = points.shape[1]
    in_single, reach = round_points(points)
    grid = make_grid(heights, reach * axes)
    cells = divide_bins(grid)
    guess, places = guess_for(grid, cells, reach, axes)
    rounded_points = guess.round(points, in_single)

    def encode(part: slice, codes: Array) -> None:
        vectors = in_lanes(directions[part], codes.shape[1])
        rounded = rounded_points, (vectors * guess.scale).astype(guess.dtype)
        encode_heights(points, vectors, grid, cells.shift, places, rounded, codes)

    orders = len(directions), heights.size + 1
    return _curves(simplices.weighed(weights), orders, encode=encode, cells=cells, workers=workers)


def value_curves(
    values: Array, levels: Levels, simplices: HostComplex, workers: int | None = 1
) -> NDArray[np.int64]:
    """Return the curves (orders, thresholds) of values (orders, points) in native byte order."""
    if 0 in (values.size, levels.values.size):
        return np.zeros((len(values), levels.entered.size), np.int64)
    plan = plan_of(values.dtype, levels.values, levels.superlevel)
    ranks = keys_of(values.reshape(-1), plan).reshape(values.shape)
    bins = plan.top + 2  # The last bin is that of points that never enter, even if there are none.
    bin_type = np.uint16 if bins < 2**16 else np.uint32
    cells = Cells(0, np.dtype(bin_type))

    def encode(part: slice, codes: Array) -> None:
        codes[:] = 0
        own = ranks[part]
        codes[:, : len(own)] = own.T

    curves = _curves(
        simplices.weighed(None), (len(ranks), bins), encode=encode, cells=cells, workers=workers
    )
    in_order = plan.entered[::-1] if levels.superlevel else plan.entered
    keys_before = np.append(0, in_order)  # At k, the number of keys that the first k levels reach.
    found: NDArray[np.int64] = reached_at(curves, keys_before[levels.entered])
    return found
