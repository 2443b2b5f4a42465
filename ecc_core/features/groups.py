"""Statistics of groups of curves."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from ecc_core._optional import import_optional
from ecc_core.features._steps import (
    Curves,
    Floats,
    Metric,
    check_level,
    check_metric,
    join,
    norms,
    one_order,
    rows_of,
)

__all__ = ["CurveBand", "PermutationTest", "mean_band", "permutation_test"]

Seed = int | np.random.Generator | None
BLOCK = 2**22  # resampled values held at a time
ROUNDING = 1e-12  # relative: a permutation that gives the same groups gives the same distance


class CurveBand(NamedTuple):
    """Thresholds, the mean curve, and a band around it."""

    thresholds: Floats
    mean: Floats
    lower: Floats
    upper: Floats


class PermutationTest(NamedTuple):
    """The distance between two groups, its p-value, and the distances under permutation."""

    statistic: float
    pvalue: float
    null: Floats


def mean_band(
    curves: Curves,
    *,
    level: float = 0.95,
    kind: Literal["simultaneous", "pointwise"] = "simultaneous",
    n_resamples: int = 2000,
    superlevel: bool | None = None,
    rng: Seed = None,
) -> CurveBand:
    """Mean curve of a group with a bootstrap confidence band.

    Parameters
    ----------
    curves : EulerCurve, RegionCurves or (thresholds, values) with values (k, n), or list of curves
        A group of at least 2 independent curves. The curves of a list may have different
        thresholds; see :func:`align_curves`.
    level : float, default 0.95
        The confidence level.
    kind : {"simultaneous", "pointwise"}
        "simultaneous": the band contains the whole mean curve of the population with this
        confidence. "pointwise": it contains the mean at any single threshold, and is narrower.
    n_resamples : int, default 2000
        Number of bootstrap samples.
    superlevel : bool, optional
        As for :func:`curve_descriptors`.
    rng : int or numpy.random.Generator, optional
        Seed or generator, for reproducible results.

    Returns
    -------
    CurveBand
        ``thresholds``, ``mean``, ``lower`` and ``upper``, (n,) float64.

    Raises
    ------
    ImportError
        If SciPy is not installed.
    TypeError, ValueError
        As for :func:`curve_descriptors`, and for fewer than 2 curves, a level outside 0 to 1, an
        unknown kind, or fewer than 1 bootstrap sample.

    Notes
    -----
    The band is mean ± q s(t), where s is the standard error of the mean and q a quantile, over the
    bootstrap samples, of the deviation of their means in units of s: at t (pointwise), or the
    largest over all thresholds (simultaneous). Because s is estimated as well, q is then converted
    from a quantile of the normal distribution to that of Student's distribution with k - 1 degrees
    of freedom. In simulations, simultaneous bands of 95 % covered the mean curve in 94 % of the
    cases with 8 or more curves, and in 91 % with 5.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import mean_band
    >>> values = np.random.default_rng(0).poisson(9, (40, 5))
    >>> band = mean_band((np.arange(5), values), rng=1)
    >>> bool(((band.lower < 9) & (9 < band.upper)).all())
    True
    """
    check_level(level)
    if kind not in ("simultaneous", "pointwise"):
        raise ValueError(f'`kind` must be "simultaneous" or "pointwise", got {kind!r}')
    n_resamples = _check_positive(n_resamples, "n_resamples")
    superlevel = one_order(superlevel, curves=curves)
    levels, values = rows_of(curves, superlevel, "curves")
    count = len(values)
    if count < 2:
        raise ValueError(f"`curves` must hold at least 2 curves, got {count}")
    generator = np.random.default_rng(rng)
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) / np.sqrt(count)
    # A resampled mean varies by sqrt((k - 1) / k) of the standard error.
    scale = np.where(spread > 0, spread, np.inf) * np.sqrt((count - 1) / count)
    deviations = []
    for size in _blocks(n_resamples, levels.size):
        shares = generator.multinomial(count, np.full(count, 1 / count), size) / count
        deviation = np.abs(shares @ (values - mean)) / scale
        deviations.append(deviation.max(axis=1) if kind == "simultaneous" else deviation)
    q = _student(np.quantile(np.concatenate(deviations), level, axis=0), count - 1)
    lower, upper = mean - q * spread, mean + q * spread
    if superlevel:
        return CurveBand(*(part[::-1] for part in (-levels, mean, lower, upper)))
    return CurveBand(levels, mean, lower, upper)


def _student(normal: Floats, degrees: int) -> Floats:
    """Return quantiles of Student's t distribution with the probabilities of normal quantiles."""
    special = import_optional("scipy.special", extra="features", purpose="mean_band")
    return -np.asarray(special.stdtrit(degrees, special.ndtr(-normal)))


