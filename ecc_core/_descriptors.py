"""Evenly spread directions, and functions of the values of transforms, in plain NumPy."""

from functools import lru_cache
from typing import Any

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


def height_weights(heights: Floats) -> Floats:
    """Return the weights of the trapezoidal rule at these heights."""
    half = np.diff(heights) / 2
    found: Floats = np.append(half, 0) + np.append(0, half)
    return found


def smooth(values: NDArray[Any], heights: Floats) -> Floats:
    """Return the integrals, from the first height on, of curves from which their mean is taken."""
    width = heights[-1] - heights[0] if heights.size else 0.0
    result = np.zeros(values.shape)
    if width == 0:
        return result
    centred = values - (values @ height_weights(heights) / width)[..., None]
    steps = np.diff(heights)
    np.cumsum((centred[..., 1:] + centred[..., :-1]) * (steps / 2), axis=-1, out=result[..., 1:])
    return result


def distance(a: NDArray[Any], b: NDArray[Any], heights: Floats, power: int) -> float:
    """Return the L1 or L2 distance of (directions, heights) values."""
    difference = np.abs(a.astype(np.float64) - b) ** power
    return float((difference @ height_weights(heights)).mean() ** (1 / power))


def least_rotated_distance(a: NDArray[Any], b: NDArray[Any], heights: Floats, power: int) -> float:
    """Return the least distance between b and `a` over all cyclic shifts of the directions of a."""
    shifts = list(range(len(a)))
    if power == 2:
        # |a - b|^2 is |a|^2 + |b|^2 - 2 <a, b>, and a Fourier transform gives the products of all
        # shifts at once. They are rounded: they only choose the shift whose distance is computed.
        weighted = np.fft.rfft(b * height_weights(heights), axis=0)
        spectrum = np.fft.rfft(a, axis=0) * weighted.conj()
        products = np.fft.irfft(spectrum, n=len(a), axis=0)
        shifts = [int(products.sum(axis=1).argmax())]
    shifted = (np.roll(a, -shift, axis=0) for shift in shifts)
    return min(distance(one, b, heights, power) for one in shifted)
