"""Soft curves point by point: faster than windows for few points or levels, and as exact as s.

With s(z) = 1 / (1 + exp(-l * t) * exp(l * v)) a run of levels takes one exponential a point. Loops
are over the points at which the curve changes, which are collected first, so that they vectorize.
Sums are taken in the dtype of `buffer`, which is single precision unless images are double.
"""

from __future__ import annotations

import math

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine

CHUNK = 1 << 10  # points that are collected at once
BUFFER = (3, CHUNK)
LANES = 8  # loops are over a multiple of so many points
SINGLE_SPAN, DOUBLE_SPAN = 128.0, 600.0  # of a run of levels, times sharpness: none overflows
MOST = 1e30  # odds against having entered, for which s' = odds * s**2 is 0
SINGLE_REACH, DOUBLE_REACH = 20.0, 40.0  # s(-20) = 2e-9, s(-40) = 4e-18

ROUND = 1.5 * 2.0**52  # adding it rounds a double to an integer, which is in its lowest bits
BIAS = 1023  # of the exponent of a double
LOG_2_E, LOG_E_2 = math.log2(math.e), math.log(2)
TAYLOR = tuple(1 / math.factorial(k) for k in range(11, -1, -1))


@subroutine(error_model="numpy", fastmath={"contract"})
def exponentials(places, sharpness, scratch, out, count):
    """Write exp(sharpness * place), for exponents between -700 and 700.

    exp(z) = 2**k * exp(f) with an integer k and the Taylor series for abs(f) < 0.35. Unlike
    `math.exp` it is computed for several points at a time.
    """
    slope = sharpness * LOG_2_E
    bits = scratch.view(np.int64)
    for p in range(count):
        scratch[p] = slope * places[p] + ROUND
    for p in range(count):
        f = (slope * places[p] - (scratch[p] - ROUND)) * LOG_E_2
        series = 0.0
        for coefficient in TAYLOR:
            series = series * f + coefficient
        out[p] = series
        bits[p] = (bits[p] + BIAS) << 52
    for p in range(count):
        out[p] *= scratch[p]


@kernel(error_model="numpy")
def runs(levels, order, sharpness, span):
    """Ends of the runs of levels that share one exponential per point, in increasing order."""
    ends = np.empty(order.size, np.int64)
    count = first = 0
    for j in range(1, order.size + 1):
        if j == order.size or not sharpness * (levels[order[j]] - levels[order[first]]) <= span:
            ends[count] = first = j
            count += 1
    return ends[:count]


@kernel(error_model="numpy")
def prepare(levels, order, sharpness, buffer):
    """Ends of runs, ranges of the values that matter for them, and exponentials of the levels.

    `bounds` has shape (runs, 3): the middle of each run, and the range of values relative to it.
    """
    double = buffer.itemsize == 8
    ends = runs(levels, order, sharpness, DOUBLE_SPAN if double else SINGLE_SPAN)
    reach = (DOUBLE_REACH if double else SINGLE_REACH) / sharpness
    bounds = np.empty((ends.size, 3))
    factors, places = np.empty(order.size, buffer.dtype), np.empty(order.size, buffer.dtype)
    first = 0
    for run in range(ends.size):
        lowest = levels[order[first]]
        half = (levels[order[ends[run] - 1]] - lowest) / 2
        middle = lowest + half
        bounds[run, 0], bounds[run, 1], bounds[run, 2] = middle, -half - reach, half + reach
        for j in range(first, ends[run]):
            places[j] = levels[order[j]] - middle
            factors[j] = math.exp(-sharpness * (levels[order[j]] - middle))
        first = ends[run]
    return ends, bounds, factors, places


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _sums(factor, place, buffer, count):
    """Sums over the points of weight * (s, s', s' * (level - value)) for one level."""
    one, most = buffer.dtype.type(1), buffer.dtype.type(MOST)
    total = slope = spread = one - one
    for p in range(count):
        odds = min(factor * buffer[0, p], most)
        s = one / (one + odds)
        change = buffer[1, p] * (odds * s * s)
        total += buffer[1, p] * s
        slope += change
        spread += change * (place - buffer[2, p])
    return total, slope, spread


@subroutine(error_model="numpy", fastmath={"contract", "nsz"})
def _add_slopes(factor, upstream, buffer, count):
    """Add upstream * s' for one level to the buffer's second row."""
    one, most = buffer.dtype.type(1), buffer.dtype.type(MOST)
    for p in range(count):
        odds = min(factor * buffer[0, p], most)
        s = one / (one + odds)
        buffer[1, p] += upstream * (odds * s * s)


@kernel(error_model="numpy")
def add_sums(given, part, order, buffer, results, upstream, out):
    """Add to curves and their derivatives by levels and sharpness, or to the gradients of points.

    `given` are the values and weights (images, points), the levels and the sharpness. `part` is a
    range of images and of points: first image, last image, first point, last point. `order` holds
    the indices of the finite levels, sorted by level. `results` are the curves and derivatives,
    (3, images, n), or None. If `upstream` (images, n) is given, weight * sum over the levels of
    upstream * sharpness * s'(z) is added to `out` (images, points) for every point.
    """
    values, weights, levels, sharpness = given
    ends, bounds, factors, places = prepare(levels, order, sharpness, buffer)
    exact, scratch, points = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK, np.int64)
    for image in range(part[0], part[1]):
        for start in range(part[2], part[3], CHUNK):
            first = 0
            for run in range(ends.size):
                middle, low, high = bounds[run, 0], bounds[run, 1], bounds[run, 2]
                count, entered = 0, 0.0  # points near the levels, and weights of those below
                for p in range(start, min(start + CHUNK, part[3])):
                    weight, place = weights[image, p], float(values[image, p]) - middle
                    exact[count] = buffer[2, count] = place
                    buffer[1, count], points[count] = weight, p
                    entered += weight if place <= low else 0
                    count += int(weight != 0) & int(low < place) & int(place < high)
                full = -(-count // LANES) * LANES
                exact[count:full] = 0
                buffer[1:, count:full] = 0
                exponentials(exact, sharpness, scratch, buffer[0], full)
                if results is not None:
                    for j in range(first, ends[run]):
                        total, slope, spread = _sums(factors[j], places[j], buffer, full)
                        results[0, image, order[j]] += total + entered
                        results[1, image, order[j]] += slope * sharpness
                        results[2, image, order[j]] += spread
                if upstream is not None:
                    buffer[1, :full] = 0
                    for j in range(first, ends[run]):
                        slope = buffer.dtype.type(upstream[image, order[j]])
                        _add_slopes(factors[j], slope, buffer, full)
                    for i in range(count):
                        p = points[i]
                        out[image, p] += weights[image, p] * sharpness * buffer[1, i]
                first = ends[run]
