"""Statistics of groups of curves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ecc_core._io.tables import CurveTable
from ecc_core._optional import import_optional
from ecc_core._request.resources import check_positive_int
from ecc_core.features._group_results import CurveBand, PermutationTest
from ecc_core.features._permutations import (
    Permutations,
    blocks,
    independent_curves,
    regroupings,
    sign_flips,
    unit_means,
)
from ecc_core.features._replicates import check_replicates, images_as_units
from ecc_core.features._steps import (
    Curves,
    Floats,
    Metric,
    align,
    check_level,
    norms,
    read_frame,
)

Seed = int | np.random.Generator | None
MOST_ROUNDING = 1e-12
"""The largest relative error of a distance. Smaller differences of distances are no differences."""


def mean_band(
    curves: Curves,
    *,
    units: Any = None,
    average: str | Collection[str] = (),
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
    units : sequence of ids, optional
        For each curve the id of the independent unit that it comes from, such as the name of a
        well. Curves are averaged within units. Default: each curve is a unit; of a table with the
        column ``input``, each image.
    average : str or collection of str, optional
        Columns of a table that are replicates within a unit, such as the number of a section. See
        the notes.
    level : float, default 0.95
        The confidence level.
    kind : {"simultaneous", "pointwise"}
        "simultaneous": the band contains the whole mean curve of the population with this
        confidence. "pointwise": it contains the mean at any single threshold, and is narrower.
    n_resamples : int, default 2000
        Number of bootstrap samples.
    functional, superlevel
        As for :func:`distance_matrix`.
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
        As for :func:`curve_distance`, and for fewer than 2 curves or units, ids that are missing
        or do not fit the curves, curves of a unit that are no replicates, a level outside 0 to 1,
        an unknown kind, or fewer than 1 bootstrap sample.

    Notes
    -----
    The metadata of a table say what differs between the curves of a unit. Images, fields and
    objects without names are replicates, over which curves are averaged. Channels, time points,
    labels that recur in the images and other columns whose values recur in most units are none:
    choose one of them with :meth:`ecc_core.io.CurveTable.where`.

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
    n_resamples = check_positive_int(n_resamples, "n_resamples")
    tables = {"curves": read_frame(curves, functional)}
    aligned = align(tables, superlevel, functional)
    (values,) = aligned.groups
    largest = _largest(aligned.groups)
    given = _default_units(tables) if units is None else (units,)
    if given is not None:
        (means,) = unit_means({"curves": values}, given)
        values = np.stack([*means.values()])
    _check_units(tables, given, average)
    count = len(values)
    if count < 2:
        what = "curves" if given is None else "units"
        raise ValueError(f"`curves` must hold at least 2 {what}, got {count}")
    generator = np.random.default_rng(rng)
    mean = values.mean(axis=0)
    deviating = _without_rounding(values - mean, largest)
    spread = np.sqrt((deviating**2).sum(axis=0) / (count - 1) / count)
    # A resampled mean varies by sqrt((k - 1) / k) of the standard error.
    scale = np.where(spread > 0, spread, np.inf) * np.sqrt((count - 1) / count)
    deviations = []
    for size in blocks(n_resamples, aligned.levels.size):
        shares = generator.multinomial(count, np.full(count, 1 / count), size) / count
        deviation = np.abs(shares @ deviating) / scale
        deviations.append(deviation.max(axis=1) if kind == "simultaneous" else deviation)
    normal = np.quantile(np.concatenate(deviations), level, axis=0)
    special = import_optional("scipy.special", extra="features", purpose="mean_band")
    # The same quantile of Student's distribution.
    q = -special.stdtrit(count - 1, special.ndtr(-normal))
    thresholds, middle, low, high = aligned.restored(mean, mean - q * spread, mean + q * spread)
    return CurveBand(thresholds, middle, low, high, *aligned.quantity)


def permutation_test(
    first: Curves,
    second: Curves,
    *more: Curves,
    units: tuple[Any, ...] | None = None,
    average: str | Collection[str] = (),
    paired: bool = False,
    metric: Metric = "L2",
    n_permutations: int = 9999,
    functional: str | None = None,
    superlevel: bool | None = None,
    rng: Seed = None,
) -> PermutationTest:
    """Test whether groups of curves come from the same population.

    The statistic is the distance between the mean curves of two groups, or the difference of the
    means if curves have a single threshold. It is compared with its values after permuting what is
    exchangeable under the null hypothesis. **What is permuted must be independent**: the wells or
    animals that a treatment was assigned to, not the nuclei or fields of view within them. Nuclei
    of one well resemble each other, so that a test that permutes them tells apart any two groups of
    wells, treated or not. `units` says which curves belong together.

    Parameters
    ----------
    first, second, *more : as `curves` of :func:`mean_band`
        The groups. Their thresholds may differ; see :func:`align_curves`.
    units : (ids, ids, ...), optional
        For each curve of `first`, of `second` and so on, the id of the independent unit that it
        comes from, such as the name of a well or the number of an animal. Curves are averaged
        within units, and units are permuted. A unit is in one group, or, if `paired`, in both.
        Default: each curve is a unit; of tables with the column ``input``, each image, unless
        `paired`.
    average : str or collection of str, optional
        As for :func:`mean_band`: what is averaged within a unit must be replicates.
    paired : bool, default False
        Whether each unit is in both groups, such as animals before and after a treatment. Only the
        two curves of the same unit are then exchanged. Without `units`, the curves of `first` and
        `second` are pairs in their order. For two groups only.
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
        ``effect_size``, (n,) float64; ``units``, ``exact`` and ``least_pvalue``.

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_distance`, and for an empty group, fewer than 1 permutation, ids that
        are missing or do not fit the curves, curves of a unit that are no replicates, a unit in
        both groups without `paired` or in one only with it, and pairs of groups of different sizes.

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

    For more than two groups, the difference at a threshold is the standard deviation of the means
    of the groups, weighted by their sizes, and the effect size is Cohen's f. The statistic is the
    root of the weighted mean of the squared distances between these means and that of all curves.

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
    n_permutations = check_positive_int(n_permutations, "n_permutations")
    named = {"first": first, "second": second}
    named |= {f"more[{i}]": group for i, group in enumerate(more)}
    named = {name: read_frame(group, functional, name) for name, group in named.items()}
    aligned = align(named, superlevel, functional, metric)
    if units is None and not paired:
        units = _default_units(named)
    largest = _largest(aligned.groups)
    groups = independent_curves(dict(zip(named, aligned.groups, strict=True)), units, paired)
    _check_units(named, units, average)
    limits = n_permutations, aligned.levels.size, np.random.default_rng(rng)
    values = np.concatenate(groups)
    sizes = tuple(map(len, groups))
    if paired:
        permutations = sign_flips(len(values), *limits)
        sizes = sizes * 2
        values = _without_rounding(values, largest)
        scale = np.sqrt((values**2).mean(axis=0))
    else:
        permutations = regroupings(sizes, *limits)
        values = _without_rounding(values - values.mean(axis=0), largest)
        scale = values.std(axis=0)
    statistic, pvalue, null, difference, pvalues = _compared(
        values, permutations, scale=scale, levels=aligned.levels, metric=metric
    )
    degrees = sum(len(own) - 1 for own in groups)
    centred = [_without_rounding(own - own.mean(axis=0), largest) for own in groups]
    squares = sum((own**2).sum(axis=0) for own in centred)
    deviation = np.sqrt(squares / degrees) if degrees else np.full(difference.shape, np.nan)
    effect = _relative(difference, deviation)
    thresholds, difference, pvalues, effect = aligned.restored(difference, pvalues, effect)
    quantity, threshold_units, coordinate = aligned.quantity
    return PermutationTest(
        statistic=statistic,
        pvalue=pvalue,
        null=null,
        thresholds=thresholds,
        difference=difference,
        pvalues=pvalues,
        effect_size=effect,
        units=sizes,
        exact=permutations.exact,
        quantity=quantity,
        threshold_units=threshold_units,
        coordinate=coordinate,
        paired=paired,
    )


def _default_units(given: Mapping[str, Any]) -> tuple[list[str], ...] | None:
    """Return the images of tables as units, None if each curve is a unit."""
    if not all(isinstance(table, CurveTable) for table in given.values()):
        return None
    images = images_as_units([table.metadata for table in given.values()])
    return None if images is None else tuple(images)


def _check_units(
    given: Mapping[str, Any], units: Sequence[Any] | None, average: str | Collection[str]
) -> None:
    """Check that the curves of a unit are replicates, by the metadata of tables."""
    ids = [None] * len(given) if units is None else units
    pairs = zip(given.values(), ids, strict=True)
    known = [(table.metadata, own) for table, own in pairs if isinstance(table, CurveTable)]
    if known:
        frames = [metadata for metadata, _ in known]
        check_replicates(frames, None if units is None else [own for _, own in known], average)


def _compared(
    values: Floats, permutations: Permutations, scale: Floats, levels: Floats, metric: Metric
) -> tuple[float, float, Floats, Floats, Floats]:
    """Return the statistic, its p-value and null values, and differences and p-values by level."""

    def distance(moved: Floats) -> Floats:
        return _size(_norms(moved, levels, metric)[..., None])[..., 0]

    observed = permutations.observed @ values
    difference = observed[0] if len(observed) == 1 else _size(observed)
    null = []
    extremes = []
    for block in permutations.permuted:
        moved = block @ values
        null.append(distance(moved))
        extremes.append(_relative(_size(moved), scale).max(axis=-1))
    every = np.concatenate(null)
    largest = np.sort(np.concatenate(extremes))
    statistic = float(distance(observed))
    largest_values = np.abs(values).max(axis=0)
    rounding = MOST_ROUNDING * float(_norms(largest_values, levels, metric))
    as_far = np.count_nonzero(every >= statistic - rounding)
    own = _relative(np.abs(difference), scale) * (1 - MOST_ROUNDING) - MOST_ROUNDING
    further = largest.size - np.searchsorted(largest, own)
    unseen = 0 if permutations.exact else 1  # The observed groups are not among random ones.
    total = unseen + every.size
    return (
        statistic,
        float((unseen + as_far) / total),
        every,
        difference,
        (unseen + further) / total,
    )


def _largest(groups: Sequence[Floats]) -> Floats:
    """Return the largest absolute value of all curves at each level."""
    largest: Floats = np.abs(np.concatenate(groups)).max(axis=0, initial=0)
    return largest


def _without_rounding(differences: Floats, largest: Floats) -> Floats:
    """Return differences (k, n) of curves, 0 at levels at which all are due to rounding.

    In units of their standard deviation, rounding errors would be as large as real differences.
    `largest` are the largest absolute values of the curves.
    """
    is_rounding = np.abs(differences).max(axis=0, initial=0) <= MOST_ROUNDING * largest
    return np.where(is_rounding, 0.0, differences)


def _norms(values: Floats, levels: Floats, metric: Metric) -> Floats:
    """Return norms of step functions (..., n). At a single level they are absolute values."""
    if levels.size == 1:
        return np.abs(values[..., 0])
    return norms(values, levels, metric)


def _size(parts: Floats) -> Floats:
    """Return the root of the sum of squares over groups, the last axis but one."""
    if parts.shape[-2] == 1:
        return np.abs(parts[..., 0, :])
    found: Floats = np.sqrt((parts**2).sum(axis=-2))
    return found


def _relative(difference: Floats, scale: Floats) -> Floats:
    """Return differences in units of a scale. A difference of 0 stays 0 if the scale is 0, too."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, 0.0, difference / scale)
