"""Curves of images in parts, such as those that several devices hold of a volume."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _checks, _dispatch
from ecc_core._request.filtration import Filtration
from ecc_core._types import DeviceT, ShardOptions
from ecc_core.results import EulerCurve, curve_facts

__all__ = ["euler_curve_shards"]

Array = NDArray[Any]


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
    """Euler characteristic curve of an image in parts along its first axis, where they are.

    Parameters
    ----------
    shards : sequence of arrays of 1 to 3 axes
        The image is ``concatenate(shards)``: they follow each other along the first axis, do not
        overlap, and have one dtype and the same lengths along the other axes. They are NumPy
        arrays, CuPy arrays, or torch tensors, all in host memory or all on CUDA devices: one on
        each, several on one, or all on the same.
    thresholds : int or array, default 256
        As for :func:`ecc_core.euler_curve`, but not "exact".
    range, connectivity, superlevel, nan
        As for :func:`ecc_core.euler_curve`.

    Returns
    -------
    EulerCurve
        ``thresholds`` (n,) and ``values`` (n,), int64, those of the whole image. They are of the
        shards' library, on the device of the first shard.

    Raises
    ------
    TypeError
        If `shards` are no sequence, or as :func:`ecc_core.euler_curve`.
    ValueError
        If there are none, if they do not fit together, or as :func:`ecc_core.euler_curve`.

    Notes
    -----
    Each device counts its shard. Between neighbours one slice is copied from device to device, and
    the pair of slices that meet is counted meanwhile. Work is queued on the current stream of each
    device, and nothing waits for a device where :func:`ecc_core.euler_curve` would not.

    Examples
    --------
    >>> import numpy as np, ecc_core as ecc
    >>> image = np.array([[0, 0, 0], [0, 2, 0], [0, 0, 0]])
    >>> ecc.euler_curve_shards([image[:2], image[2:]], [0, 1, 2]).values
    array([0, 0, 1])

    With CuPy arrays on two devices, both of which count at the same time::

        parts = []
        for device, half in enumerate(np.array_split(volume, 2)):
            with cupy.cuda.Device(device):
                parts.append(cupy.asarray(half))
        t, chi = ecc.euler_curve_shards(parts, 256, range=(0, 255))  # on device 0
    """
    home, parts = _adopt(shards)
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    given = _checks.check_connectivity(connectivity, len(shape))
    _checks.check_nan(nan)
    filtration = Filtration(len(shape), given, bool(superlevel), nan)
    if isinstance(thresholds, str):
        raise ValueError(f"`thresholds` must be an int or an array, got {thresholds!r}")
    parts = [part for part in parts if 0 not in part.shape]
    find_range = partial(_range_of, home, parts, filtration)
    at, host = home.thresholds(thresholds, range, shape, find_range)
    if not parts or host.size == 0:
        zeros = home.give(np.zeros(host.size, np.int64))
        return EulerCurve(at, zeros, **curve_facts(filtration))
    values = home.shards().curve(parts, host, filtration)
    return EulerCurve(at, home.give(values), **curve_facts(filtration))


def _adopt(shards: Any) -> tuple[_dispatch.Home, list[Any]]:
    """Where the first shard lives, and all of them as the backend there reads them."""
    if not isinstance(shards, (list, tuple)):
        raise TypeError(f"`shards` must be a list or tuple of arrays, got {type(shards).__name__}")
    if not shards:
        raise ValueError("`shards` must be at least one array, got none")
    for shard in shards:
        if _dispatch.is_dask(shard) or isinstance(shard, np.ma.MaskedArray):
            raise TypeError(
                "`shards` must be NumPy, CuPy or torch arrays without masks, "
                f"got {type(shard).__name__} of {type(shard).__module__.partition('.')[0]}"
            )
    homes = [_dispatch.Home(shard) for shard in shards]
    pairs = zip(homes, shards, strict=True)
    parts = [s if home.on_device else home.take(s, "shards") for home, s in pairs]
    kinds = [(home.library, home.on_device) for home in homes]
    _check_equal("library and kind of memory", kinds, [home.place for home in homes])
    dtypes = [getattr(s, "dtype", p.dtype) for s, p in zip(shards, parts, strict=True)]
    _check_equal("dtype", dtypes, dtypes)
    _checks.check_image_dtype(_dispatch.dtype_of(parts[0]), "shards")
    shapes = [tuple(part.shape) for part in parts]
    if not 1 <= len(shapes[0]) <= 3:
        raise ValueError(f"`shards` must have 1 to 3 axes, got shape {shapes[0]}")
    sections = [(len(shape), shape[1:]) for shape in shapes]
    _check_equal("shape beyond the first axis", sections, shapes)
    return homes[0], parts


def _check_equal(what: str, found: Sequence[Any], shown: Sequence[Any]) -> None:
    if len(set(found)) > 1:
        different = ", ".join(map(str, dict.fromkeys(shown)))
        raise ValueError(f"`shards` must have one {what}, got {different}")


def _range_of(
    home: _dispatch.Home, parts: Sequence[Any], filtration: Filtration
) -> tuple[Any, Any]:
    """Smallest and largest finite value; (None, None) where there is none."""
    find = home.backend().value_range
    found = [find(part[None], filtration) for part in parts]
    finite = [bounds for bounds in found if bounds[0] is not None]
    if not finite:
        return None, None
    return min(low for low, _ in finite), max(high for _, high in finite)
