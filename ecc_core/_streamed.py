"""Curves of images in host memory, computed by CUDA devices slab by slab."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ecc_core import _checks, _dispatch
from ecc_core._request.filtration import Filtration
from ecc_core.results import EulerCurve, curve_facts

__all__ = ["streamed_curve"]


def streamed_curve(
    image: Any,
    thresholds: Any,
    bounds: tuple[float, float] | None,
    devices: Any,
    alone: dict[str, Any],
    *,
    connectivity: int | None,
    superlevel: bool,
    nan: str,
) -> EulerCurve:
    """The curve of an image. The arguments `alone` must be None."""
    if isinstance(image, np.ma.MaskedArray):
        alone = {**alone, "mask": image.mask}
    for name, value in alone.items():
        if value is not None:
            raise ValueError(
                f"`{name}` must be None together with `devices`, got {type(value).__name__}"
            )
    if isinstance(thresholds, str):
        raise ValueError(
            f"`thresholds` must be an int or an array together with `devices`, got {thresholds!r}"
        )
    home, volume = _adopt(image, devices)
    shape = tuple(volume.shape)
    if len(shape) not in (2, 3):
        raise ValueError(
            f"`image` must have 2 or 3 axes together with `devices`, got shape {shape}"
        )
    connectivity = _checks.check_connectivity(connectivity, len(shape))
    _checks.check_nan(nan)
    stream, numbers = _dispatch.streaming(devices)
    filtration = Filtration(len(shape), connectivity, superlevel, nan)
    find_range = partial(stream.value_range, volume, filtration, devices=numbers)
    at, host = home.thresholds(thresholds, bounds, shape, find_range)
    values = stream.curve(volume, host, filtration, devices=numbers)
    return EulerCurve(at, home.give(values), **curve_facts(filtration))


def _adopt(image: Any, devices: Any) -> tuple[_dispatch.Home, Any]:
    """Where an image on the host lives, and what can be read slab by slab."""
    home = _dispatch.Home(image)
    if home.on_device or _dispatch.is_dask(image):
        place = home.place if home.on_device else "a dask array"
        raise ValueError(
            f"`devices` must be None for an image that is not in host memory, got {devices!r} "
            f"for {place}"
        )
    stored = home.library == "numpy" and all(hasattr(image, name) for name in ("shape", "dtype"))
    volume = image if stored else home.take(image, "image")
    _checks.check_image_dtype(np.dtype(volume.dtype))
    return home, volume
