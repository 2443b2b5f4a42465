"""Soft curves of the heights of weighted points: kernels, pieces of work, threads and sums.

Points lie on a grid and have a weight for each orthant of directions, and their heights are the
same in all images of a batch. The steps of a direction are tabulated once for a few points at a
time, and every image multiplies its weights by them, which takes a third of the time of steps for
each of 16 images of 28 x 28. Sums over the points of a table have the precision of the weights, and
are added up in double precision. They are taken in an order that depends on sizes only, so results
do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.pool import share, thread_count
from ecc_core._backends.cpu.soft.points import (
    DOUBLE_REACH,
    LANES,
    LEAST,
    MOST,
    SINGLE_REACH,
    exponentials,
)

Array = NDArray[Any]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# The extent of a run of levels, which share one exponential a point, and how far from a run points
# are kept apart, both times sharpness: s(-36) = 2e-16. Exponents of odds are at most their sum, so
# that no odds are subnormal floats, as in `points`.
SINGLE_SPAN, DOUBLE_SPAN = 48.0, 160.0
SINGLE_MARGIN, DOUBLE_MARGIN = 36.0, 80.0
CHUNK = 1 << 10  # points of a table: those of 16 levels fit into the second-level cache
PARTS = 16  # of the points, at most
PART = 1 << 12  # points that one thread takes at once, at least
FEW_TERMS = 1 << 19  # points times levels times directions that do not pay for waking a thread


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
        """Curves (3, batch, k, n): the sums, their derivatives by the level and the sharpness."""
        order, _ = self._levels()
        shape = 3, len(self.weights), len(self.directions), order.size
        results: Floats = np.zeros((self._parts()[0], *shape))

        def add(given: Any, part: int, orthant: int, points: Any, chosen: Places) -> None:
            own = np.zeros((3, len(self.weights), chosen.size, order.size))
            curves(given, own)
            results[part][:, :, chosen[:, None], order] = own

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

        def add(given: Any, part: int, orthant: int, points: Any, chosen: Places) -> None:
            entered = np.zeros(given[0].shape)
            turned = np.zeros((len(self.weights), *given[2].shape))
            gradients(given, upstream[:, chosen][..., order], entered, turned)
            by_weights[:, orthant, points] = entered
            by_directions[part][:, chosen] = turned

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

    def _share(self, work: Callable[[Any, int, int, Any, Places], None], everywhere: bool) -> None:
        """Call `work` on pieces, without points that are zero in all images unless `everywhere`.

        Its arguments are what kernels are given, the number of the part, an orthant, the points,
        and the directions of that orthant.
        """
        (_, levels), (count, step) = self._levels(), self._parts()
        orthants = (self.directions < 0) @ (1 << np.arange(self.directions.shape[1])[::-1])
        pieces = [(part, int(orthant)) for part in range(count) for orthant in set(orthants)]

        def each(queue: Iterator[tuple[int, int]]) -> None:
            for part, orthant in queue:
                points: Any = slice(part * step, (part + 1) * step)
                if not everywhere:
                    present = self.weights[:, orthant, points].any(0)
                    if not present.all():
                        points = part * step + np.flatnonzero(present)
                weights = np.ascontiguousarray(self.weights[:, orthant, points])
                positions = np.ascontiguousarray(self.positions[:, points])
                (chosen,) = (orthants == orthant).nonzero()
                given = weights, positions, self.directions[chosen], levels, self.sharpness
                work(given, part, orthant, points, chosen)

        terms = self.positions.shape[1] * self.levels.size * len(self.directions)
        share(pieces, each, thread_count(self.workers, terms // FEW_TERMS))


@kernel(error_model="numpy")
def _run_ends(levels, sharpness, span):
    """Return the ends of the runs of increasing levels that share one exponential a point."""
    ends = np.empty(levels.size, np.int64)
    count = first = 0
    for j in range(1, levels.size + 1):
        if j == levels.size or not sharpness * (levels[j] - levels[first]) <= span:
            ends[count] = first = j
            count += 1
    return ends[:count]


@kernel(error_model="numpy")
def _prepare_runs(levels, sharpness, double, factors):
    """Return the ends of runs and their bounds, and write the exponentials of the levels.

    `bounds` has shape (runs, 3): the middle of each run, and the range relative to it to which
    heights are limited.
    """
    ends = _run_ends(levels, sharpness, DOUBLE_SPAN if double else SINGLE_SPAN)
    margin = (DOUBLE_MARGIN if double else SINGLE_MARGIN) / sharpness
    bounds = np.empty((ends.size, 3))
    first = 0
    for run in range(ends.size):
        half = (levels[ends[run] - 1] - levels[first]) / 2
        middle = levels[first] + half
        bounds[run, 0], bounds[run, 1], bounds[run, 2] = middle, -half - margin, half + margin
        for j in range(first, ends[run]):
            factors[j] = math.exp(-sharpness * (levels[j] - middle))
        first = ends[run]
    return ends, bounds


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _write_steps(factor, odds, steps, slopes, count):
    """Write s and s' = s * (1 - s) for one level."""
    one = steps.dtype.type(1)
    least, most = steps.dtype.type(LEAST), steps.dtype.type(MOST)
    for p in range(count):
        against = max(min(factor * odds[p], most), least)
        s = one / (one + against)
        steps[p] = s
        slopes[p] = against * s * s


@kernel(error_model="numpy")
def _workspace(weights, levels, sharpness):
    """Return what :func:`_tabulate` needs; two rows of the third array are for the caller."""
    buffer = np.empty((3, CHUNK), weights.dtype)
    factors = np.empty(levels.size, weights.dtype)
    ends, bounds = _prepare_runs(levels, sharpness, weights.itemsize == 8, factors)
    steps = np.empty((levels.size, CHUNK), weights.dtype)
    return (ends, bounds, factors), np.empty((3, CHUNK)), buffer, steps, np.empty_like(steps)


