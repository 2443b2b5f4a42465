"""Variants of kernels that do not depend on thresholds: type of samples, order, NaN and mask."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._request.filtration import Filtration

# The type of a sample in the kernels.
ELEMENTS = {
    "bool": "unsigned char",  # any but 0 is true
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "uint64": "unsigned long long",
    "int64": "long long",
    "float16": "Half",
    "bfloat16": "BFloat",
    "float32": "float",
    "float64": "double",
}
ITEM_BYTES = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in ELEMENTS}
NAN_NONE, NAN_REPORT, NAN_OMIT = range(3)
WIDE = ("uint32", "int32", "float64", "int64", "uint64")  # types of keys that are not float32


class Variant(NamedTuple):
    """The variant of a kernel, apart from its thresholds."""

    cubes: bool
    superlevel: bool
    nan: int
    element: str
    masked: bool

    def options(self) -> dict[str, Any]:
        """Return the macros of options.cuh that every kernel needs."""
        return {
            "ELEMENT": ELEMENTS[self.element],
            "DOWN": int(self.cubes != self.superlevel),
            "CUBES": int(self.cubes),
            "SUPER": int(self.superlevel),
            "NAN": self.nan,
            "MASK": int(self.masked),
            "VECTOR": 0,
            "BINS": 1,
            "SHARED_TABLE": 0,
            "BATCH": 0,
        }


def variant_of(filtration: Filtration, element: str, mask: Any = None) -> Variant:
    """Return the variant for a filtration, in which integers have no NaN.

    The element is the type of values that are compared with thresholds: float64 along a direction.
    """
    element = element if filtration.direction is None else "float64"
    policy = NAN_OMIT if filtration.nan == "omit" else NAN_REPORT
    nan = policy if "float" in element else NAN_NONE
    return Variant(filtration.cubes, filtration.superlevel, nan, element, mask is not None)
