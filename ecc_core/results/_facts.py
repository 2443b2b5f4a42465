"""Facts of results as plain types."""

from collections.abc import Callable
from typing import Any

import numpy as np


def as_floats(numbers: Any) -> tuple[float, ...] | None:
    return None if numbers is None else tuple(np.asarray(numbers, dtype=np.float64).tolist())


def plain(result: Any, **converters: Callable[[Any], Any]) -> None:
    """Convert facts to plain types, which can be compared, pickled and saved.

    Facts that the result lacks are ignored, and bools are plain already. None stays None, except
    for a fact that is a bool.
    """
    for name, convert in converters.items():
        if not hasattr(result, name):
            continue
        value = getattr(result, name)
        if type(value) is not bool and (value is not None or convert is bool):
            object.__setattr__(result, name, convert(value))
