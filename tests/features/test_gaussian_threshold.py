"""Thresholds of statistical maps: resel counts in closed form, simulated noise, and estimates."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.ndimage import gaussian_filter
from scipy.optimize import brentq
from scipy.stats import binom, norm

import ecc_core as ecc
from ecc_core.features import expected_gaussian_curve, gaussian_threshold

RESEL = 4 * np.log(2)


def bell(sigma):
    """Covariance of white noise smoothed by a Gaussian."""
    return lambda lags: np.exp(-(lags**2).sum(axis=-1) / (4 * sigma**2))


def noise(shape, sigma, count, seed):
    """Maps of smoothed white noise of variance 1, without the border of the filter."""
    cut = int(4 * sigma + 1)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        field = gaussian_filter(rng.standard_normal([n + 2 * cut for n in shape]), sigma)
        inner = field[(slice(cut, -cut),) * len(shape)]
        yield inner * (2 * np.sqrt(np.pi) * sigma) ** (len(shape) / 2)


def ball(shape):
    """A ball without one quarter, and with a hole."""
    along = (np.linspace(-1, 1, n) for n in shape)
    grid = np.stack(np.meshgrid(*along, indexing="ij"))
    far = np.linalg.norm(grid, axis=0)
    return (far < 0.95) & (far > 0.3) & ~((grid[0] > 0) & (grid[-1] > 0))


def resels(mask, spacing, fwhm):
    """Worsley's resel counts: points, edges, faces and cubes of the mask, one by one."""
    ndim, counts = mask.ndim, np.zeros(mask.ndim + 1)
    for axes in product([0, 1], repeat=ndim):
        cells = 0
        for point in np.ndindex(*(n - a for n, a in zip(mask.shape, axes, strict=True))):
            corners = product(*([0, a] if a else [0] for a in axes))
            cells += all(mask[tuple(np.add(point, corner))] for corner in corners)
        spans = np.flatnonzero(axes)
        for part in product([0, 1], repeat=spans.size):
            chosen = spans[np.array(part, bool)]
            sign = (-1) ** (spans.size - chosen.size)
            counts[chosen.size] += sign * cells * np.prod(spacing[chosen] / fwhm[chosen])
    return counts


def by_resels(counts, alpha):
    """The level at which Worsley's formula is alpha."""

    def excess(u):
        bell_u = np.exp(-(u**2) / 2)
        densities = (
            norm.sf(u),
            RESEL**0.5 / (2 * np.pi) * bell_u,
            RESEL / (2 * np.pi) ** 1.5 * u * bell_u,
            RESEL**1.5 / (2 * np.pi) ** 2 * (u**2 - 1) * bell_u,
        )
        return np.dot(counts, densities[: len(counts)]) - alpha

    return brentq(excess, 1.8, 9)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shape", [(60,), (30, 40), (12, 14, 16)])
def test_smooth_maps_follow_resel_counts(shape, masked):
    ndim = len(shape)
    fwhm, spacing = np.array([5.0, 4.0, 7.0])[:ndim], np.array([1.0, 0.5, 2.0])[:ndim]
    mask = ball(shape) if masked else np.ones(shape, bool)
    counts = resels(mask, spacing, fwhm)
    if not masked:
        sides = (np.array(shape) - 1) * spacing / fwhm
        assert_allclose(counts[-1], np.prod(sides))
        assert_allclose(counts[1], sides.sum())
    for alpha in (0.05, 0.001):
        found = gaussian_threshold(
            shape,
            alpha,
            spectral_moments=RESEL / fwhm**2,
            spacing=spacing,
            mask=mask if masked else None,
        )
        assert_allclose(found.threshold, by_resels(counts, alpha), atol=2e-4)
        assert found.error == 0


@pytest.mark.parametrize(
    ("shape", "sigma", "masked"),
    [
        ((400,), 2.0, False),
        ((48, 48), 1.0, True),
        ((48, 48), 3.0, False),
        ((16, 18, 20), 1.0, True),
    ],
)
def test_true_rates_are_alpha(shape, sigma, masked):
    count, alpha = 1500, 0.1
    mask = ball(shape) if masked else np.ones(shape, bool)
    peaks = np.array([image[mask].max() for image in noise(shape, sigma, count, seed=1)])
    chosen = {"mask": mask} if masked else {}
    found = gaussian_threshold(shape, alpha, covariance=bell(sigma), rng=0, **chosen)
    assert found.error < 0.003
    low, high = binom.ppf([0.001, 0.999], count, alpha)
    assert low <= (peaks > found.threshold).sum() <= high
    if sigma == 1:  # too rough for the formula of smooth maps
        smooth = gaussian_threshold(shape, alpha, spectral_moments=0.5, **chosen)
        assert (peaks > smooth.threshold).sum() < low


