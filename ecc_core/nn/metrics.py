"""Topological metrics for the evaluation of segmentations."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from ecc_core.nn._arguments import check_n_spatial
from ecc_core.nn._segmentation import check_probabilities
from ecc_core.topology import betti_curves


class BettiError:
    """Difference of the Betti numbers of predicted and true objects.

    The error is the sum of ``|b_k(prediction) - b_k(target)|`` over the dimensions k, that is over
    the numbers of components, of holes or tunnels, and of cavities. It has no gradient.

    Parameters
    ----------
    n_spatial : {1, 2, 3}
        Number of spatial axes, which are the last axes.
    threshold : float, default 0.5
        Points with at least this value belong to the objects of the prediction and of the target.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.betti_curves`.
    window : int or tuple of n_spatial ints, optional
        Tile images with windows of this shape and average their errors, so that the location of
        objects matters as well as their number. Windows at the far border may be smaller.
    from_logits : bool, default False
        Whether predictions are logits: points whose sigmoid is at least `threshold` belong to the
        objects.

    Raises
    ------
    ValueError
        If `n_spatial` is not 1, 2 or 3, `window` is not a positive int or `n_spatial` of them, or
        `threshold` is not between 0 and 1 with `from_logits`.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.nn import BettiError
    >>> target = np.ones((1, 8, 8))
    >>> prediction = target.copy()
    >>> prediction[0, 2:6, 3] = 0.2  # a hole
    >>> BettiError()(prediction, target)
    array([1.])
    """

    def __init__(
        self,
        n_spatial: int = 2,
        *,
        threshold: float = 0.5,
        connectivity: int | None = None,
        window: SupportsIndex | Sequence[SupportsIndex] | None = None,
        from_logits: bool = False,
    ) -> None:
        if from_logits and not 0 < threshold < 1:
            raise ValueError(
                f"`threshold` must be between 0 and 1 with `from_logits`, got {threshold!r}"
            )
        self.n_spatial = check_n_spatial(n_spatial)
        self.threshold, self.connectivity = threshold, connectivity
        self.from_logits = from_logits
        self.window = None if window is None else _window(window, self.n_spatial)

    def __call__(self, prediction: Any, target: Any) -> Any:
        """Compute the errors of a batch.

        Parameters
        ----------
        prediction, target : (..., *spatial) arrays
            NumPy arrays or torch tensors in host memory, of the same shape, of booleans or real
            numbers.

        Returns
        -------
        (...) float64 array
            One error for each image, averaged over its windows, as an array of the library of
            `prediction`.

        Raises
        ------
        ValueError
            If the shapes differ or have fewer than `n_spatial` axes, or if floats are not between 0
            and 1, as `threshold` is, unless `from_logits` is set.
        TypeError, BackendError
            As for :func:`ecc_core.betti_curves`.
        """
        shape = tuple(prediction.shape)
        if tuple(target.shape) != shape or len(shape) < self.n_spatial:
            raise ValueError(
                "`prediction` and `target` must have the same shape of at least "
                f"{self.n_spatial} axes, got {shape} and {tuple(target.shape)}"
            )
        spatial = shape[len(shape) - self.n_spatial :]
        if 0 in spatial:
            raise ValueError(f"`prediction` must have points, got shape {shape}")
        if not self.from_logits:
            self._check_probabilities(prediction, "prediction", "from_logits=True takes logits")
        self._check_probabilities(target, "target", "as `threshold` is")
        least = self.threshold
        if self.from_logits:
            least = math.log(least / (1 - least))
        steps = self.window or spatial
        errors = []
        for start in itertools.product(*map(range, [0] * self.n_spatial, spatial, steps)):
            part: Any = (..., *map(slice, start, np.add(start, steps)))
            first = self._numbers(prediction[part], least)
            second = self._numbers(target[part], self.threshold)
            errors.append(abs(first - second).sum(-1))
        return sum(errors[1:], errors[0]) / len(errors)

    def _check_probabilities(self, image: Any, name: str, advice: str) -> None:
        """Refuse logits, and masks of 0 and 255 as floats."""
        if 0 in image.shape or "float" not in str(image.dtype) or not 0 < self.threshold < 1:
            return
        check_probabilities(image, name, advice)

    def _numbers(self, image: Any, least: float) -> Any:
        """Betti numbers of the images, of shape (..., n_spatial)."""
        curves = betti_curves(
            image,
            [least],
            connectivity=self.connectivity,
            superlevel=True,
            axis=tuple(range(image.ndim - self.n_spatial, image.ndim)),
        )
        return curves.values[..., 0]


def _window(given: Any, n_spatial: int) -> tuple[int, ...]:
    try:
        window = tuple(map(operator.index, given if np.ndim(given) else (given,) * n_spatial))
    except TypeError:
        window = ()
    if len(window) != n_spatial or min(window) < 1:
        raise ValueError(f"`window` must be a positive int or {n_spatial} of them, got {given!r}")
    return window
