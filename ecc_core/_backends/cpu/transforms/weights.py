"""The transform of an image of weights, row by row.

The coefficient of a point is the sum of (-1)**dimension * weight over its cells, and hardly ever
zero, so rows take the place of lists of critical points. For weights of 0 and 1, rows take 17 to 30
times as long as those lists in 16 directions. As for masks, one kernel serves both
constructions (see :mod:`ecc_core._orthants`). A cell of the V-construction weighs
the maximum of its points; in the T-construction a cell weighs the minimum over the cubes around
it, minus the maximum of the negated weights. A point that is no part of the complex holds
`absent` (T: minus `absent`), which is infinity or an integer larger than all weights. A maximum of
this magnitude is no cell (V) or comes from no cube (T), and weighs nothing.

Along a row the heights in one direction are sorted. Unless the levels lie closer than the points,
the place of each level is found among the points of the row instead of each point among the levels,
and prefix sums of the coefficients give the rest.
"""

from __future__ import annotations

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.transforms.heights import POINTS_AT_ONCE, TOLERANCE, add_points
from ecc_core._orthants import ORTHANTS

UNROLL = 16
"""Levels in an iteration of the vectorised loops."""
ROWS = 8
"""Rows at a time: their prefix sums stay in the first-level cache."""


@kernel(error_model="numpy")
def place_weights(weights, negate, absent, out):
    """Copy the weights, or their negatives; 0 becomes `absent`."""
    slices, rows, columns = weights.shape
    for z in range(slices):
        for y in range(rows):
            for x in range(columns):
                weight = -weights[z, y, x] if negate else weights[z, y, x]
                out[z, y, x] = weight if weight != 0 else absent


@kernel(error_model="numpy")
def _cell(weight, absent):
    return weight if abs(weight) < absent else 0


@kernel(error_model="numpy")
def _weigh(here, below, start, step, absent, out):
    """Write the coefficients of a row within its slice, given the row that its cells extend to."""
    n = out.size
    near = here[start : start + n]
    near_below = below[start : start + n]
    far = here[start + step : start + step + n]
    far_below = below[start + step : start + step + n]
    for i in range(n):
        w = near[i]
        x = max(w, far[i])
        y = max(w, near_below[i])
        xy = max(max(x, near_below[i]), far_below[i])
        edges = _cell(x, absent) + _cell(y, absent)
        out[i] = _cell(w, absent) - edges + _cell(xy, absent)


@kernel(error_model="numpy")
def _maximum(one, other, out):
    for i in range(out.size):
        out[i] = max(one[i], other[i])


@kernel(error_model="numpy")
def _weigh_row(values, at, steps, axes, absent, scratch, out):
    """Write the coefficients of the row that starts at the padded index `at`."""
    z, y, start = at
    pairs, pairs_below, behind = scratch
    below = pairs_below
    if axes[1]:
        below = values[z, y + steps[1]]
    else:
        for k in range(pairs_below.size):
            pairs_below[k] = absent
    _weigh(values[z, y], below, start, steps[2], absent, out)
    if axes[0]:
        _maximum(values[z, y], values[z + steps[0], y], pairs)
        _maximum(below, values[z + steps[0], y + steps[1]], pairs_below)
        _weigh(pairs, pairs_below, start, steps[2], absent, behind)
        for i in range(out.size):
            out[i] -= behind[i]


