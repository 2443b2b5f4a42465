"""What all adapters of array libraries have."""

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

    name = ""  # name of the library in messages
    reads_early = False  # whether `read_early` is faster than `read_once`
    lazy = False  # whether arrays are computed later, block by block
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
        """Return all that plans depend on, so nothing about values; None if there are none."""
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
        """Return what lazy arrays are when all of them are computed in one pass."""
        return arrays

    def read_once(self, array: Any) -> NDArray[Any]:
        """`on_host`, without a copy if the library says that the array has not changed since."""
        return self.on_host(array)

    def read_early(self, array: Any) -> tuple[NDArray[Any], Callable[[], bool] | None]:
        """Return what an array probably holds, and a function that tells whether it does.

        The function must be called once, since it may have to wait for a device. If it returns
        False, `read_once` reads the array again. It is None if the array certainly holds that.
        """
        return self.read_once(array), None

    def as_integers(self, array: Any) -> Any:
        """An array of whole numbers as int64."""
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
        """Return an array on the device of another one, a copy if it is elsewhere."""
        return array

    def standard(self, array: Any) -> Standard | None:
        """Return the functions of the array API standard for arrays on a device without kernels.

        None if the library does not follow the standard.
        """
        return None
