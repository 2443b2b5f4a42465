"""CuPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapter import Adapter


class CuPy(Adapter):
    """Arrays on CUDA devices, which the backend takes as they are."""

    name = "cupy"
    chunks = True

    def supports(self, array: Any) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(array, cupy.ndarray)

    def device(self, array: Any) -> str:
        return f"cuda:{array.device.id}"

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        dtype: np.dtype[Any] = array.dtype
        return dtype

    def layout(self, array: Any) -> Hashable:
        pointer = array.data
        return array.shape, array.strides, array.dtype, pointer.device_id, pointer.ptr % 16

    def unwrap(self, array: Any, name: str) -> Any:
        return array

    def wrap(self, result: Any, like: Any) -> Any:
        import cupy

        if isinstance(result, cupy.ndarray):
            return result
        from ecc_core._backends.cuda.arrays import device_of, on_device

        with device_of(like):
            return on_device(result)

    def on_host(self, array: Any) -> NDArray[Any]:
        from ecc_core._backends.cuda.arrays import on_host

        return on_host(array)
