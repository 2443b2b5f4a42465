"""Soft curves of the heights of weighted points: kernels, pieces of work, threads and sums.

Points lie on a grid and have a weight for each orthant of directions, and their heights are the
same in all images of a batch. The steps of a direction are tabulated once for a few points at a
time, and every image multiplies its weights by them, which takes a third of the time of steps for
each of 16 images of 28 x 28. Sums over the points of a table have the precision of the weights, and
are added up in double precision. They are taken in an order that depends on sizes only, so results
do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.soft.points import DOUBLE_REACH, whole_vectors
from ecc_core._backends.cpu.soft.step_tables import (
    POINTS_A_TABLE,
    step_workspace,
    tabulate_steps,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_PARTS = 16  # The most parts into which the points are divided.
LEAST_PART = 1 << 12  # The fewest points that a thread takes at once.
# For fewer points times levels times directions, waking a thread takes longer than it saves.
FEW_TERMS = 1 << 19


class Projection(NamedTuple):
    """Weights (batch, orthants, points) at positions (d, points), projected on directions (k, d).

    Sums are in double precision if the weights are.
    """

    weights: Array
    positions: Floats
    directions: Floats
    levels: Floats
    sharpness: float
    workers: int | None

    def curves(self) -> Floats:
        """Return curves and their derivatives by level and by sharpness, (3, batch, k, n)."""
        order, levels = self._levels()
        shape = 3, len(self.weights), len(self.directions), order.size
        results: Floats = np.zeros((self._parts()[0], *shape))

        def add(given: Any, part: int, piece: tuple[int, int, int, int]) -> None:
            curves(given, piece, results[part])

        self._share(levels, add)
        total: Floats = results[0] if len(results) == 1 else results.sum(0)
        if (order[1:] > order[:-1]).all():
            return total
        unsorted: Floats = np.empty(shape)
        unsorted[..., order] = total
        return unsorted

    def gradients(self, upstream: Floats, of_weights: bool) -> tuple[Array, Floats]:
        """Return the gradients of the weights and, image by image, of the directions (batch, k, d).

        Those of the weights are undefined unless `of_weights`.
        """
        order, levels = self._levels()
        by_weights = (np.zeros if of_weights else np.empty)(self.weights.shape, self.weights.dtype)
        by_directions = np.zeros((self._parts()[0], len(self.weights), *self.directions.shape))
        ordered = np.ascontiguousarray(upstream[..., order])

        def add(given: Any, part: int, piece: tuple[int, int, int, int]) -> None:
            gradients(given, piece, ordered, of_weights, by_weights, by_directions[part])

        self._share(levels, add)
        return by_weights, by_directions.sum(0)

    def _levels(self) -> tuple[Places, Floats]:
        """Return the order of the levels, and sorted ones, all finite.

        Infinite levels become levels beyond all heights.
        """
        order = self.levels.argsort()
        levels = self.levels[order]
        if levels.size and np.isfinite(levels[[0, -1]]).all():
            return order, levels
        reach = np.abs(self.directions) @ np.abs(self.positions).max(1, initial=0)
        beyond = reach.max(initial=0) + 2 * DOUBLE_REACH / self.sharpness
        return order, levels.clip(-beyond, beyond)

    def _parts(self) -> tuple[int, int]:
        """Return into how many parts the points are divided, and the points of a part."""
        count = self.positions.shape[1]
        step = max(LEAST_PART, ceil_div(count, MOST_PARTS))
        return ceil_div(count, step), step

    def _share(
        self, levels: Floats, work: Callable[[Any, int, tuple[int, int, int, int]], None]
    ) -> None:
        """Call `work` on pieces: ranges of points and of orthants.

        Its arguments are what kernels are given, the number of the part, and the first and last
        point and orthant of the piece.
        """
        count, step = self._parts()
        points = self.weights.shape[2]
        orthants = self.weights.shape[1]
        numbers = (self.directions < 0) @ (1 << np.arange(self.directions.shape[1])[::-1])
        given = self.weights, self.positions, self.directions, numbers, levels, self.sharpness
        terms = points * self.levels.size * len(self.directions)
        threads = thread_count(self.workers, terms // FEW_TERMS)
        together = orthants if threads == 1 else 1
        pieces = [
            (part, (part * step, min((part + 1) * step, points), first, first + together))
            for part in range(count)
            for first in range(0, orthants, together)
        ]

        def each(queue: Iterator[tuple[int, tuple[int, int, int, int]]]) -> None:
            for part, piece in queue:
                work(given, part, piece)

        share(pieces, each, threads)


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _sums(weights, tables, distances, first, second, places, count):
    """Return sums of weight * (s, s', s' * (place - distance)) for two levels.

    Weights are read once for both.
    """
    steps, slopes = tables
    step = steps[first]
    next_step = steps[second]
    slope = slopes[first]
    next_slope = slopes[second]
    place, next_place = places
    total = rate = spread = next_total = next_rate = next_spread = steps.dtype.type(0)
    for p in range(count):
        weight = weights[p]
        distance = distances[p]
        change = weight * slope[p]
        next_change = weight * next_slope[p]
        total += weight * step[p]
        next_total += weight * next_step[p]
        rate += change
        next_rate += next_change
        spread += change * (place - distance)
        next_spread += next_change * (next_place - distance)
    return (total, rate, spread), (next_total, next_rate, next_spread)


@subroutine(error_model="numpy")
def _add_sums(sums, sharpness, curve, j):
    """Add the sums for a level to a curve and its derivatives."""
    total, slope, spread = sums
    curve[0, j] += total
    curve[1, j] += slope * sharpness
    curve[2, j] += spread


@kernel(error_model="numpy")
def _collect(weights, positions, orthant, first, last, everywhere):
    """Return the points of an orthant that are not zero in all images, or all of them.

    Returns their numbers, weights (images, points) and positions (d, points). Behind the weights
    there are zeros up to a multiple of LANES.
    """
    size = last - first
    present = np.zeros(size, np.bool_)
    for image in range(len(weights)):
        row = weights[image, orthant, first:last]
        for p in range(size):
            present[p] |= everywhere or row[p] != 0
    points = np.empty(size, np.int64)
    count = 0
    for p in range(size):
        points[count] = first + p
        count += int(present[p])
    points = points[:count]
    own = np.empty((len(weights), whole_vectors(count)), weights.dtype)
    own[:, count:] = 0
    for image in range(len(weights)):
        row = weights[image, orthant, first:last]
        target = own[image]
        if count == size:  # Rows are copied by vectors, and points are looked up one by one.
            for p in range(count):
                target[p] = row[p]
        else:
            for p in range(count):
                target[p] = row[points[p] - first]
    at = np.empty((len(positions), count))
    for axis in range(len(positions)):
        for p in range(count):
            at[axis, p] = positions[axis, points[p]]
    return points, own, at


@kernel(error_model="numpy")
def curves(given, piece, results):
    """Add to curves, and to their derivatives by the level and by the sharpness.

    `given` are weights (images, orthants, points), positions (d, points), directions (k, d), their
    orthants, finite and sorted levels, and the sharpness. A `piece` is the first and last point and
    orthant. `results` has shape (3, images, k, n).
    """
    weights, positions, directions, numbers, levels, sharpness = given
    images = len(weights)
    space = step_workspace(weights, levels, sharpness)
    _, scratch, buffer, steps, slopes = space
    heights = scratch[0]
    distances = buffer[1]
    for orthant in range(piece[2], piece[3]):
        if not (numbers == orthant).any():
            continue
        points, present, at = _collect(weights, positions, orthant, piece[0], piece[1], False)
        for k in range(len(directions)):
            if numbers[k] != orthant:
                continue
            for first in range(0, points.size, POINTS_A_TABLE):
                size = min(POINTS_A_TABLE, points.size - first)
                projected = at, directions, levels, sharpness
                low, high, count = tabulate_steps(projected, k, first, first + size, space)
                for p in range(count):
                    distances[p] = heights[p] - heights[0]
                for image in range(images):
                    own = present[image, first:]
                    curve = results[:, image, k]
                    for j in range(low, high, 2):
                        after = min(j + 1, high - 1)
                        places = (
                            own.dtype.type(levels[j] - heights[0]),
                            own.dtype.type(levels[after] - heights[0]),
                        )
                        tables = steps, slopes
                        one, two = _sums(
                            weights=own,
                            tables=tables,
                            distances=distances,
                            first=j,
                            second=after,
                            places=places,
                            count=count,
                        )
                        _add_sums(one, sharpness, curve, j)
                        if after > j:
                            _add_sums(two, sharpness, curve, after)
                    if high < levels.size:
                        reached = own[:size].sum()
                        for j in range(high, levels.size):
                            curve[0, j] += reached


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _add_levels(upstream, others, low, high, table, out, count):
    """Write the sums over the levels of upstream times a row of a table, for two images."""
    first = out[0]
    second = out[1]
    first[:count] = 0
    second[:count] = 0
    # Most of the time is spent on reading and writing the sums, so each turn adds four levels.
    for j in range(low, high, 4):
        a = j
        b = min(j + 1, high - 1)
        c = min(j + 2, high - 1)
        d = min(j + 3, high - 1)
        row = table[a]
        next_row = table[b]
        third_row = table[c]
        last_row = table[d]
        real = table.dtype.type
        one = real(upstream[a])
        two = real(upstream[b] * (b > a))
        three = real(upstream[c] * (c > b))
        four = real(upstream[d] * (d > c))
        other_one = real(others[a])
        other_two = real(others[b] * (b > a))
        other_three = real(others[c] * (c > b))
        other_four = real(others[d] * (d > c))
        for p in range(count):
            w = row[p]
            x = next_row[p]
            y = third_row[p]
            z = last_row[p]
            first[p] += one * w + two * x + three * y + four * z
            second[p] += other_one * w + other_two * x + other_three * y + other_four * z


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _moment(weights, rates, positions):
    total = 0.0
    for p in range(positions.size):
        total += positions[p] * (weights[p] * rates[p])
    return total


@kernel(error_model="numpy")
def gradients(given, piece, upstream, of_weights, by_weights, by_directions):
    """Write the gradients of the weights, and add to those of the directions image by image.

    `given` and `piece` are those of :func:`curves`, `upstream` has shape (images, k, n),
    `by_weights` that of the weights, and `by_directions` (images, k, d). The gradients of weights
    are only written if `of_weights`, which takes the points where all weights are zero, too.
    """
    weights, positions, directions, numbers, levels, sharpness = given
    images = len(weights)
    d = len(positions)
    space = step_workspace(weights, levels, sharpness)
    _, _, _, steps, slopes = space
    entered = np.empty((2, POINTS_A_TABLE), weights.dtype)
    rates = np.empty((2, POINTS_A_TABLE), weights.dtype)
    for orthant in range(piece[2], piece[3]):
        if not (numbers == orthant).any():
            continue
        points, own, at = _collect(weights, positions, orthant, piece[0], piece[1], of_weights)
        total = np.zeros((images if of_weights else 0, points.size))
        for k in range(len(directions)):
            if numbers[k] != orthant:
                continue
            for first in range(0, points.size, POINTS_A_TABLE):
                last = min(first + POINTS_A_TABLE, points.size)
                projected = at, directions, levels, sharpness
                low, high, count = tabulate_steps(projected, k, first, last, space)
                for image in range(0, images, 2):
                    other = min(image + 1, images - 1)
                    given_two = upstream[image, k], upstream[other, k]
                    _add_levels(*given_two, low, high, slopes, rates, count)
                    for i in range(1 + other - image):
                        row = own[image + i, first:last]
                        for axis in range(d):
                            moment = _moment(row, rates[i], at[axis, first:last])
                            by_directions[image + i, k, axis] -= moment * sharpness
                    if not of_weights:
                        continue
                    _add_levels(*given_two, low, high, steps, entered, count)
                    for i in range(1 + other - image):
                        after = given_two[i][high:].sum()
                        row = total[image + i, first:last]
                        found = entered[i]
                        for p in range(row.size):
                            row[p] += found[p] + after
        if of_weights:
            for image in range(images):
                row = by_weights[image, orthant, piece[0] : piece[1]]
                sums = total[image]
                for p in range(row.size):
                    row[p] = sums[p]
