"""The device of curves: a CUDA device if it and CuPy are available, otherwise the CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["device_name", "to_device", "to_host"]


@cache
def device_name() -> str:
    """Return the name of the CUDA device, or "" if there is none."""
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount() == 0:
            return ""
        name: bytes = cupy.cuda.runtime.getDeviceProperties(0)["name"]
    except Exception:  # CuPy without a driver, or a driver without a device
        return ""
    return name.decode()


def to_device(array: NDArray[Any]) -> Any:
    """Return the array on the CUDA device, or unchanged if there is none."""
    if not device_name():
        return array
    import cupy

    return cupy.asarray(array)


def to_host(array: Any) -> NDArray[Any]:
    """Return the array as a NumPy array."""
    return array if isinstance(array, np.ndarray) else np.asarray(array.get())
