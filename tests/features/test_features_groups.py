"""Bands and tests of groups of curves do what their names promise."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from ecc_core.features import curve_distance, mean_band, permutation_test

T = np.arange(12.0)
EXPECTED = 10 * np.sin(T / 2)


def group(rng, count, shift=0.0):
    """Curves around a known mean, whose errors go together from threshold to threshold."""
    errors = np.cumsum(rng.normal(size=(count, T.size)), axis=1)
    return T, EXPECTED + shift + errors


def cover(kind, count, trials, seed):
    """Share of the bands that hold the whole mean, and share of the thresholds held."""
    whole = []
    points = []
    for trial in np.random.SeedSequence(seed).spawn(trials):
        rng = np.random.default_rng(trial)
        band = mean_band(group(rng, count), kind=kind, n_resamples=400, rng=rng)
        within = (band.lower <= EXPECTED) & (band.upper >= EXPECTED)
        whole.append(within.all())
        points.append(within.mean())
    return np.mean(whole), np.mean(points)


@pytest.mark.parametrize("count", [12, 50])
def test_simultaneous_bands_cover_the_whole_mean(count):
    whole, _ = cover("simultaneous", count, 600, 0)
    assert abs(whole - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 600)


def test_pointwise_bands_cover_each_threshold_but_not_all():
    whole, points = cover("pointwise", 12, 600, 1)
    assert abs(points - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 600)
    assert whole < 0.9


def test_the_mean_and_the_thresholds_are_those_of_the_group():
    rng = np.random.default_rng(2)
    t, values = group(rng, 9)
    band = mean_band((t, values), rng=0)
    assert_array_equal(band.thresholds, t)
    assert_allclose(band.mean, values.mean(axis=0), rtol=1e-12)
    assert_allclose(band.upper - band.mean, band.mean - band.lower, rtol=1e-9)
    assert (band.upper > band.lower).all()


def test_curves_that_agree_have_no_width():
    values = np.tile([3, 5, 1], (4, 1))
    values[:, 1] += [0, 1, 2, 3]
    band = mean_band(([0, 1, 2], values), rng=0)
    assert_array_equal(band.lower[[0, 2]], [3, 1])
    assert band.upper[1] > band.lower[1]


def test_a_seed_repeats_and_a_generator_moves_on():
    curves = group(np.random.default_rng(4), 12)
    assert_array_equal(mean_band(curves, rng=7).upper, mean_band(curves, rng=7).upper)
    rng = np.random.default_rng(7)
    first = mean_band(curves, rng=rng)
    second = mean_band(curves, rng=rng)
    assert (first.upper != second.upper).any()
    a, b = (permutation_test(curves, curves, n_permutations=50, rng=s).null for s in (1, 1))
    assert_array_equal(a, b)


def test_superlevel_bands_mirror_sublevel_ones():
    images = np.random.default_rng(5).normal(size=(8, 9, 9)).round(1)
    down = mean_band([ecc.euler_curve(i, "exact") for i in images], rng=0)
    up = [ecc.euler_curve(-i, "exact", superlevel=True) for i in images]
    band = mean_band(up, rng=0)
    assert_array_equal(band.thresholds, -down.thresholds[::-1])
    assert_array_equal(band.mean, down.mean[::-1])
    assert_array_equal(band.lower, down.lower[::-1])


# The permutation test


@pytest.mark.parametrize("metric", ["L1", "L2", "W1"])
def test_the_statistic_is_the_distance_of_the_means(metric):
    rng = np.random.default_rng(12)
    (t, a), (_, b) = group(rng, 5), group(rng, 7, shift=1)
    result = permutation_test((t, a), (t, b), metric=metric, n_permutations=20, rng=0)
    expected = curve_distance((t, a.mean(axis=0)), (t, b.mean(axis=0)), metric=metric)
    assert_allclose(result.statistic, expected, rtol=1e-12)
    assert result.null.shape == (20,)


def test_groups_on_different_thresholds():
    rng = np.random.default_rng(13)
    smooth = rng.normal(size=(5, 16, 16))
    rough = rng.normal(size=(6, 16, 16)).round()
    a = [ecc.euler_curve(image, "exact") for image in smooth]
    b = [ecc.euler_curve(image, 20) for image in rough]
    found = permutation_test(a, b, n_permutations=199, rng=0)
    assert found.pvalue <= 0.01
    assert f"pvalue={found.pvalue}" in repr(found)
    assert len(repr(found)) < 600


def test_more_values_than_fit_in_a_block(monkeypatch):
    curves = group(np.random.default_rng(14), 8)
    band = mean_band(curves, n_resamples=100, rng=0)
    monkeypatch.setattr("ecc_core.features._permutations.RESAMPLED_AT_ONCE", 7 * T.size)
    small = mean_band(curves, n_resamples=100, rng=0)
    assert_allclose(small.upper, band.upper)
    assert permutation_test(curves, curves, n_permutations=100, rng=0).null.shape == (100,)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": 1}, ValueError, "`level` must be between 0 and 1, got 1"),
        ({"kind": "wide"}, ValueError, '`kind` must be "simultaneous" or "pointwise", got'),
        ({"n_resamples": 0}, ValueError, "`n_resamples` must be a positive int, got 0"),
        ({"n_resamples": 2.5}, TypeError, "`n_resamples` must be a positive int, got 2.5"),
    ],
)
def test_arguments_of_a_band_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        mean_band((T, np.ones((3, 12))), **options)


def test_groups_that_are_refused():
    one = T, np.ones((1, 12))
    with pytest.raises(ValueError, match="`curves` must hold at least 2 curves, got 1"):
        mean_band(one)
    with pytest.raises(ValueError, match="`first` and `second` must hold curves, got 1 and 0"):
        permutation_test(one, (T, np.ones((0, 12))))
    with pytest.raises(ValueError, match="`n_permutations` must be a positive int, got -1"):
        permutation_test(one, one, n_permutations=-1)
    with pytest.raises(ValueError, match="`metric` must be"):
        permutation_test(one, one, metric="L0")


def test_a_band_of_units_is_that_of_their_means():
    values = np.random.default_rng(0).poisson(9, (7, 12)).astype(float)
    wells = ["a", "b", "a", "c", "c", "c", "b"]
    means = [values[[0, 2]].mean(axis=0), values[[1, 6]].mean(axis=0), values[3:6].mean(axis=0)]
    found = mean_band((T, values), units=wells, rng=0)
    assert_allclose(found[:4], mean_band((T, means), rng=0)[:4])
    with pytest.raises(ValueError, match="at least 2 units, got 1"):
        mean_band((T, values), units=["a"] * 7)
    with pytest.raises(ValueError, match="each curve of `curves`, got 6 ids for 7 curves"):
        mean_band((T, values), units=wells[:6])
    with pytest.raises(TypeError, match="sequence of ids"):
        mean_band((T, values), units="well")


@pytest.mark.parametrize("metric", ["L1", "L2", "W1"])
def test_curves_of_one_threshold_are_compared_there(metric):
    """The statistic is the difference of the means, and all its permutations are counted here."""
    first = np.array([[3], [5], [4], [6]])
    second = np.array([[6], [9], [8]])
    found = permutation_test(([0.5], first), ([0.5], second), metric=metric)
    values = np.concatenate([first, second]).ravel()
    every = []
    for own in itertools.combinations(range(7), 4):
        gap = values[list(own)].mean() - np.delete(values, own).mean()
        every.append(abs(gap))
    assert_allclose(found.statistic, every[0])
    assert_allclose(found.pvalue, np.mean(np.array(every) >= every[0] - 1e-9))
    assert found.pvalue < 0.1
    assert_allclose(found.pvalues, found.pvalue)
