"""Integrals of finished transforms over heights, and distances between them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
