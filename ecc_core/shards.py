"""Curves of images in parts, such as volumes distributed over several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

from numpy.typing import ArrayLike

from ecc_core._arrays.shards import ShardRequest
from ecc_core._request.options import ImageOptions
from ecc_core._types import DeviceT, ShardOptions
from ecc_core.results import EulerCurve, curve_facts

__all__ = ["euler_curve_shards"]


@overload
def euler_curve_shards(
    shards: Sequence[DeviceT], thresholds: ArrayLike = 256, **options: Unpack[ShardOptions]
) -> EulerCurve[DeviceT]: ...
@overload
def euler_curve_shards(
    shards: Sequence[ArrayLike], thresholds: ArrayLike = 256, **options: Unpack[ShardOptions]
) -> EulerCurve: ...
def euler_curve_shards(
    shards: Sequence[Any],
    thresholds: ArrayLike = 256,
    *,
    range: tuple[float, float] | None = None,
    connectivity: int | None = None,
    superlevel: bool = False,
    nan: Literal["raise", "omit"] = "raise",
) -> EulerCurve[Any]:
    """Euler characteristic curve of an image that is divided into parts along its first axis.

    Parameters
    ----------
    shards : sequence of arrays of 1 to 3 axes
        The parts of the image, which is ``concatenate(shards)``. They do not overlap, and have the
        same dtype and the same shape except along the first axis. They are arrays of one library,
        all in host memory or all on CUDA devices. Several may be on the same device.
    thresholds : int or array, default 256
        As for :func:`ecc_core.euler_curve`, except "exact".
    range, connectivity, superlevel, nan
        As for :func:`ecc_core.euler_curve`.

    Returns
    -------
    EulerCurve
        The curve of the whole image, in arrays of the same library on the device of the first
        part.

    Raises
    ------
    TypeError
        If `shards` is not a sequence, and as for :func:`ecc_core.euler_curve`.
    ValueError
        If there are no parts, their libraries, dtypes or shapes do not match, and as for
        :func:`ecc_core.euler_curve`.

    Notes
    -----
    Each device processes its own parts. Meanwhile, one slice at each cut is copied to the
    neighbouring device, which counts the cells between the two parts. Work is queued on the current
    stream of each device; a call waits for a device only if :func:`ecc_core.euler_curve` would.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]])
    >>> ecc.euler_curve_shards([image[:2], image[2:]], [0, 1, 2]).values
    array([0, 0, 1])

    With CuPy arrays on two devices, which work at the same time::

        parts = []
        for device, half in enumerate(np.array_split(volume, 2)):
            with cupy.cuda.Device(device):
                parts.append(cupy.asarray(half))
        t, chi = ecc.euler_curve_shards(parts, 256, range=(0, 255))  # on device 0
    """
    options = ImageOptions(
        range=range,
        connectivity=connectivity,
        superlevel=superlevel,
        nan=nan,
    )
    request = ShardRequest.of(shards, thresholds, options)
    at = request.thresholds()
    values = request.curve(at)
    origin = request.origin
    facts = curve_facts(request.filtration)
    return EulerCurve(origin.thresholds(thresholds, at), origin.wrap(values), **facts)
