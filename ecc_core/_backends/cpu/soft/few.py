"""Soft curves of many images of a few points each, such as the sides of tiles.

Sums are those of :mod:`~ecc_core._backends.cpu.soft.points`, but loops are over images rather than
over the points of one, which are too few to vectorize.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.soft.points import MOST, exponentials, prepare

__all__ = ["LARGEST", "curves", "gradients"]

LARGEST = 32  # points of an image
GROUP = 64  # images that are computed at once


@kernel(error_model="numpy")
def _gather(
    values: Any, weights: Any, image: Any, last: Any, bounds: Any, places: Any, shares: Any
) -> None:
    """Write the places and weights of the points of a group of images, one image after another.

    Places are relative to the middle of a run of levels and limited to the range that matters.
    """
    middle, low, high = bounds
    count = min(GROUP, last - image)
    places[:] = 0
    shares[:] = 0
    for i in range(count):
        for p in range(values.shape[1]):
            value = float(values[image + i, p])
            if value < np.inf:
                places[p * GROUP + i] = min(max(value - middle, low), high)
                shares[p * GROUP + i] = weights[image + i, p]


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _enter(factor: Any, powers: Any, shares: Any, totals: Any, changes: Any) -> None:
    """Add weight * s for one level and one point of each image, and write weight * s'.

    The loop is separate from that of :func:`_change`, since loops over more arrays are not
    vectorized: checks that none of them overlap would take too long.
    """
    one, most = totals.dtype.type(1), totals.dtype.type(MOST)
    for i in range(GROUP):
        odds = min(factor * powers[i], most)
        s = one / (one + odds)
        totals[i] += shares[i] * s
        changes[i] = shares[i] * (odds * s * s)


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _change(place: Any, places: Any, changes: Any, slopes: Any, spreads: Any) -> None:
    """Add weight * s' and weight * s' * (level - value)."""
    for i in range(GROUP):
        slopes[i] += changes[i]
        spreads[i] += changes[i] * (place - places[i])


@kernel(error_model="numpy")
def curves(
    values: Any,
    weights: Any,
    part: Any,
    levels: Any,
    order: Any,
    sharpness: Any,
    buffer: Any,
    results: Any,
) -> None:
    """As :func:`points.curves`, for whole images of at most LARGEST points."""
    ends, bounds, factors, offsets = prepare(levels, order, sharpness, buffer)
    count = values.shape[1]
    size = count * GROUP
    exact, scratch = np.empty(size), np.empty(size)
    powers, shares = np.empty(size, buffer.dtype), np.empty(size, buffer.dtype)
    places = np.empty(size, buffer.dtype)
    sums, changes = np.empty((3, GROUP), buffer.dtype), np.empty(GROUP, buffer.dtype)
    for image in range(part[0], part[1], GROUP):
        first = 0
        for run in range(ends.size):
            range_of_run = (bounds[run, 0], bounds[run, 1], bounds[run, 2])
            _gather(values, weights, image, part[1], range_of_run, exact, shares)
            exponentials(exact, sharpness, scratch, powers, size)
            places[:] = exact
            for j in range(first, ends[run]):
                sums[:] = 0
                for p in range(count):
                    at = slice(p * GROUP, (p + 1) * GROUP)
                    _enter(factors[j], powers[at], shares[at], sums[0], changes)
                    _change(offsets[j], places[at], changes, sums[1], sums[2])
                for i in range(min(GROUP, part[1] - image)):
                    results[0, image + i, order[j]] += sums[0, i]
                    results[1, image + i, order[j]] += sums[1, i] * sharpness
                    results[2, image + i, order[j]] += sums[2, i]
            first = ends[run]


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _add_slopes(factor: Any, upstream: Any, powers: Any, totals: Any) -> None:
    """Add upstream * s' for one level and one point of each image."""
    one, most = totals.dtype.type(1), totals.dtype.type(MOST)
    for i in range(GROUP):
        odds = min(factor * powers[i], most)
        s = one / (one + odds)
        totals[i] += upstream[i] * (odds * s * s)


@kernel(error_model="numpy")
def gradients(
    values: Any,
    weights: Any,
    part: Any,
    levels: Any,
    order: Any,
    sharpness: Any,
    upstream: Any,
    buffer: Any,
    out: Any,
) -> None:
    """As :func:`points.gradients`, for whole images of at most LARGEST points."""
    ends, bounds, factors, _ = prepare(levels, order, sharpness, buffer)
    count = values.shape[1]
    size = count * GROUP
    exact, scratch, shares = np.empty(size), np.empty(size), np.empty(size)
    powers, totals = np.empty(size, buffer.dtype), np.empty(size, buffer.dtype)
    row = np.zeros(GROUP, buffer.dtype)
    out[part[0] : part[1]] = 0
    for image in range(part[0], part[1], GROUP):
        images = min(GROUP, part[1] - image)
        first = 0
        for run in range(ends.size):
            range_of_run = (bounds[run, 0], bounds[run, 1], bounds[run, 2])
            _gather(values, weights, image, part[1], range_of_run, exact, shares)
            exponentials(exact, sharpness, scratch, powers, size)
            totals[:] = 0
            for j in range(first, ends[run]):
                for i in range(images):
                    row[i] = upstream[image + i, order[j]]
                for p in range(count):
                    at = slice(p * GROUP, (p + 1) * GROUP)
                    _add_slopes(factors[j], row, powers[at], totals[at])
            for i in range(images):
                for p in range(count):
                    place = p * GROUP + i
                    out[image + i, p] += shares[place] * sharpness * totals[place]
            first = ends[run]
