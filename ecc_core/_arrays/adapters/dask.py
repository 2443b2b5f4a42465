"""Arrays of dask."""

import sys
from collections.abc import Sequence
from typing import Any

from ecc_core._arrays.adapters.base import Adapter


class Dask(Adapter):
    """dask arrays, which :mod:`ecc_core._dask` computes."""

    name = "dask"
    lazy = True

    def supports(self, array: Any) -> bool:
        dask = sys.modules.get("dask.array")
        return dask is not None and isinstance(array, dask.Array)

    def unwrap(self, array: Any, name: str) -> Any:
        raise TypeError(f"`{name}` must be an array in memory, got a dask array (compute it first)")

    def computed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        found: Sequence[Any] = sys.modules["dask"].compute(*arrays)
        return found

    def place(self, array: Any) -> str:
        return "a dask array"
