"""Soft curves point by point: faster than windows for few points or levels, and as exact as s.

With s(z) = 1 / (1 + exp(-l * t) * exp(l * v)) points near the same levels take one exponential
each. The values are therefore cut into cells: points of a cell share the levels within their reach,
and are collected first, so that loops over them vectorize. Sums are taken in the dtype of `buffer`,
which is single precision unless images are double.
"""

from __future__ import annotations

import math

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine

POINTS_AT_ONCE = 1 << 12  # Points that are sorted into cells together.
BUFFER = (3, POINTS_AT_ONCE)
LANES = 8  # Loops run over a multiple of so many points.
# In units of 1 / sharpness. Beyond the reach of a level, s(-20) = 2e-9 and s(-40) = 4e-18. Cells
# are at most twice as wide, so that exponents of odds are at most three times the reach. No odds
# are then subnormal floats, which take processors a hundred times as long.
SINGLE_REACH = 20.0
DOUBLE_REACH = 40.0
# Odds against having entered beyond which s and s' are less than 1e-18 from 0 or 1. Without these
# limits, products of odds with small upstream gradients would be subnormal.
LEAST_ODDS = 1e-18
MOST_ODDS = 1e18
MOST_CELLS = 1 << 12  # Cells have equal widths, so that a point finds its own without a search.
NARROW = 1e-9
"""Width of cells, relative to their values, below which rounding makes widths differ."""
FARTHEST = 1e307
"""Reach in units of the values, up to which no difference overflows."""

ROUND = 1.5 * 2.0**52
"""Adding it rounds a double to an integer, which is then in its lowest bits."""
BIAS = 1023  # A double stores its exponent plus this number.
LOG_2_E = math.log2(math.e)
LOG_E_2 = math.log(2)
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


@subroutine(error_model="numpy")
def _reach(sharpness, double):
    return min((DOUBLE_REACH if double else SINGLE_REACH) / sharpness, FARTHEST)


