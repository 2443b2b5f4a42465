"""The base class of adapters of array libraries."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.plain.namespaces import Standard
from ecc_core._request.dtypes import BRAIN_FLOAT


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of NumPy's own types: bfloat16 becomes float32, exactly."""
    return array.astype(np.float32) if is_brain_float(array) else array


def is_brain_float(array: Any) -> bool:
    """Whether a NumPy or dask array has a dtype of two bytes that only ml_dtypes knows."""
    dtype: np.dtype[Any] = array.dtype
    return dtype.itemsize == 2 and dtype.name == BRAIN_FLOAT


class Adapter:
    """Base of adapters. By default arrays are like those of NumPy, in host memory."""

    name = ""
    """The name of the library in messages."""
    reads_early = False
    """Whether `read_early` is faster than `read_once`."""
    lazy = False
    """Whether arrays are computed later, block by block."""
    chunks = False
    """Whether NumPy's functions take the arrays, so that they may be the chunks of a dask array."""

    def supports(self, array: Any) -> bool:
        """Whether an object is an array of the library. Must not import the library."""
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return "cpu" for host memory, or a kind of device with a number such as "cuda:0"."""
        return "cpu"

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        """Return the NumPy dtype that holds the values. Raises TypeError if there is none."""
        found: np.dtype[Any] = array.dtype
        return found

    def layout(self, array: Any) -> Hashable | None:
        """Return what plans of calls depend on: shape, dtype and memory, but no values.

        None if calls with the array are not planned.
        """
        return None

    def unwrap(self, array: Any, name: str) -> Any:
        """Return what the backend of the device takes, without a copy: on "cpu", a NumPy array."""
        return array

    def wrap(self, result: Any, like: Any) -> Any:
        """Return a result of the backend, or a NumPy array, as an array on the device of `like`."""
        return result

    def on_host(self, array: Any) -> NDArray[Any]:
        """Return a small array as a NumPy array, copied from its device if necessary."""
        return widened(np.asarray(array))

    def computed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return lazy arrays computed, all in one pass."""
        return arrays

    def read_once(self, array: Any) -> NDArray[Any]:
        """Return what `on_host` does, without a copy if the array is unchanged since the last."""
        return self.on_host(array)

    def read_early(self, array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
        """Return the values that an array probably has, and a function that confirms them.

        The function must be called once, and may wait for a device. If it returns False, the
        array must be read again by `read_once`. It is None if the values are certain.
        """
        return self.read_once(array), None

    def as_integers(self, array: Any) -> Any:
        """Return an array of whole numbers as int64."""
        return array.astype(np.int64)

    def threads(self) -> int | None:
        """Return the library's limit on the number of threads on the host, or None."""
        return None

    def place(self, array: Any) -> str:
        """Return the library and the device, for messages."""
        return f"{self.name} on {self.device(array)}"

    def current(self, array: Any) -> AbstractContextManager[Any]:
        """Return a context in which the device of an array is the library's current one."""
        return nullcontext()

    def beside(self, array: Any, other: Any) -> Any:
        """Return an array on the device of `other`, copied if it is on another."""
        return array

    def standard(self, array: Any) -> Standard | None:
        """Return the functions of the array API standard for arrays on a device without kernels.

        None if the library does not follow the standard.
        """
        return None
