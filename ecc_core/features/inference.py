"""The level that a map of Gaussian noise exceeds anywhere with a given probability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._request.boundary import CLOSED, PERIODIC, Domain, boundary_of
from ecc_core._request.filtration import as_numbers, check_spacing
from ecc_core._request.resources import check_unused
from ecc_core._types import ComplexBoundary
from ecc_core.features._gaussian import (
    Field,
    check_moments,
    check_real,
    check_region,
    count_cells,
    kinematic_curve,
    lattice_curve,
)
from ecc_core.features._mesh_fields import maps_on, mesh_field
from ecc_core.features._steps import Floats
from ecc_core.features.gaussian import Covariance, Seed, check_shape

LEVELS = np.linspace(0, 9, 181)
"""Levels of curves in standard deviations, between which the logarithm is interpolated."""
EXPECTED_MAXIMA = Domain((CLOSED, PERIODIC))
COARSE_LEVELS = np.linspace(0, 9, 19)
"""Levels of curves on meshes, between which the threshold is found by bisection."""
HALVINGS = 16
"""The steps of the bisection."""
STEP = 0.01
"""Half of the distance in standard deviations over which the slope of a curve is measured."""
GROUPS = 10
"""The groups of maps, or slabs of a single map, that the jackknife leaves out one by one."""


class GaussianThreshold(NamedTuple):
    """A threshold and its standard error, in standard deviations.

    Examples
    --------
    >>> from ecc_core.features import gaussian_threshold
    >>> threshold, error = gaussian_threshold((64, 64), spectral_moments=[0.1, 0.1])
    >>> round(threshold, 2), error
    (3.91, 0.0)
    """

    threshold: float
    error: float


def gaussian_threshold(
    shape: Sequence[int],
    alpha: float = 0.05,
    *,
    covariance: Covariance | None = None,
    spectral_moments: ArrayLike | None = None,
    residuals: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    spacing: ArrayLike | None = None,
    boundary: ComplexBoundary = "closed",
    rng: Seed = None,
    simplices: Any = None,
) -> GaussianThreshold:
    r"""Level that a map of Gaussian noise exceeds anywhere with probability `alpha`.

    The threshold for a statistical map (z-scores) that controls the family-wise error rate at
    `alpha`: the level at which the expected Euler characteristic of the points above it is `alpha`.
    Exactly one of `covariance`, `spectral_moments` and `residuals` says how smooth the noise is.

    Parameters
    ----------
    shape : sequence of 1 to 3 ints
        Shape of the map; ``(n,)`` for n points of a mesh.
    alpha : float, default 0.05
        Family-wise error rate, between 0 and 0.5. Use half of it for a test of both signs.
    covariance : callable or array
        As for :func:`expected_gaussian_curve`; only its ratio to the variance matters.
    spectral_moments : float, (d,) or (d, d) array
        Covariance matrix of the gradient of the standardized map per squared unit of `spacing`, or
        its diagonal; 4 log 2 / FWHM² for a smoothness given as a full width at half maximum. The
        level follows from the formula for smooth maps, which is too high for rough ones.
    residuals : array of shape `shape` or (m, \*`shape`)
        Maps of noise with the same covariance, of mean 0 and the same variance at all points, such
        as the residuals of a linear model divided by their standard deviation at each point. The
        covariance of neighbouring points is estimated from them.
    mask : boolean array of shape `shape`, optional
        Points of the map to use. Requires a closed boundary.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Only with `spectral_moments`, or with
        a function `covariance`. Default: 1.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        Whether the map is on a torus, or along which axes its opposite sides touch.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the numerical integration. Not with `spectral_moments`.
    simplices : (k, 3) integer array, or sequence of arrays, optional
        Triangles of a mesh with a value at each point, as for :func:`ecc_core.simplicial_curve`.
        Only with `residuals` of shape (m, n), from which the correlation along every edge is
        estimated: the noise may be smoother in some places than in others.

    Returns
    -------
    GaussianThreshold
        ``threshold`` and its standard ``error``, in standard deviations from the mean. The error is
        that of the numerical integration and, with `residuals`, of the estimated covariance.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    TypeError
        If arguments are not real numbers, or `mask` is not boolean.
    ValueError
        If an argument does not belong to the others, shapes do not match, no cell between points
        is in the mask, or no level (on a mesh, none up to 9) has an expected Euler characteristic
        of `alpha`.

    See Also
    --------
    expected_gaussian_curve : The expected curve at all levels.
    expected_mesh_curve : The same on a mesh.

    Notes
    -----
    Above a high level there are no holes, so that the Euler characteristic is the number of
    clusters, and its expectation nearly the probability that there is one [1]_. The expectation is
    that of the points of the grid with connectivity 1; it needs no smoothness, and tends to the
    number of points times the probability of each, the bound of Bonferroni, as correlations vanish.
    With `spectral_moments` it is the formula for smooth fields, with the numbers of cells of the
    mask as in [2]_.

    The covariance at the corners of a cell is averaged over the cells between points of the mask
    and over maps. Its error is found by leaving out one of ten groups of maps, or one of ten slabs
    of a single map. A field that is not stationary, or not Gaussian (such as t-scores with few
    degrees of freedom), needs another method.

    References
    ----------
    .. [1] Adler, "On excursion sets, tube formulas and maxima of random fields", Annals of Applied
       Probability 10, 1-74, 2000.
    .. [2] Worsley, Marrett, Neelin, Vandal, Friston, Evans, "A unified statistical approach for
       determining significant signals in images of cerebral activation", Human Brain Mapping 4,
       58-73, 1996.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import gaussian_threshold
    >>> smooth = lambda lags: np.exp(-(lags**2).sum(-1) / (4 * 2.0**2))
    >>> found = gaussian_threshold((128, 128), covariance=smooth, rng=0)
    >>> round(found.threshold, 2)
    4.28
    >>> brain = np.hypot(*(np.indices((128, 128)) - 63.5)) < 50
    >>> found = gaussian_threshold((128, 128), covariance=smooth, mask=brain, rng=0)
    >>> round(found.threshold, 2)
    4.1
    """
    sizes = check_shape(shape)
    edge = boundary_of(boundary, len(sizes), EXPECTED_MAXIMA)
    if not 0 < check_real(alpha, "alpha") < 0.5:
        raise ValueError(f"`alpha` must be between 0 and 0.5, got {alpha!r}")
    if sum(given is not None for given in (covariance, spectral_moments, residuals)) != 1:
        raise ValueError("one of `covariance`, `spectral_moments` and `residuals` must be given")
    if simplices is not None:
        return _mesh_threshold(
            sizes,
            alpha,
            simplices,
            residuals,
            mask=mask,
            spacing=spacing,
            rng=rng,
            boundary=None if boundary == "closed" else boundary,
        )
    kept = check_region(mask, sizes, edge)
    counts = count_cells(sizes, edge, cubes=False, mask=kept)
    if spectral_moments is not None:
        check_unused("with `spectral_moments`", rng=rng)
        moments = check_moments(spectral_moments, len(sizes))
        curve = kinematic_curve(LEVELS, counts, check_spacing(spacing, len(sizes)), moments)
        return GaussianThreshold(_crossing(curve, alpha)[0], 0.0)
    seed = np.random.default_rng(rng).integers(2**63)

    def solve(correlation: Floats) -> tuple[float, float]:
        same = np.random.default_rng(seed)
        curve, error = lattice_curve(-LEVELS, correlation, counts, cubes=False, rng=same)
        level, slope = _crossing(curve, alpha)
        return level, float(np.interp(level, LEVELS, error) / slope)

    if residuals is None:
        return GaussianThreshold(*solve(Field(covariance, sizes, spacing, edge).correlation))
    check_unused("with `residuals`", spacing=spacing)
    return _jackknife(_corner_products(residuals, sizes, kept), solve)


def _jackknife(
    products: Floats, solve: Callable[[Floats], tuple[float, float]]
) -> GaussianThreshold:
    """Return the threshold for the correlations of maps, with its error by the jackknife.

    `products` are the products of the values of each map at the corners of a cell. `solve` takes
    correlations and returns the threshold with the error of its integration.
    """

    def level_of(sums: Floats) -> tuple[float, float]:
        scale = np.sqrt(sums.diagonal())
        return solve(sums / np.outer(scale, scale))

    parts = np.array_split(products, min(GROUPS, len(products)))
    groups = [part.sum(axis=0) for part in parts]
    total = products.sum(axis=0)
    found, integration = level_of(total)
    without_each = [level_of(total - group) for group in groups]
    others = np.array([level for level, _ in without_each])
    jackknife = math.sqrt(len(groups) - 1) * others.std()
    return GaussianThreshold(found, float(np.hypot(integration, jackknife)))


def _mesh_threshold(
    shape: tuple[int, ...], alpha: float, simplices: Any, residuals: Any, **unused: Any
) -> GaussianThreshold:
    """Return the threshold for maps on a mesh."""
    check_unused("with `simplices`", **unused)
    if residuals is None:
        raise ValueError("`residuals` must be given with `simplices`, got None")
    if len(shape) != 1:
        raise ValueError(f"`shape` must be (n,) with `simplices`, for n points, got {shape}")
    maps = maps_on(residuals, shape[0])
    field = mesh_field(simplices, shape[0])
    correlations = field.correlations(maps)
    coarse = field.curve(COARSE_LEVELS, correlations)
    above = np.flatnonzero(coarse[:-1] >= alpha)
    if not above.size:
        raise ValueError(
            f"`simplices` must have an expected Euler characteristic of {alpha} at some level; "
            "they have too few points or too many holes"
        )
    if coarse[-1] >= alpha:
        raise ValueError(
            f"`alpha` must be above {coarse[-1]:.2g} with these `simplices`, which is reached at "
            f"{COARSE_LEVELS[-1]:g} standard deviations, got {alpha!r}"
        )
    low = float(COARSE_LEVELS[above[-1]])
    high = float(COARSE_LEVELS[above[-1] + 1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if field.curve(np.array([middle]), correlations)[0] >= alpha:
            low = middle
        else:
            high = middle
    level = (low + high) / 2
    around = np.array([level - STEP, level + STEP])
    before, after = field.curve(around, correlations)
    slope = (before - after) / (2 * STEP)
    if len(maps) < 2:
        return GaussianThreshold(level, math.nan)
    groups = np.array_split(np.arange(len(maps)), min(GROUPS, len(maps)))
    others = []
    for group in groups:
        without = field.correlations(np.delete(maps, group, axis=0))
        others.append(field.curve(np.array([level]), without)[0])
    error = math.sqrt(len(groups) - 1) * float(np.std(others) / slope)
    return GaussianThreshold(level, error)


def _crossing(curve: Floats, alpha: float) -> tuple[float, float]:
    """Return the last level at which the curve is alpha, and its slope there, positive."""
    above = np.flatnonzero(curve[:-1] >= alpha)
    if not above.size:
        raise ValueError(
            f"`mask` must leave an expected Euler characteristic of {alpha} at some level; it has "
            "too few points or too many holes"
        )
    i = above[-1]
    before, after = LEVELS[i : i + 2]
    # At high levels the curve falls nearly exponentially.
    high, low = np.log(np.maximum(curve[i : i + 2], 1e-300))
    rate = (high - low) / (after - before)
    return float(before + (high - math.log(alpha)) / rate), alpha * rate


def _corner_products(
    residuals: ArrayLike, shape: tuple[int, ...], kept: NDArray[np.bool_] | None
) -> Floats:
    """Return the products of the values at the corners of cells, summed over all cells.

    There is a sum for each map, or for each slab of a single map.
    """
    maps = as_numbers(residuals, "residuals")
    ndim = len(shape)
    if maps.shape[-ndim:] != shape or maps.ndim > ndim + 1:
        raise ValueError(f"`residuals` must have shape {shape} or (m, *{shape}), got {maps.shape}")
    maps = maps.reshape(-1, *shape)
    slabs = 1 if len(maps) > 1 else GROUPS
    along = 1 + int(np.argmax(shape))
    if kept is None:
        kept = np.ones(shape, bool)
    inside = _corners(kept).all(axis=0, keepdims=True)
    products = []
    for values in maps:
        both = (np.array_split(part, slabs, along) for part in (_corners(values), inside))
        for part, within in zip(*both, strict=True):
            chosen = part[:, within[0]].astype(np.float64)
            products.append(chosen @ chosen.T)
    found = np.array(products)
    if (
        not inside.any()
        or not np.isfinite(found).all()
        or (found.sum(axis=0).diagonal() <= 0).any()
    ):
        raise ValueError("`residuals` must be finite, and not all 0, at cells of points in `mask`")
    return found


def _corners(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values at the corners of each cell between points, (2**d, *cells)."""
    ends = slice(None, -1), slice(1, None)
    corners = itertools.product(ends, repeat=values.ndim)
    return np.stack([values[corner] for corner in corners])
