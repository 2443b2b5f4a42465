"""Heights of grid points along a direction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tilt"]


class Tilt:
    """The term a * <u, x(p)> of a directional filtration, x(p) = (index - centre) * spacing.

    The sum over the axes is taken in their order, in float64.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        direction: NDArray[np.float64],
        scale: float,
        spacing: NDArray[np.float64],
    ) -> None:
        self.scale = scale
        self.terms = [
            u * ((np.arange(n) - (n - 1) / 2) * step)
            for n, u, step in zip(shape, direction, spacing, strict=True)
        ]

    def add(self, part: NDArray[Any], start: tuple[int, ...]) -> NDArray[np.float64]:
        """X + a * <u, x> of a box of the image that begins at index `start`."""
        height: NDArray[np.float64] = np.zeros(())
        ndim = len(self.terms)
        for axis, (terms, first) in enumerate(zip(self.terms, start, strict=True)):
            count = part.shape[part.ndim - ndim + axis]
            shape = (count,) + (1,) * (ndim - axis - 1)
            term = terms[first : first + count].reshape(shape)
            height = term if axis == 0 else height + term
        tilted: NDArray[np.float64] = part.astype(np.float64) + self.scale * height
        return tilted
