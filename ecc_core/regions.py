"""Euler characteristic curves of labelled regions."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack, overload

from numpy.typing import ArrayLike

from ecc_core._arrays import given_on_host, is_lazy
from ecc_core._arrays.plans import plan_of
from ecc_core._arrays.request import Request, check_given
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes
from ecc_core._types import AnyBoundary, Axes, DeviceT, LazyArray, RegionOptions, Thresholds
from ecc_core.quantities._base import NoOptions
from ecc_core.quantities.euler import EULER
from ecc_core.quantities.regions import region_result
from ecc_core.results import RegionCurves, without_arrays

__all__ = ["RegionCurves", "region_curves"]

_no_curves = partial(without_arrays, RegionCurves)


@overload
def region_curves(
    image: DeviceT,
    labels: DeviceT,
    thresholds: ArrayLike = 256,
    **options: Unpack[RegionOptions],
) -> RegionCurves[DeviceT]: ...
@overload
def region_curves(
    image: LazyArray,
    labels: Any,
    thresholds: ArrayLike = 256,
    **options: Unpack[RegionOptions],
) -> RegionCurves[Any]: ...
@overload
def region_curves(
    image: ArrayLike,
    labels: ArrayLike,
    thresholds: ArrayLike = 256,
    **options: Unpack[RegionOptions],
) -> RegionCurves: ...
def region_curves(
    image: Any,
    labels: Any,
    thresholds: Thresholds = 256,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    workers: int | None = None,
    boundary: AnyBoundary = "closed",
    axis: Axes = None,
) -> RegionCurves[Any]:
    """Euler characteristic curves of all labelled regions, in one pass over the image.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`euler_curve`.
    labels : integer array of the image's shape
        0 is background, as are masked elements of a ``numpy.ma`` array. Every region is treated as
        if it stood alone, even if it touches others.
    thresholds : int or array, default 256
        Number of thresholds, evenly spaced over `range`, or an increasing array of thresholds. All
        regions have the same.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value of the
        labelled points.
    connectivity, superlevel, workers
        As for :func:`euler_curve`.
    boundary : str, or one for each spatial axis
        As for :func:`euler_curve`: that of the image, so that a region can extend over opposite
        sides of a periodic one. With "half-open", each region is a window of the image, like a mask
        there, and does not stand alone. It must not be "periodic" for arrays on a device.
    axis : int or tuple of int, optional
        The spatial axes; default all. The rest must have length 1: regions are those of one image.

    Returns
    -------
    RegionCurves
        ``labels`` of shape (k,), the ids that occur, increasing and in the dtype of `labels`,
        ``thresholds`` of shape (n,), and ``values`` of shape (k, n) and dtype int64. For dask
        arrays, ``labels`` and ``values`` are dask arrays whose length k is unknown until they are
        computed; see :func:`ecc_core.dask.region_curves`.

    Raises
    ------
    TypeError
        If the labels are not integers, and as for :func:`euler_curve`.
    ValueError
        If labels are negative or have another shape than the image, a labelled point is NaN,
        `thresholds` is "exact", and as for :func:`euler_curve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> labels = np.array([[1, 1, 1, 7], [1, 0, 1, 7], [1, 1, 1, 7]])
    >>> ids, t, chi = ecc.region_curves(np.zeros((3, 4)), labels, [0.0])
    >>> ids, chi
    (array([1, 7]), array([[0],
           [1]]))
    """
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        axis=axis,
        workers=workers,
        boundary=boundary,
    )
    check_given(labels, "labels")
    if is_labelled(image):
        return call_unlabelled(
            region_curves, image, labels=labels, thresholds=thresholds, **options.given()
        )
    if axis is None and (axes := all_axes(image)) is not None:
        options = options._replace(axis=axes)
    found: RegionCurves[Any]
    if is_lazy(image) or is_lazy(labels):
        from ecc_core._dask.whole import whole_regions

        found = whole_regions(
            EULER, image, labels=labels, thresholds=thresholds, options=options, own=NoOptions()
        )
        return found
    levels = given_on_host(thresholds)
    plan, request = plan_of(
        "region_curves", image, levels, options, labels=labels, result_of=_no_curves
    )
    if plan is not None and (planned := plan.run(image, labels)) is not None:
        ids, values = planned
        found = plan.result._with_arrays(ids, thresholds, values)
        return found
    if request is None:
        request = Request.of(image, levels, options, labels=labels)
    found = region_result(EULER, request, thresholds, NoOptions())
    return found
