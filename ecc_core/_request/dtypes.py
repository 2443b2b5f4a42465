"""Names of dtypes of all array libraries, and descriptions of wrong arguments for messages."""

from os import PathLike
from typing import Any

import numpy as np

READERS = {
    "points": "read_mesh",
    "simplices": "read_mesh",
    "values": "read_point_values",
    "weights": "read_point_values",
}
"""The functions of `ecc_core.io` that read these arguments; `read_image` reads all others."""
CONVERSIONS = {
    "SimpleITK": "pass what `SimpleITK.GetArrayFromImage` returns",
    "napari": "pass its `data`",
    "scipy": "pass what its method `toarray` returns",
    "xarray": "pass one of its variables",
}
"""For objects of other packages that are no arrays, how to convert them."""
BRAIN_FLOAT = "bfloat16"
"""The name of a dtype of torch, which ml_dtypes adds to NumPy; float32 holds its values."""


def name_of(dtype: Any) -> str:
    """Return the name of a dtype of any array library: "float32" for torch.float32 and for >f4."""
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


def holder_of(name: str) -> np.dtype[Any]:
    """Return the built-in dtype of NumPy that holds the values of the dtype of this name."""
    return np.dtype(np.float32 if name == BRAIN_FLOAT else name)


def dtype_in_words(dtype: Any) -> str:
    """Return the name of a dtype; with advice for one that another package adds to NumPy."""
    name = str(dtype).removeprefix("torch.")
    added = getattr(dtype, "kind", "") == "V" and dtype.isbuiltin == 2 and name != BRAIN_FLOAT
    return f"{name}, which is none of NumPy's dtypes: convert it with `astype`" if added else name


def object_in_words(given: Any, name: str) -> str:
    """Describe an argument that is no array, with advice on how to convert it or read a file."""
    if given is None:
        return "None"
    is_path = isinstance(given, str | PathLike)
    kind = type(given)
    shown = repr(given) if is_path else f"an object of type {kind.__module__}.{kind.__qualname__}"
    reading = f"`ecc_core.io.{READERS.get(name, 'read_image')}` reads files"
    return f"{shown}; {CONVERSIONS.get(kind.__module__.partition('.')[0], reading)}"
