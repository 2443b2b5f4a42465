"""Checks that arrays of NumPy have neither masked entries nor a unit."""

import sys
from typing import Any, TypeGuard

import numpy as np


def is_masked_array(given: Any) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    """Whether an object is an array of ``numpy.ma``.

    The module is not imported for that, which would take a twentieth of the first call of a
    process: where nobody has imported it, there are no such arrays.
    """
    return "numpy.ma" in sys.modules and isinstance(given, np.ma.MaskedArray)


def refuse_masked(given: Any, name: str) -> None:
    """Refuse an array of NumPy with masked entries, which have no value."""
    if is_masked_array(given) and np.ma.is_masked(given):
        count = int(np.count_nonzero(given.mask))
        raise ValueError(f"`{name}` must have no masked entries, got {count}")


def refuse_unit(given: Any, name: str) -> None:
    """Refuse a quantity of astropy, whose unit may differ from that of the image."""
    unit = getattr(given, "unit", None)
    if unit is not None and isinstance(given, np.ndarray):
        raise TypeError(f"`{name}` must have no unit: pass its `value`, got {unit}")
