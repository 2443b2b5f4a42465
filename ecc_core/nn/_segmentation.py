"""What losses and metrics of segmentations share: settings, inputs, targets and windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._request.resources import check_positive_int
from ecc_core._torch.windows import windows
from ecc_core.nn import _arguments
from ecc_core.nn._arguments import check_n_spatial

ROUNDING = 1e-3  # Probabilities may be out of range by so much, as those of 16 bits are.
INSIDE = (1, 255, 65535)
"""What masks of integers may hold inside objects: 1, or white."""


Errors = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""Returns the errors (batch,) of images, targets and what is shown, all (batch, *spatial)."""


@dataclass(frozen=True)
class Pair:
    """A prediction and its target, as a loss compares them."""

    prediction: Tensor
    """Probabilities (..., spatial)."""
    masks: Tensor
    """The objects of the target, of the shape of the prediction: booleans or probabilities."""
    shown: Tensor | None
    """Which points count, of the same shape; None if all do."""


class SegmentationLoss(nn.Module):
    """Base of the losses, which compare whole images or windows and reduce their errors."""

    weight: Tensor | None
    described: ClassVar[tuple[str, ...]]
    """The settings that `repr` shows."""
    logits_option: ClassVar[str] = "from_logits=True"
    waits: ClassVar[bool] = False
    """Whether a call waits for the device of the input anyway."""

    def __init__(
        self,
        window: int | None,
        connectivity: int | None,
        n_spatial: int,
        reduction: str,
        from_logits: bool,
        ignore_index: int | None,
        weight: Tensor | Sequence[float] | None,
    ) -> None:
        super().__init__()
        self.n_spatial = check_n_spatial(n_spatial)
        self.connectivity = check_connectivity(connectivity, self.n_spatial)
        self.window = None if window is None else check_positive_int(window, "window")
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f'`reduction` must be "mean", "sum" or "none", got {reduction!r}')
        self.reduction = reduction
        self.from_logits = check_flag(from_logits, "from_logits")
        self.ignore_index = ignore_index
        self._weight = _as_weights(weight)
        given = None if self._weight is None else torch.as_tensor(self._weight).clone()
        self.register_buffer("weight", given, persistent=False)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set the weights again, for example after ``to_empty``."""
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
        return self._loss(self._pair(input, target, mask))

    def _loss(self, pair: Pair) -> Tensor:
        return self._reduced(self._errors(pair))

    def _errors(self, pair: Pair) -> Tensor:
        """Errors (...) of the images and channels."""
        raise NotImplementedError

    def _pair(self, input: Any, target: Any, mask: Tensor | None) -> Pair:
        """Check a prediction and its target, and bring them into one form."""
        if not isinstance(input, Tensor) or not input.is_floating_point():
            kind = getattr(input, "dtype", type(input).__name__)
            raise TypeError(f"`input` must be a tensor of floats, got {kind}")
        if not isinstance(target, Tensor) or target.is_complex():
            kind = getattr(target, "dtype", type(target).__name__)
            raise TypeError(f"`target` must be a tensor of real numbers, got {kind}")
        if target.device != input.device:
            raise ValueError(
                f"`target` must be on the device of `input`, {input.device}, got {target.device}"
            )
        input = _arguments.plain(input)
        target = _arguments.plain(target)
        check_axes(tuple(input.shape), self.n_spatial, "input")
        axis = input.dim() - self.n_spatial - 1
        masks, shown = self._as_masks(target, tuple(input.shape), axis)
        if mask is not None:
            given = _arguments.check_mask(mask, input, input.shape[-self.n_spatial :])
            given = given.reshape(mask.shape)
            shown = given if shown is None else shown & given
        if shown is not None:
            shown = shown.expand(input.shape)
        if self.from_logits:
            of_classes = target.shape != input.shape and input.shape[axis] > 1
            input = input.softmax(axis) if of_classes else input.sigmoid()
        self._check_values(input, masks, shown)
        return Pair(input, masks, shown)

    def _as_masks(
        self, target: Tensor, shape: tuple[int, ...], axis: int
    ) -> tuple[Tensor, Tensor | None]:
        """Masks of the shape of the input, whose classes lie along `axis`, and what is shown."""
        classes = shape[axis] if axis >= 0 else 1
        without = shape[:axis] + shape[axis + 1 :]
        real = target.is_floating_point() or target.dtype == torch.bool
        if classes == 1 and axis > 0 and tuple(target.shape) == without:
            target = target.unsqueeze(axis)
        single = (*shape[:axis], 1, *shape[axis + 1 :])
        if classes > 1 and axis > 0 and tuple(target.shape) == single:
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
            if real:
                return target, shown
            if self._sees(target):
                check_mask_values(target if shown is None else target.where(shown, 0), "target")
            return target != 0, shown
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
        return masks_of_classes(target.unsqueeze(axis), classes, self.n_spatial), shown

    def _sees(self, given: Tensor) -> bool:
        """Whether a look at values neither waits for a device nor breaks a graph."""
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return False
        on_host = given.device.type == "cpu" or (self.waits and not given.is_meta)
        return on_host and given.numel() > 0

    def _check_values(self, input: Tensor, masks: Tensor, shown: Tensor | None) -> None:
        """Refuse values that are no probabilities, if they are seen. A device is asked once."""
        given = [("input", input, f"pass {self.logits_option} for logits")]
        if masks.is_floating_point():
            given.append(("target", masks, "pass masks of 0 and 255 as integers"))
        seen = [one for one in given if self._sees(one[1])]
        bounds = _bounds_of([values for _, values, _ in seen])
        for (name, values, advice), known in zip(seen, bounds, strict=True):
            check_probabilities(
                values,
                name,
                advice,
                on_nan="pass `mask` to leave such points out",
                shown=shown,
                bounds=known,
            )

    def _in_windows(self, image: Tensor, fill: float = 0) -> Tensor:
        """Images (..., spatial), or their windows (..., positions, window) if there are any."""
        if self.window is None:
            return image
        spatial = image.shape[image.dim() - self.n_spatial :]
        after = [-n % self.window for n in spatial]
        return windows(
            image,
            [0] * self.n_spatial,
            after=after,
            value=fill,
            side=self.window,
            stride=self.window,
        )

    def _mean_errors(
        self, prediction: Tensor, masks: Tensor, shown: Tensor | None, errors_of: Errors
    ) -> Tensor:
        """Errors (...) of the images and channels, each the mean of those of its windows."""
        batch = prediction.shape[: prediction.dim() - self.n_spatial]
        images = self._in_windows(prediction)
        size = images.shape[images.dim() - self.n_spatial :]
        positions = math.prod(images.shape[len(batch) : images.dim() - self.n_spatial])
        count = math.prod(batch) * positions
        if shown is not None:
            shown = self._in_windows(shown, False).reshape(count, *size)
        targets = self._in_windows(masks, False).reshape(count, *size)
        errors = errors_of(images.reshape(count, *size), targets, shown)
        if self.window is None:
            return errors.reshape(batch)
        return errors.reshape(*batch, positions).sum(-1) / max(positions, 1)

    def _reduced(self, errors: Tensor) -> Tensor:
        """Weigh and reduce the errors (..., class) of images and channels."""
        total: Tensor | None = None
        if self.weight is not None:
            if errors.dim() == 0 or errors.shape[-1] != len(self.weight):
                raise ValueError(
                    f"`weight` must have as many elements as `input` has channels, "
                    f"{errors.shape[-1] if errors.dim() else 'none'}, got {len(self.weight)}"
                )
            weights = self.weight.to(errors.device, errors.dtype).expand(errors.shape)
            errors = errors * weights
            total = weights.sum()
        if self.reduction == "none":
            return errors
        if self.reduction == "sum":
            return errors.sum()
        return errors.mean() if total is None else errors.sum() / total

    def extra_repr(self) -> str:
        """Describe settings."""
        settings = [f"{name}={getattr(self, name)!r}" for name in self.described]
        weight = [] if self.weight is None else [f"weight={self.weight.tolist()}"]
        return ", ".join([*settings, *weight])


def check_axes(shape: tuple[int, ...], n_spatial: int, name: str) -> None:
    """Refuse images with more axes than batch, class and the spatial ones, such as volumes."""
    if len(shape) < n_spatial:
        raise ValueError(
            f"`{name}` must have at least {n_spatial} axes (`n_spatial`), got shape {shape}"
        )
    if len(shape) > n_spatial + 2:
        raise ValueError(
            f"`{name}` must have at most {n_spatial + 2} axes (batch, class and "
            f"n_spatial={n_spatial}), got {shape}; pass n_spatial=3 for volumes, or "
            "flatten the first axes"
        )


def masks_of_classes(indices: Tensor, count: int, n_spatial: int, first: int = 0) -> Tensor:
    """Masks (..., class, spatial) of the points of each class, from indices (..., 1, spatial)."""
    classes = torch.arange(first, count, device=indices.device)
    return indices == classes.view(-1, *[1] * n_spatial)


def check_probabilities(
    given: Any,
    name: str,
    advice: str,
    on_nan: str = "",
    shown: Any = None,
    bounds: tuple[float, float] | None = None,
) -> None:
    """Refuse an array or tensor of values that are no probabilities, rounded to 16 bits or not.

    `bounds` are its smallest and largest value, if they are known.
    """
    low, high = _bounds(given) if bounds is None else bounds
    if not _are_probabilities(low, high) and shown is not None:
        given = given[shown]  # Values that are left out may be anything.
        low, high = _bounds(given) if given.numel() else (0.0, 0.0)
    _refuse_nan(low, name, on_nan)
    if not _are_probabilities(low, high):
        raise ValueError(
            f"`{name}` must be between 0 and 1 ({advice}), got {low if low < -ROUNDING else high:g}"
        )


def check_no_nan(given: Any, name: str) -> None:
    """Refuse an array or tensor with NaN."""
    _refuse_nan(_bounds(given)[0], name)


def _refuse_nan(low: float, name: str, advice: str = "") -> None:
    if math.isnan(low):
        raise ValueError(f"`{name}` must not contain NaN{advice and f' ({advice})'}, got NaN")


def _are_probabilities(low: float, high: float) -> bool:
    return low >= -ROUNDING and high <= 1 + ROUNDING


def check_mask_values(
    given: Any,
    name: str,
    advice: str = "class indices need a channel of `input` for each class",
) -> None:
    """Refuse an array or tensor of integers that are no masks, whose classes would be merged."""
    low, high = _bounds(given)
    if low == 0 and high <= 1:
        return
    if high not in INSIDE or not ((given == 0) | (given == high)).all():
        values = sorted({*given.flatten().tolist()} - {0})
        raise ValueError(
            f"`{name}` must be 0 and 1, or 0 and 255, where it has integers for a mask ({advice}), "
            f"got {', '.join(map(str, values[:5]))}{', ...' if len(values) > 5 else ''}"
        )


def _bounds(given: Any) -> tuple[float, float]:
    """The smallest and the largest value; NaN if there is any."""
    if isinstance(given, Tensor):
        if given.dtype in _arguments.UNSIGNED[1:]:
            given = given.to(torch.int64)  # torch does not compare the wider unsigned types.
        return _bounds_of([given])[0]
    return given.min().item(), given.max().item()


def _bounds_of(tensors: list[Tensor]) -> list[tuple[float, float]]:
    """The bounds of tensors, which are copied to the host at once if all are of one dtype."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        return [bounds for tensor in tensors for bounds in _bounds_of([tensor])]
    if not tensors:
        return []
    ends = tensors[0].detach().new_empty(len(tensors), 2)
    for own, tensor in zip(ends, tensors, strict=True):
        torch.aminmax(tensor.detach(), out=(own[0], own[1]))
    return [(low, high) for low, high in ends.tolist()]


def _as_weights(weight: Any) -> Tensor | None:
    if weight is None:
        return None
    try:
        weights = torch.as_tensor(weight, dtype=torch.get_default_dtype(), device="cpu")
    except OverflowError as error:
        raise _arguments.overflow_error("weight") from error
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"`weight` must be real numbers, got {weight!r}") from error
    if weights.dim() != 1:
        raise ValueError(f"`weight` must have shape (class,), got {tuple(weights.shape)}")
    if not ((weights >= 0).all() and 0 < weights.sum() < math.inf):
        raise ValueError(
            f"`weight` must be nonnegative, finite and not all 0, got {weights.tolist()}"
        )
    return weights
