"""Tests, bands and distances of groups of curves and transforms, against plain loops."""

import itertools
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from ecc_core.features import distance_matrix, mean_band, permutation_test

T = np.array([0.0, 1, 3, 4, 8])


def regroupings(count, own):
    """Which of `count` rows are in the first group, in all divisions."""
    members = itertools.combinations(range(count), own)
    return [np.isin(np.arange(count), chosen) for chosen in members]


def mean_difference(first, second):
    """The mean curve of a group less that of another one."""
    return first.mean(axis=0) - second.mean(axis=0)


def corrected(observed, permuted):
    """P-values of statistics (n,): how often the largest of each permutation (k, n) is as large."""
    largest = np.max(permuted, axis=1)
    as_large = largest[:, None] >= observed - 1e-9
    return as_large.mean(axis=0)


def maximum_statistic(first, second):
    """Corrected p-values over all regroupings, one at a time."""
    both = np.concatenate([first, second])
    scale = both.std(axis=0)

    def scaled(a, b):
        return np.abs(mean_difference(a, b)) / scale

    groups = regroupings(len(both), len(first))
    return corrected(scaled(first, second), [scaled(both[own], both[~own]) for own in groups])


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("k", "n"), [(3, 3), (4, 4), (3, 5)])
def test_equal_to_loops(k, n, superlevel):
    """Thresholds at which all curves agree tell nothing apart."""
    rng = np.random.default_rng(k + n)
    first = rng.normal(size=(k, 5))
    second = rng.normal([0, 0, 1, 3, 0], size=(n, 5))
    first[:, 0] = second[:, 0] = 7
    found = permutation_test((T, first), (T, second), superlevel=superlevel)
    assert found.exact
    assert found.units == (k, n)
    assert_allclose(found.pvalues, [1, *maximum_statistic(first[:, 1:], second[:, 1:])])
    difference = mean_difference(first, second)
    assert_allclose(found.difference, difference)
    pooled = (k * first.var(axis=0) + n * second.var(axis=0)) / (k + n - 2)
    deviation = np.sqrt(np.where(pooled, pooled, 1))
    assert_allclose(found.effect_size, difference / deviation)
    assert_array_equal(found.thresholds, T)


def partitions(sizes, left):
    """All ways to divide numbers into groups of these sizes."""
    if not sizes:
        return [[]]
    found = []
    for own in itertools.combinations(left, sizes[0]):
        others = [i for i in left if i not in own]
        found += [[list(own), *rest] for rest in partitions(sizes[1:], others)]
    return found


def spread(groups):
    """Standard deviation of the means of groups at each threshold, weighted by their sizes."""
    rows = np.concatenate(groups)
    squares = np.zeros(rows.shape[1])
    for group in groups:
        squares += len(group) / len(rows) * mean_difference(group, rows) ** 2
    return np.sqrt(squares)


def norm(curve):
    """The L2 norm of a curve, which holds its values up to the next threshold."""
    return np.sqrt(curve[:-1] ** 2 @ np.diff(T))


def deviation_within(groups):
    """The standard deviation of curves from the mean of their own group."""
    gaps = np.concatenate([group - group.mean(axis=0) for group in groups])
    squares = gaps**2
    return np.sqrt(squares.sum(axis=0) / (len(squares) - len(groups)))


SIZES = [(2, 2, 3), (3, 3, 3), (1, 2, 2, 2)]


def groups_of(sizes):
    """Groups of random curves that differ at two thresholds."""
    rng = np.random.default_rng(sum(sizes))
    shifts = np.array([0, 0, 2, 3, 0])
    return [rng.normal(i * shifts, 1, (n, 5)) for i, n in enumerate(sizes)]


@pytest.mark.parametrize("sizes", SIZES)
def test_several_groups(sizes):
    groups = groups_of(sizes)
    found = permutation_test(*[(T, values) for values in groups])
    assert found.exact
    assert found.units == sizes
    rows = np.concatenate(groups)
    ways = partitions(sizes, range(len(rows)))
    permuted = [spread([rows[own] for own in way]) for way in ways]
    observed = spread(groups)
    null = np.array([norm(curve) for curve in permuted])
    assert_allclose(found.difference, observed)
    assert found.statistic == pytest.approx(norm(observed))
    assert_allclose(np.sort(found.null), np.sort(null))
    as_large = null >= norm(observed) - 1e-9
    assert found.pvalue == pytest.approx(as_large.mean())
    scale = rows.std(axis=0)
    assert_allclose(found.pvalues, corrected(observed / scale, permuted / scale))
    assert_allclose(found.effect_size, observed / deviation_within(groups))


@pytest.mark.parametrize("sizes", SIZES)
def test_some_divisions_of_several_groups(sizes):
    groups = [(T, values) for values in groups_of(sizes)]
    drawn = permutation_test(*groups, n_permutations=60, rng=0)
    every = permutation_test(*groups)
    assert not drawn.exact
    assert drawn.null.size == 60
    assert set(np.round(drawn.null, 9)) <= set(np.round(every.null, 9))


