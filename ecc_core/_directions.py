"""The directions that transforms sample for a number of them."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sample_directions(n: int, ndim: int) -> Floats:
    """Return n evenly spread unit vectors, (n, ndim)."""
    if ndim == 1:
        return np.where(np.arange(n) % 2, -1.0, 1.0)[:, None]
    return (_circle(n) if ndim == 2 else _sphere(n)).copy()


@lru_cache(maxsize=4)
def _circle(n: int) -> Floats:
    # Angles are integers in units of 1/(8 n) of a turn, n of which are an octant. They are reduced
    # to the first octant, so that the components of symmetric directions are equal to the last bit.
    octant, rest = np.divmod(8 * np.arange(n), n) if n else (np.arange(0), np.arange(0))
    odd = octant % 2 == 1
    part = np.where(odd, n - rest, rest)
    angle = part * (np.pi / (4 * max(n, 1)))
    long = np.cos(angle)
    short = np.where(part == n, long, np.sin(angle))
    steep = (octant == 1) | (octant == 2) | (octant == 5) | (octant == 6)
    first = np.where(steep, short, long)
    second = np.where(steep, long, short)
    first[(octant >= 2) & (octant < 6)] *= -1
    second[octant >= 4] *= -1
    return np.stack([first, second], axis=1) + 0.0  # Adding 0.0 turns -0.0 into 0.0.


@lru_cache(maxsize=4)
def _sphere(n: int) -> Floats:
    i = np.arange(n)
    height = 1 - (2 * i + 1) / max(n, 1)
    radius = np.sqrt(1 - height**2)
    turn = np.pi * (3 - np.sqrt(5)) * i  # Successive points are turned by the golden angle.
    points = np.stack([height, radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
