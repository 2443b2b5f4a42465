"""Arrays of CuPy."""

import sys
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import NDArray

from ecc_core._arrays.adapters.base import Adapter


class CuPy(Adapter):
    """Arrays on CUDA devices, which the backend takes as they are."""

    name = "cupy"
    reads_early = True
    chunks = True

    def supports(self, array: Any) -> bool:
        cupy = sys.modules.get("cupy")
        return cupy is not None and isinstance(array, cupy.ndarray)

    def device(self, array: Any) -> str:
        return f"cuda:{array.device.id}"

    def layout(self, array: Any) -> Hashable:
        pointer = array.data
        return array.shape, array.strides, array.dtype, pointer.device_id, pointer.ptr % 16

    def wrap(self, result: Any, like: Any) -> Any:
        import cupy

        if isinstance(result, cupy.ndarray):
            return result
        from ecc_core._backends.cuda.arrays import device_of, on_device

        with device_of(like):
            return on_device(result)

    def current(self, array: Any) -> AbstractContextManager[Any]:
        device: AbstractContextManager[Any] = array.device
        return device

    def beside(self, array: Any, other: Any) -> Any:
        if array.device.id == other.device.id:
            return array
        from ecc_core._backends.cuda.arrays import copied_to

        return copied_to(array, other.device)

    def on_host(self, array: Any) -> NDArray[Any]:
        from ecc_core._backends.cuda.arrays import on_host

        return on_host(array)

    def read_early(self, array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
        from ecc_core._backends.cuda.read_early import read_early

        return read_early(array)
