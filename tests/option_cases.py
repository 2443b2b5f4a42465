"""Thresholds, commands and oracles of the tests of options that all commands have."""

from typing import Any

import numpy as np
from oracles.components import counted
from skimage.measure import euler_number

AT = [90.0, 110.0, 125.5, 140.0]
COMMANDS = ["curve", "stack", "batch"]
SMALL = ["--max-memory", "2M", "--workers", "2"]


def euler(image: np.ndarray, inside: Any = True) -> list[int]:
    return [euler_number((image <= t) & inside) for t in AT]


def components(image: np.ndarray, inside: Any = True) -> list[int]:
    return [counted((image <= t) & inside, image.ndim)[0] for t in AT]


def points(image: np.ndarray, mask: np.ndarray) -> list[int]:
    """Return the number of points of each sublevel set within a mask."""
    return [np.count_nonzero((image <= t) & mask) for t in AT]