@kernel(error_model="numpy")
def _tabulate(given, k, first, last, space):
    """Write s and s' of some points to (n, CHUNK) tables, for the levels that are near any of them.

    Returns the range of these levels, and the number of points, which are repeated up to a multiple
    of LANES. They are above the levels before that range, and have entered at those after it.
    """
    _, positions, directions, levels, sharpness = given
    (ends, bounds, factors), scratch, buffer, steps, slopes = space
    heights, odds = scratch[0], buffer[0]
    size = last - first
    count = -(-size // LANES) * LANES
    heights[:size] = 0
    for axis in range(len(positions)):
        for p in range(size):
            heights[p] += directions[k, axis] * positions[axis, first + p]
    heights[size:count] = heights[0]
    reach = (DOUBLE_REACH if odds.itemsize == 8 else SINGLE_REACH) / sharpness
    low = np.searchsorted(levels, heights[:size].min() - reach)
    high = np.searchsorted(levels, heights[:size].max() + reach)
    begin = 0
    for run in range(ends.size):
        middle, least, most = bounds[run, 0], bounds[run, 1], bounds[run, 2]
        if low < ends[run] and begin < high:
            for p in range(count):
                scratch[1, p] = min(max(heights[p] - middle, least), most)
            exponentials(scratch[1], sharpness, scratch[2], odds, count)
            for j in range(max(begin, low), min(ends[run], high)):
                _write_steps(factors[j], odds, steps[j], slopes[j], count)
        begin = ends[run]
    return low, high, count


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _sums(weights, steps, slopes, distances, level, count):
    """Sums of weight * (s, s', s' * (level - height))."""
    total = slope = spread = steps.dtype.type(0)
    for p in range(count):
        change = weights[p] * slopes[p]
        total += weights[p] * steps[p]
        slope += change
        spread += change * (level - distances[p])
    return total, slope, spread


@kernel(error_model="numpy")
def curves(given, results):
    """Add to curves, and to their derivatives by the level and by the sharpness.

    `given` are weights (images, points), positions (d, points), directions (k, d), finite and
    sorted levels, and the sharpness. `results` has shape (3, images, k, n).
    """
    weights, _, directions, levels, sharpness = given
    images, points = weights.shape
    space = _workspace(weights, levels, sharpness)
    _, scratch, buffer, steps, slopes = space
    heights, own, distances = scratch[0], buffer[1], buffer[2]
    for k in range(len(directions)):
        for first in range(0, points, CHUNK):
            size = min(CHUNK, points - first)
            low, high, count = _tabulate(given, k, first, first + size, space)
            own[size:count] = 0
            for p in range(count):
                distances[p] = heights[p] - heights[0]
            for image in range(images):
                own[:size] = weights[image, first : first + size]
                for j in range(low, high):
                    at = own.dtype.type(levels[j] - heights[0])
                    total, slope, spread = _sums(own, steps[j], slopes[j], distances, at, count)
                    results[0, image, k, j] += total
                    results[1, image, k, j] += slope * sharpness
                    results[2, image, k, j] += spread
                if high < levels.size:
                    results[0, image, k, high:] += own[:size].sum()


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _add_levels(upstream, low, high, tables, entered, rates, count):
    """Write the sums over the levels of upstream * s, and of upstream * s'."""
    (steps, slopes), after = tables, 0.0
    for j in range(high, upstream.size):
        after += upstream[j]
    entered[:count], rates[:count] = after, 0
    # Four levels at a time, as most of the time is spent on reading and writing the sums.
    for j in range(low, high, 4):
        a, b, c, d = j, min(j + 1, high - 1), min(j + 2, high - 1), min(j + 3, high - 1)
        real = steps.dtype.type
        one, two = real(upstream[a]), real(upstream[b] * (b > a))
        three, four = real(upstream[c] * (c > b)), real(upstream[d] * (d > c))
        for p in range(count):
            entered[p] += one * steps[a, p] + two * steps[b, p]
            entered[p] += three * steps[c, p] + four * steps[d, p]
            rates[p] += one * slopes[a, p] + two * slopes[b, p]
            rates[p] += three * slopes[c, p] + four * slopes[d, p]


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _moment(weights, rates, positions):
    total = 0.0
    for p in range(positions.size):
        total += positions[p] * (weights[p] * rates[p])
    return total


@kernel(error_model="numpy")
def gradients(given, upstream, by_weights, by_directions):
    """Add to the gradients of the weights, and to those of the directions image by image.

    `given` is that of :func:`curves`, `upstream` has shape (images, k, n), `by_weights` (images,
    points) and `by_directions` (images, k, d).
    """
    weights, positions, directions, levels, sharpness = given
    images, points = weights.shape
    space = _workspace(weights, levels, sharpness)
    _, _, buffer, steps, slopes = space
    entered, rates = buffer[1], buffer[2]
    for k in range(len(directions)):
        for first in range(0, points, CHUNK):
            last = min(first + CHUNK, points)
            low, high, count = _tabulate(given, k, first, last, space)
            for image in range(images):
                own = weights[image, first:last]
                _add_levels(upstream[image, k], low, high, (steps, slopes), entered, rates, count)
                by_weights[image, first:last] += entered[: last - first]
                for axis in range(len(positions)):
                    moment = _moment(own, rates, positions[axis, first:last])
                    by_directions[image, k, axis] -= moment * sharpness
