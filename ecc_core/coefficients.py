"""Contributions of points to the Euler characteristic curve."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import is_lazy
from ecc_core._arrays.plans import plan_of
from ecc_core._arrays.request import Request
from ecc_core._arrays.xarray import call_unlabelled, is_labelled
from ecc_core._request.options import ImageOptions
from ecc_core._request.spatial_axes import all_axes
from ecc_core._types import CoefficientOptions, DeviceT, LazyT

__all__ = ["euler_coefficients"]


@overload
def euler_coefficients(image: DeviceT, **options: Unpack[CoefficientOptions]) -> DeviceT: ...
@overload
def euler_coefficients(image: LazyT, **options: Unpack[CoefficientOptions]) -> LazyT: ...
@overload
def euler_coefficients(
    image: ArrayLike, **options: Unpack[CoefficientOptions]
) -> NDArray[np.int8]: ...
def euler_coefficients(
    image: Any,
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: ArrayLike | None = None,
    nan: Literal["raise", "omit"] = "raise",
) -> Any:
    """Contribution of every point to the Euler characteristic curve.

    Parameters
    ----------
    image : (n,), (m, n) or (p, m, n) array
        As for :func:`euler_curve`.
    connectivity, superlevel, mask, nan
        As for :func:`euler_curve`.

    Returns
    -------
    int8 array of the image's shape
        c(p), the sum of (-1)**dimension over the cells that enter with p. If several points share
        the value of a cell, it belongs to the first of them in C order. ``euler_number(image <=
        t)`` is the sum of c over ``image <= t``. Values lie between -3 and 1 in 2-D, and in 3-D
        between -5 and 7 (connectivity 1) or -7 and 5 (connectivity 3). Excluded points have 0.

    Raises
    ------
    TypeError, ValueError
        As for :func:`euler_curve`.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> ecc.euler_coefficients(np.array([3, 1, 2, 0]))  # minima add a component, maxima join two
    array([ 0,  1, -1,  1], dtype=int8)
    """
    options = ImageOptions(connectivity=connectivity, superlevel=superlevel, mask=mask, nan=nan)
    if is_labelled(image):
        counted = call_unlabelled(euler_coefficients, image, whole=True, **options.given())
        return counted.reshape(image.shape)
    options = options._replace(axis=all_axes(image))
    if is_lazy(image):
        from ecc_core._dask.whole import whole_coefficients

        return whole_coefficients(image, options)
    if not isinstance(image, np.ndarray):
        plan, _ = plan_of("coefficients", image, 0, options)
        if plan is not None:
            planned = plan.run(image) if mask is None else plan.run(image, mask)
            if planned is not None:
                return planned[0]
    request = Request.of(image, 0, options)
    backend = request.origin.backend()
    counts = backend.coefficients(request.images, request.filtration, mask=request.mask)
    return request.origin.wrap(counts[0])
