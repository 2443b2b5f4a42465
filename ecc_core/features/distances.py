"""Distances between curves, which may have different thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core.features._steps import Curve, Curves, Floats, Metric, align, norms
from ecc_core.results import EulerCurve


def align_curves(curves: list[Curve], *, superlevel: bool | None = None) -> EulerCurve:
    """Represent curves at the union of their thresholds, without changing them.

    A curve is taken to be 0 before its first threshold and constant after its last one. This is
    correct for curves over the whole range of their image (the default) and for "exact" curves.

    Parameters
    ----------
    curves : list of EulerCurve or of (thresholds, values)
        Single curves, which may have different thresholds.
    superlevel : bool, optional
        As for :func:`curve_descriptors`. Superlevel curves are 0 above their last threshold and
        keep their first value below the first one.

    Returns
    -------
    EulerCurve
        ``thresholds`` of shape (n,) and ``values`` of shape (k, n), both float64.

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_descriptors`, if the list is empty or contains batches, and if curves
        differ as for :func:`curve_distance`.

    Examples
    --------
    >>> from ecc_core.features import align_curves
    >>> align_curves([([0, 2], [4, 1]), ([1, 3], [7, 1])]).values
    array([[4., 4., 1., 1.],
           [0., 7., 7., 1.]])
    """
    if not isinstance(curves, list):
        raise TypeError(f"`curves` must be a list of curves, got a {type(curves).__name__}")
    aligned = align({"curves": curves}, superlevel, None)
    levels, values = aligned.restored(*aligned.groups)
    known: list[dict[str, Any]] = [c.facts if isinstance(c, EulerCurve) else {} for c in curves]

    def is_shared(name: str) -> bool:
        return all(facts.get(name) == known[0][name] for facts in known)

    shared = {name: value for name, value in known[0].items() if is_shared(name)}
    shared["superlevel"] = aligned.superlevel
    return EulerCurve(levels, values, **shared)


def curve_distance(
    a: Curve,
    b: Curve,
    *,
    metric: Metric = "L2",
    functional: str | None = None,
    superlevel: bool | None = None,
) -> float:
    """Distance between two curves.

    Parameters
    ----------
    a, b : EulerCurve, BettiCurves, MinkowskiCurves or (thresholds, values)
        Single curves. If their thresholds differ, they are compared at the union of both; see
        :func:`align_curves`.
    metric : {"L2", "L1", "W1"}
        "L1": the integral of ``abs(a - b)`` from the smallest to the largest threshold of both
        curves. "L2": the square root of the integral of ``(a - b)**2``. "W1": the integral of
        ``abs(A - B)``, where A and B are the integrals of a and b up to a threshold.
    functional : str, optional
        Which functional of Minkowski curves is compared, such as "perimeter", or which number of
        Betti curves, such as "b0". Required for these.
    superlevel : bool, optional
        As for :func:`curve_descriptors`.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_descriptors`, for batches or an unknown metric, for a `functional` that
        the curves do not have, and for curves that differ in what results record: connectivity,
        boundary, direction, units, the functional and its estimator, or the number of axes of the
        image. Pairs of arrays record none of these.

    Notes
    -----
    "W1" is the Wasserstein distance of order 1 between the curves, as distributions of signed mass
    over the thresholds: moving a peak by s costs its area times s, at any distance, whereas L1 and
    L2 no longer grow once the peaks are disjoint. If the areas differ, the excess is moved to the
    last threshold. "L1" is the Wasserstein distance between the *changes* of the curves, the signed
    measures of births and deaths, which have equal total mass if the curves end at the same value.

    Examples
    --------
    >>> from ecc_core.features import curve_distance
    >>> peak = [0, 1, 2, 3, 4, 5, 6], [0, 5, 0, 0, 0, 0, 0]
    >>> near = peak[0], [0, 0, 5, 0, 0, 0, 0]
    >>> far = peak[0], [0, 0, 0, 0, 5, 0, 0]
    >>> [curve_distance(peak, other, metric="L1") for other in (near, far)]
    [10.0, 10.0]
    >>> [curve_distance(peak, other, metric="W1") for other in (near, far)]
    [5.0, 15.0]
    """
    levels, (first, second), *_ = align(
        {"a": a, "b": b}, superlevel, functional, metric, single=True
    )
    return float(norms(first[0] - second[0], levels, metric))


def distance_matrix(
    a: Curves,
    b: Curves | None = None,
    *,
    metric: Metric = "L2",
    functional: str | None = None,
    superlevel: bool | None = None,
) -> Floats:
    """Distances between all curves of one set and all curves of another, or of the same set.

    Parameters
    ----------
    a : result of k curves, (thresholds, values) with values (k, n), list of curves, or table
        Such as EulerCurve of a batch, or RegionCurves. The curves of a list may have different
        thresholds; see :func:`align_curves`. A table is as for :func:`mean_band`. Transforms with
        the same directions and heights, as RegionTransforms or a list of EulerTransform, have the
        distances of :func:`ecc_core.transform_distance`.
    b : the same, optional
        Default: `a` itself.
    metric, functional, superlevel
        As for :func:`curve_distance`. Integrals extend over the thresholds of all curves.
        "all" compares all functionals at once, each divided by the largest absolute value that it
        has in any curve.

    Returns
    -------
    (k, l) float64 array
        Symmetric, with zeros on the diagonal, if `b` is None.

    Raises
    ------
    TypeError, ValueError
        As for :func:`curve_distance`.

    Examples
    --------
    >>> from ecc_core.features import distance_matrix
    >>> distance_matrix(([0, 1, 2], [[2, 1, 1], [4, 1, 1], [2, 5, 1]]), metric="L1")
    array([[0., 2., 4.],
           [2., 0., 6.],
           [4., 6., 0.]])
    """
    given = {"a": a} if b is None else {"a": a, "b": b}
    levels, (ours, *others), *_ = align(given, superlevel, functional, metric)
    if not others:
        square = np.zeros((len(ours),) * 2)
        for i, curve in enumerate(ours[1:], 1):
            square[i, :i] = norms(ours[:i] - curve, levels, metric)
        return square + square.T
    result = np.empty((len(ours), len(others[0])))
    for i, curve in enumerate(ours):
        result[i] = norms(others[0] - curve, levels, metric)
    return result


def feature_matrix(
    curves: Curves, *, functional: str | None = None, superlevel: bool | None = None
) -> Floats:
    """Rows of numbers whose Euclidean distances are the distances of curves, as for a PCA.

    Parameters
    ----------
    curves, functional, superlevel
        As `a`, `functional` and `superlevel` of :func:`distance_matrix`.

    Returns
    -------
    (k, n) float64 array
        A row for each curve: its values, times the square root of the lengths for which they hold.
        Distances of rows are those of :func:`distance_matrix` with the metric "L2".

    Raises
    ------
    TypeError, ValueError
        As for :func:`distance_matrix`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> from sklearn.decomposition import PCA
    >>> from ecc_core.features import feature_matrix
    >>> images = np.random.default_rng(0).random((6, 16, 16))
    >>> curves = ecc.minkowski_curves(images, 32, axis=(1, 2))
    >>> PCA(2).fit_transform(feature_matrix(curves, functional="all")).shape
    (6, 2)
    """
    levels, (values,), *_ = align({"curves": curves}, superlevel, functional)
    return values[:, :-1] * np.sqrt(np.diff(levels))
