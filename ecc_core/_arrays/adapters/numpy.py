"""NumPy arrays, numbers and sequences."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.adapters.base import Adapter, is_brain_float, widened
from ecc_core._request.dtypes import object_in_words
from ecc_core._request.plain_numbers import refuse_masked


class NumPy(Adapter):
    """NumPy arrays and their subclasses, numbers and sequences."""

    name = "numpy"
    chunks = True

    def supports(self, array: Any) -> bool:
        return isinstance(array, np.ndarray | np.generic | list | tuple | bool | int | float)

    def layout(self, array: Any) -> Hashable | None:
        if type(array) is not np.ndarray or is_brain_float(array):
            return None
        return array.shape, array.strides, array.dtype, array.flags.aligned

    def dtype(self, array: Any, name: str) -> np.dtype[Any]:
        return self.unwrap(array, name).dtype

    def unwrap(self, array: Any, name: str) -> NDArray[Any]:
        if isinstance(array, list | tuple) and array and getattr(array[0], "ndim", 0) > 1:
            raise TypeError(
                f"`{name}` must be one array, got a {type(array).__name__} of {len(array)}; pass "
                "them one by one, or stack them and name the spatial axes in `axis`"
            )
        refuse_masked(array, name)
        try:
            found = widened(np.asarray(array))
        except ValueError:
            raise ValueError(f"`{name}` must be an array, got a ragged sequence") from None
        except TypeError:
            raise TypeError(
                f"`{name}` must be an array, got {object_in_words(array, name)}"
            ) from None
        is_array = isinstance(array, list | tuple) or hasattr(type(array), "__array__")
        if found.dtype.kind in "OSU" and not is_array:
            raise TypeError(f"`{name}` must be an array, got {object_in_words(array, name)}")
        return found

    def place(self, array: Any) -> str:
        return self.name
