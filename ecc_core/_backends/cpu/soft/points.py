"""Soft curves point by point: faster than windows for small images, and as exact as the sigmoid.

With s(z) = 1 / (1 + exp(-l * t) * exp(l * v)) a level and a point take one exponential each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["WIDEST", "curves", "gradients"]

WIDEST = 600.0  # sharpness times the range of levels for which no exponential overflows
BEYOND = 40.0  # s(-40) = 4e-18


@kernel(error_model="numpy")
def _prepare(levels: Any, sharpness: Any) -> Any:
    """The middle of the finite levels, bounds for values, the levels' exponentials and places."""
    low, high = math.inf, -math.inf
    for level in levels:
        if math.isfinite(level):
            low, high = min(low, level), max(high, level)
    if low > high:
        low = high = 0.0
    middle = low + (high - low) / 2
    factors, places = np.empty(levels.size), np.empty(levels.size)
    for j in range(levels.size):
        factors[j] = math.exp(-sharpness * (levels[j] - middle))
        places[j] = levels[j] if math.isfinite(levels[j]) else middle
    return middle, low - BEYOND / sharpness, high + BEYOND / sharpness, factors, places


@kernel(error_model="numpy")
def curves(values: Any, weights: Any, levels: Any, sharpness: Any, results: Any) -> None:
    """Curves, and their derivatives by level and by sharpness: results (3, images, levels), zero.

    `values` and `weights` are (images, points).
    """
    middle, low, high, factors, places = _prepare(levels, sharpness)
    for image in range(values.shape[0]):
        curve, slopes, spreads = results[0, image], results[1, image], results[2, image]
        first = 0.0
        for point in range(values.shape[1]):
            weight, value = float(weights[image, point]), float(values[image, point])
            if weight == 0 or value == math.inf:
                continue
            if value == -math.inf:
                first += weight
                continue
            value = min(max(value, low), high)
            factor = math.exp(sharpness * (value - middle))
            for j in range(levels.size):
                s = 1 / (1 + factors[j] * factor)
                slope = weight * (s - s * s)
                curve[j] += weight * s
                slopes[j] += slope
                spreads[j] += slope * (places[j] - value)
        for j in range(levels.size):
            curve[j] += first
            slopes[j] *= sharpness


@kernel(error_model="numpy", fastmath={"reassoc", "contract"})
def _slope(factors: Any, factor: Any, upstream: Any) -> Any:
    """The sum over the levels of upstream * s'(z), several at a time."""
    total = 0.0
    for j in range(factors.size):
        s = 1 / (1 + factors[j] * factor)
        total += upstream[j] * (s - s * s)
    return total


@kernel(error_model="numpy")
def gradients(
    values: Any, weights: Any, levels: Any, sharpness: Any, upstream: Any, out: Any
) -> None:
    """Write weight * sum over the levels of upstream * sharpness * s'(z) for every point."""
    middle, low, high, factors, _ = _prepare(levels, sharpness)
    for image in range(values.shape[0]):
        row = upstream[image]
        for point in range(values.shape[1]):
            weight, value = float(weights[image, point]), float(values[image, point])
            out[image, point] = 0
            if weight == 0 or not math.isfinite(value):
                continue
            value = min(max(value, low), high)
            factor = math.exp(sharpness * (value - middle))
            out[image, point] = weight * sharpness * _slope(factors, factor, row)
