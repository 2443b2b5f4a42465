"""What an adapter of an array library does."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Adapter:
    """Converts between the arrays of a library and those that a backend takes and returns.

    Attributes
    ----------
    name : str
        Name of the library in messages.
    lazy : bool
        Whether arrays are computed later, block by block.
    chunks : bool
        Whether NumPy's functions take the arrays, so that they may be the chunks of a dask array.
    """

    name = ""
    lazy = False
    chunks = False

    def supports(self, array: Any) -> bool:
        """Whether an object is an array of the library. Must not import the library."""
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return "cpu" for host memory, or a kind of device with a number such as "cuda:0"."""
        raise NotImplementedError

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        """Return the NumPy dtype that holds the values. Raises TypeError if there is none."""
        raise NotImplementedError

    def layout(self, array: Any) -> Hashable | None:
        """Return all that plans depend on, so nothing about values; None if there are none."""
        return None

    def unwrap(self, array: Any, name: str) -> Any:
        """Return what the backend of the device takes, without a copy: on "cpu", a NumPy array."""
        raise NotImplementedError

    def wrap(self, result: Any, like: Any) -> Any:
        """Return a result of the backend, or a NumPy array, as an array on the device of `like`."""
        raise NotImplementedError

    def on_host(self, array: Any) -> NDArray[Any]:
        """Return a small array as a NumPy array, copied from its device if necessary."""
        raise NotImplementedError

    def read_once(self, array: Any) -> NDArray[Any]:
        """`on_host`, without a copy if the library says that the array has not changed since."""
        return self.on_host(array)

    def as_integers(self, array: Any) -> Any:
        """An array of whole numbers as int64."""
        return array.astype(np.int64)

    def threads(self) -> int | None:
        """Return the library's limit on the number of threads on the host, or None."""
        return None

    def place(self, array: Any) -> str:
        """Return the library and the device, for messages."""
        return f"{self.name} on {self.device(array)}"