@kernel(error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def _guess_counts(start, step, tolerance, points, turns, counts):
    """Guess how many points lie at or below each level.

    The levels lie at the places `start`, `start` + `step`, ... among the points, the first of which
    has place 1. Returns whether any level is too close to a point for its count to be certain.
    """
    close = 0
    most = points + 0.5
    for j in range(turns):
        count = min(max(start + step * j, 0.5), most)
        counts[j] = np.int32(count + tolerance)
        close |= (count - np.float64(counts[j])) <= tolerance
    return close


@kernel(error_model="numpy")
def _find_counts(widths, base, slope, levels, first, turns, counts):
    """Count the points at or below each level, by comparing heights with levels."""
    n = widths.size
    start, sign = (0, 1) if slope >= 0 else (n - 1, -1)
    k = 0
    for j in range(turns):
        if first + j >= levels.size:
            k = n
        while k < n and base + slope * widths[start + sign * k] <= levels[first + j]:
            k += 1
        counts[j] = k


@kernel(error_model="numpy")
def _first_level(place, levels):
    """Return the first of so many levels that does not lie before a place, or their number."""
    return np.int64(min(max(np.ceil(place), 0.0), levels))


@kernel(error_model="numpy")
def _add_rows(
    widths, heights, depth, sums, direction, spacing, grid, counts, d, histograms, curves
):
    """Add rows to the curve of a direction in which the points lie denser than the levels.

    The rows lie at `heights` and `depth`, their points at `widths`. `sums` are the prefix sums of
    each row's coefficients in order of increasing height. The total of a row goes into the bin of
    the first level above all of its points, and the partial sums at lower levels into the curve.
    """
    n = widths.size
    slope = direction[2]
    top = grid.levels.size
    rise = abs(slope) * spacing
    width = abs(slope) * abs(widths[n - 1] - widths[0])
    step = 1.0 / (grid.scale * rise) if rise > 0.0 else np.inf
    tolerance = TOLERANCE * (1.0 + step)
    reach = abs(depth) + abs(heights[0]) + abs(heights[-1]) + abs(widths[0]) + abs(widths[n - 1])
    reach += abs(grid.origin) + top / grid.scale
    # Places among the points are guessed where rounding moves them by less than the tolerance.
    certain = tolerance < 0.25 and 1e-14 * reach < rise * TOLERANCE
    for row in range(heights.size):
        base = direction[0] * depth + direction[1] * heights[row]
        lowest = base - 0.5 * width + 0.5 * slope * (widths[0] + widths[n - 1])
        low = (lowest - grid.origin) * grid.scale
        high = low + width * grid.scale
        # Further levels on either side would be right as well: no or all points lie below them.
        first = _first_level(low - TOLERANCE, top)
        end = _first_level(high + TOLERANCE, top)
        turns = (end - first + UNROLL - 1) // UNROLL * UNROLL
        histograms[d, first + turns] += sums[row, n]
        if turns == 0:
            continue
        start = (first - low) * step + 1.0
        if not certain or _guess_counts(start, step, tolerance, n, turns, counts):
            _find_counts(widths, base, slope, grid.levels, first, turns, counts)
        for j in range(turns):
            curves[d, np.uint64(first + j)] += sums[row, np.uint32(counts[j])]


@kernel(error_model="numpy", inline="always")
def _add_up(numbers, backwards, sums):
    """Write the prefix sums of numbers, which are taken in reverse order if `backwards`."""
    n = numbers.size
    for k in range(n):
        place = n - 1 - k if backwards else k
        sums[k + 1] = sums[k] + numbers[place]


@kernel(error_model="numpy")
def count_weights(given, chosen, grid, histograms, curves):
    """Add the coefficients of each orthant to the histograms and curves of its directions.

    `given` are the weights (V) or the negated weights (T), padded by one point on both sides of the
    axes that the image has, `absent`, what ``count_mask`` is given, and the spacing of the last
    axis; `chosen` are directions as there. The result is the cumulative sum of the histograms plus
    the curves, both with `UNROLL` bins of slack.
    """
    values, absent, axes, frames, (depths, heights, widths), spacing = given
    directions, starts = chosen
    n = widths.size
    coefficients = np.empty((ROWS, n), dtype=values.dtype)
    sums = np.zeros((ROWS, n + 1), dtype=values.dtype)
    scratch = (
        np.empty(values.shape[2], dtype=values.dtype),
        np.empty(values.shape[2], dtype=values.dtype),
        np.empty(n, dtype=values.dtype),
    )
    counts = np.empty(n + 4 * UNROLL, dtype=np.int32)
    bins = np.empty(POINTS_AT_ONCE, dtype=np.uint32)
    x = np.empty(ROWS * n)
    y = np.empty(ROWS * n)
    z = np.empty(ROWS * n)
    for i in range(x.size):
        x[i] = widths[i % n]
    points = (x, y, z, coefficients.reshape(-1))
    # True if the points of a row are not denser than the levels in every direction.
    sparse = grid.first.size > 0 or spacing * grid.scale > 1.0
    for orthant in range(ORTHANTS):
        first = starts[orthant]
        last = starts[orthant + 1]
        if first == last:
            continue
        steps = frames[orthant, 0]
        shifts = frames[orthant, 1]
        for slice_ in range(depths.size):
            for i in range(z.size):
                z[i] = depths[slice_]
            for block in range(0, heights.size, ROWS):
                count = min(ROWS, heights.size - block)
                for row in range(count):
                    at = (slice_ + shifts[0], block + row + shifts[1], shifts[2])
                    _weigh_row(values, at, steps, axes, absent, scratch, coefficients[row])
                    if sparse:
                        y[row * n : (row + 1) * n] = heights[block + row]
                    _add_up(coefficients[row], orthant & 1, sums[row])
                for d in range(first, last):
                    direction = (directions[d, 0], directions[d, 1], directions[d, 2])
                    if not sparse or (
                        grid.first.size == 0 and abs(direction[2]) * spacing * grid.scale <= 1.0
                    ):
                        _add_rows(
                            widths,
                            heights[block : block + count],
                            depths[slice_],
                            sums,
                            direction,
                            spacing,
                            grid,
                            counts,
                            d,
                            histograms,
                            curves,
                        )
                    else:
                        one = (d, d + 1)
                        size = count * n
                        add_points(points, size, directions, one, grid, bins, histograms)
