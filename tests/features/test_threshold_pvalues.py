"""P-values of thresholds by the maximum statistic, against plain loops, SciPy and simulation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import ecc_core as ecc
from ecc_core.features import mean_band, permutation_test

T = np.array([0.0, 1, 3, 4, 8])


def maximum_statistic(first, second):
    """Corrected p-values over all regroupings, one at a time."""
    both = np.concatenate([first, second])
    scale = both.std(axis=0)
    members = itertools.combinations(range(len(both)), len(first))
    groups = [np.isin(np.arange(len(both)), chosen) for chosen in members]
    moved = [np.abs(both[own].mean(axis=0) - both[~own].mean(axis=0)) / scale for own in groups]
    observed = np.abs(first.mean(axis=0) - second.mean(axis=0)) / scale
    largest = np.max(moved, axis=1)
    return np.array([np.mean(largest >= one - 1e-9) for one in observed])


@pytest.mark.parametrize(("k", "n"), [(3, 3), (4, 4), (3, 5)])
def test_equal_to_loops(k, n):
    rng = np.random.default_rng(k + n)
    first, second = rng.normal(size=(k, 5)), rng.normal([0, 0, 1, 3, 0], size=(n, 5))
    found = permutation_test((T, first), (T, second))
    assert found.exact
    assert found.units == (k, n)
    assert_allclose(found.pvalues, maximum_statistic(first, second))
    assert_allclose(found.difference, first.mean(axis=0) - second.mean(axis=0))
    pooled = ((k - 1) * first.var(axis=0, ddof=1) + (n - 1) * second.var(axis=0, ddof=1)) / (
        k + n - 2
    )
    assert_allclose(found.effect_size, found.difference / np.sqrt(pooled))
    assert_array_equal(found.thresholds, T)


def partitions(sizes, left):
    """All ways to divide numbers into groups of these sizes."""
    if not sizes:
        return [[]]
    return [
        [list(own), *rest]
        for own in itertools.combinations(left, sizes[0])
        for rest in partitions(sizes[1:], [i for i in left if i not in own])
    ]


@pytest.mark.parametrize("sizes", [(2, 2, 3), (3, 3, 3), (1, 2, 2, 2)])
def test_several_groups(sizes):
    rng = np.random.default_rng(sum(sizes))
    shifts = np.array([0, 0, 2, 3, 0])
    groups = [rng.normal(i * shifts, 1, (n, 5)) for i, n in enumerate(sizes)]
    found = permutation_test(*[(T, values) for values in groups])
    assert found.exact
    assert found.units == sizes
    both = np.concatenate(groups)
    grand, total = both.mean(axis=0), sum(sizes)

    def spread(parts):
        """Standard deviation of the means, and the statistic."""
        gaps = [np.sqrt(len(own) / total) * (own.mean(axis=0) - grand) for own in parts]
        return np.sqrt(np.sum(np.square(gaps), axis=0)), np.sqrt(
            sum((gap[:-1] ** 2 * np.diff(T)).sum() for gap in gaps)
        )

    each = [spread([both[own] for own in way]) for way in partitions(sizes, range(total))]
    difference, statistic = spread(groups)
    assert_allclose(found.difference, difference)
    assert found.statistic == pytest.approx(statistic)
    assert found.null.size == len(each)
    assert found.pvalue == pytest.approx(np.mean([s >= statistic - 1e-9 for _, s in each]))
    largest = np.array([(moved / both.std(axis=0)).max() for moved, _ in each])
    expected = [(largest >= one - 1e-9).mean() for one in difference / both.std(axis=0)]
    assert_allclose(found.pvalues, expected)
    within = sum(((own - own.mean(axis=0)) ** 2).sum(axis=0) for own in groups)
    assert_allclose(found.effect_size, difference / np.sqrt(within / (total - len(sizes))))
    drawn = permutation_test(*[(T, values) for values in groups], n_permutations=60, rng=0)
    assert not drawn.exact
    assert drawn.null.size == 60
    assert set(np.round(drawn.null, 9)) <= set(np.round(found.null, 9))


def test_several_groups_of_units():
    rng = np.random.default_rng(5)
    groups = [(T, rng.normal(size=(6, 5))) for _ in range(3)]
    units = [list("aabbcc"), list("ddeeff"), list("gghhii")]
    found = permutation_test(*groups, units=units)
    means = [values.reshape(3, 2, 5).mean(axis=1) for _, values in groups]
    assert found.pvalue == permutation_test(*[(T, values) for values in means]).pvalue
    with pytest.raises(TypeError, match="`units` must be 3 sequences of ids, for `first` and for"):
        permutation_test(*groups, units=units[:2])
    with pytest.raises(ValueError, match="got 'a' in both"):
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
    largest = np.abs(signs @ gaps / 5 / scale).max(axis=1)
    observed = np.abs(gaps.mean(axis=0)) / scale
    assert_allclose(found.pvalues, [(largest >= one - 1e-9).mean() for one in observed])
    assert_allclose(found.effect_size, gaps.mean(axis=0) / gaps.std(axis=0, ddof=1))


def test_superlevel_curves_keep_their_order():
    rng = np.random.default_rng(2)
    images = rng.integers(0, 50, (8, 9, 10)) + np.array([0] * 4 + [9] * 4)[:, None, None]
    at = np.arange(0, 60, 5)
    curves = ecc.euler_curve(images, at, axis=(1, 2), superlevel=True)
    first, second = ((at, curves.values[rows]) for rows in (slice(0, 4), slice(4, 8)))
    found = permutation_test(first, second, superlevel=True)
    assert_array_equal(found.thresholds, at)
    assert_allclose(found.difference, first[1].mean(axis=0) - second[1].mean(axis=0))
    scale = curves.values.std(axis=0) > 0
    expected = maximum_statistic(first[1][:, scale], second[1][:, scale])
    assert_allclose(found.pvalues[scale], expected)
    assert (found.pvalues[~scale] == 1).all()
    assert (found.effect_size[~scale] == 0).all()


def test_plots():
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(6, 5)), rng.normal([0, 0, 9, 9, 0], size=(6, 5))
    test = permutation_test((T, first), (T, second))
    ax = test.plot()
    assert_array_equal(ax.lines[-1].get_ydata(), test.difference)
    shaded = np.concatenate([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
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
    assert (band.get_xlabel(), band.get_ylabel()) == ("threshold (HU)", "mean area\n(mm^2)")
    test = permutation_test(first, second, functional="euler").plot()
    assert (test.get_xlabel(), test.get_ylabel()) == (
        "threshold (HU)",
        "difference of means\nEuler characteristic",
    )
    transforms = ecc.region_transforms(np.eye(4, dtype=int) * [1, 1, 2, 2], 4, 5)
    ax = mean_band(replace(transforms, units="mm"), n_resamples=9).plot()
    assert ax.get_xlabel() == "height (mm)"
    pairs = replace(ecc.persistence_pairs(images[0]), units="HU")
    regions = replace(ecc.persistent_regions(images[0], 1), units="HU")
    for found in (pairs, regions):
        assert found.boundary == "closed"
        assert found.plot().get_xlabel() == "birth (HU)"


def test_ranges_of_thresholds_that_differ():
    """Against a walk along the thresholds."""
    test = permutation_test((T, np.ones((2, T.size))), (T, np.ones((2, T.size))))
    rng = np.random.default_rng(0)
    for shape in [(T.size,), (3, T.size)] * 20:
        pvalues = rng.choice([0.01, 0.05, 0.051, 0.5], shape)
        expected, inside = [], False
        for t, column in zip(T.tolist(), pvalues.T, strict=True):
            now = bool((column <= 0.05).any())
            if now and inside:
                expected[-1] = (expected[-1][0], t)
            elif now:
                expected.append((t, t))
            inside = now
        assert test._replace(pvalues=pvalues).differing() == expected
    assert test.differing() == []
    with pytest.raises(ValueError, match="`level`"):
        test.differing(1.5)
