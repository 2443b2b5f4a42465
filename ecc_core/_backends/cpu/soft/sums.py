"""Soft curves of points with coefficients, from moments near the levels or point by point.

The logistic function s differs from a step only where |z| < REACH, z = sharpness * (level - value).
The range of values is therefore divided into *windows* around the levels, each with bins of equal
width, and the gaps between them. Slots are numbered by increasing value: slot ``offsets[i]`` is the
gap below window i, followed by the bins of that window; the last slot is everything above the last
window.

Sums are taken in an order that depends on sizes only, so results do not depend on the number of
threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.pool import ranges, share, thread_count
from ecc_core._backends.cpu.soft import points as soft_points

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REACH = 20.0  # s(-20) = 2e-9
MOMENTS = 4
BIN_WIDTH = 1 / 8  # In units of 1 / sharpness.
POINTS_AT_ONCE = 1 << 20  # Points whose moments are summed together.
MOMENTS_BYTES = 1 << 26  # The most memory of moments that are summed together.
MOST_SERIAL_POINTS = 1 << 15  # Up to so many points do not pay for waking a thread.
# Times in units of a point and a level near it, measured for 16 to 1,024 levels and 32 x 32 to
# 512 x 512 points: what a point takes longer point by point than in windows, beside its levels, and
# what a level takes in windows.
POINT = -6
WINDOWED_LEVEL = 40_000
PART = 1 << 16  # points that one thread takes at once
FEW_TERMS = 1 << 19  # points times levels that do not pay for waking a thread


class Windows(NamedTuple):
    """The line of values cut into windows around the levels."""

    starts: Floats
    """The least values of the windows, which increase and do not overlap."""
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
        """Windows of REACH / sharpness on both sides of increasing levels."""
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
    """(images, points), as the weights, without NaN; infinite ones enter first or never."""
    weights: Array
    levels: Floats
    sharpness: float
    workers: int | None

    def curves(self) -> Floats:
        """(3, images, n): the sums, their derivatives by the level and by the sharpness."""
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
        """Weight * sum over the levels of upstream * sharpness * s'(z) of every point.

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
        """Indices of the finite levels, sorted by level."""
        order = self.levels.argsort()
        return order[np.isfinite(self.levels[order])]

    def _takes_points(self, order: Integers) -> bool:
        """Whether to sum point by point: exactly, or where windows do not pay."""
        if self.values.dtype == np.float64:
            return True
        near = self._levels_near_a_point(order)
        found: bool = self.values.shape[1] * (near + POINT) <= WINDOWED_LEVEL * order.size
        return found

    def _levels_near_a_point(self, order: Integers) -> float:
        """Number of levels within reach of a point, if points and levels are evenly spread."""
        if order.size < 2:
            return order.size
        extent = float(self.levels[order[-1]] - self.levels[order[0]]) * self.sharpness
        cells = (extent + 2 * REACH) / (2 * REACH)
        return order.size * min(2 / cells, 1)

    def _add_windows(self, order: Integers, results: Floats) -> None:
        """Sums by the moments of windows."""
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
        """Gradients by interpolation in tables of the windows."""
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
        """Sums, or gradients by those of the sums, point by point."""
        images, points = self.values.shape
        step = max(1, PART // points)
        parts = [
            (i, min(i + step, images), p, min(p + PART, points))
            for i in range(0, images, step)
            for p in range(0, points, PART)
        ]
        pieces = ceil_div(points, PART)
        sums: list[Any] = [results] * pieces
        if results is not None and pieces > 1:
            sums = [np.zeros_like(results) for _ in sums]

        def each(queue: Iterator[tuple[int, int, int, int]]) -> None:
            given = self.values, self.weights, self.levels, self.sharpness
            buffer = np.empty(soft_points.BUFFER, np.float64 if double else self.values.dtype)
            for part in queue:
                soft_points.add_sums(
                    given, part, order, buffer, sums[part[2] // PART], upstream, out
                )

        enough = self.values.size * self.levels.size // FEW_TERMS
        share(parts, each, thread_count(self.workers, enough))
        if pieces > 1 and results is not None:
            for part in sums:
                results += part


@subroutine(error_model="numpy")
def _window(value, ends):
    """Index of the first window that ends above the value, or the number of windows."""
    low = 0
    high = ends.size
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(error_model="numpy")
def deposit(values, weights, windows, moments):
    """Add the moments, weight times 1, e, e**2 and e**3, of points to the slots of their values.

    e is the distance from the centre of the bin in units of its width. Points at -inf are in the
    first slot, and points at +inf never enter.
    """
    starts, ends, offsets, width = windows
    per_bin = 1 / width
    for i in range(values.size):
        weight = float(weights[i])
        value = float(values[i])
        if weight == 0 or value == np.inf:
            continue
        window = _window(value, ends)
        slot = offsets[window]
        if window < ends.size and value >= starts[window]:
            place = (value - starts[window]) * per_bin
            bin = min(int(place), offsets[window + 1] - slot - 2)
            e = place - bin - 0.5
            slot += 1 + bin
            moments[slot, 1] += weight * e
            moments[slot, 2] += weight * e * e
            moments[slot, 3] += weight * e * e * e
        moments[slot, 0] += weight


@subroutine(error_model="numpy")
def _near(level, sharpness, windows):
    """Window of a level, and the range of those of its bins that are within reach of it."""
    starts, ends, offsets, width = windows
    reach = REACH / sharpness
    window = _window(level, ends)
    if window == ends.size:  # an infinite level
        return window, 0, 0
    bins = offsets[window + 1] - offsets[window] - 1
    low = (level - reach - starts[window]) / width
    high = (level + reach - starts[window]) / width + 1
    # Written so that any level, NaN too, gives bins of the window.
    first = int(min(low if low > 0.0 else 0.0, float(bins)))
    last = int(high if high < bins else float(bins))
    return window, first, max(first, last)


@subroutine(error_model="numpy")
def _weigh(z, a, sharpness, weights):
    """Write the factors of the moments of a bin with centre z and width `a` in units of z.

    They are the Taylor coefficients of s(z), and of its derivatives with respect to the level and
    to the sharpness.
    """
    s = 1 / (1 + math.exp(-z))
    s1 = s * (1 - s)
    s2 = s1 * (1 - 2 * s)
    s3 = s1 * (1 - 6 * s1)
    s4 = s2 * (1 - 12 * s1)
    b = a * a / 2
    c = a * a * a / 6
    weights[0, 0] = s
    weights[0, 1] = -a * s1
    weights[0, 2] = b * s2
    weights[0, 3] = -c * s3
    weights[1, 0] = sharpness * s1
    weights[1, 1] = -sharpness * a * s2
    weights[1, 2] = sharpness * b * s3
    weights[1, 3] = -sharpness * c * s4
    weights[2, 0] = z * s1 / sharpness
    weights[2, 1] = -a * (s1 + z * s2) / sharpness
    weights[2, 2] = b * (2 * s2 + z * s3) / sharpness
    weights[2, 3] = -c * (3 * s3 + z * s4) / sharpness


@subroutine(error_model="numpy", fastmath={"reassoc", "contract"})
def _dot(weights, moments):
    """Sum of products, in any order so that the loop is vectorized."""
    total = 0.0
    for bin in range(weights.shape[0]):
        for moment in range(MOMENTS):
            total += weights[bin, moment] * moments[bin, moment]
    return total


@kernel(error_model="numpy")
def evaluate(moments, levels, sharpness, windows, results):
    """Write curves, and their derivatives with respect to levels and sharpness, to `results`.

    `moments` has shape (images, slots, 4), and `results` has shape (3, images, levels).
    """
    starts, _, offsets, width = windows
    images, slots, _ = moments.shape
    below = np.zeros((images, slots + 1))
    for image in range(images):
        for slot in range(slots):
            below[image, slot + 1] = below[image, slot] + moments[image, slot, 0]
    for j in range(levels.size):
        level = levels[j]
        if level == -np.inf:
            continue
        window, first, last = _near(level, sharpness, windows)
        slot = offsets[window] + 1 + first
        weights = np.empty((3, last - first, MOMENTS))
        for bin in range(first, last):
            z = sharpness * (level - starts[window] - (bin + 0.5) * width)
            _weigh(z, sharpness * width, sharpness, weights[:, bin - first])
        for image in range(images):
            results[0, image, j] = below[image, min(slot, slots)]
            for kind in range(3):
                results[kind, image, j] += _dot(weights[kind], moments[image, slot:])


@kernel(error_model="numpy")
def tabulate(gradients, levels, sharpness, windows, table):
    """Tabulate a function of the value, and its slope, at the ends of all bins.

    The function is the sum over the levels of ``gradient * sharpness * s'(z)``. `gradients` has
    shape (images, levels), and `table` has shape (images, slots, 2) and is zero. Slopes are per
    bin.
    """
    starts, ends, offsets, width = windows
    images = gradients.shape[0]
    for j in range(levels.size):
        level = levels[j]
        if level == -np.inf:
            continue
        window, first, last = _near(level, sharpness, windows)
        if window == ends.size:
            continue
        nodes = np.empty((last + 1 - first, 2))
        for bin in range(first, last + 1):
            z = sharpness * (level - starts[window] - bin * width)
            s = 1 / (1 + math.exp(-z))
            s1 = s * (1 - s)
            nodes[bin - first, 0] = s1 * sharpness
            nodes[bin - first, 1] = -s1 * (1 - 2 * s) * sharpness * sharpness * width
        for image in range(images):
            gradient = gradients[image, j]
            at = offsets[window] + first
            for bin in range(nodes.shape[0]):
                table[image, at + bin, 0] += gradient * nodes[bin, 0]
                table[image, at + bin, 1] += gradient * nodes[bin, 1]


@kernel(error_model="numpy")
def gather(values, weights, windows, table, out):
    """Write weight * table(value), by cubic Hermite interpolation within the windows.

    Between windows the function is zero.
    """
    starts, ends, offsets, width = windows
    per_bin = 1 / width
    for i in range(values.size):
        weight = float(weights[i])
        value = float(values[i])
        out[i] = 0
        if weight == 0:
            continue
        window = _window(value, ends)
        first = offsets[window]
        if window == ends.size or not value >= starts[window]:
            continue
        place = (value - starts[window]) * per_bin
        bin = min(int(place), offsets[window + 1] - first - 2)
        u = place - bin
        v0 = table[first + bin, 0]
        d0 = table[first + bin, 1]
        v1 = table[first + bin + 1, 0]
        d1 = table[first + bin + 1, 1]
        rise = v1 - v0
        cubic = d0 + d1 - 2 * rise
        out[i] = weight * (v0 + u * (d0 + u * (rise - d0 - cubic + u * cubic)))
