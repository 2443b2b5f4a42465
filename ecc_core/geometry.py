"""Minkowski functionals of images: area and perimeter, or volume, surface and mean breadth."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from ecc_core._arrays import is_lazy, on_host
from ecc_core._arrays.request import Request, check_given
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.filtration import Filtration
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes
from ecc_core._types import AnyBoundary, Axes
from ecc_core.quantities.minkowski import MINKOWSKI, MinkowskiOptions, window_functionals
from ecc_core.quantities.regions import region_result
from ecc_core.results import MinkowskiCurves, RegionMinkowski, minkowski_facts

__all__ = ["MinkowskiCurves", "RegionMinkowski", "minkowski_curves", "region_minkowski"]

NO_EXACT = " for Minkowski functionals"
Estimator = Literal["exact", "crofton-2", "crofton-4", "crofton-3", "crofton-13"]


def minkowski_curves(
    image: Any,
    thresholds: ArrayLike = 256,
    *,
    range: tuple[float, float] | None = None,
    spacing: ArrayLike | None = None,
    boundary: AnyBoundary = "closed",
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
    estimator: Estimator = "exact",
) -> MinkowskiCurves[Any]:
    """Minkowski functionals of the sets ``image <= t`` for many thresholds t.

    Parameters
    ----------
    image : array with 1 to 3 spatial axes
        As for :func:`ecc_core.euler_curve`.
    thresholds : int or array, default 256
        Number of thresholds, evenly spaced over `range` including both ends, or an increasing array
        of thresholds.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Default: that of the coordinates of a
        DataArray of xarray, otherwise 1. A spacing that differs from the coordinates is an error,
        unless these are no lengths of one unit, such as degrees: then it must be given.
    boundary : str, or one for each spatial axis
        As for :func:`ecc_core.euler_curve`. With "half-open", ``densities()`` of the result are
        biased neither by the border of the image nor by that of a mask. All measures but the Euler
        characteristic are those of the cells whose lowest corner is a point of the mask; other
        points of a cell may lie outside of it. Not with a mask or labels for arrays on a device.
    connectivity : {None, 1, d}
        For d spatial axes, 1: points are vertices, and the set is the union of all edges, squares
        and cubes whose vertices belong to it. d (default): points are closed cubes. In 1-D, where
        both are 1, points are vertices: n of them have the length n - 1. Crofton estimates use it
        for the Euler characteristic only.
    superlevel, mask, nan, axis, workers
        As for :func:`ecc_core.euler_curve`.
    estimator : {"exact", "crofton-2", "crofton-4", "crofton-3", "crofton-13"}
        "exact" (default): the functionals of the union of the cells, whose boundary is parallel to
        the axes. "crofton-2" or "crofton-4" (2-D), "crofton-3" or "crofton-13" (3-D): estimates for
        the smooth set of which the image is a sample, from sections in 2, 4, 3 or 13 directions.

    Returns
    -------
    MinkowskiCurves
        ``thresholds`` of shape (n,), and ``values`` of shape batch + (d + 1, n) and dtype float64:
        area, perimeter and Euler characteristic, or volume, surface, mean breadth and Euler
        characteristic, in units of `spacing`. They are also attributes of the result.

    Raises
    ------
    TypeError, ValueError
        As for :func:`ecc_core.euler_curve`. Also if the estimator does not match the number of
        axes, or if `thresholds` is "exact".
    BackendError
        If the array is on a device whose backend cannot count cells.

    Warns
    -----
    UserWarning
        As for :func:`ecc_core.euler_curve`.

    See Also
    --------
    region_minkowski : Functionals of labelled regions.
    euler_curve : The Euler characteristic alone.

    Notes
    -----
    The perimeter and surface are those of the boundary, and the mean breadth of a ball is its
    diameter. In terms of the intrinsic volumes V_k, the perimeter is 2 V_1 in 2-D. In 3-D, the
    surface is 2 V_2 and the mean breadth V_1 / 2. All are linear functions of the numbers of cells
    of each orientation [1]_, which are counted for all thresholds at once. Because the boundary of
    the cells consists of steps, exact values are larger than the perimeter of a disk by a factor of
    4/pi, and than the surface of a ball by 3/2. Crofton estimates [2]_ weight each direction by the
    part of the sphere that is nearest to it.

    References
    ----------
    .. [1] Klain, Rota, "Introduction to Geometric Probability", Cambridge University Press, 1997.
    .. [2] Legland, Kiêu, Devaux, "Computation of Minkowski measures on 2D and 3D binary images",
       Image Analysis & Stereology 26, 83-92, 2007.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> y, x = np.mgrid[-20:21, -20:21]
    >>> distance = np.hypot(y, x)
    >>> t, (area, perimeter, euler) = ecc.minkowski_curves(distance, [10.5])
    >>> area, perimeter, euler
    (array([349.]), array([84.]), array([1.]))
    >>> estimate = ecc.minkowski_curves(distance, [10.5], estimator="crofton-4")
    >>> np.round(estimate.perimeter / (2 * np.pi * 10.5), 2)
    array([0.99])
    """
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
    own = MinkowskiOptions(spacing, estimator)
    if is_labelled(image):
        return call_unlabelled(
            minkowski_curves,
            image,
            thresholds,
            lengths="needed",
            **own._asdict(),
            **options.given(),
        )
    if is_lazy(image):
        from ecc_core._dask.whole import whole_minkowski

        return whole_minkowski(image, thresholds, options, own)
    request = Request.of(image, thresholds, options, no_exact=NO_EXACT)
    chosen = own.chosen(request.filtration)
    facts = minkowski_facts(request.filtration, chosen)
    if request.window is not None:
        at, values, sizes = window_functionals(request, chosen, thresholds)
        return MinkowskiCurves(at, values, **facts, window=sizes)
    count = request.origin.cell_counts().cell_counts
    curve = request.origin.backend().curve

    def functionals(images: Any, at: Any, filtration: Filtration, **options: Any) -> Any:
        values = chosen.functionals(count(images, at, chosen.cells, filtration, **options))
        if not chosen.exact:
            values[:, -1] = on_host(curve(images, at, filtration, **options))
        return values

    window = chosen.size(request.geometry.spatial, request.filtration)
    return MinkowskiCurves(
        *request.curves(functionals, thresholds),
        **facts,
        window=None if request.mask is not None else window,
    )


def region_minkowski(
    image: Any,
    labels: Any,
    thresholds: ArrayLike = 256,
    *,
    range: tuple[float, float] | None = None,
    spacing: ArrayLike | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    workers: int | None = None,
    estimator: Estimator = "exact",
    boundary: AnyBoundary = "closed",
    axis: Axes = None,
) -> RegionMinkowski[Any]:
    """Minkowski functionals of all labelled regions, in one pass over the image.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`ecc_core.euler_curve`.
    labels : integer array of the image's shape
        0 is background. Every region is treated as if it stood alone, even if it touches others.
    thresholds : int or array, default 256
        As for :func:`ecc_core.region_curves`.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value of the
        labelled points.
    spacing, connectivity, superlevel, workers, estimator
        As for :func:`minkowski_curves`.
    boundary, axis
        As for :func:`ecc_core.region_curves`.

    Returns
    -------
    RegionMinkowski
        ``labels`` of shape (k,), the ids that occur, increasing and in the dtype of `labels`,
        ``thresholds`` of shape (n,), and ``values`` of shape (k, d + 1, n) and dtype float64.

    Raises
    ------
    TypeError, ValueError
        As for :func:`ecc_core.region_curves` and :func:`minkowski_curves`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 1, 7], [1, 0, 1, 7], [1, 1, 1, 7]])
    >>> found = ecc.region_minkowski(np.zeros((3, 4)), labels, [0.0], spacing=2)
    >>> found.labels
    array([1, 7])
    >>> found.perimeter[:, 0], found.area[:, 0]
    (array([32., 16.]), array([32., 12.]))
    """
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        axis=axis,
        workers=workers,
        boundary=boundary,
    )
    own = MinkowskiOptions(spacing, estimator)
    check_given(labels, "labels")
    if is_labelled(image):
        return call_unlabelled(
            region_minkowski,
            image,
            labels=labels,
            thresholds=thresholds,
            lengths="needed",
            **own._asdict(),
            **options.given(),
        )
    if axis is None:
        options = options._replace(axis=all_axes(image))
    found: RegionMinkowski[Any]
    if is_lazy(image) or is_lazy(labels):
        from ecc_core._dask.whole import whole_regions

        found = whole_regions(
            MINKOWSKI, image, labels=labels, thresholds=thresholds, options=options, own=own
        )
        return found
    request = Request.of(image, thresholds, options, no_exact=NO_EXACT, labels=labels)
    found = region_result(MINKOWSKI, request, thresholds, own)
    return found
