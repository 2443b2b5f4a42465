"""Curves of images in host memory, computed by CUDA devices slab by slab."""

from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core import _backends
from ecc_core._arrays import given_on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._arrays.request import Request, layout_of
from ecc_core._request.boundary import Domain, check_boundary
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import check_image_dtype
from ecc_core._request.options import ImageOptions
from ecc_core._request.resources import check_devices, check_unused
from ecc_core._request.thresholds import Thresholds, parse_thresholds

TOGETHER = "together with `devices`"


def streamed_curve(
    image: Any,
    thresholds: Any,
    devices: Any,
    options: ImageOptions,
) -> tuple[Any, Any, Filtration]:
    """Return the thresholds, the curve of an image at them, and the filtration."""
    request = _request(image, thresholds, devices, options)
    stream, numbers = _streaming(devices)
    volume = request.images
    levels = request.levels
    filtration = request.filtration
    if levels.needs_range and volume.dtype.itemsize == 1:
        at, values = _of_all_bytes(
            stream, numbers, volume=volume, levels=levels, filtration=filtration
        )
    else:
        run = partial(stream.curve, volume, filtration=filtration, devices=numbers)
        at = levels.over(lambda: run(thresholds=None, ranged=True)[1], request.geometry.spatial)
        values = run(thresholds=at)[0]
    at = request.origin.thresholds(thresholds, at)
    return at, request.origin.wrap(values), filtration


def _request(image: Any, thresholds: Any, devices: Any, options: ImageOptions) -> Request:
    """Check the arguments as `Request.of` does, for an image that is read slab by slab."""
    masked = isinstance(image, np.ma.MaskedArray)
    check_unused(
        TOGETHER,
        mask=image.mask if masked else options.mask,
        axis=options.axis,
        direction=options.direction,
        direction_scale=options.direction_scale,
        spacing=options.spacing,
        workers=options.workers,
    )
    levels = parse_thresholds(given_on_host(thresholds), options.range, no_exact=f" {TOGETHER}")
    origin = origin_of(image)
    volume = image
    if not origin.on_host or origin.adapter.lazy:
        raise ValueError(
            f"`devices` must be None for an image that is not in host memory, got {devices!r} "
            f"for {origin.place}"
        )
    if hasattr(image, "shape") and isinstance(getattr(image, "dtype", None), np.dtype):
        check_image_dtype(image.dtype)  # The image is read slab by slab, not converted.
    else:
        volume = origin.image(image)
    shape = tuple(volume.shape)
    if len(shape) not in (2, 3):
        raise ValueError(f"`image` must have 2 or 3 axes {TOGETHER}, got shape {shape}")
    every_axis = tuple(range(len(shape)))
    geometry, filtration = layout_of(shape, options._replace(axis=every_axis))
    check_boundary(options.boundary, Domain(reason=TOGETHER))
    return Request(
        name="image",
        origin=origin,
        geometry=geometry,
        filtration=filtration,
        levels=levels,
        images=volume,
        mask=None,
        labels=None,
        workers=None,
    )


def _of_all_bytes(
    stream: ModuleType, devices: list[int], volume: Any, levels: Thresholds, filtration: Filtration
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return thresholds over the range of an 8-bit volume, and the curve at them.

    Reading the volume takes most of the time, so it is read once: the curve at all values of the
    dtype gives the curve at any thresholds.
    """
    span = np.iinfo(np.int8 if volume.dtype == np.int8 else np.uint8)
    every = np.arange(span.min, span.max + 1)
    values, bounds = stream.curve(volume, every, filtration, devices=devices, ranged=True)
    at = levels.over(lambda: bounds, tuple(volume.shape))
    if filtration.superlevel:
        return at, np.append(values, 0)[np.searchsorted(every, at, "left")]
    return at, np.append(0, values)[np.searchsorted(every, at, "right")]


def _streaming(devices: Any) -> tuple[ModuleType, list[int]]:
    """Return the module that streams host arrays to CUDA devices, and the device numbers."""
    numbers = check_devices(devices)
    _backends.need_cupy("`devices`")
    from ecc_core._backends.cuda import programs

    count = programs.count_devices()
    if max(numbers) >= count:
        raise ValueError(f"`devices` must be numbers below {count}, of CUDA devices, got {numbers}")
    from ecc_core._backends.cuda import stream

    return stream, numbers
