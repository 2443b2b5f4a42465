"""Permutation tests of independent units and of pairs: p-values, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from ecc_core.features import permutation_test

T = np.array([0.0, 1.0, 2.5, 3.0, 6.0])


def noise(rng, *shape):
    """Errors of curves that go together from threshold to threshold."""
    return np.cumsum(rng.normal(size=(*shape, T.size)), axis=-1)


def distance(a, b):
    """The L2 distance of mean curves, which hold their values up to the next threshold."""
    gap = a.mean(axis=0) - b.mean(axis=0)
    return np.sqrt((gap[:-1] ** 2 * np.diff(T)).sum())


def scipys(first, second, kind):
    """The exact test of SciPy, of the rows of two groups."""
    rows = np.concatenate([first, second])
    middle = len(first)
    samples = np.arange(middle), np.arange(middle, len(rows))
    options = {"alternative": "greater", "vectorized": False, "n_resamples": np.inf}

    def statistic(i, j):
        return distance(rows[i.astype(int)], rows[j.astype(int)])

    return stats.permutation_test(samples, statistic, permutation_type=kind, **options)


def agree(found, expected):
    assert_allclose(found.statistic, expected.statistic, rtol=1e-12)
    assert_allclose(np.sort(found.null), np.sort(expected.null_distribution), rtol=1e-9)
    assert_allclose(found.pvalue, expected.pvalue, rtol=1e-12)


@pytest.mark.parametrize("sizes", [(4, 4), (2, 6), (5, 3)])
def test_all_regroupings_are_scipys(sizes):
    rng = np.random.default_rng(0)
    first, second = (noise(rng, n) for n in sizes)
    agree(permutation_test((T, first), (T, second)), scipys(first, second, "independent"))


@pytest.mark.parametrize(("n_permutations", "exact"), [(20, True), (19, False)])
def test_all_regroupings_are_used_if_there_are_as_few_as_asked_for(n_permutations, exact):
    """Six curves can be divided in 20 ways into two groups of three."""
    curves = noise(np.random.default_rng(3), 6)
    groups = (T, curves[:3]), (T, curves[3:])
    found = permutation_test(*groups, n_permutations=n_permutations, rng=0)
    assert found.exact is exact
    assert found.null.size == n_permutations


@pytest.mark.parametrize("count", [2, 5, 8])
def test_all_sign_flips_are_scipys(count):
    rng = np.random.default_rng(1)
    first = noise(rng, count)
    second = noise(rng, count) + 0.5
    found = permutation_test((T, first), (T, second), paired=True)
    assert found.null.shape == (2**count,)
    agree(found, scipys(first, second, "samples"))


def unit_means(values, ids):
    """Mean curves of the units, in the order of their ids."""
    of_units = [values[np.array(ids) == unit] for unit in sorted(set(ids))]
    return np.stack([rows.mean(axis=0) for rows in of_units])


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
@pytest.mark.parametrize(
    ("first_ids", "second_ids", "paired"),
    [
        (list("bababacba"), list("xyzzzxyy"), False),
        ([7, 3, 7, 4, 9, 9, 3, 7, 4], [9, 4, 7, 9, 3, 3, 4, 4], True),
    ],
)
def test_units_are_averaged_and_permuted(kind, first_ids, second_ids, paired):
    rng = np.random.default_rng(2)
    first = noise(rng, 9)
    second = noise(rng, 8) + 1
    units = kind(first_ids), kind(second_ids)
    found = permutation_test((T, first), (T, second), units=units, paired=paired)
    means = unit_means(first, first_ids), unit_means(second, second_ids)
    agree(found, scipys(*means, "samples" if paired else "independent"))


@pytest.mark.parametrize("paired", [False, True])
def test_random_permutations_where_there_are_too_many(paired):
    rng = np.random.default_rng(4)
    first = noise(rng, 9)
    second = noise(rng, 9) + 0.5
    options = {"paired": paired, "n_permutations": 400, "rng": 0}
    found = permutation_test((T, first), (T, second), **options)
    every = permutation_test((T, first), (T, second), paired=paired, n_permutations=10**5)
    as_far = np.count_nonzero(found.null >= found.statistic)
    assert found.null.shape == (400,)
    assert found.pvalue == (1 + as_far) / 401
    assert every.null.shape == (512 if paired else 48620,)
    assert np.isin(found.null.round(9), every.null.round(9)).all()
    assert abs(found.pvalue - every.pvalue) < 4 * np.sqrt(every.pvalue / 400)


@pytest.mark.parametrize("paired", [False, True])
def test_groups_that_differ_by_rounding_only(paired):
    # The observed permutation is one of all, whatever its distance is rounded to.
    first = 1e6 + noise(np.random.default_rng(5), 4)
    found = permutation_test((T, first), (T, first + 1e-9), paired=paired)
    assert found.pvalue >= 2 / found.null.size


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seed", [9, 22, 32, 34])
def test_ties_are_ties_in_decimals(seed, paired):
    """Tenths, whose sums are rounded, have the p-value of the integers ten times as large."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 3, (2, 4, T.size))
    tenths = permutation_test((T, first / 10), (T, second / 10), paired=paired)
    whole = permutation_test((T, first), (T, second), paired=paired)
    squares = whole.null**2 * 2 * 16  # Squares of integers, because sums are quarters.
    observed = np.round(whole.statistic**2 * 2 * 16)
    expected = np.mean(np.round(squares) >= observed)
    assert tenths.pvalue == whole.pvalue == expected


@pytest.mark.parametrize(
    ("units", "paired", "error", "message"),
    [
        ("ab", False, TypeError, "`units` must be two sequences of ids, .*, got str"),
        (([1], [2], [3]), False, TypeError, "`units` must be two sequences of ids.* got 3 of them"),
        (("ab", [1, 2, 3]), False, TypeError, "must have a sequence of ids for `first`, got 'ab'"),
        (([1, 2], 5), False, TypeError, "must have a sequence of ids for `second`, got 5"),
        (([1, 2], [3, 4]), False, ValueError, "of `second`, got 2 ids for 3 curves"),
        (([1, 2], [3, None, 4]), False, ValueError, "each curve of `second`, got None"),
        (([1, np.nan], [3, 4, 5]), False, ValueError, "each curve of `first`, got nan"),
        (
            ([1, 2], [3, 2, 4]),
            False,
            ValueError,
            "got 2 in `first` and `second`",
        ),
        (([1, 2], [2, 1, 3]), True, ValueError, "got 3 in `second` only, not in `first`"),
        (([1, 2], [2, 2, 2]), True, ValueError, "got 1 in `first` only, not in `second`"),
        (None, True, ValueError, "as many curves if `paired` without `units`, got 2 and 3"),
    ],
)
def test_units_that_are_refused(units, paired, error, message):
    groups = (T, np.ones((2, 5))), (T, np.ones((3, 5)))
    with pytest.raises(error, match=message):
        permutation_test(*groups, units=units, paired=paired)
