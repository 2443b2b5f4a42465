"""Array libraries: one adapter each, found by the array."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapters.array_likes import ArrayLikes
from ecc_core._arrays.adapters.base import Adapter, widened
from ecc_core._arrays.adapters.cupy import CuPy
from ecc_core._arrays.adapters.dask import Dask
from ecc_core._arrays.adapters.jax import JAX
from ecc_core._arrays.adapters.numpy import NumPy
from ecc_core._arrays.adapters.torch import Torch

__all__ = [
    "HOST_TYPES",
    "Adapter",
    "adapter_of",
    "all_on_host",
    "given_on_host",
    "is_lazy",
    "on_host",
    "register",
]

HOST_TYPES = (int, float, str, list, tuple, type(None))
_adapters: list[Adapter] = [NumPy(), Torch(), CuPy(), Dask(), JAX(), ArrayLikes()]
_by_type: dict[type, Adapter] = {}
"""The adapters that were found, by the type of array. Array-likes are searched for every time."""


def register(adapter: Adapter) -> None:
    """Add an adapter. It takes precedence over those added before."""
    _adapters.insert(0, adapter)
    _by_type.clear()


def adapter_of(array: Any) -> Adapter:
    known = _by_type.get(type(array))
    if known is not None:
        return known
    found = next(adapter for adapter in _adapters if adapter.supports(array))
    if not isinstance(found, ArrayLikes):
        _by_type[type(array)] = found
    return found


def is_lazy(array: Any) -> bool:
    """Whether an array is computed block by block."""
    return adapter_of(array).lazy


def on_host(array: Any) -> NDArray[Any]:
    """Return a small array as a NumPy array, copied from its device if necessary."""
    return adapter_of(array).on_host(array)


def all_on_host(arrays: Sequence[Any]) -> list[NDArray[Any]]:
    """Return arrays as NumPy arrays. Lazy ones are computed together, in one pass."""
    lazy = [array for array in arrays if is_lazy(array)]
    if lazy:
        ready = iter(adapter_of(lazy[0]).computed(lazy))
        arrays = [next(ready) if is_lazy(array) else array for array in arrays]
    return [on_host(array) for array in arrays]


def given_on_host(given: Any) -> Any:
    """Return an argument, as a NumPy array if it is an array.

    Numbers, sequences and text are returned unchanged. The result may share memory with the
    argument and must not be written to.
    """
    if isinstance(given, np.ndarray):
        return widened(given)
    return given if isinstance(given, HOST_TYPES) else adapter_of(given).read_once(given)
