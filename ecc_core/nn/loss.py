"""A loss that compares the topology of a segmentation with that of its target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends import has_kernels
from ecc_core._request.resources import check_positive_int
from ecc_core._torch.routes import bypasses_torch
from ecc_core.nn import _arguments, functional
from ecc_core.nn._segmentation import Pair, SegmentationLoss


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
        if the shapes or devices do not match; on the CPU also if predictions (as logits without
        `from_logits`) or targets of floats are NaN or not between 0 and 1, or if integers for a
        mask have other values than 0 and 1, or 0 and 255, as class indices have.

    Notes
    -----
    The loss is called with an ``input`` of shape (..., spatial), which holds probabilities (the
    output of ``sigmoid`` or ``softmax``) unless `from_logits` is set, and a ``target``, which
    receives no gradient. The target takes one of two forms:

    - Masks of the shape of the prediction: booleans, integers (0 and 1, or 0 and 255), or
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
    described: ClassVar = "p", "window", "normalize", "connectivity", "n_spatial", "reduction"

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
        super().__init__(
            window, connectivity, n_spatial, reduction, from_logits, ignore_index, weight
        )
        count = check_positive_int(thresholds, "thresholds")
        self.register_buffer("thresholds", _levels(count), persistent=False)
        self.sharpness = _arguments.SLOPE_OF_STEP * count if sharpness is None else sharpness
        _arguments.log_of(self.sharpness, "sharpness")
        self.p = _arguments.real(p, "p")
        if not self.p >= 1:
            raise ValueError(f"`p` must be at least 1, got {p}")
        self.normalize = normalize

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set the thresholds and weights again, for example after ``to_empty``."""
        super().reset_parameters()
        self.thresholds.copy_(_levels(len(self.thresholds)))

    def _loss(self, pair: Pair) -> Tensor:
        by_kernels = self._by_kernels(pair)
        return super()._loss(pair) if by_kernels is None else by_kernels

    def _by_kernels(self, pair: Pair) -> Tensor | None:
        """The loss in a few launches on a CUDA device, in one function of autograd, else None."""
        prediction = pair.prediction
        if not prediction.is_cuda or self.weight is not None:
            return None
        sharpness: Any = self.sharpness
        if isinstance(sharpness, Tensor) or not 0 < sharpness < math.inf:
            return None  # It may be learned, or is an error.
        # torch.compile can trace neither `has_kernels` nor what follows.
        masks = pair.masks.detach() if pair.masks.requires_grad else pair.masks
        shown = pair.shown
        given = prediction, masks, shown, self.thresholds
        if not (bypasses_torch(given) and has_kernels("cuda")):
            return None
        from ecc_core._torch import cuda_losses

        kind = cuda_losses.Kind(
            n_spatial=self.n_spatial,
            connectivity=self.connectivity,
            levels=len(self.thresholds),
            sharpness=float(sharpness),
            window=self.window,
            order=self.p,
            factor=self._factor(prediction),
            is_reduced=self.reduction != "none",
        )

        def usual(images: Tensor) -> Tensor:
            # Without the pair, whose prediction would live as long as the loss.
            return super(EulerCurveLoss, self)._loss(Pair(images, masks, shown))

        return cuda_losses.curve_loss(*given, kind, usual)

    def _factor(self, prediction: Tensor) -> float:
        """The factor of the norm of a curve in the loss, or in that of its image."""
        spatial = prediction.shape[prediction.dim() - self.n_spatial :]
        images = math.prod(prediction.shape[: prediction.dim() - self.n_spatial])
        windows = 1
        if self.window is not None:
            windows = math.prod(ceil_div(side, self.window) for side in spatial)
        curves = windows * images if self.reduction == "mean" else windows
        return self._factor_of_errors(spatial) / max(curves, 1)

    def _factor_of_errors(self, spatial: torch.Size) -> float:
        """The factor of the norm over the levels in the error of a curve."""
        points = self.window**self.n_spatial if self.window else math.prod(spatial)
        factor = math.pow(len(self.thresholds), -1 / self.p)
        return factor / max(points, 1) if self.normalize else factor

    def _errors(self, pair: Pair) -> Tensor:
        prediction = pair.prediction
        shown = pair.shown
        dtype = torch.float64 if prediction.dtype == torch.float64 else torch.float32
        given = self.sharpness, "sharpness", prediction, dtype
        sharpness = _arguments.positive_scalar(*given)  # Both curves have the same sharpness.
        with torch.no_grad():
            wanted = self._curves(pair.masks.to(prediction.dtype), shown, sharpness)
        difference = self._curves(prediction, shown, sharpness) - wanted
        errors: Tensor = torch.linalg.vector_norm(difference, self.p, dim=-1)
        spatial = prediction.shape[prediction.dim() - self.n_spatial :]
        errors = errors * self._factor_of_errors(spatial)
        return errors if self.window is None else errors.flatten(-self.n_spatial).mean(-1)

    def _curves(self, image: Tensor, mask: Tensor | None, sharpness: Tensor) -> Tensor:
        """Curves of the images or of their windows."""
        return functional.soft_euler_curve(
            self._in_windows(image),
            self.thresholds.to(image.device),
            sharpness=sharpness,
            connectivity=self.connectivity,
            superlevel=True,
            mask=None if mask is None else self._in_windows(mask, False),
            n_spatial=self.n_spatial,
        )

    def extra_repr(self) -> str:
        """Describe settings."""
        return f"thresholds={len(self.thresholds)}, {super().extra_repr()}"


def _levels(count: int) -> Tensor:
    return (torch.arange(count, dtype=torch.get_default_dtype()) + 0.5) / count
