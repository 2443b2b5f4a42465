"""Statistics of groups of curves."""

from __future__ import annotations

import operator
from typing import Any, Literal

import numpy as np

from ecc_core._optional import import_optional
from ecc_core.features._differences import CurveBand, PermutationTest
from ecc_core.features._permutations import (
    blocks,
    differences,
    regroupings,
    sign_flips,
    unit_means,
)
from ecc_core.features._steps import (
    Curves,
    Floats,
    Metric,
    check_level,
    check_metric,
    comparable,
    join,
    norms,
    rows_of,
)
from ecc_core.features._transforms import sampling_of

__all__ = ["CurveBand", "PermutationTest", "mean_band", "permutation_test"]

Seed = int | np.random.Generator | None
ROUNDING = 1e-12  # relative: a permutation that gives the same groups gives the same distance


def mean_band(
    curves: Curves,
    *,
    level: float = 0.95,
    kind: Literal["simultaneous", "pointwise"] = "simultaneous",
    n_resamples: int = 2000,
    functional: str | None = None,
    superlevel: bool | None = None,
    rng: Seed = None,
) -> CurveBand:
    """Mean curve of a group with a bootstrap confidence band.

    Parameters
    ----------
    curves : result of k curves, (thresholds, values) with values (k, n), list of curves, or table
        A group of at least 2 independent curves, such as the mean curve of each well or animal
        rather than those of its cells. The curves of a list may have different thresholds; see
        :func:`align_curves`. A table is a CurveTable or a data frame with the columns of one, see
        :func:`ecc_core.io.curves_of_table`. Transforms, as RegionTransforms or a list of
        EulerTransform, must have the same directions and heights.
    level : float, default 0.95
        The confidence level.
    kind : {"simultaneous", "pointwise"}
        "simultaneous": the band contains the whole mean curve of the population with this
        confidence. "pointwise": it contains the mean at any single threshold, and is narrower.
    n_resamples : int, default 2000
        Number of bootstrap samples.
    functional, superlevel
        As for :func:`curve_distance`.
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
        As for :func:`curve_distance`, and for fewer than 2 curves, a level outside 0 to 1, an
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
    sampling = sampling_of(curves)
    if kind not in ("simultaneous", "pointwise"):
        raise ValueError(f'`kind` must be "simultaneous" or "pointwise", got {kind!r}')
    n_resamples = _check_positive(n_resamples, "n_resamples")
    superlevel, curves = comparable(superlevel, functional, curves=curves)
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
    for size in blocks(n_resamples, levels.size):
        shares = generator.multinomial(count, np.full(count, 1 / count), size) / count
        deviation = np.abs(shares @ (values - mean)) / scale
        deviations.append(deviation.max(axis=1) if kind == "simultaneous" else deviation)
    q = _student(np.quantile(np.concatenate(deviations), level, axis=0), count - 1)
    lower, upper = mean - q * spread, mean + q * spread
    if sampling:
        return CurveBand(sampling.heights, *map(sampling.unflatten, (mean, lower, upper)))
    if superlevel:
        return CurveBand(*(part[::-1] for part in (-levels, mean, lower, upper)))
    return CurveBand(levels, mean, lower, upper)


def _student(normal: Floats, degrees: int) -> Floats:
    """Return quantiles of Student's t distribution with the probabilities of normal quantiles."""
    special = import_optional("scipy.special", extra="features", purpose="mean_band")
    return -np.asarray(special.stdtrit(degrees, special.ndtr(-normal)))