def test_several_groups_of_units():
    rng = np.random.default_rng(5)
    groups = [(T, rng.normal(size=(6, 5))) for _ in range(3)]
    units = [list("aabbcc"), list("ddeeff"), list("gghhii")]
    found = permutation_test(*groups, units=units)
    means = [values.reshape(3, 2, 5).mean(axis=1) for _, values in groups]
    assert found.pvalue == permutation_test(*[(T, values) for values in means]).pvalue
    with pytest.raises(TypeError, match="`units` must be 3 sequences of ids, for `first` and for"):
        permutation_test(*groups, units=units[:2])
    with pytest.raises(ValueError, match=r"got 'a' in `first` and `more\[0\]`"):
        permutation_test(*groups, units=[units[0], units[1], units[0]])
    with pytest.raises(ValueError, match="`paired` must be False for more than two groups"):
        permutation_test(*groups, paired=True)


def test_pairs():
    rng = np.random.default_rng(1)
    first = rng.normal(size=(5, 5))
    second = first + rng.normal(size=(5, 5)) + [0, 0, 2, 0, 0]
    found = permutation_test((T, first), (T, second), paired=True)
    gaps = first - second
    scale = np.sqrt((gaps**2).mean(axis=0))
    signs = np.array([*itertools.product((-1, 1), repeat=5)])
    permuted = np.abs(signs @ gaps / 5 / scale)
    observed = np.abs(gaps.mean(axis=0)) / scale
    assert_allclose(found.pvalues, corrected(observed, permuted))
    assert_allclose(found.effect_size, gaps.mean(axis=0) / gaps.std(axis=0, ddof=1))


def test_plots():
    rng = np.random.default_rng(4)
    first = rng.normal(size=(6, 5))
    second = rng.normal([0, 0, 9, 9, 0], size=(6, 5))
    test = permutation_test((T, first), (T, second))
    ax = test.plot()
    assert_array_equal(ax.lines[-1].get_ydata(), test.difference)
    corners = [path.vertices for path in ax.collections[0].get_paths()]
    shaded = np.concatenate(corners)[:, 0]
    assert 1 < shaded.min() <= 3
    assert 4 <= shaded.max() < 8
    band = mean_band((T, first), rng=0)
    _, mean, lower, upper = band
    assert_array_equal(band.to_pandas()[["mean", "lower", "upper"]], np.c_[mean, lower, upper])
    ax = band.plot(label="mean")
    assert_array_equal(ax.lines[0].get_ydata(), band.mean)
    assert ax.collections[0].get_datalim(ax.transData).y1 == pytest.approx(band.upper.max())
    with pytest.raises(ValueError, match="`level`"):
        test.plot(level=2)


def test_axes_of_plots_have_units():
    images = np.random.default_rng(5).integers(0, 9, (4, 6, 7))
    curves = ecc.minkowski_curves(images, np.arange(9), axis=(1, 2))
    curves = replace(curves, units="HU", spacing_units="mm")
    first, second = (replace(curves, values=curves.values[rows]) for rows in ([0, 1], [2, 3]))
    band = mean_band(first, functional="area", n_resamples=9).plot()
    assert (band.get_xlabel(), band.get_ylabel()) == (
        "threshold (HU)",
        "mean area\n(mm\N{SUPERSCRIPT TWO})",
    )
    test = permutation_test(first, second, functional="euler").plot()
    assert test.get_xlabel() == "threshold (HU)"
    assert test.get_ylabel() == "difference of means\nEuler characteristic"
    transforms = ecc.region_transforms(np.eye(4, dtype=int) * [1, 1, 2, 2], 4, 5)
    ax = mean_band(replace(transforms, units="mm"), n_resamples=9).plot()
    assert ax.get_xlabel() == "height (mm)"
    pairs = replace(ecc.persistence_pairs(images[0]), units="HU")
    regions = replace(ecc.persistent_regions(images[0], 1), units="HU")
    assert (pairs.boundary, regions.boundary) == ("closed", "closed")
    assert pairs.plot().get_xlabel() == "birth (HU)"
    assert regions.plot().get_xlabel() == "birth (HU)"


def ranges_where(differs):
    """The first and the last threshold of each run of those that differ."""
    ranges = []
    for _, run in itertools.groupby(zip(differs, T.tolist(), strict=True), key=itemgetter(0)):
        steps = list(run)
        if steps[0][0]:
            ranges.append((steps[0][1], steps[-1][1]))
    return ranges


