"""Soft curves of points with coefficients, from moments near the levels or point by point.

The logistic function s differs from a step only where |z| < REACH, z = sharpness * (level - value).
The range of values is therefore divided into *windows* around the levels, each with bins of equal
width, and the gaps between them. Slots are numbered by increasing value: slot ``offsets[i]`` is the
gap below window i, followed by the bins of that window; the last slot is everything above the last
window.

Windows take 0.7 to 0.9 times as long as points one by one for images of 256 x 256 and more, and
nine times as long for 32 images of 28 x 28 (``docs/design/ways.md``).

Sums are taken in an order that depends on sizes only, so results do not depend on the number of
threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core._backends.cpu.soft import points as soft_points
from ecc_core._backends.cpu.soft.window_kernels import (
    MOMENTS,
    REACH,
    deposit,
    evaluate,
    gather,
    tabulate,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BIN_WIDTH = 1 / 8  # In units of 1 / sharpness.
POINTS_AT_ONCE = 1 << 20  # Points whose moments are summed together.
MOMENTS_BYTES = 1 << 26  # The most memory of moments that are summed together.
MOST_SERIAL_POINTS = 1 << 15  # Up to so many points do not pay for waking a thread.
# Times, in units of the time for a point and a level near it. They were measured for 16 to 1,024
# levels, and 32 x 32 to 512 x 512 points.
POINT_COST = -6  # Of a point by itself, besides its levels, less that of a point in windows.
WINDOWED_LEVEL_COST = 40_000  # Of a level in windows.
POINTS_A_PART = 1 << 16  # Points that a thread takes at once.
FEW_TERMS = 1 << 19  # For fewer points times levels, waking a thread takes longer than it saves.


class Windows(NamedTuple):
    """The line of values cut into windows around the levels."""

    starts: Floats
    """The least values of the windows. These increase, and windows do not overlap."""
    ends: Floats
    offsets: Integers
    """Slot of the gap below each window, and of everything above the last one."""
    width: float
    """The width of a bin, in units of the values."""

    @property
    def slots(self) -> int:
        return int(self.offsets[-1]) + 1

    @classmethod
    def around(cls, levels: Floats, sharpness: float) -> Windows:
        """Return windows of REACH / sharpness on both sides of increasing levels."""
        width = BIN_WIDTH / sharpness
        reach = REACH / sharpness
        apart = np.diff(levels) > 2 * reach
        starts = levels[np.r_[True, apart]] - reach if levels.size else levels
        lasts = levels[np.r_[apart, True]] + reach if levels.size else levels
        bins = np.maximum(np.ceil((lasts - starts) / width), 1).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(bins + 1)])
        return cls(starts, starts + bins * width, offsets, width)


class Sums(NamedTuple):
    """Sums over points of weight * s(sharpness * (level - value)), exact if values are double."""

    values: Array
    """(images, points), as the weights. There is no NaN; infinite values enter first or never."""
    weights: Array
    levels: Floats
    sharpness: float
    workers: int | None

    def curves(self) -> Floats:
        """Return the sums and their derivatives by level and by sharpness, (3, images, n)."""
        values = self.values
        levels = self.levels
        results = np.zeros((3, len(values), levels.size))
        if results.size == 0 or values.shape[1] == 0:
            return results
        order = self._finite_in_order()
        if self._takes_points(order):
            self._by_points(order, False, results)
        else:
            self._add_windows(order, results)
        for level in (-np.inf, np.inf) if order.size < levels.size else ():
            entered = (values <= level) & (values < np.inf)
            results[0, :, levels == level] = (self.weights * entered).sum(1)
        return results

    def gradients(self, upstream: Floats, double: bool) -> Array:
        """Return weight * sum over the levels of upstream * sharpness * s'(z) for every point.

        `upstream` is (images, n). Without `double` sums may be taken in single precision.
        """
        out = np.zeros(self.values.shape, self.values.dtype)
        if out.size:
            order = self._finite_in_order()
            if self._takes_points(order):
                self._by_points(order, double, None, upstream, out)
            else:
                self._write_windows(order, upstream, out)
        return out

    def _finite_in_order(self) -> Integers:
        """Return the indices of the finite levels, sorted by level."""
        order = self.levels.argsort()
        return order[np.isfinite(self.levels[order])]

    def _takes_points(self, order: Integers) -> bool:
        """Return whether to sum point by point: for float64, or where windows do not pay."""
        if self.values.dtype == np.float64:
            return True
        near = self._levels_near_a_point(order)
        by_points = self.values.shape[1] * (near + POINT_COST)
        found: bool = by_points <= WINDOWED_LEVEL_COST * order.size
        return found

    def _levels_near_a_point(self, order: Integers) -> float:
        """Return how many levels are in reach of a point, if points and levels spread evenly."""
        if order.size < 2:
            return order.size
        extent = float(self.levels[order[-1]] - self.levels[order[0]]) * self.sharpness
        cells = (extent + 2 * REACH) / (2 * REACH)
        return order.size * min(2 / cells, 1)

    def _add_windows(self, order: Integers, results: Floats) -> None:
        """Add sums by the moments of windows."""
        values, weights, levels, sharpness, workers = self
        images, points = values.shape
        grid = Windows.around(levels[order], sharpness)
        chunks = ceil_div(points, POINTS_AT_ONCE)
        step = max(1, MOMENTS_BYTES // (8 * MOMENTS * grid.slots * chunks))

        def add(pieces: Iterator[tuple[int, int]]) -> None:
            for i, at in pieces:
                part = first + i, slice(at, at + POINTS_AT_ONCE)
                deposit(values[part], weights[part], grid, moments[i, at // POINTS_AT_ONCE])

        def sum_up(parts: Iterator[tuple[int, int]]) -> None:
            for a, b in parts:
                out = np.zeros((3, b - a, levels.size))
                evaluate(moments[a:b].sum(1), levels, sharpness, grid, out)
                results[:, first + a : first + b] = out

        for first in range(0, images, step):
            count = min(step, images - first)
            moments = np.zeros((count, chunks, grid.slots, MOMENTS))
            threads = thread_count(workers, count * points // MOST_SERIAL_POINTS)
            share(
                list(itertools.product(range(count), range(0, points, POINTS_AT_ONCE))),
                add,
                threads,
            )
            share(ranges(count, threads), sum_up, threads)

    def _write_windows(self, order: Integers, upstream: Floats, out: Array) -> None:
        """Write gradients by interpolation in tables of the windows."""
        values, weights, levels, sharpness, workers = self
        images, points = values.shape
        grid = Windows.around(levels[order], sharpness)
        chunk = max(POINTS_AT_ONCE // images, MOST_SERIAL_POINTS)
        step = max(1, MOMENTS_BYTES // (16 * grid.slots))

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
            threads = thread_count(workers, count * points // MOST_SERIAL_POINTS)
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
        """Add sums, or write gradients by those of the sums, point by point."""
        images, points = self.values.shape
        step = max(1, POINTS_A_PART // points)
        parts = [
            (i, min(i + step, images), p, min(p + POINTS_A_PART, points))
            for i in range(0, images, step)
            for p in range(0, points, POINTS_A_PART)
        ]
        pieces = ceil_div(points, POINTS_A_PART)
        sums: list[Any] = [results] * pieces
        if results is not None and pieces > 1:
            sums = [np.zeros_like(results) for _ in sums]

        def each(queue: Iterator[tuple[int, int, int, int]]) -> None:
            given = self.values, self.weights, self.levels, self.sharpness
            buffer = np.empty(soft_points.BUFFER, np.float64 if double else self.values.dtype)
            for part in queue:
                first_point = part[2]
                soft_points.add_sums(
                    given=given,
                    part=part,
                    order=order,
                    buffer=buffer,
                    results=sums[first_point // POINTS_A_PART],
                    upstream=upstream,
                    out=out,
                )

        enough = self.values.size * self.levels.size // FEW_TERMS
        share(parts, each, thread_count(self.workers, enough))
        if pieces > 1 and results is not None:
            for part in sums:
                results += part
