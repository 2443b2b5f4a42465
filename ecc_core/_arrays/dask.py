"""dask arrays: computed later, block by block."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapter import Adapter


class Dask(Adapter):
    """dask arrays, which :mod:`ecc_core._dask` computes."""

    name = "dask"
    lazy = True

    def supports(self, array: Any) -> bool:
        dask = sys.modules.get("dask.array")
        return dask is not None and isinstance(array, dask.Array)

    def device(self, array: Any) -> str:
        return "cpu"

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        dtype: np.dtype[Any] = array.dtype
        return dtype

    def unwrap(self, array: Any, name: str) -> Any:
        raise TypeError(f"`{name}` must be an array in memory, got a dask array (compute it first)")

    def wrap(self, result: Any, like: Any) -> Any:
        return result

    def on_host(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)

    def place(self, array: Any) -> str:
        return "a dask array"