@subroutine()
def whole_vectors(count):
    """Return a number of points rounded up to whole vectors."""
    return -(-count // LANES) * LANES


@kernel(error_model="numpy")
def near_levels(levels, sharpness, double):
    """Return the range of values (lowest, highest) within reach of each level."""
    reach = _reach(sharpness, double)
    # However sharp, a value equal to a level is within reach of it.
    lows = np.minimum(levels - reach, np.nextafter(levels, -np.inf))
    highs = np.maximum(levels + reach, np.nextafter(levels, np.inf))
    return lows, highs


@subroutine()
def merged(lows, highs):
    """Merge increasing arrays of one size, each element of the first being below its like.

    NumPy's sort would take longer to compile than all else that cells need.
    """
    count = lows.size
    both = np.empty(2 * count)
    low = 0
    high = 0
    for i in range(2 * count):
        if low < count and lows[low] <= highs[high]:
            both[i] = lows[low]
            low += 1
        else:
            both[i] = highs[high]
            high += 1
    return both


@kernel(error_model="numpy")
def cell_edges(lows, highs, width):
    """Cut the values within reach of increasing levels into cells of at most a width.

    Returns the increasing edges of the cells, and the number of cells in a unit of the values. It
    is 0 if cells differ in width: if levels are so far apart that most cells of equal width would
    be empty, or so sharp that such cells would be as narrow as the distances of floats.
    """
    extent = highs[-1] - lows[0]
    cells = math.ceil(extent / width)
    narrow = width < NARROW * max(abs(lows[0]), abs(highs[-1]))
    if narrow or cells > MOST_CELLS:
        return merged(lows, highs), 0.0
    return np.linspace(lows[0], highs[-1], cells + 1), cells / extent


@kernel(error_model="numpy")
def prepare(levels, sharpness, buffer):
    """Cut values into cells, and find the levels within reach of each, with their exponentials.

    `edges` and `density` are those of `cell_edges`. Cell i is below edge i, and the last cell is
    above all edges. Of the levels, ``ranges[i, 0]`` is the first one within reach of cell i, and
    ``ranges[i, 1]`` the first one beyond its reach. The exponentials of the levels of cell i and
    their places relative to its middle begin at index ``begins[i]`` of `factors` and `places`.
    """
    double = buffer.itemsize == 8
    lows, highs = near_levels(levels, sharpness, double)
    edges, density = cell_edges(lows, highs, 2 * _reach(sharpness, double))
    farthest = 3 * (DOUBLE_REACH if double else SINGLE_REACH)
    count = edges.size + 1
    ranges = np.zeros((count, 2), np.int64)
    begins = np.zeros(count + 1, np.int64)
    middles = np.zeros(count)
    first = last = 0
    for cell in range(count):
        while cell > 0 and first < levels.size and highs[first] <= edges[cell - 1]:
            first += 1
        while last < levels.size and (cell == edges.size or lows[last] < edges[cell]):
            last += 1
        ranges[cell, 0] = first
        ranges[cell, 1] = last
        begins[cell + 1] = begins[cell] + last - first
        if 0 < cell < edges.size:
            middles[cell] = edges[cell - 1] + (edges[cell] - edges[cell - 1]) / 2
    factors = np.empty(begins[-1], buffer.dtype)
    places = np.empty(begins[-1], buffer.dtype)
    for cell in range(count):
        for i in range(begins[cell + 1] - begins[cell]):
            place = levels[ranges[cell, 0] + i] - middles[cell]
            places[begins[cell] + i] = place
            factors[begins[cell] + i] = math.exp(max(min(-sharpness * place, farthest), -farthest))
    return edges, density, ranges, middles, begins, factors, places


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _sums(factor, place, buffer, count):
    """Return sums over points of weight * (s, s', s' * (level - value)) for one level."""
    one = buffer.dtype.type(1)
    least = buffer.dtype.type(LEAST_ODDS)
    most = buffer.dtype.type(MOST_ODDS)
    total = slope = spread = one - one
    for p in range(count):
        odds = max(min(factor * buffer[0, p], most), least)
        s = one / (one + odds)
        change = buffer[1, p] * (odds * s * s)
        total += buffer[1, p] * s
        slope += change
        spread += change * (place - buffer[2, p])
    return total, slope, spread


@subroutine(error_model="numpy", fastmath={"contract", "nsz"})
def _add_slopes(factor, upstream, buffer, count):
    """Add upstream * s' for one level to the buffer's second row."""
    one = buffer.dtype.type(1)
    least = buffer.dtype.type(LEAST_ODDS)
    most = buffer.dtype.type(MOST_ODDS)
    for p in range(count):
        odds = max(min(factor * buffer[0, p], most), least)
        s = one / (one + odds)
        buffer[1, p] += upstream * (odds * s * s)


@subroutine(error_model="numpy")
def _edges_passed(value, edges):
    """Return the number of edges that are at most a value."""
    passed = 0
    left = edges.size
    while left > 1:
        half = left >> 1
        passed += half if edges[passed + half - 1] <= value else 0
        left -= half
    return passed + int(edges[passed] <= value)


@kernel(error_model="numpy")
def _find_cells(values, edges, density, cells):
    """Write the cell of each value."""
    if density > 0:
        start = edges[0]
        last = float(edges.size)
        for p in range(values.size):
            place = (float(values[p]) - start) * density + 1
            cells[p] = np.int32(min(max(place, 0.0), last))
    else:
        for p in range(values.size):
            cells[p] = _edges_passed(float(values[p]), edges)


@kernel(error_model="numpy")
def _sort_by_cell(cells, weights, scratch, points, ends):
    """Write the points with a weight to `points`, cell by cell, and where each cell ends."""
    count = 0
    for p in range(weights.size):
        scratch[count] = p
        count += int(weights[p] != 0)
    ends[:] = 0
    for i in range(count):
        ends[cells[scratch[i]] + 1] += 1
    for cell in range(1, ends.size):
        ends[cell] += ends[cell - 1]
    for i in range(count):
        cell = cells[scratch[i]]
        points[ends[cell]] = scratch[i]
        ends[cell] += 1


@kernel(error_model="numpy", inline="always")
def _gather(values, weights, near, middle, farthest, places, buffer):
    """Write the places and weights of the points near a cell, with zeros up to whole vectors."""
    count = near.size
    full = whole_vectors(count)
    for i in range(count):
        place = float(values[near[i]]) - middle
        places[i] = max(min(place, farthest), -farthest)
        buffer[1, i] = weights[near[i]]
        buffer[2, i] = place
    places[count:full] = 0
    buffer[1:, count:full] = 0


@kernel(error_model="numpy", fastmath={"reassoc", "nsz"})
def _total(weights, count):
    """Return the sum of the weights of points, by vectors and in double precision."""
    total = 0.0
    for p in range(count):
        total += weights[p]
    return total


@kernel(error_model="numpy")
def add_sums(given, part, order, buffer, results, upstream, out):
    """Add to curves and their derivatives by levels and sharpness, or to the gradients of points.

    `given` are the values and weights (images, points), the levels and the sharpness. `part` is a
    range of images and of points: first image, last image, first point, last point. `order` holds
    the indices of the finite levels, sorted by level. `results` are the curves and derivatives,
    (3, images, n), or None. If `upstream` (images, n) is given, weight * sum over the levels of
    upstream * sharpness * s'(z) is added to `out` (images, points) for every point.
    """
    values, weights, all_levels, sharpness = given
    if order.size == 0:
        return
    double = buffer.itemsize == 8
    levels = all_levels[order]
    prepared = prepare(levels, sharpness, buffer)
    edges, density, ranges, middles, begins, factors, places = prepared
    farthest = 3 * _reach(sharpness, double)
    exact = np.empty(POINTS_AT_ONCE)
    powers = np.empty(POINTS_AT_ONCE)
    cells = np.empty(POINTS_AT_ONCE, np.int32)
    scratch = np.empty(POINTS_AT_ONCE + 1, np.int32)
    points = np.empty(POINTS_AT_ONCE, np.int32)
    ends = np.empty(middles.size + 1, np.int64)
    entered = np.zeros(levels.size + 1)  # Weights of points below a level and above the one before.
    for image in range(part[0], part[1]):
        entered[:] = 0
        for start in range(part[2], part[3], POINTS_AT_ONCE):
            stop = min(start + POINTS_AT_ONCE, part[3])
            own = values[image, start:stop]
            own_weights = weights[image, start:stop]
            _find_cells(own, edges, density, cells)
            _sort_by_cell(cells, own_weights, scratch, points, ends)
            for cell in range(middles.size):
                near = points[ends[cell - 1] if cell > 0 else 0 : ends[cell]]
                first = ranges[cell, 0]
                last = ranges[cell, 1]
                begin = begins[cell]
                count = near.size
                if count == 0 or (first == last and results is None):
                    continue
                full = whole_vectors(count)
                _gather(own, own_weights, near, middles[cell], farthest, exact, buffer)
                if results is not None:
                    entered[last] += _total(buffer[1], full)
                if first == last:
                    continue
                exponentials(exact, sharpness, powers, buffer[0], full)
                if results is not None:
                    for j in range(first, last):
                        at = begin + j - first
                        total, slope, spread = _sums(factors[at], places[at], buffer, full)
                        results[0, image, order[j]] += total
                        results[1, image, order[j]] += slope * sharpness
                        results[2, image, order[j]] += spread
                if upstream is not None:
                    buffer[1, :full] = 0
                    for j in range(first, last):
                        slope = buffer.dtype.type(upstream[image, order[j]])
                        _add_slopes(factors[begin + j - first], slope, buffer, full)
                    for i in range(count):
                        weight = own_weights[near[i]] * sharpness
                        out[image, start + near[i]] += weight * buffer[1, i]
        if results is not None:
            total = 0.0
            for j in range(levels.size):
                total += entered[j]
                results[0, image, order[j]] += total
