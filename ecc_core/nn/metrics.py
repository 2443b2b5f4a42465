"""Topological metrics for the evaluation of segmentations."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar, SupportsIndex

import numpy as np
import torch

from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._request.options import ImageOptions
from ecc_core._request.resources import check_positive_int
from ecc_core.matching import match_images
from ecc_core.nn._arguments import check_n_spatial
from ecc_core.nn._exact import place_of_curves
from ecc_core.nn._segmentation import (
    check_axes,
    check_mask_values,
    check_no_nan,
    check_probabilities,
)
from ecc_core.topology import betti_curves


class BettiError:
    """Difference of the Betti numbers of predicted and true objects.

    The error is the sum of ``|b_k(prediction) - b_k(target)|`` over the dimensions k, that is over
    the numbers of components, of holes or tunnels, and of cavities. It has no gradient.

    Parameters
    ----------
    n_spatial : {2, 1, 3}
        Number of spatial axes, which are the last axes. Volumes need 3.
    threshold : float, default 0.5
        Points with at least this value belong to the objects of the prediction and of the target.
        With `num_classes` there is no threshold.
    connectivity : {None, 1, n_spatial}
        As in :func:`ecc_core.betti_curves`.
    window : int or tuple of n_spatial ints, optional
        Tile images with windows of this shape and average their errors, so that the location of
        objects matters as well as their number. Windows at the far border may be smaller.
    from_logits : bool, default False
        Whether predictions are logits: points whose sigmoid is at least `threshold` belong to the
        objects.
    per_dimension : bool, default False
        Return the errors in b_0, b_1 and b_2 (components, holes or tunnels, cavities) one by one,
        along a last axis of length `n_spatial`, instead of their sum.
    matched : bool, default False
        Count the components, holes or tunnels, and cavities of either that the other one does not
        have at that place, as :func:`ecc_core.betti_matching` finds them in host memory: a gap here
        and a bridge there, whose numbers cancel, count as two.
    num_classes : int, optional
        Compare class indices, one class after another.
    include_background : bool, default True
        If False, leave out class 0 of `num_classes`.

    Raises
    ------
    TypeError
        In a call, if predictions are not floats with `from_logits`, if class indices are not
        integers, and as for :func:`ecc_core.betti_curves`.
    ValueError
        If `n_spatial` or `connectivity` is invalid, `window` is not a positive int or `n_spatial`
        of them, `num_classes` is not a positive int, `threshold` is not between 0 and 1 with
        `from_logits`, or `from_logits` is set with `num_classes`. In a call, if the shapes do not
        match, have fewer than `n_spatial` or more than ``n_spatial + 2`` axes (batch and class), or
        no points; if there is NaN; and, for thresholds between 0 and 1, if floats are not between 0
        and 1, unless `from_logits` is set, or if integers have other values than 0 and 1, or 0 and
        255, as class indices have.
    BackendError
        As for :func:`ecc_core.betti_curves`.

    Notes
    -----
    The metric is called with ``prediction`` and ``target``, NumPy arrays or torch tensors of the
    same shape (..., spatial), of booleans or real numbers: one error for each image and channel,
    averaged over its windows, as a float64 array of the library of the prediction and of shape
    (...), or (..., n_spatial) with `per_dimension`.

    With `num_classes` the target holds class indices, of shape (batch, spatial) or
    (batch, 1, spatial), and the prediction indices of one of these shapes, or scores
    (batch, class, spatial), of which the greatest counts. There is an error for each image and
    class. Indices of no class, such as 255, belong to no object.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.nn import BettiError
    >>> target = np.ones((1, 8, 8))
    >>> prediction = target.copy()
    >>> prediction[0, 2:6, 3] = 0.2  # a hole
    >>> BettiError()(prediction, target)
    array([1.])
    >>> BettiError(per_dimension=True)(prediction, target)
    array([[0., 1.]])
    >>> shifted = np.zeros((1, 8, 8), bool)
    >>> shifted[0, :2], target[0, 2:] = True, 0
    >>> BettiError()(shifted[:, ::-1], target), BettiError(matched=True)(shifted[:, ::-1], target)
    (array([0.]), array([2.]))
    >>> classes = np.zeros((1, 8, 8), int)
    >>> classes[0, :3], classes[0, 5:] = 1, 2
    >>> BettiError(num_classes=3)(np.where(classes == 2, 1, classes), classes)  # one is missed
    array([[0., 1., 1.]])
    """

    _names: ClassVar[tuple[str, str]] = ("prediction", "target")
    """Names of the arguments in messages."""

    def __init__(
        self,
        n_spatial: int = 2,
        *,
        threshold: float = 0.5,
        connectivity: int | None = None,
        window: SupportsIndex | Sequence[SupportsIndex] | None = None,
        from_logits: bool = False,
        per_dimension: bool = False,
        matched: bool = False,
        num_classes: int | None = None,
        include_background: bool = True,
    ) -> None:
        if from_logits and not 0 < threshold < 1:
            raise ValueError(
                f"`threshold` must be between 0 and 1 with `from_logits`, got {threshold!r}"
            )
        if from_logits and num_classes is not None:
            raise ValueError(
                "`from_logits` must be left out with `num_classes`: of the scores of classes, "
                "logits or not, the greatest counts"
            )
        self.n_spatial = check_n_spatial(n_spatial)
        self.connectivity = check_connectivity(connectivity, self.n_spatial)
        self.threshold = threshold
        self.from_logits = check_flag(from_logits, "from_logits")
        self.per_dimension = check_flag(per_dimension, "per_dimension")
        self.matched = check_flag(matched, "matched")
        self.window = None if window is None else _window(window, self.n_spatial)
        self.num_classes = None
        if num_classes is not None:
            self.num_classes = check_positive_int(num_classes, "num_classes")
        self.include_background = check_flag(include_background, "include_background")
        if not self.include_background and (self.num_classes or 1) == 1:
            raise ValueError(
                "`include_background` must be True without `num_classes` of at least 2, got False"
            )

    def __call__(self, prediction: Any, target: Any) -> Any:
        """Compute the errors of a batch.

        Parameters
        ----------
        prediction, target : (..., *spatial) arrays

        Returns
        -------
        (...) float64 array, or (..., n_spatial) with `per_dimension`
        """
        if self.num_classes is not None:
            prediction, target = self._masks_of_classes(prediction, target, self.num_classes)
        shape = tuple(prediction.shape)
        first, second = self._names
        if tuple(target.shape) != shape or len(shape) < self.n_spatial:
            raise ValueError(
                f"`{first}` and `{second}` must have the same shape of at least "
                f"{self.n_spatial} axes, got {shape} and {tuple(target.shape)}"
            )
        check_axes(shape, self.n_spatial, first)
        spatial = shape[len(shape) - self.n_spatial :]
        if 0 in spatial:
            raise ValueError(f"`{first}` must have points, got shape {shape}")
        if self.from_logits and not _has_floats(prediction):
            raise TypeError(
                f"`{first}` must be logits, which are floats, with `from_logits`, got "
                f"{prediction.dtype}"
            )
        self._check_values(prediction, first, "from_logits=True takes logits", self.from_logits)
        self._check_values(target, second, "as `threshold` is")
        least = self.threshold
        if self.from_logits:
            least = math.log(least / (1 - least))
        steps = self.window or spatial
        errors = []
        for start in itertools.product(*map(range, [0] * self.n_spatial, spatial, steps)):
            part: Any = (..., *map(slice, start, np.add(start, steps)))
            if self.matched:
                error = self._unmatched(prediction[part] >= least, target[part] >= self.threshold)
            else:
                own = self._numbers(prediction[part], least)
                true = self._numbers(target[part], self.threshold)
                error = abs(own - true)
            errors.append(error if self.per_dimension else error.sum(-1))
        return sum(errors[1:], errors[0]) / len(errors)

    def _masks_of_classes(self, prediction: Any, target: Any, count: int) -> tuple[Any, Any]:
        """Masks (batch, class, spatial) of the points of each class."""
        first, second = self._names
        if _has_floats(prediction):
            if prediction.ndim != self.n_spatial + 2 or prediction.shape[1] != count:
                raise ValueError(
                    f"`{first}` must have shape (batch, {count}, spatial) if it holds "
                    f"scores of `num_classes`, got {tuple(prediction.shape)}"
                )
            if prediction.shape[0]:
                check_no_nan(prediction, first)
            prediction = prediction.argmax(1)
        masks = []
        for name, given in ((first, prediction), (second, target)):
            if not _has_integers(given):
                raise TypeError(f"`{name}` must hold class indices, got {given.dtype}")
            single = given.ndim == self.n_spatial + 2 and given.shape[1] == 1
            if not single and given.ndim != self.n_spatial + 1:
                raise ValueError(
                    f"`{name}` must have shape (batch, spatial) if it holds class indices, got "
                    f"{tuple(given.shape)}"
                )
            indices = given[:, 0] if single else given
            start = 0 if self.include_background else 1
            of_each = [indices == index for index in range(start, count)]
            stack: Any = torch.stack if isinstance(given, torch.Tensor) else np.stack
            masks.append(stack(of_each, 1))
        return masks[0], masks[1]

    def _check_values(self, image: Any, name: str, advice: str, logits: bool = False) -> None:
        """Refuse NaN, logits, masks of 0 and 255 as floats, and class indices."""
        if 0 in image.shape:
            return
        of_masks = 0 < self.threshold < 1
        if _has_floats(image):
            if of_masks and not logits:
                check_probabilities(image, name, advice)
            else:
                check_no_nan(image, name)
        elif of_masks and _has_integers(image):
            check_mask_values(image, name, "`num_classes` counts class indices one by one")

    def _numbers(self, image: Any, least: float) -> Any:
        """Betti numbers of the images, of shape (..., n_spatial)."""
        if isinstance(image, torch.Tensor):
            place = place_of_curves(image)
            if place != image.device:
                return self._numbers(image.to(place), least).to(image.device)
        curves = betti_curves(
            image,
            [least],
            connectivity=self.connectivity,
            superlevel=True,
            axis=tuple(range(image.ndim - self.n_spatial, image.ndim)),
        )
        return curves.values[..., 0]

    def _unmatched(self, prediction: Any, target: Any) -> Any:
        """Numbers of the classes of two masks that do not match, of shape (..., n_spatial)."""
        if isinstance(prediction, torch.Tensor):
            found = self._unmatched(prediction.detach().cpu().numpy(), target.cpu().numpy())
            return torch.from_numpy(found).to(prediction.device)
        spatial = range(prediction.ndim - self.n_spatial, prediction.ndim)
        options = ImageOptions(connectivity=self.connectivity, axis=tuple(spatial))
        found = match_images(prediction, target, True, options, empty=True)
        matchings = found if isinstance(found, list) else [found]
        errors = np.array([one.error for one in matchings], np.int64)
        return errors.reshape(*prediction.shape[: spatial.start], self.n_spatial)


def _has_floats(array: Any) -> bool:
    return "float" in str(array.dtype)


def _has_integers(array: Any) -> bool:
    return "int" in str(array.dtype)


def _window(given: Any, n_spatial: int) -> tuple[int, ...]:
    try:
        lengths = given if np.ndim(given) else (given,) * n_spatial
        window = tuple(map(operator.index, lengths))
    except TypeError:
        window = ()
    if len(window) != n_spatial or min(window) < 1:
        raise ValueError(f"`window` must be a positive int or {n_spatial} of them, got {given!r}")
    return window
