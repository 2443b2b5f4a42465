"""NumPy arrays, and array-likes of the host that no other adapter knows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapter import Adapter
from ecc_core.errors import BackendError

HOST_DEVICES = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
CUDA = 2  # kDLCUDA
MOST_BYTES = 1 << 20  # of arrays for which preparing a call pays


class NumPy(Adapter):
    """NumPy arrays and their subclasses, numbers and sequences."""

    name = "numpy"
    chunks = True

    def supports(self, array: Any) -> bool:
        return isinstance(array, np.ndarray | np.generic | list | tuple | bool | int | float)

    def device(self, array: Any) -> str:
        return "cpu"

    def layout(self, array: Any) -> Hashable | None:
        if type(array) is not np.ndarray or array.nbytes > MOST_BYTES:
            return None
        return array.shape, array.strides, array.dtype

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.unwrap(array, name).dtype
        return dtype

    def unwrap(self, array: Any, name: str) -> NDArray[Any]:
        if isinstance(array, list | tuple) and array and getattr(array[0], "ndim", 0) > 1:
            raise TypeError(
                f"`{name}` must be one array, got a {type(array).__name__} of {len(array)}; pass "
                "them one by one, or stack them and name the spatial axes in `axis`"
            )
        try:
            return np.asarray(array)
        except ValueError:
            raise ValueError(f"`{name}` must be an array, got a ragged sequence") from None

    def wrap(self, result: Any, like: Any) -> Any:
        return result

    def on_host(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)

    def place(self, array: Any) -> str:
        return self.name


class ArrayLikes(NumPy):
    """Arrays of other libraries in host memory, which are not copied.

    Results are arrays of the library if it follows the array API standard.
    """

    name = "array-like"
    chunks = False

    def supports(self, array: Any) -> bool:
        return True

    def device(self, array: Any) -> str:
        find = getattr(type(array), "__dlpack_device__", None)
        if find is not None:
            kind, number = find(array)
            if kind in HOST_DEVICES:
                return "cpu"
            return f"CUDA device {number}" if kind == CUDA else f"DLPack device {int(kind)}"
        if hasattr(type(array), "__cuda_array_interface__"):
            return "a CUDA device"
        device = getattr(array, "device", None)
        on_host = not isinstance(device, str) or "cpu" in device.lower()
        return "cpu" if on_host else str(device)

    def unwrap(self, array: Any, name: str) -> NDArray[Any]:
        if hasattr(type(array), "__dlpack__") and not hasattr(type(array), "__array__"):
            return np.from_dlpack(array)
        return super().unwrap(array, name)

    def wrap(self, result: Any, like: Any) -> Any:
        if not hasattr(type(like), "__array_namespace__"):
            return result
        xp = like.__array_namespace__()
        wrapped = xp.asarray(result)
        if not np.array_equal(np.asarray(wrapped), result):
            raise BackendError(
                f"{xp.__name__} does not hold the results' {result.dtype} exactly as "
                f"{wrapped.dtype} (let it use 64-bit types, or pass NumPy arrays)"
            )
        return wrapped

    def on_host(self, array: Any) -> NDArray[Any]:
        if self.device(array) != "cpu":
            raise BackendError(f"arrays must be in host memory, got one {self.place(array)}")
        return self.unwrap(array, "array")

    def place(self, array: Any) -> str:
        kind = type(array)
        return f"{kind.__module__}.{kind.__qualname__} on {self.device(array)}"
