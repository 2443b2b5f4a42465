"""Metrics of topology, for the evaluation of segmentations."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from ecc_core.topology import betti_curves

__all__ = ["BettiError"]


class BettiError:
    """Difference of the Betti numbers of predicted and true objects.

    The sum of ``|b_k(prediction) - b_k(target)|`` over the dimensions k: by how many components,
    holes or tunnels, and cavities a segmentation is wrong. It has no gradient.

    Parameters
    ----------
    ndim : {1, 2, 3}
        Number of spatial axes, the last ones.
    threshold : float, default 0.5
        Points of at least this value belong to the object, in prediction and target.
    connectivity : {None, 1, ndim}
        As for :func:`ecc_core.betti_curves`.
    window : int or tuple of ndim ints, optional
        Compare windows of this shape, side by side, and average their errors: then objects have to
        be right where they are, not only in number. Those at the far border may be smaller.

    Raises
    ------
    ValueError
        For another number of axes, or a window that is not of `ndim` positive ints.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.nn import BettiError
    >>> target = np.ones((1, 8, 8))
    >>> prediction = target.copy()
    >>> prediction[0, 2:6, 3] = 0.2  # a hole
    >>> BettiError(2)(prediction, target)
    array([1.])
    """

    def __init__(
        self,
        ndim: int,
        *,
        threshold: float = 0.5,
        connectivity: int | None = None,
        window: SupportsIndex | Sequence[SupportsIndex] | None = None,
    ) -> None:
        if ndim not in (1, 2, 3):
            raise ValueError(f"`ndim` must be 1, 2 or 3, got {ndim!r}")
        self.ndim, self.threshold, self.connectivity = ndim, threshold, connectivity
        self.window = None if window is None else _window(window, ndim)

    def __call__(self, prediction: Any, target: Any) -> Any:
        """Errors of a batch.

        Parameters
        ----------
        prediction, target : (..., *spatial) arrays
            Booleans or numbers in host memory, of one shape, as NumPy arrays or torch tensors.

        Returns
        -------
        (...) float64 array
            In the library of `prediction`: one error for each image, averaged over its windows.

        Raises
        ------
        ValueError
            If the shapes differ or have fewer than `ndim` axes.
        TypeError, BackendError
            As :func:`ecc_core.betti_curves`.
        """
        shape = tuple(prediction.shape)
        if tuple(target.shape) != shape or len(shape) < self.ndim:
            raise ValueError(
                f"`prediction` and `target` must have one shape of at least {self.ndim} axes, got "
                f"{shape} and {tuple(target.shape)}"
            )
        spatial = shape[len(shape) - self.ndim :]
        if 0 in spatial:
            raise ValueError(f"`prediction` must have points, got shape {shape}")
        steps = self.window or spatial
        starts = itertools.product(*(range(0, n, w) for n, w in zip(spatial, steps, strict=True)))
        errors = [
            self._error(prediction, target, (..., *map(slice, start, np.add(start, steps))))
            for start in starts
        ]
        return sum(errors[1:], errors[0]) / len(errors)

    def _error(self, prediction: Any, target: Any, part: Any) -> Any:
        """Error of one window of each image."""
        first, second = (self._numbers(image[part]) for image in (prediction, target))
        return abs(first - second).sum(-1)

    def _numbers(self, image: Any) -> Any:
        """Betti numbers of each image, (..., ndim)."""
        curves = betti_curves(
            image,
            [self.threshold],
            connectivity=self.connectivity,
            superlevel=True,
            axis=tuple(range(image.ndim - self.ndim, image.ndim)),
        )
        return curves.values[..., 0]


def _window(given: Any, ndim: int) -> tuple[int, ...]:
    try:
        window = tuple(map(operator.index, given if np.ndim(given) else (given,) * ndim))
    except TypeError:
        window = ()
    if len(window) != ndim or min(window) < 1:
        raise ValueError(f"`window` must be a positive int or {ndim} of them, got {given!r}")
    return window
