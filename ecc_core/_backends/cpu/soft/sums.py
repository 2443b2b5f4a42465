"""Soft curves of points with coefficients: choice of algorithm, windows, memory and threads.

Sums are taken in an order that depends on sizes only, so results do not depend on the number of
threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core._backends.cpu.soft import points as soft_points
from ecc_core._backends.cpu.soft.kernels import MOMENTS, REACH, deposit, evaluate, gather, tabulate

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 1 / 8  # width of a bin in units of 1 / sharpness
CHUNK = 1 << 20  # points whose moments are summed at once
MEMORY = 1 << 26  # bytes of moments at once
ALONE = 1 << 15  # points that do not pay for waking a thread
# Times in units of a point and level point by point, measured for 16 to 2,048 levels and 32 x 32 to
# 1024 x 1024 points.
RUN = 20  # of a point and a run of levels
WINDOWED_POINT, WINDOWED_LEVEL = 40, 50_000  # of a point and of a level in windows
PART = 1 << 16  # points that one thread takes at once
FEW_TERMS = 1 << 19  # points times levels that do not pay for waking a thread


class Windows(NamedTuple):
    """The line of values cut into windows around the levels."""

    starts: Floats
    """Increasing, as the ends; windows do not overlap."""
    ends: Floats
    offsets: Integers
    """Slot of the gap below each window, and of everything above the last one."""
    width: float
    """Of a bin."""

    @property
    def slots(self) -> int:
        return int(self.offsets[-1]) + 1

    @classmethod
    def around(cls, levels: Floats, sharpness: float) -> Windows:
        """Windows of REACH / sharpness on both sides of increasing levels."""
        width, reach = STEP / sharpness, REACH / sharpness
        apart = np.diff(levels) > 2 * reach
        starts = levels[np.r_[True, apart]] - reach if levels.size else levels
        lasts = levels[np.r_[apart, True]] + reach if levels.size else levels
        bins = np.maximum(np.ceil((lasts - starts) / width), 1).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(bins + 1)])
        return cls(starts, starts + bins * width, offsets, width)


class Sums(NamedTuple):
    """Sums over points of weight * s(sharpness * (level - value))."""

    values: Array
    """(images, points), as the weights, without NaN; infinite ones enter first or never."""
    weights: Array
    levels: Floats
    sharpness: float
    workers: int | None
    exact: bool
    """Whether sums are as accurate as the sigmoid in double precision."""

    def curves(self) -> Floats:
        """(3, images, n): the sums, their derivatives by the level and by the sharpness."""
        values, levels = self.values, self.levels
        results = np.zeros((3, len(values), levels.size))
        if results.size == 0 or values.shape[1] == 0:
            return results
        order = self._finite_in_order()
        if self._takes_points(order):
            self._by_points(order, self.exact, results)
        else:
            self._add_windows(order, results)
        for level in (-np.inf, np.inf) if order.size < levels.size else ():
            entered = (values <= level) & (values < np.inf)
            results[0, :, levels == level] = (self.weights * entered).sum(1)
        return results

    def gradients(self, upstream: Floats, double: bool) -> Array:
        """Weight * sum over the levels of upstream * sharpness * s'(z) of every point.

        `upstream` is (images, n). Without `double` sums may be taken in single precision.
        """
        out = np.zeros(self.values.shape, self.values.dtype)
        if out.size:
            order = self._finite_in_order()
            if self._takes_points(order):
                self._by_points(order, self.exact or double, None, upstream, out)
            else:
                self._write_windows(order, upstream, out)
        return out

    def _finite_in_order(self) -> Integers:
        """Indices of the finite levels, sorted by level."""
        order = self.levels.argsort()
        return order[np.isfinite(self.levels[order])]

    def _takes_points(self, order: Integers) -> bool:
        """Whether to sum point by point: exactly, or where windows do not pay."""
        if self.exact:
            return True
        levels = self.levels, order, self.sharpness, soft_points.SINGLE_SPAN
        count = max(soft_points.runs(*levels).size, 1)
        a_point = order.size / count + RUN * count  # a point is near the levels of one run
        points = self.values.shape[1]
        return bool(points * (a_point - WINDOWED_POINT) <= WINDOWED_LEVEL * order.size)

    def _add_windows(self, order: Integers, results: Floats) -> None:
        """Sums by the moments of windows."""
        values, weights, levels, sharpness, workers, _ = self
        images, points = values.shape
        grid = Windows.around(levels[order], sharpness)
        chunks = -(-points // CHUNK)
        step = max(1, MEMORY // (8 * MOMENTS * grid.slots * chunks))

        def add(pieces: Iterator[tuple[int, int]]) -> None:
            for i, at in pieces:
                part = first + i, slice(at, at + CHUNK)
                deposit(values[part], weights[part], grid, moments[i, at // CHUNK])

        def sum_up(parts: Iterator[tuple[int, int]]) -> None:
            for a, b in parts:
                out = np.zeros((3, b - a, levels.size))
                evaluate(moments[a:b].sum(1), levels, sharpness, grid, out)
                results[:, first + a : first + b] = out

        for first in range(0, images, step):
            count = min(step, images - first)
            moments = np.zeros((count, chunks, grid.slots, MOMENTS))
            threads = thread_count(workers, count * points // ALONE)
            share(list(itertools.product(range(count), range(0, points, CHUNK))), add, threads)
            share(ranges(count, threads), sum_up, threads)

    def _write_windows(self, order: Integers, upstream: Floats, out: Array) -> None:
        """Gradients by interpolation in tables of the windows."""
        values, weights, levels, sharpness, workers, _ = self
        images, points = values.shape
        grid = Windows.around(levels[order], sharpness)
        chunk = max(CHUNK // images, ALONE)
        step = max(1, MEMORY // (16 * grid.slots))

        def fill(parts: Iterator[tuple[int, int]]) -> None:
            for a, b in parts:
                tabulate(upstream[first + a : first + b], levels, sharpness, grid, table[a:b])

        def look_up(pieces: Iterator[tuple[int, int]]) -> None:
            for i, at in pieces:
                part = first + i, slice(at, at + chunk)
                gather(values[part], weights[part], grid, table[i], out[part])

        for first in range(0, images, step):
            count = min(step, images - first)
            table = np.zeros((count, grid.slots, 2))
            threads = thread_count(workers, count * points // ALONE)
            share(ranges(count, threads), fill, threads)
            share(list(itertools.product(range(count), range(0, points, chunk))), look_up, threads)

    def _by_points(
        self,
        order: Integers,
        double: bool,
        results: Floats | None = None,
        upstream: Floats | None = None,
        out: Array | None = None,
    ) -> None:
        """Sums, or gradients by those of the sums, point by point."""
        images, points = self.values.shape
        step = max(1, PART // points)
        parts = [
            (i, min(i + step, images), p, min(p + PART, points))
            for i in range(0, images, step)
            for p in range(0, points, PART)
        ]
        pieces = -(-points // PART)
        sums: list[Any] = [results] * pieces
        if results is not None and pieces > 1:
            sums = [np.zeros_like(results) for _ in sums]

        def each(queue: Iterator[tuple[int, int, int, int]]) -> None:
            given = self.values, self.weights, self.levels, self.sharpness
            buffer = np.empty(soft_points.BUFFER, np.float64 if double else np.float32)
            for part in queue:
                soft_points.add(given, part, order, buffer, sums[part[2] // PART], upstream, out)

        enough = self.values.size * self.levels.size // FEW_TERMS
        share(parts, each, thread_count(self.workers, enough))
        if pieces > 1 and results is not None:
            np.sum(sums, axis=0, out=results)