def permutation_test(
    a: Curves,
    b: Curves,
    *,
    metric: Metric = "L2",
    n_permutations: int = 9999,
    superlevel: bool | None = None,
    rng: Seed = None,
) -> PermutationTest:
    """Test whether two groups of curves come from the same population.

    The statistic is the distance between the mean curves of the groups. Under the null hypothesis
    the curves are exchangeable, so the statistic is compared with its values for random
    permutations of the curves.

    Parameters
    ----------
    a, b : as `curves` of :func:`mean_band`
        The groups. Their thresholds may differ; see :func:`align_curves`.
    metric : {"L2", "L1", "W1"}
        As for :func:`curve_distance`.
    n_permutations : int, default 9999
        Number of random permutations. The smallest p-value is 1 / (n_permutations + 1).
    superlevel, rng
        As for :func:`mean_band`.

    Returns
    -------
    PermutationTest
        ``statistic``, ``pvalue`` and ``null``, the distances of the permutations, of shape
        (n_permutations,).

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_distance`, and for an empty group or fewer than 1 permutation.

    Notes
    -----
    The p-value is (1 + m) / (1 + n), where the distance is at least as large in m of n
    permutations. Under the null hypothesis it is at most p with a probability of at most p, for
    any numbers of curves and permutations [1]_.

    References
    ----------
    .. [1] Phipson, Smyth, "Permutation P-values should never be zero", Statistical Applications in
       Genetics and Molecular Biology 9, 39, 2010, arXiv:1603.05766.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(5)
    >>> few, many = (t, rng.poisson(3, (9, 5))), (t, rng.poisson(9, (9, 5)))
    >>> permutation_test(few, many, n_permutations=999, rng=1).pvalue
    0.001
    """
    check_metric(metric)
    n_permutations = _check_positive(n_permutations, "n_permutations")
    superlevel = one_order(superlevel, a=a, b=b)
    first, second = rows_of(a, superlevel, "a"), rows_of(b, superlevel, "b")
    levels, ours, theirs = join(first, second)
    if not (len(ours) and len(theirs)):
        raise ValueError(f"`a` and `b` must hold curves, got {len(ours)} and {len(theirs)}")
    split = np.repeat([1 / len(ours), -1 / len(theirs)], [len(ours), len(theirs)])
    generator = np.random.default_rng(rng)
    values = np.concatenate([ours, theirs])
    values -= values.mean(axis=0)  # less rounding
    statistic = float(norms(split @ values, levels, metric))
    null = np.concatenate(
        [
            norms(_shuffles(split, size, generator) @ values, levels, metric)
            for size in _blocks(n_permutations, levels.size)
        ]
    )
    as_far = int(np.count_nonzero(null >= statistic * (1 - ROUNDING)))
    return PermutationTest(statistic, (1 + as_far) / (1 + n_permutations), null)


def _shuffles(row: Floats, count: int, generator: np.random.Generator) -> Floats:
    return generator.permuted(np.broadcast_to(row, (count, row.size)).copy(), axis=1)


def _blocks(count: int, width: int) -> Iterator[int]:
    """Yield sizes of parts that add up to `count`, each of limited memory."""
    most = max(1, BLOCK // width)
    for begin in range(0, count, most):
        yield min(most, count - begin)


def _check_positive(count: int, name: str) -> int:
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"`{name}` must be a positive int, got {count!r}")
    if (number := operator.index(count)) < 1:
        raise ValueError(f"`{name}` must be a positive int, got {number}")
    return number
