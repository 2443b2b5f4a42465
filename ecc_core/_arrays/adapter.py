"""What an adapter of an array library does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Adapter"]


class Adapter:
    """One array library: its arrays as a backend takes them, and results as its arrays.

    Attributes
    ----------
    name : str
        As messages call the library.
    lazy : bool
        Whether arrays are computed later, block by block.
    chunks : bool
        Whether NumPy's functions take the arrays, so that they may be the chunks of a dask array.
    """

    name = ""
    lazy = False
    chunks = False

    def supports(self, array: Any) -> bool:
        """Whether this is an array of the library. Must not import it."""
        raise NotImplementedError

    def device(self, array: Any) -> str:
        """Return "cpu" for host memory, or a kind of device with a number such as "cuda:0"."""
        raise NotImplementedError

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        """The NumPy dtype that holds the values; TypeError where NumPy has none."""
        raise NotImplementedError

    def unwrap(self, array: Any, name: str) -> Any:
        """What the backend of the device takes, without a copy; on "cpu" a NumPy array."""
        raise NotImplementedError

    def wrap(self, result: Any, like: Any) -> Any:
        """A result of the backend, or a NumPy array, as an array on the device of `like`."""
        raise NotImplementedError

    def on_host(self, array: Any) -> NDArray[Any]:
        """A NumPy array of a small array, which is copied from its device."""
        raise NotImplementedError

    def read_once(self, array: Any) -> NDArray[Any]:
        """`on_host`, without a copy if the library says that the array has not changed since."""
        return self.on_host(array)

    def as_integers(self, array: Any) -> Any:
        """An array of whole numbers as int64."""
        return array.astype(np.int64)

    def threads(self) -> int | None:
        """The most threads that the library wants to be used on the host, if it says so."""
        return None

    def place(self, array: Any) -> str:
        """Library and device, for messages."""
        return f"{self.name} on {self.device(array)}"
