"""Euler characteristic surfaces: two images, and all pairs of their thresholds."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import is_lazy
from ecc_core._arrays.request import Request, shown_in_both
from ecc_core._arrays.xarray import call_unlabelled, is_labelled, unit_of, with_facts
from ecc_core._request.filtration import flag_pair
from ecc_core._request.image import check_same_shape
from ecc_core._request.masks import split_masked
from ecc_core._request.options import ImageOptions
from ecc_core._types import Axes
from ecc_core.results import EulerSurface, surface_facts

__all__ = ["EulerSurface", "euler_surface"]


def euler_surface(
    first: ArrayLike,
    second: ArrayLike,
    thresholds_first: ArrayLike = 64,
    thresholds_second: ArrayLike = 64,
    *,
    range_first: tuple[float, float] | None = None,
    range_second: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool | tuple[bool, bool] = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
) -> EulerSurface:
    """Euler characteristic of the sets ``(first <= a) & (second <= b)`` for all pairs (a, b).

    The images may be two channels of a microscope, an intensity and a height or a distance to a
    border, or an image and its gradient.

    Parameters
    ----------
    first, second : arrays of one shape with 1 to 3 spatial axes
        Booleans, integers or real floats of at most 64 bits, in any memory layout; their dtypes may
        differ. Points that are masked in a ``numpy.ma`` array are excluded. If one is a dask array,
        the other is rechunked to its chunks, `values` is a dask array, and thresholds must be
        arrays, or ints together with a range.
    thresholds_first, thresholds_second : int or array, default 64
        Number of thresholds, evenly spaced over the range of the image including both ends, or an
        increasing array of thresholds.
    range_first, range_second : (low, high), optional
        Only for thresholds that are an int. Default: the smallest and the largest finite value.
    connectivity : {None, 1, d}
        For d spatial axes, 1: sets are 4- or 6-connected; d (default): 8- or 26-connected. See
        :func:`ecc_core.euler_curve`.
    superlevel : bool or (bool, bool), default False
        Use the sets ``first >= a``, ``second >= b``, or both. One flag applies to both images.
    mask : bool array, optional
        False at points to exclude. Must have the images' shape, or their spatial shape.
    nan : {"raise", "omit"}
        "omit": exclude points at which an image is NaN.
    axis : int or tuple of int, optional
        The spatial axes. Default: all. All other axes are batch axes, which come first in the
        result.
    workers : int, optional
        Number of threads. Default: the number of cores.

    Returns
    -------
    EulerSurface
        ``thresholds_first`` of shape (n,), ``thresholds_second`` of shape (m,), and ``values`` of
        shape batch + (n, m) and dtype int64. Values are exact: ``values[i, j]`` is the
        :func:`ecc_core.euler_number` of the intersection, where numbers of different dtypes are
        compared without rounding.

    Raises
    ------
    TypeError
        If images or thresholds are not real numbers of at most 64 bits.
    ValueError
        If the shapes differ, an image contains NaN (unless omitted), thresholds contain NaN or
        decrease, a range is needed and an image has no finite values, or arguments do not match the
        images' shape.
    BackendError
        If the images are on a device whose backend has no surfaces.

    Warns
    -----
    UserWarning
        As for :func:`ecc_core.euler_curve`.

    See Also
    --------
    euler_curve : One image. A surface at a threshold that excludes no point is the curve of the
        other image.

    Notes
    -----
    With connectivity 1, a cell enters at one pair of thresholds, the largest values of its vertices
    in both images. Otherwise it enters with any of the closed cubes that contain it: it is present
    above a staircase in the plane of thresholds, given by the minimal pairs of values of these
    cubes. By inclusion and exclusion, it is counted at each minimal pair, and subtracted at the
    join (the larger values of both images) of each two consecutive ones. The surface is the sum of
    the histogram of these pairs along both axes, which is computed in one pass over the images. The
    sets are a two-parameter filtration, of which the surface is an invariant [1]_.

    References
    ----------
    .. [1] Beltramo, Andreeva, Giarratano, Bernabeu, Sarkar, Skraba, "Euler characteristic
       surfaces", Foundations of Data Science 4, 505-536, 2022, arXiv:2102.08260.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> x = np.arange(5)
    >>> a, b, chi = ecc.euler_surface(x, x[::-1], [1, 2, 4], [1, 2, 4])
    >>> chi  # an interval, as soon as the two halves meet
    array([[0, 0, 1],
           [0, 1, 1],
           [1, 1, 1]])
    """
    options = ImageOptions(
        connectivity=connectivity,
        superlevel=superlevel,  # It may be a pair, which is split below.
        mask=mask,
        nan=nan,
        axis=axis,
        workers=workers,
    )
    if is_labelled(first) or is_labelled(second):
        ranges = {"range_first": range_first, "range_second": range_second}
        return _labelled_surface(
            first, second, thresholds_first, thresholds_second, **ranges, **options.given()
        )
    flags = flag_pair(superlevel)
    of_first = options._replace(range=range_first, superlevel=flags[0])
    of_second = options._replace(range=range_second, superlevel=flags[1], mask=None)
    if is_lazy(first) or is_lazy(second):
        from ecc_core._dask.whole import whole_surface

        given = (thresholds_first, thresholds_second)
        return whole_surface(first, second, given, (of_first, of_second))
    a, b = _requests(first, second, (thresholds_first, thresholds_second), (of_first, of_second))
    at = (a.thresholds(), b.thresholds())
    filtrations = (a.filtration, b.filtration)
    origin = a.origin
    values = origin.surfaces().surface(a.images, b.images, at, filtrations, **a.options)
    if values.size:
        # The curve of an image is the surface at the last threshold of the other one.
        a.warn_if_missed(at[0], values[..., -1])
        b.warn_if_missed(at[1], values[..., -1, :])
    return EulerSurface(
        origin.thresholds(thresholds_first, at[0]),
        origin.thresholds(thresholds_second, at[1]),
        a.spread(values, at[0].size, at[1].size),
        **surface_facts(filtrations),
    )


def _labelled_surface(first: Any, second: Any, *thresholds: Any, **options: Any) -> EulerSurface:
    """Return the surface of two images, at least one of which is a `DataArray`."""
    check_same_shape(np.shape(first), np.shape(second))
    labelled = first if is_labelled(first) else second.copy(data=first)
    found = call_unlabelled(euler_surface, labelled, second, *thresholds, **options)
    return with_facts(found, units_first=unit_of(first), units_second=unit_of(second))


def _requests(
    first: Any,
    second: Any,
    thresholds: tuple[Any, Any],
    options: tuple[ImageOptions, ImageOptions],
) -> tuple[Request, Request]:
    """Return the requests of two images in memory, which have shape, axes and mask in common."""
    a = Request.of(first, thresholds[0], options[0], name="first")
    values_of_second, _ = split_masked(second, None)
    check_same_shape(a.geometry.shape, tuple(a.origin.image(values_of_second, "second").shape))
    of_second = options[1]._replace(axis=a.geometry.axes)
    b = Request.of(second, thresholds[1], of_second, name="second", like=a.origin)
    shown = shown_in_both(a, b)
    return a._replace(mask=shown), b._replace(mask=shown)
