"""The functions of the array API standard, for arrays of libraries that have it in another form."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ecc_core._request.dtypes import holder_of, name_of


class Standard(NamedTuple):
    """How functions of the array API standard are called for the arrays of a library."""

    namespace: Any
    """Has the functions of the standard, version 2023.12, that this folder calls."""
    exact: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Within this context there are integers of 64 bits."""


class NumPyFunctions:
    """The functions of NumPy, which has all of them since version 2.1 only."""

    concat = staticmethod(np.concatenate)
    unique_values = staticmethod(np.unique)
    bool = np.bool_

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def astype(array: Any, dtype: Any) -> Any:
        return array.astype(dtype, copy=False)

    @staticmethod
    def asarray(array: Any, *, device: Any = None) -> Any:  # noqa: ARG004
        return np.asarray(array)


class TorchFunctions:
    """The functions of torch, some of which have other names or arguments than in the standard."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.torch, name)

    def astype(self, array: Any, dtype: Any) -> Any:
        return array.to(dtype)

    def asarray(self, array: Any, *, device: Any = None) -> Any:
        # torch warns of arrays that are read-only, so it is given a copy.
        return self.torch.from_numpy(np.array(array)).to(device)

    def sort(self, array: Any) -> Any:
        return self.torch.sort(array).values

    def flip(self, array: Any, *, axis: int) -> Any:
        return self.torch.flip(array, (axis,))

    def unique_values(self, array: Any) -> Any:
        return self.torch.unique(array)

    def searchsorted(self, known: Any, array: Any, *, side: str = "left") -> Any:
        return self.torch.searchsorted(known.contiguous(), array.contiguous(), side=side)

    def take(self, array: Any, indices: Any, *, axis: int) -> Any:
        return self.torch.index_select(array, axis, indices)


_known: dict[str, Standard] = {"numpy": Standard(NumPyFunctions())}
"""The key is the package that defines the type of the arrays."""


def make_known(package: str, standard: Standard) -> None:
    """Let arrays of the types of a package be computed with."""
    _known[package] = standard


def standard_of(array: Any) -> Standard:
    """Return how an array is computed with: as its library has said, or as the array says."""
    known = _known.get(type(array).__module__.partition(".")[0])
    return Standard(array.__array_namespace__()) if known is None else known


def dtype_of(array: Any) -> np.dtype[Any]:
    """Return the NumPy dtype that holds the values, in the byte order of the machine."""
    return holder_of(name_of(array.dtype))


def like(array: np.ndarray[Any, Any], other: Any) -> Any:
    """Return a NumPy array as an array of a library, on the device of another array."""
    return standard_of(other).namespace.asarray(array, device=getattr(other, "device", None))
