"""Gaussian random fields on a grid, and the Euler characteristic expected of their level sets."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import convolve1d
from scipy.special import eval_hermitenorm, ndtr, ndtri
from scipy.stats import qmc

Array = NDArray[np.float64]


def kernel(sigma: float) -> Array:
    """A Gaussian cut off at 4 sigma, of unit norm: it takes white noise to variance 1."""
    reach = int(np.ceil(4 * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    return np.asarray(weights / np.linalg.norm(weights))


def gaussian_field(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Array:
    """White noise smoothed along every axis, stationary up to the border, of variance 1."""
    weights = kernel(sigma)
    reach = weights.size // 2
    field = rng.standard_normal([n + 2 * reach for n in shape])
    for axis in range(len(shape)):
        inner = [slice(None)] * len(shape)
        inner[axis] = slice(reach, -reach)
        field = convolve1d(field, weights, axis=axis)[tuple(inner)]
    return field


def neighbour_correlation(sigma: float) -> float:
    """Correlation of neighbouring points: along the axes; diagonal ones multiply."""
    weights = kernel(sigma)
    return float(weights[1:] @ weights[:-1])


def continuum_curve(t: Array, shape: tuple[int, ...], sigma: float) -> Array:
    """Expected curve of a smooth field on a box: the Gaussian kinematic formula.

    E chi(X <= t) = sum over j of L_j rho_j(-t), where L_j sums the volumes of the j-dimensional
    faces through one corner of the box (of lengths n - 1), times the spectral moment to the j / 2
    (Adler, Taylor, "Random fields and geometry", 2007, theorem 12.4.1). The spectral moment is
    that of the lattice, the variance of the difference of neighbours.
    """
    moment = 2 * (1 - neighbour_correlation(sigma))
    volumes = np.poly1d([1.0])
    for n in shape:
        volumes *= np.poly1d([(n - 1) * np.sqrt(moment), 1.0])
    u = -t
    expected = ndtr(-u)
    for j in range(1, len(shape) + 1):
        density = (2 * np.pi) ** (-(j + 1) / 2) * eval_hermitenorm(j - 1, u) * np.exp(-(u**2) / 2)
        expected = expected + volumes.coeffs[::-1][j] * density
    return np.asarray(expected)


def lattice_curve(
    t: Array,
    shape: tuple[int, ...],
    correlation: float,
    connectivity: int,
    *,
    samples: int = 2**16,
    seed: int = 0,
) -> Array:
    """Expected curve on the grid itself, without any limit.

    Connectivity 1 (V): the sum over cells of (-1)**dim P(all its points are at most t). Else (T):
    a cell is absent if all points around it are above t, and all cells together have 1; so 1 minus
    the sum of (-1)**dim P(all its points are above t).

    Correlations of neighbours multiply, so at the corners of a cell of the grid the field is
    sum over sets A of axes of w_A (-1)**(coordinates in A) g_A with independent g_A. What corners
    have in common, g of the empty set, is integrated exactly, the other 2**d - 1 variables by a
    scrambled Sobol sequence.
    """
    ndim, sizes = len(shape), np.array(shape)
    near, far = np.sqrt((1 + correlation) / 2), np.sqrt((1 - correlation) / 2)
    corners = np.array(list(product([0, 1], repeat=ndim)))
    weights = np.prod(np.where(corners, far, near), axis=1)
    signs = (-1.0) ** (corners @ corners.T)
    sobol = qmc.Sobol(len(corners) - 1, rng=np.random.default_rng(seed))
    others = ndtri(np.clip(sobol.random(samples), 1e-12, 1 - 1e-12))
    values = (others * weights[1:]) @ signs[1:]  # less what the corners have in common
    vertices = connectivity == 1
    total = np.zeros(t.size)
    for two in corners:  # the axes along which the cell has two points
        faces = [
            np.flatnonzero((corners[:, two == 0] == place).all(axis=1))
            for place in product([0, 1], repeat=int(ndim - two.sum()))
        ]
        highest = np.stack([values[:, face].max(axis=1) for face in faces])
        inside = [ndtr((one - highest) / weights[0]).mean() for one in (t if vertices else -t)]
        if vertices:  # along an axis n points and n - 1 edges
            count = np.prod(np.where(two, 1 - sizes, sizes))
        else:  # n edges and the two end points have one point, n - 1 end points have two
            count = np.prod(np.where(two, sizes - 1, 2 - sizes))
        total += count * np.array(inside)
    return total if vertices else 1 - total
