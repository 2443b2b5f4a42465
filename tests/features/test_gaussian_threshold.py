"""Thresholds of Gaussian maps, by Worsley's formula, by exact ones and by simulated maps."""

import math
from itertools import combinations

import numpy as np
import pytest
from gaussian_fields import BELL, ball, bell, noise, white
from numpy.testing import assert_allclose
from oracles.euler import cell_counts
from scipy.optimize import brentq
from scipy.stats import binom, norm

from ecc_core.features import gaussian_threshold

RESEL = 4 * np.log(2)
SHOWN = np.ones((6, 7), bool)


def resels(mask, sides):
    """Worsley's resel counts: points, edges, faces and cubes of the mask, by their sides."""
    counts = np.zeros(mask.ndim + 1)
    cells = cell_counts(mask, [True], connectivity=1, superlevel=True)
    for extent, number in cells.items():
        spans = [side for side, along in zip(sides, extent, strict=True) if along]
        for k in range(len(spans) + 1):
            symmetric = sum(map(math.prod, combinations(spans, k)))
            counts[k] += (-1) ** (len(spans) - k) * symmetric * number[0]
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


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("shape", [(60,), (30, 40), (12, 14, 16)])
def test_smooth_maps_follow_resel_counts(shape, masked, alpha):
    ndim = len(shape)
    fwhm = np.array([5.0, 4.0, 7.0])[:ndim]
    spacing = np.array([1.0, 0.5, 2.0])[:ndim]
    mask = ball(shape) if masked else np.ones(shape, bool)
    counts = resels(mask, spacing / fwhm)
    if not masked:
        sides = (np.array(shape) - 1) * spacing / fwhm
        assert_allclose(counts[-1], np.prod(sides))
        assert_allclose(counts[1], sides.sum())
    options = {"spectral_moments": RESEL / fwhm**2, "spacing": spacing}
    found = gaussian_threshold(shape, alpha, mask=mask if masked else None, **options)
    assert_allclose(found.threshold, by_resels(counts, alpha), atol=2e-4)
    assert found.error == 0


@pytest.mark.parametrize(
    ("shape", "sigma"), [((400,), 2.0), ((48, 48), 1.0), ((48, 48), 3.0), ((16, 18, 20), 1.0)]
)
def test_true_rates_are_alpha(shape, sigma):
    count = 1500
    alpha = 0.1
    masked = sigma == 1
    mask = ball(shape) if masked else np.ones(shape, bool)
    peaks = np.array([image[mask].max() for image in noise(shape, sigma, count, seed=1)])
    chosen = {"mask": mask} if masked else {}
    found = gaussian_threshold(shape, alpha, covariance=bell(sigma), rng=0, **chosen)
    assert found.error < 0.003
    low, high = binom.ppf([0.001, 0.999], count, alpha)
    assert low <= (peaks > found.threshold).sum() <= high
    if masked:  # These maps are too rough for the formula of smooth ones.
        smooth = gaussian_threshold(shape, alpha, spectral_moments=0.5, **chosen)
        assert (peaks > smooth.threshold).sum() < low


@pytest.mark.parametrize("shape", [(500,), (30, 40), (9, 10, 11)])
def test_independent_points_are_corrected_by_their_number(shape):
    bonferroni = norm.isf(0.05 / math.prod(shape))
    found, error = gaussian_threshold(shape, covariance=white, rng=0)
    assert error < 0.02
    assert abs(found - bonferroni) < 3 * error + 1e-3


def test_a_single_point_is_not_corrected():
    found = gaussian_threshold((1,), boundary="periodic", covariance=white, rng=0)
    assert norm.isf(0.05) > found.threshold > norm.isf(0.06)


@pytest.mark.slow  # Eight estimates take 20 s; the test below makes two.
@pytest.mark.parametrize("maps", [1, 12])
def test_estimated_covariance(maps):
    """The errors are those of repeated estimates, around the level of the known covariance."""
    shape = (40, 56)
    sigma = 1.5
    repeats = 8
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


@pytest.mark.parametrize("shape", [(40, 56), (56, 40)])
def test_a_single_map_along_either_axis(shape):
    """The level and its error do not depend on which axis is the longer one."""
    (image,) = noise(shape, 1.5, 1, seed=2)
    found = gaussian_threshold(shape, residuals=image, rng=0)
    turned = gaussian_threshold(shape[::-1], residuals=image.T, rng=0)
    assert_allclose(found.threshold, turned.threshold, rtol=1e-3)
    assert_allclose(found.error, turned.error, rtol=0.05)


def test_the_error_of_a_level_is_that_of_the_jackknife():
    """Levels without each of six maps, and the error of the integration itself."""
    shape = (200,)
    maps = np.array(list(noise(shape, 1.5, 6, seed=3)))

    def level_of(some):
        return gaussian_threshold(shape, residuals=some, rng=0)

    without_each = [level_of(np.delete(maps, i, axis=0)).threshold for i in range(6)]
    jackknife = np.sqrt(6 - 1) * np.std(without_each)
    integration = gaussian_threshold(shape, covariance=bell(1.5), rng=0).error
    assert integration < jackknife / 4
    assert level_of(maps).error == pytest.approx(jackknife, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of `covariance`, `spectral_moments` and `residuals`"),
        ({"spectral_moments": 1, "covariance": BELL}, "one of `covariance`"),
        ({"spectral_moments": 1, "alpha": 0.5}, "`alpha` must be between 0 and 0.5, got 0.5"),
        ({"spectral_moments": 1, "rng": 0}, "`rng` must be None with `spectral_moments`"),
        ({"spectral_moments": 1, "boundary": "half-open"}, "`boundary` must be"),
        ({"spectral_moments": 1, "mask": ~SHOWN}, "`mask` must leave"),
        ({"spectral_moments": 1, "mask": SHOWN[:, :6]}, "`mask` must have"),
        ({"spectral_moments": 1, "mask": SHOWN, "boundary": "periodic"}, '"closed" with `mask`'),
        ({"residuals": np.ones((6, 7)), "spacing": 2}, "`spacing` must be None"),
        ({"residuals": np.ones((6, 6))}, "`residuals` must have shape"),
        ({"residuals": np.full((6, 7), np.nan)}, "`residuals` must be finite"),
        ({"residuals": np.zeros((3, 6, 7))}, "`residuals` must be finite"),
    ],
)
def test_invalid_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        gaussian_threshold((6, 7), **options)
