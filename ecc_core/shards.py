"""Curves of images in parts, such as volumes distributed over several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from ecc_core import _backends
from ecc_core._arrays import adapter_of, given_on_host, is_lazy
from ecc_core._arrays.origin import Origin, origin_of
from ecc_core._request.filtration import filtration_of
from ecc_core._request.image import check_image_dtype, spatial_axes
from ecc_core._request.thresholds import parse_thresholds
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
    origin, parts = _unwrap(shards)
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    filtration = filtration_of(len(shape), connectivity, superlevel, nan)
    levels = parse_thresholds(given_on_host(thresholds), range, no_exact="")
    parts = [part for part in parts if 0 not in part.shape]

    def find_range() -> tuple[Any, Any]:
        find = origin.backend().value_range
        bounds = (find(part[None], filtration) for part in parts)
        finite = [(low, high) for low, high in bounds if low is not None]
        if not finite:
            return None, None
        return min(low for low, _ in finite), max(high for _, high in finite)

    at = levels.over(find_range, shape)
    if not parts or at.size == 0:
        values = np.zeros(at.size, np.int64)
    else:
        values = _backends.shards(origin.device).curve(parts, at, filtration)
    at = origin.thresholds(thresholds, at)
    return EulerCurve(at, origin.wrap(values), **curve_facts(filtration))


def _unwrap(shards: Any) -> tuple[Origin, list[Any]]:
    """The origin of the first shard, and all of them as the backend there takes them."""
    if not isinstance(shards, list | tuple):
        raise TypeError(f"`shards` must be a list or tuple of arrays, got {type(shards).__name__}")
    if not shards:
        raise ValueError("`shards` must be at least one array, got none")
    for shard in shards:
        if is_lazy(shard) or isinstance(shard, np.ma.MaskedArray):
            raise TypeError(
                "`shards` must be NumPy, CuPy or torch arrays without masks, "
                f"got {type(shard).__name__} of {adapter_of(shard).name}"
            )
    origins = [origin_of(shard, "shards") for shard in shards]
    kinds = [(origin.adapter.name, origin.device.partition(":")[0]) for origin in origins]
    _check_equal("library and kind of memory", kinds, [origin.place for origin in origins])
    pairs = list(zip(origins, shards, strict=True))
    parts = [origin.unwrap(shard, "shards") for origin, shard in pairs]
    dtypes = [getattr(s, "dtype", p.dtype) for s, p in zip(shards, parts, strict=True)]
    _check_equal("dtype", dtypes, dtypes)
    check_image_dtype(origins[0].dtype(parts[0], "shards"), "shards")
    shapes = [tuple(part.shape) for part in parts]
    spatial_axes(shapes[0], None, "shards")
    sections = [(len(shape), shape[1:]) for shape in shapes]
    _check_equal("shape beyond the first axis", sections, shapes)
    return origins[0], parts


def _check_equal(what: str, found: Sequence[Any], shown: Sequence[Any]) -> None:
    if len(set(found)) > 1:
        different = ", ".join(map(str, dict.fromkeys(shown)))
        raise ValueError(f"`shards` must have one {what}, got {different}")
