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
from ecc_core._backends.cpu.soft.row_products import add_products, combine
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


class Gradients(NamedTuple):
    """Gradients of curves; those of numbers are sums over groups of images.

    Those of weights and of the sharpness are undefined unless they are asked for.
    """

    weights: Array
    """(batch, orthants, points)."""
    directions: Floats
    """(groups, k, d)."""
    levels: Floats
    """(groups, n)."""
    sharpness: Floats
    """(groups,)."""


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

    def curves(self, derivatives: bool = True) -> Floats:
        """Return curves, and their derivatives by level and by sharpness, (1 or 3, batch, k, n)."""
        order, levels = self._levels()
        kinds = 3 if derivatives else 1
        shape = kinds, len(self.weights), len(self.directions), order.size
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

    def gradients(
        self, upstream: Floats, groups: int, of_weights: bool, of_sharpness: bool
    ) -> Gradients:
        """Return gradients by those of curves (batch, k, n).

        The groups are images that follow each other, and equally many in each.
        """
        order, levels = self._levels()
        by_weights = (np.zeros if of_weights else np.empty)(self.weights.shape, self.weights.dtype)
        parts = self._parts()[0], groups, len(self.directions)
        by_directions = np.zeros((*parts, self.directions.shape[1]))
        by_ordered = np.zeros((*parts, order.size))
        by_sharpness = np.zeros((*parts, order.size))
        ordered = np.ascontiguousarray(upstream[..., order])
        wanted = of_weights, of_sharpness

        def add(given: Any, part: int, piece: tuple[int, int, int, int]) -> None:
            by_numbers = by_directions[part], by_ordered[part], by_sharpness[part]
            gradients(given, piece, ordered, wanted, by_weights, by_numbers)

        self._share(levels, add)
        by_levels: Floats = np.empty((groups, order.size))
        by_levels[:, order] = by_ordered.sum((0, 2)) * self.sharpness
        return Gradients(
            weights=by_weights,
            directions=by_directions.sum(0) * self.sharpness,
            levels=by_levels,
            sharpness=by_sharpness.sum((0, 2, 3)),
        )

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


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _multiply_by_distances(slopes, heights, distances, levels, near):
    """Multiply s' by the distance of levels from points; both are taken relative to the first."""
    low, high, count = near
    for p in range(count):
        distances[p] = heights[p] - heights[0]
    for j in range(low, high):
        place = slopes.dtype.type(levels[j] - heights[0])
        row = slopes[j]
        for p in range(count):
            row[p] *= place - distances[p]


@kernel(error_model="numpy")
def curves(given, piece, results):
    """Add to curves, and to their derivatives by the level and by the sharpness if there is room.

    `given` are weights (images, orthants, points), positions (d, points), directions (k, d), their
    orthants, finite and sorted levels, and the sharpness. A `piece` is the first and last point and
    orthant. `results` has shape (1 or 3, images, k, n).
    """
    weights, positions, directions, numbers, levels, sharpness = given
    images = len(weights)
    space = step_workspace(weights, levels, sharpness)
    heights = space[1][0]
    distances = space[2][1]
    steps = space[3]
    slopes = space[4]
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
                near = tabulate_steps(projected, k, first, first + size, space)
                low, high, count = near
                add_products(present, first, steps, low, high, count, 1.0, results[0, :, k])
                if high < levels.size:
                    for image in range(images):
                        results[0, image, k, high:] += present[image, first : first + size].sum()
                if len(results) == 1:
                    continue
                add_products(present, first, slopes, low, high, count, sharpness, results[1, :, k])
                _multiply_by_distances(slopes, heights, distances, levels, near)
                add_products(present, first, slopes, low, high, count, 1.0, results[2, :, k])


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _moment(rates, positions):
    total = 0.0
    for p in range(positions.size):
        total += positions[p] * rates[p]
    return total


