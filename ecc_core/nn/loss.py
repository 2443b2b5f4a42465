"""A loss that compares the topology of a prediction with that of its target."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ecc_core._request.filtration import check_connectivity
from ecc_core.nn import _arguments, _parameters, functional

__all__ = ["EulerCurveLoss"]


class EulerCurveLoss(nn.Module):
    """Distance between the Euler characteristic curves of a predicted and a true segmentation.

    The sets ``prediction >= t`` must have as many parts, less holes, as the target has, for all
    probabilities t between 0 and 1: every fragment, gap and hole too many or too few counts,
    however few points it has. It complements a loss that looks at points, such as cross entropy,
    which must put things in their places.

    Parameters
    ----------
    thresholds : int, default 8
        Number of thresholds t, evenly spaced within 0 to 1: (i + 1/2) / thresholds.
    sharpness : float, optional
        Sharpness l of the steps ``sigmoid(l * (x - t))``. Default ``4 * thresholds``: a step is as
        wide as the spacing of the thresholds.
    p : float, default 1.0
        The distance is the mean of ``|difference| ** p`` over the thresholds, to the power 1 / p;
        ``math.inf``: the largest.
    window : int, optional
        Compare curves not of whole images but of squares (cubes) of this side, which cover the
        image without overlap, and average. So that a hole here does not make up for a fragment
        there, and gradients know where. A good size is that of an object. The default compares
        whole images.
    normalize : bool, default True
        Divide by the number of points that a curve is of: an error for each point, which does not
        depend on the size of image or window if they have equally many errors for their size.
        Weights to try are a tenth of the number of points of an object up to all of it. False:
        Euler characteristics.
    connectivity : {None, 1, n_spatial}
        Of the objects, as for :func:`ecc_core.euler_curve`; the background's is the other one.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    reduction : {"mean", "sum", "none"}
        Over the images and channels.

    from_logits : bool, default False
        Predictions are logits: take their softmax over the classes where targets are class indices,
        otherwise their sigmoid.
    ignore_index : int, optional
        Points whose target, of integers, has this value are left out, of the prediction too.

    Raises
    ------
    TypeError
        If `thresholds` or `window` is no int, `p` no number, and in a call for a prediction that is
        not of floats or a target that is not a tensor of real numbers.
    ValueError
        For `thresholds`, a `window` or a `p` below 1, a `sharpness` that is not positive, another
        `reduction`, `connectivity` or `n_spatial`, and in a call for shapes that do not fit.

    Notes
    -----
    A call takes ``prediction`` (..., spatial), probabilities, that is after ``sigmoid`` or
    ``softmax``; and ``target``, of which no gradient is taken, in one of two forms. Masks in the
    shape of the prediction: an object is where they are True, or integers that are not 0; floats
    are probabilities. Or, for a prediction (batch, class, spatial) of several classes, class
    indices, integers in the shape (batch, spatial); indices of no class, such as -100, belong to
    none. For a prediction (batch, 1, spatial), masks may lack the axis of length 1. The result is a
    scalar, or (...) with ``reduction="none"``: for the usual (batch, class,
    row, column) an error for each class of each image.

    The target's curve is soft as the prediction's is, so equal segmentations have a loss of 0. Mean
    of an empty batch is NaN, as for the losses of torch. Weigh the loss low, or bring it in when
    the other loss has found the objects: curves of noise are far from any target.

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
    ) -> None:
        super().__init__()
        self.n_spatial = _parameters.check_n_spatial(n_spatial)
        check_connectivity(connectivity, self.n_spatial)
        self.connectivity = self.n_spatial if connectivity is None else connectivity
        count = _parameters.check_positive_int(thresholds, "thresholds")
        levels = (torch.arange(count, dtype=torch.get_default_dtype()) + 0.5) / count
        self.register_buffer("thresholds", levels, persistent=False)
        self.sharpness = _parameters.SLOPE_OF_STEP * count if sharpness is None else sharpness
        _parameters.log_of(self.sharpness, "sharpness")
        if isinstance(p, bool) or not isinstance(p, int | float):
            raise TypeError(f"`p` must be a number, got {p!r}")
        if not p >= 1:
            raise ValueError(f"`p` must be at least 1, got {p}")
        self.p = float(p)
        if window is not None:
            _parameters.check_positive_int(window, "window")
        self.window = window
        self.normalize = normalize
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f'`reduction` must be "mean", "sum" or "none", got {reduction!r}')
        self.reduction = reduction
        _arguments.check_flag(from_logits, "from_logits")
        self.from_logits = from_logits
        self.ignore_index = ignore_index

    def forward(self, prediction: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Loss of probabilities (..., spatial) for masks, or for class indices.

        Points where `mask` is False are left out: booleans of the prediction's shape or of the
        spatial shape.
        """
        masks, shown = self._as_masks(prediction, target)
        if mask is not None:
            given = _arguments.check_mask(mask, prediction, prediction.shape[-self.n_spatial :])
            given = given.reshape(mask.shape)
            shown = given if shown is None else shown & given
        if self.from_logits:
            axis = prediction.dim() - self.n_spatial - 1
            of_classes = target.dim() < prediction.dim() and prediction.shape[axis] > 1
            prediction = prediction.softmax(axis) if of_classes else prediction.sigmoid()
        if shown is not None:
            shown = shown.expand(prediction.shape)
        with torch.no_grad():
            wanted = self._curves(masks, shown)
        difference = self._curves(prediction, shown) - wanted
        errors: Tensor = torch.linalg.vector_norm(difference, self.p, dim=-1)
        errors = errors / len(self.thresholds) ** (1 / self.p)
        if self.window is not None:
            errors = errors.flatten(-self.n_spatial).mean(-1)
        if self.reduction == "mean":
            errors = errors.mean()
        elif self.reduction == "sum":
            errors = errors.sum()
        return errors

    def _as_masks(self, prediction: Any, target: Any) -> tuple[Tensor, Tensor | None]:
        """The target in the shape and dtype of the prediction, and the points that count."""
        if not isinstance(prediction, Tensor) or not prediction.is_floating_point():
            kind = getattr(prediction, "dtype", type(prediction).__name__)
            raise TypeError(f"`prediction` must be a tensor of floats, got {kind}")
        if not isinstance(target, Tensor) or target.is_complex():
            kind = getattr(target, "dtype", type(target).__name__)
            raise TypeError(f"`target` must be a tensor of real numbers, got {kind}")
        shape, given = tuple(prediction.shape), tuple(target.shape)
        axis = len(shape) - self.n_spatial - 1
        classes = shape[axis] if axis >= 0 else 1
        if classes == 1 and axis > 0 and given == shape[:axis] + shape[axis + 1 :]:
            target = target.unsqueeze(axis)
            given = shape
        shown = None
        if self.ignore_index is not None:
            if target.is_floating_point() or target.dtype == torch.bool:
                raise TypeError(
                    f"`target` must be integers with `ignore_index`, got {target.dtype}"
                )
            shown = target != self.ignore_index
        if shape == given:
            masks = target if target.is_floating_point() else target != 0
            return masks.to(prediction.dtype), shown
        if given != shape[:axis] + shape[axis + 1 :]:
            raise ValueError(
                f"`target` must have the prediction's shape {shape}, or for several classes that "
                f"shape without the axis of classes, got {given}"
            )
        if target.is_floating_point() or target.dtype == torch.bool:
            raise TypeError(f"`target` must be integers where it holds classes, got {target.dtype}")
        numbers = torch.arange(classes, device=target.device).view(-1, *[1] * self.n_spatial)
        shown = None if shown is None else shown.unsqueeze(axis)
        return (target.unsqueeze(axis) == numbers).to(prediction.dtype), shown

    def _curves(self, image: Tensor, mask: Tensor | None) -> Tensor:
        """Curves of the images, or of their windows, for each point if they are normalised."""
        if self.window is not None:
            image = _windows(image, self.window, self.n_spatial)
            mask = None if mask is None else _windows(mask, self.window, self.n_spatial)
        curves = functional.soft_euler_curve(
            image,
            self.thresholds.to(image.device),
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            superlevel=True,
            mask=mask,
            n_spatial=self.n_spatial,
        )
        points = math.prod(image.shape[image.ndim - self.n_spatial :])
        return curves / max(points, 1) if self.normalize else curves

    def extra_repr(self) -> str:
        """Settings."""
        names = "p", "window", "normalize", "connectivity", "n_spatial", "reduction"
        settings = [f"{name}={getattr(self, name)!r}" for name in names]
        return ", ".join([f"thresholds={len(self.thresholds)}", *settings])


def _windows(image: Tensor, side: int, n_spatial: int) -> Tensor:
    """Images (..., *spatial) as (..., *windows, *spatial of a window), padded with zeros."""
    first = image.ndim - n_spatial
    excess = [-n % side for n in reversed(image.shape[first:])]
    image = pad(image, [end for length in excess for end in (0, length)])
    for axis in range(first, first + n_spatial):
        image = image.unfold(axis, side, side)
    return image
