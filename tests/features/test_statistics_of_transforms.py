"""Statistics of transforms, against distances of single ones and plain loops."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from ecc_core.features import distance_matrix, mean_band, permutation_test


def transforms(seed, count=4, thick=0):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        shape = rng.random((9, 8)) < 0.4
        shape[2 : 4 + thick, 2:6] = True
        found.append(ecc.euler_transform(shape, 6, 10))
    return found


@pytest.mark.parametrize("metric", ["L1", "L2"])
def test_distances_are_those_of_pairs(metric):
    first, second = transforms(0), transforms(1, 3)
    expected = [[ecc.transform_distance(a, b, metric=metric) for b in second] for a in first]
    assert_allclose(distance_matrix(first, second, metric=metric), expected)
    square = distance_matrix(first, metric=metric)
    assert_allclose(
        square, [[ecc.transform_distance(a, b, metric=metric) for b in first] for a in first]
    )


def test_regions_are_transforms():
    labels = np.zeros((12, 13), int)
    labels[1:5, 1:9], labels[6:11, 2:6], labels[7:9, 8:12] = 1, 4, 6
    regions = ecc.region_transforms(labels, 5, 8)
    singles = [regions.select(label) for label in (1, 4, 6)]
    expected = [[ecc.transform_distance(a, b) for b in singles] for a in singles]
    assert_allclose(distance_matrix(regions), expected)


def test_permutation_test():
    first, second = transforms(2), transforms(3, thick=5)
    found = permutation_test(first, second)
    values = np.array([one.values for one in (*first, *second)], float)
    widths = np.gradient(first[0].heights)
    widths[[0, -1]] /= 2
    null, largest = [], []
    scale = values.std(axis=0)
    for own in itertools.combinations(range(8), 4):
        inside = np.isin(range(8), own)
        gap = values[inside].mean(axis=0) - values[~inside].mean(axis=0)
        null.append(np.sqrt((gap**2 @ widths).mean()))
        with np.errstate(invalid="ignore"):
            largest.append(np.nanmax(np.abs(gap) / scale))
    null = np.array(null)
    gap = values[:4].mean(axis=0) - values[4:].mean(axis=0)
    statistic = np.sqrt((gap**2 @ widths).mean())
    assert found.statistic == pytest.approx(statistic)
    assert found.pvalue == np.mean(null >= statistic - 1e-9)
    assert_allclose(found.difference, gap, atol=1e-12)
    assert found.pvalues.shape == found.effect_size.shape == (6, 10)
    varies = scale > 0
    expected = [np.mean(largest >= one - 1e-9) for one in np.abs(gap[varies]) / scale[varies]]
    assert_allclose(found.pvalues[varies], expected)
    assert_array_equal(found.thresholds, first[0].heights)
    assert len(found.plot().lines) == 1 + 6


def test_mean_band():
    group = transforms(4, 9)
    band = mean_band(group, rng=0)
    mean = np.mean([one.values for one in group], axis=0)
    assert_allclose(band.mean, mean)
    assert ((band.lower <= mean) & (mean <= band.upper)).all()
    assert len(band.plot().collections) == 6


def test_bad_input():
    group = transforms(5, 3)
    other = ecc.euler_transform(np.eye(9, 8, dtype=bool), 7, 10)
    with pytest.raises(ValueError, match=r"same directions and heights, not `second\[0\]`"):
        permutation_test(group, [other])
    connected = ecc.euler_transform(np.eye(9, 8, dtype=bool), 6, 10, connectivity=1)
    with pytest.raises(ValueError, match="`connectivity`"):
        distance_matrix(group, [connected])
    with pytest.raises(ValueError, match='"L1" or "L2" for transforms'):
        distance_matrix(group, metric="W1")
    with pytest.raises(ValueError, match="`functional` must be left out"):
        mean_band(group, functional="b0")
    with pytest.raises(TypeError, match="`second` must be transforms"):
        permutation_test(group, (np.arange(3), np.ones((2, 3))))
