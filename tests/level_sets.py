"""Sublevel sets, and what scikit-image knows of them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from skimage.measure import euler_number


def numbers_at(image: np.ndarray, levels: Iterable[Any]) -> list[int]:
    """Return the Euler number of the sublevel set at each level, whose points meet at corners."""
    return [euler_number(image <= t, image.ndim) for t in levels]
