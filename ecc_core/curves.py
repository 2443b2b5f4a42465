"""Euler numbers, Euler characteristic curves and coefficients of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, SupportsIndex, Unpack, overload

from numpy.typing import ArrayLike

from ecc_core._arrays import HOST_TYPES, adapter_of, given_on_host, is_lazy
from ecc_core._arrays.plans import levels_of, plan_of, thresholds_of
from ecc_core._arrays.request import Request
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes
from ecc_core._request.thresholds import LEAST_POSITIVE
from ecc_core._types import (
    AnyBoundary,
    Axes,
    CurveOptions,
    DeviceT,
    LazyArray,
    Thresholds,
)
from ecc_core.results import EulerCurve, curve_facts, without_arrays

__all__ = ["EulerCurve", "euler_curve", "euler_number"]

_no_curve = partial(without_arrays, EulerCurve)


def euler_number(
    image: ArrayLike,
    connectivity: int | None = None,
    *,
    boundary: AnyBoundary = "closed",
) -> int:
    """Euler characteristic of a binary image.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        The object: True, or positive values if the image is not boolean.
    connectivity : {None, 1, image.ndim}
        1: points of the object are connected along the axes only (4- or 6-connected). image.ndim
        (the default): also along diagonals (8- or 26-connected).
    boundary : str, or one for each spatial axis
        As for :func:`euler_curve`.

    Returns
    -------
    int
        2-D: objects minus holes. 3-D: objects minus tunnels plus cavities. For a dask array, a
        0-d dask array.

    Raises
    ------
    TypeError
        If the image does not have a boolean, integer or real floating dtype of at most 64 bits.
    ValueError
        If the image does not have 1 to 3 axes, or the connectivity or boundary is invalid.

    See Also
    --------
    euler_curve : Euler characteristic at many thresholds.
    betti_numbers : Numbers of components, holes or tunnels, and cavities.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> ring = np.ones((5, 5), bool)
    >>> ring[2, 2] = False
    >>> ecc.euler_number(ring)
    0
    """
    if is_labelled(image):
        return call_unlabelled(
            euler_number, image, whole=True, connectivity=connectivity, boundary=boundary
        )
    options = ImageOptions(
        connectivity=connectivity,
        superlevel=True,
        nan="omit",
        axis=all_axes(image),
        boundary=boundary,
    )
    if is_lazy(image):
        from ecc_core._dask.whole import whole_curve

        found: int = whole_curve(image, LEAST_POSITIVE, options).values[0]
        return found
    plan, request = plan_of("number", image, LEAST_POSITIVE, options)
    if plan is not None and (planned := plan.run(image)) is not None:
        return int(planned)
    if request is None:
        request = Request.of(image, LEAST_POSITIVE, options)
    backend = request.origin.backend()
    return backend.number(request.images, LEAST_POSITIVE, request.filtration, **request.options)


@overload
def euler_curve(
    image: DeviceT, thresholds: Thresholds = 256, **options: Unpack[CurveOptions]
) -> EulerCurve[DeviceT]: ...
@overload
def euler_curve(
    image: LazyArray, thresholds: Thresholds = 256, **options: Unpack[CurveOptions]
) -> EulerCurve[Any]: ...
@overload
def euler_curve(
    image: ArrayLike, thresholds: Thresholds = 256, **options: Unpack[CurveOptions]
) -> EulerCurve: ...
def euler_curve(
    image: Any,
    thresholds: Thresholds = 256,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
    axis: Axes = None,
    workers: int | None = None,
    direction: ArrayLike | None = None,
    direction_scale: float | None = None,
    spacing: ArrayLike | None = None,
    devices: Sequence[SupportsIndex] | None = None,
    boundary: AnyBoundary = "closed",
) -> EulerCurve[Any]:
    """Euler characteristic of the sets ``image <= t`` for many thresholds t.

    Parameters
    ----------
    image : array with 1 to 3 spatial axes
        Booleans, integers or real floats of at most 64 bits, in any memory layout. Masked elements
        of a ``numpy.ma`` array are excluded. For a dask array, `values` is a dask array too, and
        `thresholds` must be an array, or an int together with `range`.
    thresholds : int, array or "exact", default 256
        Number of thresholds, evenly spaced over `range` including both ends, or an increasing array
        of thresholds. "exact": every level at which the curve changes, in the dtype of the image.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and the largest finite value.
    connectivity : {None, 1, d}
        For d spatial axes, 1: points are vertices, and a cell enters with the last of its vertices
        (V-construction; sets are 4- or 6-connected). d (default): points are closed cubes, and a
        cell enters with the first cube that contains it (T-construction; 8- or 26-connected). In
        1-D, where both are 1, points are vertices.
    superlevel : bool, default False
        Use the sets ``image >= t`` instead.
    mask : bool array, optional
        False at points to exclude. Must have the image's shape, or its spatial shape.
    nan : {"raise", "omit"}
        "omit": exclude points that are NaN.
    axis : int or tuple of int, optional
        The spatial axes. Default: all. All other axes are batch axes, which come first in the
        result. For a DataArray of xarray, axes may be given by name, and the default is all but
        times, which are recognised by their name, their coordinate or the CF conventions.
    workers : int, optional
        Number of threads. Default: the number of cores.
    direction : (d,) array, optional
        Use ``image + direction_scale * <u, x>`` instead of the image, computed in float64, where u
        is the normalised direction and ``x = (index - (n - 1) / 2) * spacing``.
    direction_scale : float, optional
        Only with `direction`. Default: 1.
    spacing : float or (d,) array, optional
        Distance between neighbouring points along each axis. Only with `direction`. Default: that
        of the coordinates of a DataArray of xarray, from which it must not differ, otherwise 1.
    devices : sequence of int, optional
        Ids of CUDA devices through which to stream a 2-D or 3-D image in host memory, which may be
        larger than the memory of the devices. The image may be a NumPy array (fastest in pinned
        memory), a memory map, or any object with ``shape`` and ``dtype`` whose slices along the
        first axis can be converted to NumPy arrays, such as a Zarr array. Results are in host
        memory. Cannot be combined with `mask`, `axis`, `direction`, `boundary` or "exact"
        thresholds.
    boundary : {"closed", "periodic", "half-open"} or one of them for each spatial axis
        "closed" (default): the image ends at its border. "periodic": opposite sides touch, as on a
        torus. "half-open": the image is a window of a larger one, and only the cells whose lowest
        corner lies before the last point of every axis count, which the image contains completely.
        Windows that share one plane of points add up exactly to the half-open curve of the whole,
        and values divided by the size of the window are unbiased densities. With a mask the window
        has any shape: the curve is the sum of :func:`euler_coefficients` of the image without the
        mask over the points of the mask, whose neighbours enter, too. Its density is unbiased where
        the mask does not touch the border of the image. Not with `direction`.

        With one word for each spatial axis, in the order of `axis`, each axis has its own border:
        ("closed", "periodic") is a cylinder, such as latitude and longitude. A mask, or regions,
        need "half-open" along all axes or along none.

    Returns
    -------
    EulerCurve
        ``thresholds`` of shape (n,) and ``values`` of shape batch + (n,) and dtype int64. Values
        are exact: ``values[i] == euler_number(image <= thresholds[i])``, where numbers of different
        dtypes are compared without rounding.

    Raises
    ------
    TypeError
        If the image or the thresholds are not real numbers of at most 64 bits.
    ValueError
        If the image contains NaN (unless omitted), the thresholds contain NaN or decrease, a range
        is needed and the image has no finite values, or arguments do not match the image's shape.
    BackendError
        If `devices` are given and CuPy or a CUDA device is missing.

    Warns
    -----
    UserWarning
        If `axis` is not given and an image of three axes has at most four points along the first or
        last one, which probably holds channels or several images. Also if hardly any of the
        thresholds given lies among the values of an image in host memory.

    See Also
    --------
    euler_coefficients : Contribution of every point.
    region_curves : Curves of labelled regions.
    euler_transform : Curves of a shape along many directions.
    betti_curves : Numbers of components, holes or tunnels, and cavities.

    Notes
    -----
    Every cell of the complex belongs to the point that gives it its value, so the curve is a sum of
    the contributions of all points (see :func:`euler_coefficients`), which is computed from a
    signed histogram [1]_ [2]_. The image is read once, in blocks, without copying it.

    References
    ----------
    .. [1] Snidaro, Foresti, "Real-time thresholding with Euler numbers", Pattern Recognition
       Letters 24, 1533-1544, 2003.
    .. [2] Heiss, Wagner, "Streaming algorithm for Euler characteristic curves of multidimensional
       images", CAIP 2017, arXiv:1705.02045.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]])
    >>> t, chi = ecc.euler_curve(image, [0, 1, 2])
    >>> chi  # a ring until the centre enters
    array([0, 0, 1])
    >>> ecc.euler_curve(image, "exact")
    EulerCurve(thresholds=[2], values=[1], connectivity=2)
    >>> stack = np.stack([image, image.T, -image])
    >>> ecc.euler_curve(stack, [0, 2], axis=(1, 2)).values
    array([[0, 1],
           [0, 1],
           [1, 1]])
    >>> ecc.euler_curve(np.zeros((3, 3)), [0], boundary="periodic").values  # a torus
    array([0])

    On a map of the earth, longitude is periodic and latitude is not. A cold front on the date line
    is one object there:

    >>> temperature = np.full((90, 180), 20.0)  # latitude, longitude
    >>> temperature[30:40, :5] = temperature[30:40, -5:] = -10
    >>> ecc.euler_curve(temperature, [0], boundary=("closed", "periodic")).values
    array([1])
    >>> ecc.euler_curve(temperature, [0]).values
    array([2])
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
        direction=direction,
        direction_scale=direction_scale,
        spacing=spacing,
    )
    if is_labelled(image):
        return call_unlabelled(
            euler_curve,
            image,
            thresholds,
            devices=devices,
            lengths="" if direction is None else "needed",
            **options.given(),
        )
    if devices is not None:
        from ecc_core._blocks.streamed import streamed_curve  # Few calls need it.

        at, values, filtration = streamed_curve(image, thresholds, devices, options)
        return EulerCurve(at, values, **curve_facts(filtration))
    if is_lazy(image):
        from ecc_core._dask.whole import whole_curve

        return whole_curve(image, thresholds, options)
    if not isinstance(thresholds, HOST_TYPES) and adapter_of(thresholds).reads_early:
        planned, request, levels = _curve_at_early_thresholds(image, thresholds, options)
    else:
        levels = levels_of(thresholds)
        planned, request = _planned_curve(image, thresholds, levels, options)
    if planned is not None:
        return planned
    if request is None:
        request = Request.of(image, levels, options, no_exact=None)
    return _requested_curve(request, thresholds)