def permutation_test(
    first: Curves,
    second: Curves,
    *,
    units: tuple[Any, Any] | None = None,
    paired: bool = False,
    metric: Metric = "L2",
    n_permutations: int = 9999,
    functional: str | None = None,
    superlevel: bool | None = None,
    rng: Seed = None,
) -> PermutationTest:
    """Test whether two groups of curves come from the same population.

    The statistic is the distance between the mean curves of the groups. It is compared with its
    values after permuting what is exchangeable under the null hypothesis. **What is permuted must
    be independent**: the wells or animals that a treatment was assigned to, not the nuclei or
    fields of view within them. Nuclei of one well resemble each other, so that a test that permutes
    them tells apart any two groups of wells, treated or not. `units` says which curves belong
    together.

    Parameters
    ----------
    first, second : as `curves` of :func:`mean_band`
        The groups. Their thresholds may differ; see :func:`align_curves`.
    units : (ids, ids), optional
        For each curve of `first` and for each of `second`, the id of the independent unit that it
        comes from, such as the name of a well or the number of an animal. Curves are averaged
        within units, and units are permuted. A unit is in one group, or, if `paired`, in both.
        Default: each curve is a unit.
    paired : bool, default False
        Whether each unit is in both groups, such as animals before and after a treatment. Only the
        two curves of the same unit are then exchanged. Without `units`, the curves of `first` and
        `second` are pairs in their order.
    metric : {"L2", "L1", "W1"}
        As for :func:`curve_distance`.
    n_permutations : int, default 9999
        The largest number of permutations. If there are no more than these, each is taken once;
        otherwise, random ones are drawn.
    functional, superlevel, rng
        As for :func:`mean_band`.

    Returns
    -------
    PermutationTest
        ``statistic``, ``pvalue`` and ``null``, the distances of the permutations, (k,) float64 with
        k at most `n_permutations`; ``thresholds``, ``difference`` of the means, ``pvalues`` and
        ``effect_size``, (n,) float64; ``units`` and ``exact``.

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_distance`, and for an empty group, fewer than 1 permutation, ids that
        are missing or do not fit the curves, a unit in both groups without `paired` or in one only
        with it, and pairs of groups of different sizes.

    Notes
    -----
    Groups of k and l units have ``comb(k + l, k)`` permutations, and n pairs ``2**n``, which
    reverse the sign of the differences of some pairs. If all are taken, the p-value is the share of
    those with at least the observed distance; it is at least 2 / 70 for 4 and 4 units, and 2 / 32
    for 5 pairs. Of n random permutations, m of which have at least the observed distance, it is
    (1 + m) / (1 + n). Under the null hypothesis, either is at most p with a probability of at most
    p [1]_.

    The p-value of a threshold compares the difference there, in units of its standard deviation
    over all curves, with the largest one over all thresholds of each permutation [2]_. With
    probability 1 - p none of them is at most p if the groups do not differ, so that these p-values
    need no other correction.

    References
    ----------
    .. [1] Phipson, Smyth, "Permutation P-values should never be zero", Statistical Applications in
       Genetics and Molecular Biology 9, 39, 2010, arXiv:1603.05766.
    .. [2] Nichols, Holmes, "Nonparametric permutation tests for functional neuroimaging: a primer
       with examples", Human Brain Mapping 15, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(5)
    >>> few, many = (t, rng.poisson(3, (9, 5))), (t, rng.poisson(9, (9, 5)))
    >>> permutation_test(few, many, n_permutations=999, rng=1).pvalue
    0.001

    If these are three nuclei from each of six wells, only wells can be permuted:

    >>> wells = np.repeat(["A1", "A2", "A3"], 3), np.repeat(["B1", "B2", "B3"], 3)
    >>> permutation_test(few, many, units=wells).pvalue
    0.1
    """
    check_metric(metric, first)
    sampling = sampling_of(first)
    n_permutations = _check_positive(n_permutations, "n_permutations")
    superlevel, first, second = comparable(superlevel, functional, first=first, second=second)
    rows = rows_of(first, superlevel, "first"), rows_of(second, superlevel, "second")
    levels, ours, theirs = join(*rows)
    if not (len(ours) and len(theirs)):
        raise ValueError(
            f"`first` and `second` must hold curves, got {len(ours)} and {len(theirs)}"
        )
    limits = n_permutations, levels.size, np.random.default_rng(rng)
    sizes = len(ours), len(theirs)
    if paired:
        values = _pairs(ours, theirs, units)
        sizes = len(values), len(values)
        permutations = sign_flips(len(values), *limits)
        deviation = _deviation(values)
        scale = np.sqrt((values**2).mean(axis=0))
    else:
        ours, theirs = _apart(ours, theirs, units)
        sizes = len(ours), len(theirs)
        values = np.concatenate([ours, theirs])
        values -= values.mean(axis=0)  # less rounding
        permutations = regroupings(sizes[0], sizes[1], *limits)
        deviation = _deviation(ours, theirs)
        scale = values.std(axis=0)
    difference = permutations.observed @ values
    statistic, largest = float(norms(difference, levels, metric)), _relative(difference, scale)
    null, extremes = map(
        np.concatenate,
        zip(
            *(
                (norms(moved, levels, metric), _relative(moved, scale).max(axis=-1))
                for moved in (block @ values for block in permutations.permuted)
            ),
            strict=True,
        ),
    )
    rounding = ROUNDING * float(norms(np.abs(values).max(axis=0), levels, metric))
    as_far = np.count_nonzero(null >= statistic - rounding)
    extremes.sort()
    further = extremes.size - np.searchsorted(extremes, largest * (1 - ROUNDING) - ROUNDING)
    unseen = 0 if permutations.exact else 1  # the observed groups are not among random ones
    pvalues = (unseen + further) / (unseen + null.size)
    effect = _relative(difference, deviation, signed=True)
    parts = [levels, difference, pvalues, effect]
    if superlevel:
        parts = [part[::-1] for part in (-levels, *parts[1:])]
    if sampling:
        parts = [sampling.heights, *map(sampling.unflatten, parts[1:])]
    at, difference, pvalues, effect = parts
    pvalue, facts = float((unseen + as_far) / (unseen + null.size)), (sizes, permutations.exact)
    return PermutationTest(statistic, pvalue, null, at, difference, pvalues, effect, *facts)