@subroutine()
def _factors(upstream, images, j, is_level, real):
    """Return the upstream gradients of four images at a level, or zeros for one that is none.

    Images that come again have zeros too.
    """
    first, second, third, fourth = images
    return (
        real(upstream[first, j] * is_level),
        real(upstream[second, j] * (is_level and second > first)),
        real(upstream[third, j] * (is_level and third > second)),
        real(upstream[fourth, j] * (is_level and fourth > third)),
    )


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _changes(own, images, at, factors, slopes, levels, rates, count):
    """Return the changes of curves with two levels, summed over the points of four images.

    That of a point, times its weight and s', is also added to `rates`.
    """
    first = own[images[0], at:]
    second = own[images[1], at:]
    third = own[images[2], at:]
    fourth = own[images[3], at:]
    slope = slopes[levels[0]]
    next_slope = slopes[levels[1]]
    (a, b, c, d), (e, f, g, h) = factors
    total = next_total = own.dtype.type(0)
    for p in range(count):
        w = first[p]
        x = second[p]
        y = third[p]
        z = fourth[p]
        change = (a * w + b * x + c * y + d * z) * slope[p]
        next_change = (e * w + f * x + g * y + h * z) * next_slope[p]
        rates[p] += change + next_change
        total += change
        next_total += next_change
    return total, next_total


@kernel(error_model="numpy")
def _add_changes(upstream, k, groups, own, first, slopes, near, at, by_directions, out):
    """Add the changes of curves of direction k, summed over groups of images, to ``out[:, k]``.

    `near` is the range of levels near the points of a table, and their number. The weights of these
    points begin at the place `first` of `own` (images, points). The changes of points, times their
    positions `at`, are subtracted from ``by_directions[:, k]`` if it is given.
    """
    low, high, count = near
    rates = np.empty(count, own.dtype)
    size = len(own) // groups
    for group in range(groups):
        end = (group + 1) * size
        for image in range(group * size, end, 4):
            images = (
                image,
                min(image + 1, end - 1),
                min(image + 2, end - 1),
                min(image + 3, end - 1),
            )
            rates[:] = 0
            for j in range(low, high, 2):
                after = min(j + 1, high - 1)
                factors = (
                    _factors(upstream[:, k], images, j, True, own.dtype.type),
                    _factors(upstream[:, k], images, after, after > j, own.dtype.type),
                )
                levels = j, after
                found = _changes(own, images, first, factors, slopes, levels, rates, count)
                out[group, k, j] += found[0]
                out[group, k, after] += found[1]
            if by_directions is None:
                continue
            last = min(first + count, at.shape[1])
            for axis in range(len(at)):
                by_directions[group, k, axis] -= _moment(rates, at[axis, first:last])


@kernel(error_model="numpy")
def gradients(given, piece, upstream, wanted, by_weights, by_numbers):
    """Write the gradients of the weights, and add to those of directions, levels and sharpness.

    `given` and `piece` are those of :func:`curves`, `upstream` has shape (images, k, n) and
    `by_weights` that of the weights. `by_numbers` are sums over groups of images that follow each
    other: those by directions (groups, k, d) and by levels (groups, k, n), both to be multiplied by
    the sharpness, and by the sharpness (groups, k, n), to be summed over the levels. `wanted` tells
    whether to compute gradients of the weights, which takes the points where all weights are zero,
    too, and of the sharpness.
    """
    weights, positions, directions, numbers, levels, sharpness = given
    of_weights, of_sharpness = wanted
    by_directions, by_levels, by_sharpness = by_numbers
    images = len(weights)
    groups = len(by_sharpness)
    space = step_workspace(weights, levels, sharpness)
    heights = space[1][0]
    distances = space[2][1]
    steps = space[3]
    slopes = space[4]
    entered = np.empty((2, POINTS_A_TABLE), weights.dtype)
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
                near = tabulate_steps(projected, k, first, last, space)
                low, high, count = near
                table = own, first, slopes, near, at
                _add_changes(upstream, k, groups, *table, by_directions, by_levels)
                if of_sharpness:
                    _multiply_by_distances(slopes, heights, distances, levels, near)
                    _add_changes(upstream, k, groups, *table, None, by_sharpness)
                for image in range(0, images if of_weights else 0, 2):
                    two = upstream[image : image + 2, k]
                    combine(two, steps, 0, low, high, count, entered)
                    for i in range(len(two)):
                        after = two[i, high:].sum()
                        row = total[image + i, first:last]
                        for p in range(row.size):
                            row[p] += entered[i, p] + after
        if of_weights:
            for image in range(images):
                row = by_weights[image, orthant, piece[0] : piece[1]]
                sums = total[image]
                for p in range(row.size):
                    row[p] = sums[p]