def _requested_curve(request: Request, thresholds: Any) -> EulerCurve[Any]:
    """Return the curve of an image in memory; `thresholds` are the argument of the call."""
    origin = request.origin
    facts = curve_facts(request.filtration)
    if request.window is not None:
        from ecc_core.quantities.windows import window_curve  # Few calls need it.

        return EulerCurve(*window_curve(request, thresholds), **facts)
    if request.levels.exact:
        found = origin.backend().exact_curve(request.images, request.filtration, **request.options)
        return EulerCurve(*map(origin.wrap, found), **facts)
    return EulerCurve(*request.curves(origin.backend().curve, thresholds), **facts)


def _curve_at_early_thresholds(
    image: Any, thresholds: Any, options: ImageOptions
) -> tuple[EulerCurve[Any] | None, Request | None, Any]:
    """Return the curve and the request as `_planned_curve` does, and the thresholds on the host.

    The thresholds are on a device. The curve is computed at the values that they had in an earlier
    call while their present values are copied, and once more if these differ.
    """
    levels, is_as_read = adapter_of(thresholds).read_early(thresholds)
    try:
        planned, request = _planned_curve(image, thresholds, levels, options)
    finally:
        as_read = is_as_read is None or is_as_read()
    if as_read:
        return planned, request, levels
    has_warned = planned is not None or request is not None
    if has_warned and options.axis is None:
        options = options._replace(axis=all_axes(image))
    levels = given_on_host(thresholds)
    planned, request = _planned_curve(image, thresholds, levels, options)
    return planned, request, levels


def _planned_curve(
    image: Any, thresholds: Any, levels: Any, options: ImageOptions
) -> tuple[EulerCurve[Any] | None, Request | None]:
    """Return the curve if the call is planned, otherwise None, and the request of `plan_of`.

    `levels` are the thresholds on the host.
    """
    plan, request = plan_of("curve", image, levels, options, result_of=_no_curve)
    if plan is None:
        return None, request
    mask = options.mask
    planned = plan.run(image) if mask is None else plan.run(image, mask)
    if planned is None:
        return None, request
    plan.warn_of_axis(image)
    at, values = planned
    at = thresholds_of(image, thresholds, levels) if at is None else at
    return plan.result._with_arrays(at, values), request
