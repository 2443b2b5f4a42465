"""Checks that arrays of NumPy have neither masked entries nor a unit."""

from typing import Any

import numpy as np


def refuse_masked(given: Any, name: str) -> None:
    """Refuse an array of NumPy with masked entries, which have no value."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        count = int(np.count_nonzero(given.mask))
        raise ValueError(f"`{name}` must have no masked entries, got {count}")


def refuse_unit(given: Any, name: str) -> None:
    """Refuse a quantity of astropy, whose unit may differ from that of the image."""
    unit = getattr(given, "unit", None)
    if unit is not None and isinstance(given, np.ndarray):
        raise TypeError(f"`{name}` must have no unit: pass its `value`, got {unit}")
