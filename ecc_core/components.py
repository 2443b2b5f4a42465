"""Components of the sets of an image: their sizes, and the regions of persistent ones."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import given_on_host, is_lazy
from ecc_core._arrays.request import Request, indices_of, single_request
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.boundary import check_boundary
from ecc_core._request.filtration import check_spacing
from ecc_core._request.levels import last_value
from ecc_core._request.masks import as_booleans
from ecc_core._request.options import ImageOptions
from ecc_core._request.persistence import check_persistence, real_number
from ecc_core._types import Axes, ComplexBoundary
from ecc_core.errors import NAN_MESSAGE
from ecc_core.quantities.components import COMPONENTS, ComponentOptions
from ecc_core.results import ComponentCurves, PersistentRegions, curve_facts

__all__ = ["ComponentCurves", "PersistentRegions", "component_curves", "persistent_regions"]

MOST_POINTS = 2**31 - 2


def component_curves(
    image: ArrayLike,
    thresholds: ArrayLike = 256,
    *,
    range: tuple[float, float] | None = None,
    spacing: ArrayLike | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
    boundary: ComplexBoundary = "closed",
    inlet: ArrayLike | None = None,
    outlet: ArrayLike | None = None,
) -> ComponentCurves:
    """Sizes of the sets ``image <= t`` and of their largest components, and percolation.

    Parameters
    ----------
    image : array of 1 to 3 spatial axes
        As for :func:`betti_curves`. For a dask array, the results are dask arrays, too.
    thresholds : int or array, default 256
        An int: that many, evenly spaced over `range`, both ends included. An increasing array is
        used as it is.
    range : (low, high), optional
        Only with an int; default the smallest and largest finite value.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Default: that of the coordinates of a
        DataArray of xarray, otherwise 1. A spacing that differs from the coordinates is an error,
        unless these are no lengths of one unit, such as degrees: then `volume` is known only if it
        is given.
    connectivity, superlevel, mask, nan, axis
        As for :func:`betti_curves`.
    workers : int, optional
        Threads, which share the images of a batch; each of them is computed in one.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        "closed": the image ends at its border. "periodic": opposite sides touch, and a component
        spans the axis if it winds around it: if a closed path in it crosses the side more often in
        one direction than in the other.
    inlet, outlet : bool array, optional
        Where components must begin and end to span, in the shapes that `mask` can have. Default:
        along each axis the first slice and the last slice of the sample, those with points that are
        neither masked nor omitted as NaN; without a mask the first and last index. With a periodic
        axis, which has no first slice, both or none must be given.

    Returns
    -------
    ComponentCurves
        ``thresholds`` (n,), and as int64 ``points``, the number of points of each set, ``largest``,
        that of its largest component, both of shape batch + (n,), and ``spanning``, of shape
        batch + (d, n), the number of components that touch both ends of the sample along each axis,
        or wind around it.
        With both an inlet and an outlet it is of shape batch + (1, n); with one of them it counts
        components between that one and the other end along each axis. ``porosity`` and ``volume``
        follow from the number of points.

    Raises
    ------
    TypeError
        As for :func:`betti_curves`.
    ValueError
        If `thresholds` is "exact", only one of `inlet` and `outlet` is given for a periodic image,
        or as for :func:`betti_curves`.

    Warns
    -----
    UserWarning
        As for :func:`ecc_core.euler_curve`.

    See Also
    --------
    betti_curves : the number of all components.
    minkowski_curves : perimeter or surface of the sets, beside area or volume.

    Notes
    -----
    Points are visited in the order in which they enter, and components are joined where they meet,
    so that time hardly depends on the number of thresholds. A pore space percolates along an axis
    if ``spanning`` is not 0; ``largest / points`` is the order parameter of percolation theory. For
    periodic images, crossings of the sides are counted as in [1]_.

    References
    ----------
    .. [1] Newman, Ziff, "Fast Monte Carlo algorithm for site or bond percolation", Physical Review
       E 64, 016706, 2001.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 9, 1], [2, 9, 0], [0, 9, 3]])
    >>> t, (points, largest, down, across) = ecc.component_curves(image, [0, 1, 2, 9])
    >>> points, largest
    (array([3, 4, 5, 9]), array([1, 2, 3, 9]))
    >>> down, across  # the left column, then both columns, then all
    (array([0, 0, 1, 1]), array([0, 0, 0, 1]))

    From the corner at the top left to that at the bottom right:

    >>> inlet, outlet = np.zeros((2, 3, 3), bool)
    >>> inlet[0, 0] = outlet[2, 2] = True
    >>> ecc.component_curves(image, [0, 1, 2, 9], inlet=inlet, outlet=outlet).spanning
    array([[0, 0, 0, 1]])

    On a cylinder, whole rows wind around it:

    >>> rows = np.array([[0, 0, 0], [9, 9, 9], [0, 1, 1]])
    >>> ecc.component_curves(rows, [0, 1], boundary=("closed", "periodic")).spanning
    array([[0, 0],
           [1, 2]])
    """
    check_boundary(boundary, COMPONENTS.boundaries)
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
            component_curves,
            image,
            thresholds,
            lengths="wanted",
            spacing=spacing,
            inlet=inlet,
            outlet=outlet,
            **options.given(),
        )
    lengths = given_on_host(spacing)
    if is_lazy(image):
        from ecc_core._dask.whole import whole_component_curves

        check_boundary(boundary, COMPONENTS.joins.boundaries)
        own = ComponentOptions(lengths, inlet, outlet)
        return whole_component_curves(image, thresholds, options, own)
    request = Request.of(image, thresholds, options, no_exact=" for component curves")
    filtration = request.filtration
    if any(filtration.boundary.wraps):
        _check_both_or_none(inlet, outlet)
    steps = tuple(check_spacing(lengths, filtration.ndim).tolist())
    compute = request.topology("component_curves")
    ends = request.points("inlet", inlet), request.points("outlet", outlet)
    return ComponentCurves(
        *request.curves(partial(compute, ends=ends), thresholds),
        kept=request.kept(),
        spacing=steps,
        **curve_facts(filtration),
    )


def _check_both_or_none(inlet: Any, outlet: Any) -> None:
    """Refuse only one end for a periodic image, which has no side to use as the other one."""
    if (inlet is None) != (outlet is None):
        given = "inlet" if outlet is None else "outlet"
        raise ValueError(
            "`inlet` and `outlet` must both be given, or none of them, if an axis is periodic, got "
            f"only `{given}`"
        )


def persistent_regions(
    image: ArrayLike,
    min_persistence: float,
    *,
    threshold: float | None = None,
    rel_height: float | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    workers: int | None = None,
    boundary: ComplexBoundary = "closed",
    axis: Axes = None,
) -> PersistentRegions:
    """Label the components that last for at least `min_persistence` as the threshold grows.

    A component of the sets ``image <= t`` is born at a minimum, and dies where it meets an older
    one; the difference is its persistence, which is the prominence of a peak if `superlevel` is
    True. Points are flooded in the order in which they enter: a component of less persistence
    becomes part of the older one that it meets. Two components that both last keep their labels,
    and a point where they meet goes to the older one.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`persistence_pairs`. For a dask array, `labels` has its chunks; all regions are
        found by one task, which computes each chunk at least twice and holds few of them. Compute
        what is wanted of a result together, such as by ``dask.compute(*found)``, so that this task
        runs once.
    min_persistence : float
        Not negative, in units of the image. Components that die at the value at which they are born
        have no label, even for 0. Differences are those of :func:`betti_curves`.
    threshold : float, optional
        Label only points of the set ``image <= threshold`` (``image >= threshold`` if `superlevel`
        is True). Persistence is that of the whole image; components that are part of a lasting one
        only beyond the threshold have label 0.
    rel_height : float, optional
        From 0 to 1: cut each region at this share of the way from its birth to its death, as
        ``scipy.signal.peak_widths`` does with a peak and its prominence. 0.5 is half of its
        height, 1 is where it meets an older one. By default regions cover the background too,
        unless there is a threshold. See Notes.
    connectivity, superlevel, mask, nan
        As for :func:`betti_curves`.
    workers : int, optional
        Threads that find components of images whose points are not brought into order: those that
        are not periodic, of 32 bits and more, and large ones in 2-D; default as many as there are
        cores. One thread does everything else.
    boundary : {"closed", "periodic"} or one of them for each spatial axis
        As for :func:`betti_curves`: "periodic" lets components extend over opposite sides.
    axis : int or tuple of int, optional
        As for :func:`persistence_pairs`.

    Returns
    -------
    PersistentRegions
        ``labels`` of the image's shape, ``births`` and ``deaths`` (k,), ``birth_points`` (k, d) and
        ``merged_into`` (k,). There are as many labels as :func:`persistence_pairs` of dimension 0
        have classes of this persistence.

    Raises
    ------
    TypeError
        If `min_persistence`, `threshold` or `rel_height` is not a real number, or as for
        :func:`betti_curves`.
    ValueError
        If `min_persistence` is negative or NaN, `threshold` is NaN, `rel_height` is not from 0 to
        1, an image in memory has 2**31 - 1 points or more, a dask array of 64-bit integers has a
        mask, or as for :func:`betti_curves`.

    See Also
    --------
    persistence_pairs : births and deaths, also of holes and cavities.

    Notes
    -----
    The components are those of the h-maxima transform of h = `min_persistence`, except for ties: of
    components that are born at one value the one whose point comes first in C order is older, so
    that one of them has a label where h-maxima keep all of them or none.

    With `rel_height` h, a region keeps the points of the component of its extreme point in the set
    ``region & (image <= birth + h * (death - birth))``; for superlevel sets, those with
    ``image >= birth - h * (birth - death)``. These are the points that it has once the threshold is
    at this level, so it is connected. A component that never dies is cut as if it died at the last
    value of the connected part of the image that it belongs to, without masked and omitted points:
    the largest value, or for superlevel sets the smallest. Levels of integers are exact, those of
    floats are rounded to float64; an infinite birth or death counts as the nearest finite value of
    the image. With a threshold, too, a region ends at whichever comes first.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> heights = np.array([0.0, 3.0, 1.0, 2.0, 0.5, 4.0])
    >>> found = ecc.persistent_regions(heights, 1.5)
    >>> found.labels  # the valley of depth 1 between 3 and 2 is no region of its own
    array([1, 1, 2, 2, 2, 2], dtype=int32)
    >>> found.births, found.deaths, found.merged_into
    (array([0. , 0.5]), array([inf,  3.]), array([0, 1], dtype=int32))

    Two peaks of different height on a background, each as wide as at half of its height:

    >>> peaks = np.array([1, 1, 4, 9, 5, 1, 1, 2, 3, 2, 1])
    >>> ecc.persistent_regions(peaks, 1, superlevel=True, rel_height=0.5).labels
    array([0, 0, 0, 1, 1, 0, 0, 2, 2, 2, 0], dtype=int32)
    """
    least = check_persistence(min_persistence)
    options = ImageOptions(
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
            persistent_regions,
            image,
            least,
            threshold=threshold,
            rel_height=rel_height,
            **options.given(),
        )
    level = _checked_threshold(threshold)
    height = _checked_height(rel_height)
    if is_lazy(image):
        from ecc_core._dask.regions import whole_persistent_regions

        return whole_persistent_regions(
            image, least, threshold=level, rel_height=height, options=options
        )
    request = single_request(image, options)
    size = math.prod(request.geometry.spatial)
    if size > MOST_POINTS:
        raise ValueError(f"`image` must have fewer than 2**31 - 1 points, got {size}")
    return _regions_of(request, least, threshold=level, rel_height=height)


def _checked_threshold(given: float | None) -> float | None:
    """Return the argument `threshold` as a float; refuse NaN."""
    if given is None:
        return None
    threshold = real_number(given, "threshold")
    if math.isnan(threshold):
        raise ValueError(f"`threshold` must not be NaN, got {given!r}")
    return threshold


def _checked_height(given: float | None) -> float | None:
    """Return the argument `rel_height` as a float; refuse what is not from 0 to 1."""
    if given is None:
        return None
    height = real_number(given, "rel_height")
    if not 0 <= height <= 1:
        raise ValueError(f"`rel_height` must be from 0 to 1, got {given!r}")
    return height


def _points_that_enter(request: Request, array: Any) -> Any:
    """Return a mask of the points of an image that enter: those of its mask that are not NaN."""
    shown = np.ones_like(array, dtype=bool)
    if request.mask is not None:
        with request.origin.transforms().numbers(request.mask) as given:
            shown = as_booleans(given[0])
    if array.dtype.kind != "f":
        return shown
    missing = np.isnan(array)
    if request.filtration.nan == "raise" and (missing & shown).any():
        raise ValueError(NAN_MESSAGE)
    return shown & ~missing


def _regions_of(
    request: Request, least: float, *, threshold: float | None, rel_height: float | None
) -> PersistentRegions:
    """Return the regions of an image in memory."""
    origin = request.origin
    compute = request.topology("persistent_regions")
    filtration = request.filtration
    with origin.transforms().numbers(request.images) as images:
        array = as_booleans(images[0]) if images.dtype.kind == "b" else images[0]
        shown = _points_that_enter(request, array)
        regions, born, died, merged = compute(
            array,
            shown,
            least,
            threshold,
            filtration,
            rel_height=rel_height,
            workers=request.workers,
        )
        flat = array.reshape(-1)
        dtype = array.dtype.newbyteorder("=")
        deaths = flat[died].astype(dtype)
        deaths[died < 0] = last_value(dtype, filtration.superlevel)
        return PersistentRegions(
            labels=request.geometry.unstack(origin.wrap(regions)),
            births=origin.wrap(flat[born].astype(dtype)),
            deaths=origin.wrap(deaths),
            birth_points=origin.wrap(indices_of(born, array.shape)),
            merged_into=origin.wrap(merged),
            min_persistence=least,
            rel_height=rel_height,
            **curve_facts(filtration),
        )
