"""Kernels of sums in windows of values, which :mod:`ecc_core._backends.cpu.soft.sums` describes."""

from __future__ import annotations

import math

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine

REACH = 20.0
"""Distance in logits beyond which a step is taken as complete: s(-20) = 2e-9."""
MOMENTS = 4


@subroutine(error_model="numpy")
def _window(value, ends):
    """Return the index of the first window that ends above the value, or the number of windows."""
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
    """Return the window of a level, and the range of its bins that are within reach of it."""
    starts, ends, offsets, width = windows
    reach = REACH / sharpness
    window = _window(level, ends)
    if window == ends.size:  # The level is infinite.
        return window, 0, 0
    bins = offsets[window + 1] - offsets[window] - 1
    low = (level - reach - starts[window]) / width
    high = (level + reach - starts[window]) / width + 1
    # Comparisons are written so that any level, NaN too, gives bins of the window.
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
    """Return a sum of products, in any order so that the loop is vectorized."""
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
