"""Arrays of libraries that have no adapter of their own."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapters.numpy import NumPy
from ecc_core._backends.plain.namespaces import Standard, dtype_of
from ecc_core._request.dtypes import object_in_words
from ecc_core.errors import BackendError

HOST_DEVICES = (1, 3)
"""DLPack's kDLCPU and kDLCUDAHost."""
CUDA = 2
"""DLPack's kDLCUDA."""
PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")


def _has_only_dlpack(array: Any) -> bool:
    """Whether an array becomes a NumPy array by DLPack only."""
    return hasattr(type(array), "__dlpack__") and not hasattr(type(array), "__array__")


def check_array_like(array: Any, name: str) -> None:
    """Refuse an object that neither says how it becomes an array nor is a number or a sequence.

    NumPy takes every object with a length and items for a sequence: it reads an image of SimpleITK
    as one row of all its pixels.
    """
    if isinstance(array, Sequence | Number):
        return
    kind = type(array)
    if any(hasattr(kind, protocol) for protocol in PROTOCOLS):
        return
    try:
        memoryview(array)
    except TypeError:
        raise TypeError(f"`{name}` must be an array, got {object_in_words(array, name)}") from None


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

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        return super().dtype(array, name) if self.device(array) == "cpu" else dtype_of(array)

    def unwrap(self, array: Any, name: str) -> Any:
        # An array on another device follows the standard, so that its own library computes.
        if self.device(array) != "cpu":
            return array
        if _has_only_dlpack(array):
            return np.from_dlpack(array)
        check_array_like(array, name)
        return super().unwrap(array, name)

    def wrap(self, result: Any, like: Any) -> Any:
        if not hasattr(type(like), "__array_namespace__"):
            return result
        xp = like.__array_namespace__()
        if self.device(like) != "cpu":
            if isinstance(result, np.ndarray):
                return xp.asarray(result, device=like.device)
            return result
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
        if _has_only_dlpack(array):
            found: NDArray[Any] = np.from_dlpack(array)
            return found
        return super().on_host(array)

    def place(self, array: Any) -> str:
        kind = type(array)
        return f"{kind.__module__}.{kind.__qualname__} on {self.device(array)}"

    def standard(self, array: Any) -> Standard | None:
        if not hasattr(type(array), "__array_namespace__"):
            return None
        return Standard(array.__array_namespace__())