def _deviation(*groups: Floats) -> Floats:
    """Return the standard deviation within groups at each threshold, NaN for single curves."""
    degrees = sum(len(values) - 1 for values in groups)
    squares = sum(((values - values.mean(axis=0)) ** 2).sum(axis=0) for values in groups)
    return np.sqrt(squares / degrees) if degrees else np.full(groups[0].shape[1:], np.nan)


def _relative(difference: Floats, scale: Floats, *, signed: bool = False) -> Floats:
    """Return differences in units of a scale; no difference is 0 of any scale."""
    parts = difference if signed else np.abs(difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(parts == 0, 0.0, parts / scale)
    return found


def _apart(ours: Floats, theirs: Floats, units: Any) -> tuple[Floats, Floats]:
    """Return the curves of the units of each group."""
    if units is None:
        return ours, theirs
    first, second = unit_means((ours, theirs), units)
    if both := [unit for unit in first if unit in second]:
        raise ValueError(
            f"`units` must have each unit in one group unless `paired`, got {both[0]!r} in both"
        )
    return np.stack([*first.values()]), np.stack([*second.values()])


def _pairs(ours: Floats, theirs: Floats, units: Any) -> Floats:
    """Return the differences of the units of both groups."""
    if units is not None:
        return differences(*unit_means((ours, theirs), units))
    if len(ours) != len(theirs):
        raise ValueError(
            "`first` and `second` must hold as many curves if `paired` without `units`, "
            f"got {len(ours)} and {len(theirs)}"
        )
    return ours - theirs


def _check_positive(count: int, name: str) -> int:
    if isinstance(count, bool) or not hasattr(count, "__index__"):
        raise TypeError(f"`{name}` must be a positive int, got {count!r}")
    if (number := operator.index(count)) < 1:
        raise ValueError(f"`{name}` must be a positive int, got {number}")
    return number
