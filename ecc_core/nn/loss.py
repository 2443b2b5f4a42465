"""A loss that compares the topology of a segmentation with that of its target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from ecc_core._request.resources import check_positive_int
from ecc_core.nn import _arguments, functional
from ecc_core.nn._segmentation import SegmentationLoss, check_probabilities, masks_of_classes


class EulerCurveLoss(SegmentationLoss):
    """Distance between the Euler characteristic curves of a predicted and a true segmentation.

    The loss compares the Euler characteristic of ``input >= t`` with that of the target at
    thresholds t between 0 and 1. Every superfluous or missing fragment, gap and hole contributes,
    however small it is. Combine it with a loss over points, such as cross entropy, which puts
    objects in the right place.

    Parameters
    ----------
    thresholds : int, default 8
        Number of thresholds, at ``(i + 1/2) / thresholds``.
    sharpness : float, optional
        Sharpness l of the steps ``sigmoid(l * (x - t))``. Default ``4 * thresholds``, which makes a
        step as wide as the spacing of the thresholds.
    p : float, default 1.0
        Order of the norm: the distance is the mean of ``|difference| ** p`` over the thresholds,
        to the power 1 / p, or the maximum for ``math.inf``.
    window : int, optional
        Compare the curves of square (cubic) windows of this side length, which tile the image, and
        average over them. This localizes gradients, and keeps a hole in one place from cancelling a
        fragment in another. The size of an object is a good choice. By default the curves of whole
        images are compared.
    normalize : bool, default True
        Divide curves by the number of points of the image or window. The loss is then an error per
        point and does not depend on their size, provided that the density of errors is the same. As
        its weight, try between a tenth of the number of points of an object and that number. If
        False, compare Euler characteristics as they are.
    connectivity : {None, 1, n_spatial}
        Connectivity of the objects, as in :func:`ecc_core.euler_curve`. The background has the
        other one.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    reduction : {"mean", "sum", "none"}
        Reduction over images and channels.
    from_logits : bool, default False
        Predictions are logits. Apply a softmax over the classes if targets are class indices, and a
        sigmoid otherwise.
    ignore_index : int, optional
        Leave out the points at which an integer target has this value.
    weight : (class,) tensor or sequence of float, optional
        Nonnegative factors of the errors of the classes, or channels. The mean over images and
        channels is weighted, as in :class:`torch.nn.CrossEntropyLoss`. A weight of 0 leaves out a
        class, such as the background.

    Raises
    ------
    TypeError
        If `thresholds` or `window` is not an int, or `p` is not a number. In a call, if the
        prediction is not a tensor of floats or the target is not a tensor of real numbers.
    ValueError
        If `thresholds`, `window` or `p` is less than 1, `sharpness` is not positive, a `weight` is
        negative or all are 0, or `reduction`, `connectivity` or `n_spatial` is invalid. In a call,
        if the shapes do not match, or on the CPU if predictions (as logits without `from_logits`)
        or targets of floats are not between 0 and 1.

    Notes
    -----
    The loss is called with a ``input`` of shape (..., spatial), which holds probabilities
    (the output of ``sigmoid`` or ``softmax``) unless `from_logits` is set, and a ``target``, which
    receives no gradient. The target takes one of two forms:

    - Masks of the shape of the prediction: booleans, integers that are not 0 inside the objects, or
      probabilities. For a prediction of shape (batch, 1, spatial) the axis of length 1 may be
      omitted.
    - Class indices of shape (batch, spatial) or (batch, 1, spatial), for a prediction of shape
      (batch, class, spatial).
      Indices of no class, such as -100, belong to none of the objects.

    The result is a scalar, or has shape (...) with ``reduction="none"``: one error for each class
    of each image if the prediction has shape (batch, class, row, column).

    The curve of the target is as soft as that of the prediction, so that the loss of a perfect
    segmentation is 0. As for the losses of torch, the mean over an empty batch is NaN. Give the
    loss a small weight, or add it once the other loss has found the objects, since the curves of
    noise are far from any target.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerCurveLoss
    >>> ring = torch.ones(1, 1, 9, 9)
    >>> ring[..., 3:6, 3:6] = 0
    >>> torn = ring.clone()
    >>> torn[..., 4, :3] = 0.2  # a gap at most thresholds
    >>> loss = EulerCurveLoss(normalize=False)
    >>> loss(ring, ring == 1).item(), round(loss(torn, ring == 1).item(), 2)
    (0.0, 0.78)
    """

    thresholds: Tensor
    weight: Tensor | None
    described = "p", "window", "normalize", "connectivity", "n_spatial", "reduction"

    def __init__(
        self,
        thresholds: int = 8,
        *,
        sharpness: float | None = None,
        p: float = 1.0,
        window: int | None = None,
        normalize: bool = True,
        connectivity: int | None = None,
        n_spatial: int = 2,
        reduction: Literal["mean", "sum", "none"] = "mean",
        from_logits: bool = False,
        ignore_index: int | None = None,
        weight: Tensor | Sequence[float] | None = None,
    ) -> None:
        super().__init__(window, connectivity, n_spatial, reduction, from_logits)
        count = check_positive_int(thresholds, "thresholds")
        self.register_buffer("thresholds", _levels(count), persistent=False)
        self.sharpness = _arguments.SLOPE_OF_STEP * count if sharpness is None else sharpness
        _arguments.log_of(self.sharpness, "sharpness")
        if isinstance(p, bool) or not isinstance(p, int | float):
            raise TypeError(f"`p` must be a number, got {p!r}")
        if not p >= 1:
            raise ValueError(f"`p` must be at least 1, got {p}")
        self.p = float(p)
        self.normalize = normalize
        self.ignore_index = ignore_index
        self._weight = _as_weights(weight)
        given = None if self._weight is None else torch.as_tensor(self._weight).clone()
        self.register_buffer("weight", given, persistent=False)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set the thresholds and weights again, for example after ``to_empty``."""
        self.thresholds.copy_(_levels(len(self.thresholds)))
        if self.weight is not None and self._weight is not None:
            self.weight.copy_(self._weight)

    def forward(self, input: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        input : (..., spatial) tensor of float
        target : (..., spatial) tensor of masks, or (batch, [1,] spatial) tensor of class indices
        mask : (..., spatial) or (spatial) tensor of bool, optional
            Leave out the points where it is False.
        """
        masks, shown = self._as_masks(input, target)
        if mask is not None:
            given = _arguments.check_mask(mask, input, input.shape[-self.n_spatial :])
            given = given.reshape(mask.shape)
            shown = given if shown is None else shown & given
        if self.from_logits:
            axis = input.dim() - self.n_spatial - 1
            of_classes = target.shape != input.shape and input.shape[axis] > 1
            input = input.softmax(axis) if of_classes else input.sigmoid()
        else:
            _check_if_seen(input, "input", "pass from_logits=True for logits")
        if target.is_floating_point():
            _check_if_seen(target, "target", "pass masks of 0 and 255 as integers")
        if shown is not None:
            shown = shown.expand(input.shape)
        with torch.no_grad():
            wanted = self._curves(masks, shown)
        difference = self._curves(input, shown) - wanted
        errors: Tensor = torch.linalg.vector_norm(difference, self.p, dim=-1)
        spatial = input.shape[input.dim() - self.n_spatial :]
        points = self.window**self.n_spatial if self.window else math.prod(spatial)
        factor = math.pow(len(self.thresholds), -1 / self.p)
        errors = errors * (factor / max(points, 1) if self.normalize else factor)
        if self.window is not None:
            errors = errors.flatten(-self.n_spatial).mean(-1)
        return self._reduced(*self._weighed(errors))

    def _weighed(self, errors: Tensor) -> tuple[Tensor, Tensor | int]:
        """Errors (..., class) times the weights of classes, and the total of the weights."""
        if self.weight is None:
            return errors, errors.numel()
        if errors.dim() == 0 or errors.shape[-1] != len(self.weight):
            raise ValueError(
                f"`weight` must have as many elements as `input` has channels, "
                f"{errors.shape[-1] if errors.dim() else 'none'}, got {len(self.weight)}"
            )
        weights = self.weight.to(errors.device, errors.dtype).expand(errors.shape)
        return errors * weights, weights.sum()

    def _as_masks(self, input: Any, target: Any) -> tuple[Tensor, Tensor | None]:
        """Masks of the shape and dtype of the input, and the points that are not ignored."""
        if not isinstance(input, Tensor) or not input.is_floating_point():
            kind = getattr(input, "dtype", type(input).__name__)
            raise TypeError(f"`input` must be a tensor of floats, got {kind}")
        if not isinstance(target, Tensor) or target.is_complex():
            kind = getattr(target, "dtype", type(target).__name__)
            raise TypeError(f"`target` must be a tensor of real numbers, got {kind}")
        shape, given = tuple(input.shape), tuple(target.shape)
        if len(shape) > self.n_spatial + 2:
            raise ValueError(
                f"`input` must have at most {self.n_spatial + 2} axes (batch, class and "
                f"n_spatial={self.n_spatial}), got {shape}; pass n_spatial=3 for volumes, or "
                "flatten the first axes"
            )
        axis = len(shape) - self.n_spatial - 1
        classes, without = shape[axis] if axis >= 0 else 1, shape[:axis] + shape[axis + 1 :]
        real = target.is_floating_point() or target.dtype == torch.bool
        if classes == 1 and axis > 0 and given == without:
            target = target.unsqueeze(axis)
        if classes > 1 and axis > 0 and given == (*shape[:axis], 1, *shape[axis + 1 :]):
            target = target.squeeze(axis)
        given = tuple(target.shape)
        shown = None
        if self.ignore_index is not None:
            if real:
                raise TypeError(
                    f"`target` must be integers with `ignore_index`, got {target.dtype}"
                )
            shown = target != self.ignore_index
        if shape == given:
            masks = target if real else target != 0
            return masks.to(input.dtype), shown
        if given != without:
            raise ValueError(
                f"`target` must have the shape of `input`, {shape}, or for class indices that "
                f"shape without the class axis, got {given}"
            )
        if real:
            raise TypeError(
                f"`target` must be integers if it holds class indices, got {target.dtype}"
            )
        shown = None if shown is None else shown.unsqueeze(axis)
        masks = masks_of_classes(target.unsqueeze(axis), classes, self.n_spatial)
        return masks.to(input.dtype), shown

    def _curves(self, image: Tensor, mask: Tensor | None) -> Tensor:
        """Curves of the images or of their windows."""
        return functional.soft_euler_curve(
            self._in_windows(image),
            self.thresholds.to(image.device),
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            superlevel=True,
            mask=None if mask is None else self._in_windows(mask, False),
            n_spatial=self.n_spatial,
        )

    def extra_repr(self) -> str:
        """Describe settings."""
        weight = [] if self.weight is None else [f"weight={self.weight.tolist()}"]
        return ", ".join([f"thresholds={len(self.thresholds)}", super().extra_repr(), *weight])


def _levels(count: int) -> Tensor:
    return (torch.arange(count, dtype=torch.get_default_dtype()) + 0.5) / count


def _as_weights(weight: Any) -> Tensor | None:
    if weight is None:
        return None
    try:
        weights = torch.as_tensor(weight, dtype=torch.get_default_dtype(), device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"`weight` must be real numbers, got {weight!r}") from error
    if weights.dim() != 1:
        raise ValueError(f"`weight` must have shape (class,), got {tuple(weights.shape)}")
    if not ((weights >= 0).all() and 0 < weights.sum() < math.inf):
        raise ValueError(
            f"`weight` must be nonnegative, finite and not all 0, got {weights.tolist()}"
        )
    return weights


def _check_if_seen(given: Tensor, name: str, advice: str) -> None:
    """Check values where a look at them does not wait for a device or break a graph."""
    unseen = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    if given.device.type == "cpu" and given.numel() and not unseen:
        check_probabilities(given, name, advice)