def test_independent_points_are_corrected_by_their_number():
    white = {"covariance": lambda lags: (lags == 0).all(axis=-1).astype(float), "rng": 0}
    for shape in [(500,), (30, 40), (9, 10, 11)]:
        n = np.prod(shape)
        found, error = gaussian_threshold(shape, **white)
        assert error < 0.02
        assert abs(found - norm.isf(0.05 / n)) < 3 * error + 1e-3
    torus = gaussian_threshold((1,), boundary="periodic", **white).threshold
    assert norm.isf(0.05) > torus > norm.isf(0.06)


@pytest.mark.parametrize("maps", [1, 12])
def test_estimated_covariance(maps):
    """The errors are those of repeated estimates, around the level of the known covariance."""
    shape, sigma, repeats = (40, 56), 1.5, 12
    mask = ball(shape)
    truth = gaussian_threshold(shape, covariance=bell(sigma), mask=mask, rng=0).threshold
    images = np.array(list(noise(shape, sigma, maps * repeats, seed=2)))
    found = [
        gaussian_threshold(shape, residuals=3 * some, mask=mask, rng=0)
        for some in images.reshape(repeats, maps, *shape)
    ]
    levels, errors = np.array(found).T
    spread = levels.std(ddof=1)
    assert 0.5 < errors.mean() / spread < 2
    assert abs(levels.mean() - truth) < max(4 * spread / np.sqrt(repeats), 0.01)
    assert spread < 0.05


@pytest.mark.parametrize("shape", [(30, 34), (11, 12, 13)])
def test_expected_curve_within_a_mask(shape):
    mask, at = ball(shape), np.linspace(-2, 2, 9)
    options = {"mask": mask, "connectivity": 1}
    curves = np.array(
        [ecc.euler_curve(image, at, **options).values for image in noise(shape, 1.0, 300, seed=3)]
    )
    expected = expected_gaussian_curve(
        shape, at, covariance=bell(1.0), rng=0, replicas=50, **options
    )
    error = np.hypot(curves.std(axis=0, ddof=1) / np.sqrt(300), expected.error)
    assert (np.abs(curves.mean(axis=0) - expected.mean) < 4.5 * error).all()
    inside = (expected.lower <= curves) & (curves <= expected.upper)
    assert 0.9 < inside.mean() < 0.99


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of `covariance`, `spectral_moments` and `residuals`"),
        ({"spectral_moments": 1, "covariance": bell(1)}, "one of `covariance`"),
        ({"spectral_moments": 1, "alpha": 0.5}, "`alpha` must be between 0 and 0.5, got 0.5"),
        ({"spectral_moments": 1, "rng": 0}, "`rng` must be None with `spectral_moments`"),
        ({"spectral_moments": 1, "boundary": "half-open"}, "`boundary` must be"),
        ({"spectral_moments": 1, "mask": np.zeros((6, 7), bool)}, "`mask` must leave"),
        ({"spectral_moments": 1, "mask": np.ones((6, 6), bool)}, "`mask` must have"),
        (
            {"spectral_moments": 1, "mask": np.ones((6, 7), bool), "boundary": "periodic"},
            '`boundary` must be "closed" with `mask`',
        ),
        ({"residuals": np.ones((6, 7)), "spacing": 2}, "`spacing` must be None"),
        ({"residuals": np.ones((6, 6))}, "`residuals` must have shape"),
        ({"residuals": np.full((6, 7), np.nan)}, "`residuals` must be finite"),
        ({"residuals": np.zeros((3, 6, 7))}, "`residuals` must be finite"),
    ],
)
def test_invalid_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        gaussian_threshold((6, 7), **options)


def test_masked_curves_on_the_grid_need_connectivity_1():
    with pytest.raises(ValueError, match="`connectivity` must be 1 with `covariance` and `mask`"):
        expected_gaussian_curve((6, 7), [0.0], covariance=bell(1), mask=np.ones((6, 7), bool))