def test_ranges_of_thresholds_that_differ():
    """Against a walk along the thresholds."""
    test = permutation_test((T, np.ones((2, T.size))), (T, np.ones((2, T.size))))
    rng = np.random.default_rng(0)
    shapes = [(T.size,), (3, T.size)] * 20
    drawn = [rng.choice([0.01, 0.05, 0.051, 0.5], shape) for shape in shapes]
    differs = [np.atleast_2d(pvalues <= 0.05).any(axis=0) for pvalues in drawn]
    found = [test._replace(pvalues=pvalues).differing() for pvalues in drawn]
    assert found == list(map(ranges_where, differs))
    assert test.differing() == []
    with pytest.raises(ValueError, match="`level`"):
        test.differing(1.5)


def transforms(seed, count=4, thick=0):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        shape = rng.random((9, 8)) < 0.4
        shape[2 : 4 + thick, 2:6] = True
        found.append(ecc.euler_transform(shape, 6, 10))
    return found


@pytest.mark.parametrize("metric", ["L1", "L2"])
def test_distances_of_transforms_are_those_of_pairs(metric):
    first = transforms(0)
    second = transforms(1, 3)

    def each(given):
        return [[ecc.transform_distance(a, b, metric=metric) for b in given] for a in first]

    assert_allclose(distance_matrix(first, second, metric=metric), each(second))
    assert_allclose(distance_matrix(first, metric=metric), each(first))


def test_regions_are_transforms():
    labels = np.zeros((12, 13), int)
    labels[1:5, 1:9], labels[6:11, 2:6], labels[7:9, 8:12] = 1, 4, 6
    regions = ecc.region_transforms(labels, 5, 8)
    singles = [regions.select(label) for label in (1, 4, 6)]
    expected = [[ecc.transform_distance(a, b) for b in singles] for a in singles]
    assert_allclose(distance_matrix(regions), expected)


def test_permutation_test_of_transforms():
    first = transforms(2)
    second = transforms(3, thick=5)
    found = permutation_test(first, second)
    first_values = np.array([one.values for one in first], float)
    second_values = np.array([one.values for one in second], float)
    widths = np.gradient(first[0].heights)
    widths[[0, -1]] /= 2

    def distance(a, b):
        of_directions = mean_difference(a, b) ** 2 @ widths
        return np.sqrt(of_directions.mean())

    both = np.concatenate([first_values, second_values])
    statistic = distance(first_values, second_values)
    null = np.array([distance(both[own], both[~own]) for own in regroupings(8, 4)])
    assert found.statistic == pytest.approx(statistic)
    assert found.pvalue == np.mean(null >= statistic - 1e-9)
    difference = mean_difference(first_values, second_values)
    assert_allclose(found.difference, difference, atol=1e-12)
    assert found.pvalues.shape == found.effect_size.shape == (6, 10)
    varies = both.std(axis=0) > 0
    expected = maximum_statistic(first_values[:, varies], second_values[:, varies])
    assert_allclose(found.pvalues[varies], expected)
    assert_array_equal(found.thresholds, first[0].heights)
    assert len(found.plot().lines) == 1 + 6


def test_mean_band_of_transforms():
    group = transforms(4, 9)
    band = mean_band(group, rng=0)
    mean = np.mean([one.values for one in group], axis=0)
    assert_allclose(band.mean, mean)
    assert ((band.lower <= mean) & (mean <= band.upper)).all()
    assert len(band.plot().collections) == 6


def test_transforms_that_are_refused():
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


@pytest.mark.parametrize("constant", [0, 0.1, 0.7, 1 / 300, 1e9 / 7])
@pytest.mark.parametrize("paired", [False, True])
def test_levels_at_which_all_curves_are_equal_change_nothing(constant, paired):
    """The mean of equal floats differs from them by rounding, which has no standard deviation."""
    rng = np.random.default_rng(7)
    first = rng.normal(5, 1, (6, 8))
    second = rng.normal(9, 1, (6, 8))
    without = np.arange(8.0)
    at = np.append(without, 8.0)

    def longer(values):
        return np.append(values, np.full((6, 1), constant), axis=1)

    known = permutation_test((without, first), (without, second), paired=paired)
    found = permutation_test((at, longer(first)), (at, longer(second)), paired=paired)
    assert known.pvalues.min() < 0.05
    assert_array_equal(found.pvalues[:-1], known.pvalues)
    assert (found.pvalues[-1], found.difference[-1], found.effect_size[-1]) == (1, 0, 0)


def test_bands_are_no_wider_for_levels_at_which_all_curves_are_equal():
    """Rounding of the mean there, in units of its own deviation, would be the largest one."""
    rng = np.random.default_rng(8)
    curves = rng.normal(5, 1, (60, 4))
    longer = np.append(curves, np.full((60, 1), 0.1), axis=1)
    known = mean_band((T[:4], curves), rng=1)
    band = mean_band((T, longer), rng=1)
    assert_allclose(band.upper[:-1], known.upper)
    assert_allclose([band.lower[-1], band.upper[-1]], 0.1)
