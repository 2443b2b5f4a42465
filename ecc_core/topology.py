"""Betti numbers, Betti curves and persistence of images: components, tunnels and cavities."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from numpy.typing import ArrayLike

from ecc_core._arrays import is_lazy, on_host
from ecc_core._arrays.plans import levels_of, plan_of, thresholds_of
from ecc_core._arrays.request import Request, check_eager, check_given, single_request
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.boundary import check_boundary
from ecc_core._request.options import ImageOptions
from ecc_core._request.persistence import check_persistence
from ecc_core._request.spatial_axes import all_axes
from ecc_core._request.thresholds import LEAST_POSITIVE
from ecc_core._types import Axes, ComplexBoundary, Thresholds
from ecc_core.quantities.betti import BETTI, BettiOptions
from ecc_core.results import BettiCurves, RegionBettiCurves, curve_facts, without_arrays

__all__ = [
    "BettiCurves",
    "RegionBettiCurves",
    "betti_curves",
    "betti_numbers",
    "region_betti_curves",
]

_no_curves = partial(without_arrays, BettiCurves)


def betti_numbers(
    image: ArrayLike,
    connectivity: int | None = None,
    *,
    boundary: ComplexBoundary = "closed",
) -> tuple[int, ...]:
    """Betti numbers of a binary image.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        The object: True, or positive values if the image is not boolean.
    connectivity : {None, 1, image.ndim}
        1: points of the object are connected along the axes only (4- or 6-connected). image.ndim
        (the default): also along diagonals (8- or 26-connected).
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        As for :func:`betti_curves`.

    Returns
    -------
    tuple of image.ndim ints
        2-D: components, holes. 3-D: components, tunnels, cavities. For a dask array, 0-d dask
        arrays. If all axes are periodic there is one more, which is 1 if the object has all points.

    Raises
    ------
    TypeError
        If the image does not have a boolean, integer or real floating dtype of at most 64 bits.
    ValueError
        If the image does not have 1 to 3 axes, or the connectivity is invalid.

    See Also
    --------
    euler_number : their alternating sum, which is faster to compute.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> ring = np.ones((5, 5), bool)
    >>> ring[2, 2] = False
    >>> ecc.betti_numbers(ring)
    (1, 1)

    A band around a torus, whose loop is no hole of the image:

    >>> band = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0]])
    >>> ecc.betti_numbers(band), ecc.betti_numbers(band, boundary="periodic")
    ((1, 0), (1, 1, 0))

    The same band as a circle of latitude: longitude is periodic, and the poles do not touch:

    >>> ecc.betti_numbers(band, boundary=("closed", "periodic"))
    (1, 1)
    """
    if is_labelled(image):
        return call_unlabelled(
            betti_numbers, image, whole=True, connectivity=connectivity, boundary=boundary
        )
    curves = betti_curves(
        image,
        LEAST_POSITIVE,
        connectivity=connectivity,
        superlevel=True,
        nan="omit",
        axis=all_axes(image),
        boundary=boundary,
    )
    if is_lazy(image):
        return tuple(curves.values[:, 0])
    return tuple(int(count) for count in on_host(curves.values)[:, 0])


def betti_curves(
    image: ArrayLike,
    thresholds: Thresholds = 256,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
    boundary: ComplexBoundary = "closed",
    min_persistence: float = 0,
) -> BettiCurves:
    """Betti numbers of the sets ``image <= t``, for many thresholds t at once.

    The Betti number b_0 counts components, b_1 holes (2-D) or tunnels (3-D), b_2 cavities. Their
    alternating sum is the Euler characteristic, see :func:`ecc_core.euler_curve`.

    Parameters
    ----------
    image : array of 1 to 3 spatial axes
        Booleans, integers or real floats of up to 64 bits in host memory, in any memory layout;
        never written to. Masked points of a ``numpy.ma`` array never enter. For a dask array,
        `values` is a dask array too, and `thresholds` must be an array, or an int together with
        `range`.
    thresholds : int, array or "exact", default 256
        An int: that many, evenly spaced over `range`, both ends included. An increasing array is
        used as it is. "exact": every level at which a Betti number changes, in the image's dtype,
        or float32 for bfloat16.
    range : (low, high), optional
        Only with an int; default the smallest and largest finite value.
    connectivity : {None, 1, d}
        For d spatial axes, 1: sets are 4- or 6-connected; d (default): 8- or 26-connected. The
        complement, and so its components that are holes or cavities, is connected the other way.
    superlevel : bool, default False
        Use the sets ``image >= t`` instead.
    mask : bool array, optional
        False where a point never enters. Of the image's shape, or of its spatial shape.
    nan : {"raise", "omit"}
        "omit": a NaN point never enters.
    axis : int or tuple of int, optional
        The spatial axes; default all. The rest are batch axes and lead the result. Of a DataArray
        also by name, see :func:`ecc_core.euler_curve`.
    workers : int, optional
        Threads; default as many as there are cores.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        "closed": the image ends at its border. "periodic": opposite sides touch, and the image is a
        function on a torus, whose own classes count: b_d is 1 once every point has entered, and b_k
        is then the binomial coefficient (d, k). Cells of a half-open window are no complex and have
        no Betti numbers. With one word for each spatial axis, in the order of `axis`, each axis has
        its own border: ("closed", "periodic") is a cylinder, such as latitude and longitude, on
        which the loop around it counts.
    min_persistence : float, default 0
        Count only classes whose values at birth and death differ by at least so much, and those
        that never die: smaller differences are mostly noise. The pairs of birth and death are
        computed then (:func:`persistence_pairs`), which takes longer. Differences of integers are
        exact, those of floats are rounded to float64. A dask array with one or two spatial axes
        must have no mask if it has 64-bit integers.

    Returns
    -------
    BettiCurves
        ``thresholds`` (n,); ``values`` of shape batch + (d, n), int64; batch + (d + 1, n) for
        images that are periodic along all axes.

    Raises
    ------
    TypeError
        For dtypes other than those above.
    ValueError
        For NaN, thresholds that are not increasing or NaN, "exact" with batch axes, an int without
        a range for an image without finite values, a negative or NaN `min_persistence`, and
        arguments that do not fit the image's shape.
    BackendError
        If the image is on a device whose backend does not compute Betti curves.

    Warns
    -----
    UserWarning
        As for :func:`ecc_core.euler_curve`.

    Notes
    -----
    Every point that is no minimum joins the neighbour with the lowest value, so only points whose
    lower neighbours form several components can join components of the set: b_0 is the number of
    minima less that of the edges of a spanning forest over them [1]_. The highest Betti number is
    that of components of the complement (Alexander duality), and in 3-D b_1 follows from the Euler
    characteristic.

    On a torus, a class of loops that leaves the complement begins one of dimension d - 1. Homology
    can depend on the coefficients there, because a tube that winds around an axis twice has
    torsion: they are those in Z/2.

    References
    ----------
    .. [1] Edelsbrunner, Harer, "Computational Topology", American Mathematical Society, 2010.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 0, 0, 0, 0], [0, 2, 0, 1, 0], [0, 0, 0, 0, 0]])
    >>> t, (components, holes) = ecc.betti_curves(image, [0, 1, 2])
    >>> holes
    array([2, 1, 0])
    >>> ecc.betti_curves(image, [0, 1, 2], min_persistence=2).values[1]
    array([1, 1, 0])
    """
    least = check_persistence(min_persistence)
    check_boundary(boundary, BETTI.boundaries)
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        mask=mask,
        nan=nan,
        axis=axis,
        workers=workers,
        boundary=boundary,
    )
    if is_labelled(image):
        return call_unlabelled(
            betti_curves, image, thresholds, min_persistence=least, **options.given()
        )
    if is_lazy(image):
        from ecc_core._dask.whole import whole_betti_curves

        check_boundary(boundary, BETTI.joins.boundaries)
        return whole_betti_curves(image, thresholds, options, BettiOptions(least))
    request = None
    if least == 0 and mask is None:
        levels = levels_of(thresholds)
        plan, request = plan_of("betti", image, levels, options, result_of=_no_curves)
        planned = None if plan is None else plan.run(image)
        if plan is not None and planned is not None:
            plan.warn_of_axis(image)
            at, values = planned
            at = thresholds_of(image, thresholds, levels) if at is None else at
            curves: BettiCurves[Any] = plan.result._with_arrays(at, values)
            return curves
    if request is None:
        request = Request.of(image, thresholds, options, no_exact=None)
    origin = request.origin
    filtration = request.filtration
    facts = curve_facts(filtration)
    filtered: dict[str, Any] = {"least": least} if least > 0 else {}
    if request.levels.exact:
        compute = request.topology("exact_betti_curves")
        found = compute(request.images, filtration, **filtered, **request.options)
        return BettiCurves(*map(origin.wrap, found), **facts)
    compute = request.topology("betti_curves")
    return BettiCurves(*request.curves(partial(compute, **filtered), thresholds), **facts)


def region_betti_curves(
    image: ArrayLike,
    labels: ArrayLike,
    thresholds: ArrayLike = 256,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    workers: int | None = None,
    min_persistence: float = 0,
    boundary: ComplexBoundary = "closed",
    axis: Axes = None,
) -> RegionBettiCurves:
    """Betti curves of all labelled regions.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`betti_curves`.
    labels : integer array of the image's shape
        0 is background. Every region is counted as if it stood alone, even if it touches others.
    thresholds : int or array, default 256
        Number of thresholds, evenly spaced over `range`, or an increasing array of thresholds. All
        regions have the same.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value of the
        labelled points.
    connectivity, superlevel, workers
        As for :func:`betti_curves`.
    min_persistence : float, default 0
        As for :func:`betti_curves`: count only the classes of a region that last at least so long.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        As for :func:`betti_curves`, of the image: a region can extend over its opposite sides.
    axis : int or tuple of int, optional
        The spatial axes; default all. The rest must have length 1: regions are those of one image.

    Returns
    -------
    RegionBettiCurves
        ``labels`` of shape (k,), the ids that occur, increasing and in the dtype of `labels`,
        ``thresholds`` of shape (n,), and ``values`` of shape (k, d, n) and dtype int64;
        (k, d + 1, n) for images that are periodic along all axes.

    Raises
    ------
    TypeError
        If the labels are not integers, and as for :func:`betti_curves`.
    ValueError
        If labels are negative or have another shape than the image, a labelled point is NaN,
        `thresholds` is "exact", and as for :func:`betti_curves`.
    BackendError
        If the image is on a device whose backend does not compute Betti curves.

    See Also
    --------
    region_curves : their alternating sums, which are faster to compute.

    Notes
    -----
    Time is proportional to the sizes of the regions' bounding boxes: those of small regions are
    computed together, large regions and those that extend over opposite sides one after another.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 1, 7], [1, 0, 1, 7], [1, 1, 1, 7]])
    >>> ids, t, values = ecc.region_betti_curves(np.zeros((3, 4)), labels, [0.0])
    >>> dict(zip(ids.tolist(), values[:, :, 0].tolist()))  # components and holes
    {1: [1, 1], 7: [1, 0]}
    """
    check_given(labels, "labels")
    least = check_persistence(min_persistence)
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        axis=axis,
        workers=workers,
        boundary=boundary,
    )
    if is_labelled(image):
        return call_unlabelled(
            region_betti_curves,
            image,
            labels=labels,
            thresholds=thresholds,
            min_persistence=least,
            **options.given(),
        )
    check_eager(labels, "labels")
    request = single_request(image, options, thresholds, labels=labels)
    origin = request.origin
    filtration = request.filtration
    at = request.thresholds()
    compute = request.topology("region_betti_curves")
    given: dict[str, Any] = {"workers": request.workers}
    if least > 0:
        given["least"] = least
    ids, values = compute(request.images[0], request.labels, at, filtration, **given)
    request.warn_if_missed(at, values)
    at = origin.thresholds(thresholds, at)
    facts = curve_facts(filtration)
    return RegionBettiCurves(origin.wrap(ids), at, origin.wrap(values), **facts)
