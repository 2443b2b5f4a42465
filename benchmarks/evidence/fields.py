"""Gaussian random fields on a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve1d

Array = NDArray[np.float64]


def kernel(sigma: float) -> Array:
    """Return a Gaussian cut off at 4 sigma, of unit norm, so that smoothed noise has variance 1."""
    reach = int(np.ceil(4 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(weights / np.linalg.norm(weights))


def gaussian_field(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Array:
    """Return white noise smoothed along every axis, stationary up to the border, of variance 1."""
    weights = kernel(sigma)
    reach = weights.size // 2
    field = rng.standard_normal([n + 2 * reach for n in shape])
    for axis in range(len(shape)):
        inner = [slice(None)] * len(shape)
        inner[axis] = slice(reach, -reach)
        field = convolve1d(field, weights, axis=axis)[tuple(inner)]
    return field


def neighbour_correlation(sigma: float) -> float:
    """Return the correlation of neighbours along an axis; those of diagonal ones are products."""
    weights = kernel(sigma)
    return float(weights[1:] @ weights[:-1])


def neighbour_covariance(sigma: float) -> Callable[[Array], Array]:
    """Return the covariance of points that are at most one point apart along each axis."""
    correlation = neighbour_correlation(sigma)

    def covariance(lags: Array) -> Array:
        along_axes = np.where(lags == 0, 1.0, correlation)
        return np.asarray(along_axes.prod(axis=-1))

    return covariance
