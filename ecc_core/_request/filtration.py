"""What a filtration is: the complex, the order in which points enter, and who never does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Direction", "Filtration"]


@dataclass(frozen=True)
class Direction:
    """The term a * <u, x(p)> of a directional filtration, x(p) = (index - centre) * spacing.

    Attributes
    ----------
    vector : tuple of float
        u, of unit length, one component for each spatial axis.
    scale : float
        a.
    spacing : tuple of float
        Distance of neighbouring points along each axis.
    shape : tuple of int
        Spatial shape of the whole image.
    """

    vector: tuple[float, ...]
    scale: float
    spacing: tuple[float, ...]
    shape: tuple[int, ...]

    @cached_property
    def terms(self) -> list[NDArray[Any]]:
        """u * x along each axis, without the scale."""
        return [
            u * ((np.arange(n) - (n - 1) / 2) * step)
            for n, u, step in zip(self.shape, self.vector, self.spacing, strict=True)
        ]

    def add(self, part: NDArray[Any], start: tuple[int, ...]) -> NDArray[np.float64]:
        """X + a * <u, x> of a box of the image that begins at index `start`, in float64.

        The terms are added in the order of the axes.
        """
        height: NDArray[Any] = np.zeros(())
        ndim = len(self.terms)
        for axis, (terms, first) in enumerate(zip(self.terms, start, strict=True)):
            count = part.shape[part.ndim - ndim + axis]
            shape = (count,) + (1,) * (ndim - axis - 1)
            term = terms[first : first + count].reshape(shape)
            height = term if axis == 0 else height + term
        values: NDArray[np.float64] = part.astype(np.float64) + self.scale * height
        return values


@dataclass(frozen=True)
class Filtration:
    """A filtration of images.

    Attributes
    ----------
    ndim : {1, 2, 3}
        Number of spatial axes.
    connectivity : int
        1: points are vertices (V-construction); `ndim`: closed cubes (T-construction). In 1-D both
        are the same, and called 1.
    superlevel : bool
        Points enter from high to low.
    nan : {"raise", "omit"}
        NaN points are an error, or never enter.
    direction : Direction or None
        What is added to the image.
    """

    ndim: int
    connectivity: int
    superlevel: bool = False
    nan: str = "raise"
    direction: Direction | None = None

    def in_axes(self, ndim: int) -> Filtration:
        """The same filtration of images with another number of axes, such as planes of a volume."""
        if ndim == self.ndim:
            return self
        return replace(self, ndim=ndim, connectivity=1 if self.connectivity == 1 else ndim)
