"""All functionals at once, and rows for a PCA, against sums over intervals between thresholds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

import ecc_core as ecc
from ecc_core.features import distance_matrix, feature_matrix, mean_band, permutation_test

T = np.array([0.0, 1, 2.5, 5, 8])
IMAGES = np.random.default_rng(0).integers(0, 9, (7, 10, 11))


def curves(quantity="minkowski", **options):
    compute = {"minkowski": ecc.minkowski_curves, "betti": ecc.betti_curves}[quantity]
    return compute(IMAGES, T, axis=(1, 2), **options)


def scaled(found):
    values = found.values.astype(float)
    return values / np.abs(values).max(axis=(0, 2), keepdims=True)


def squares(gaps, superlevel=False):
    """Integrals of squares of step functions, summed over the functionals."""
    held = gaps[..., 1:] if superlevel else gaps[..., :-1]
    return (held**2 * np.diff(T)).sum(axis=(-1, -2))


@pytest.mark.parametrize("quantity", ["minkowski", "betti"])
@pytest.mark.parametrize("superlevel", [False, True])
def test_distances(quantity, superlevel):
    found = curves(quantity, superlevel=superlevel)
    values = scaled(found)
    expected = np.sqrt(squares(values[:, None] - values, superlevel))
    assert_allclose(distance_matrix(found, functional="all"), expected)
    rows = feature_matrix(found, functional="all")
    assert_allclose(np.linalg.norm(rows[:, None] - rows, axis=-1), expected, atol=1e-12)
    singles = [replace(found, values=one) for one in found.values]
    assert_allclose(distance_matrix(singles[:3], singles[3:], functional="all"), expected[:3, 3:])
    shown = PCA(6).fit_transform(rows)  # 7 points differ in at most 6 dimensions.
    assert_allclose(np.linalg.norm(shown[:, None] - shown, axis=-1), expected, atol=1e-9)


def test_rows_of_other_results():
    euler = ecc.euler_curve(IMAGES, T, axis=(1, 2))
    gaps = euler.values[:, None] - euler.values
    expected = np.sqrt((gaps[..., :-1] ** 2 * np.diff(T)).sum(axis=-1))
    rows = feature_matrix(euler)
    assert_allclose(np.linalg.norm(rows[:, None] - rows, axis=-1), expected, atol=1e-12)
    shapes = [ecc.euler_transform(image > 4, 6, 9) for image in IMAGES]
    rows = feature_matrix(shapes)
    distances = np.linalg.norm(rows[:, None] - rows, axis=-1)
    assert_allclose(distances, distance_matrix(shapes), atol=1e-12)


@pytest.mark.parametrize("superlevel", [False, True])
def test_groups(superlevel):
    found = curves(superlevel=superlevel)
    first, second = (replace(found, values=part) for part in (found.values[:3], found.values[3:]))
    values = scaled(found)
    gap = values[:3].mean(axis=0) - values[3:].mean(axis=0)
    test = permutation_test(first, second, functional="all")
    assert_allclose(test.statistic, np.sqrt(squares(gap, superlevel)))
    assert_allclose(test.difference, gap, atol=1e-12)
    assert test.pvalues.shape == (3, 5)
    assert_allclose(test.thresholds, T)
    assert test.plot().get_xlabel() == "threshold"
    band = mean_band(found, functional="all", n_resamples=9)
    assert_allclose(band.mean, values.mean(axis=0))
    assert_allclose(band.thresholds, T)


def test_refused():
    found = curves()
    with pytest.raises(ValueError, match=r'"L1" or "L2" for .* functional="all", got \'W1\''):
        distance_matrix(found, functional="all", metric="W1")
    with pytest.raises(ValueError, match="`functional` must be 'euler' or left out, got 'all'"):
        mean_band(ecc.euler_curve(IMAGES, T, axis=(1, 2)), functional="all")
    with pytest.raises(ValueError, match="`estimator`"):
        permutation_test(found, curves(estimator="crofton-2"), functional="all")
