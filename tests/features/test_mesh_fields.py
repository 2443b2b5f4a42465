"""Gaussian fields on meshes, against simulations and the limits of theory."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

import ecc_core as ecc
from ecc_core.features import expected_mesh_curve, gaussian_threshold

SIDE = 9
NUMBERS = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
CORNERS = [NUMBERS[:-1, :-1], NUMBERS[1:, :-1], NUMBERS[:-1, 1:], NUMBERS[1:, 1:]]
FLAT_CORNERS = np.stack([corner.ravel() for corner in CORNERS], axis=1)
TRIANGLES = np.concatenate([FLAT_CORNERS[:, [0, 1, 3]], FLAT_CORNERS[:, [0, 3, 2]]])
"""Triangles of a square sheet, which has a boundary."""
LEVELS = np.linspace(-2.5, 3, 12)


def mixing():
    """A matrix that makes noise smooth, more so on one side, of variance 1."""
    places = np.argwhere(NUMBERS >= 0)
    width = 0.8 + places[:, 1] / SIDE
    squares = ((places[:, None] - places) ** 2).sum(axis=-1)
    weights = np.exp(-squares / (2 * width[:, None] ** 2))
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


@pytest.mark.parametrize("superlevel", [False, True])
def test_the_mean_of_simulated_curves(superlevel):
    mixed = mixing()
    # Columns of the matrix are maps whose products add up to the covariance itself.
    expected = expected_mesh_curve(LEVELS, TRIANGLES, mixed.T, superlevel=superlevel)
    noise = np.random.default_rng(0).normal(size=(4000, len(mixed))) @ mixed.T
    curves = ecc.simplicial_curve(noise, TRIANGLES, LEVELS, superlevel=superlevel).values
    error = curves.std(axis=0) / math.sqrt(len(curves)) + 1e-3
    assert (np.abs(curves.mean(axis=0) - expected.mean) < 4 * error).all()
    assert expected.superlevel is superlevel


@pytest.mark.parametrize("level", [-1.0, 0.5, 2.0])
def test_one_triangle(level):
    """The probabilities of SciPy."""
    maps = np.random.default_rng(1).normal(size=(9, 3)) + np.linspace(0, 3, 9)[:, None]
    covariance = maps.T @ maps
    scale = np.sqrt(covariance.diagonal())
    covariance /= np.outer(scale, scale)
    pairs = [(0, 1), (0, 2), (1, 2)]
    low = -level
    both = [multivariate_normal.cdf([low, low], cov=covariance[np.ix_(p, p)]) for p in pairs]
    every = multivariate_normal.cdf([low] * 3, cov=covariance, abseps=1e-6)
    known = 3 * norm.sf(level) - sum(both) + every
    found = expected_mesh_curve([level], [[0, 1, 2]], maps, superlevel=True)
    assert_allclose(found.mean, known, atol=5e-6)


def test_points_without_edges_are_the_bound_of_bonferroni():
    maps = np.random.default_rng(2).normal(size=(5, 40))
    found = gaussian_threshold((40,), 0.05, residuals=maps, simplices=[])
    assert found.threshold == pytest.approx(norm.isf(0.05 / 40), abs=1e-4)
    assert found.error == 0


def test_the_family_wise_error_of_a_threshold():
    """Correlations of maps are known, or estimated from 60 maps."""
    mixed = mixing()
    rng = np.random.default_rng(3)
    exact = gaussian_threshold((len(mixed),), residuals=mixed.T, simplices=TRIANGLES)
    largest = (rng.normal(size=(8000, len(mixed))) @ mixed.T).max(axis=1)
    rate = (largest >= exact.threshold).mean()
    assert abs(rate - 0.05) < 3 * math.sqrt(0.05 * 0.95 / 8000) + 0.002
    few = gaussian_threshold(
        (len(mixed),), residuals=rng.normal(size=(60, len(mixed))) @ mixed.T, simplices=TRIANGLES
    )
    assert 0 < few.error < 0.05
    assert abs(few.threshold - exact.threshold) < 4 * few.error


def test_the_error_of_a_threshold_is_that_of_the_jackknife():
    """The levels without each of eight maps; the error takes the curve for straight."""
    maps = np.random.default_rng(4).normal(size=(8, SIDE * SIDE)) @ mixing().T

    def threshold_of(some):
        return gaussian_threshold((SIDE * SIDE,), residuals=some, simplices=TRIANGLES)

    without_each = [threshold_of(np.delete(maps, i, axis=0)).threshold for i in range(8)]
    known = math.sqrt(8 - 1) * np.std(without_each)
    assert threshold_of(maps).error == pytest.approx(known, rel=0.2)


MAPS = np.ones((3, 4))
WRONG = {
    "tetrahedra": ({"simplices": [[0, 1, 2, 3]]}, "`simplices` must have at most 3 points"),
    "outside": ({"simplices": [[0, 1, 9]]}, "`simplices` must hold indices of points"),
    "shape": ({"shape": (2, 2)}, r"`shape` must be \(n,\) with `simplices`"),
    "residuals": ({"residuals": np.ones((3, 5))}, r"`residuals` must have shape \(m, 4\)"),
    "zero": ({"residuals": MAPS * [1, 1, 0, 1]}, "must not be 0 in all maps, got 0 at the point 2"),
    "no maps": ({"residuals": MAPS[:0]}, r"must have one map or more, got shape \(0, 4\)"),
    "infinite": ({"residuals": MAPS * np.inf}, "`residuals` must be finite, got inf"),
    "none": ({"residuals": None, "spectral_moments": 1}, "`residuals` must be given with"),
    "mask": ({"mask": np.ones(4, bool)}, "`mask` must"),
    "alpha": ({"alpha": 1e-25}, "`alpha` must be above .* 9 standard deviations, got 1e-25"),
    "boundary": ({"boundary": "periodic"}, "`boundary` must"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    changed, message = WRONG[case]
    given = {"shape": (4,), "residuals": MAPS, "simplices": [[0, 1, 2]], **changed}
    with pytest.raises(ValueError, match=message):
        gaussian_threshold(given.pop("shape"), **given)
