"""What losses and metrics of segmentations share: their settings, inputs, targets and windows."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from ecc_core._request.filtration import check_connectivity, check_flag
from ecc_core._request.resources import check_positive_int
from ecc_core.nn._arguments import check_n_spatial

ROUNDING = 1e-3  # by which probabilities may be out of range, as those of 16 bits may


class SegmentationLoss(nn.Module):
    """Base of the losses, which compare whole images or windows and reduce their errors."""

    described: tuple[str, ...]  # the settings that `repr` shows

    def __init__(
        self,
        window: int | None,
        connectivity: int | None,
        n_spatial: int,
        reduction: str,
        from_logits: bool,
    ) -> None:
        super().__init__()
        self.n_spatial = check_n_spatial(n_spatial)
        self.connectivity = check_connectivity(connectivity, self.n_spatial)
        self.window = None if window is None else check_positive_int(window, "window")
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f'`reduction` must be "mean", "sum" or "none", got {reduction!r}')
        self.reduction = reduction
        self.from_logits = check_flag(from_logits, "from_logits")

    def _in_windows(self, image: Tensor, fill: float = 0) -> Tensor:
        """Images (..., spatial), or their windows (..., positions, window) if there are any."""
        if self.window is None:
            return image
        spatial = image.shape[image.dim() - self.n_spatial :]
        after = [-n % self.window for n in spatial]
        return windows(image, [0] * self.n_spatial, after, fill, self.window, self.window)

    def _reduced(self, errors: Tensor, total: Tensor | int) -> Tensor:
        """Reduce the errors of images and channels, of which `total` count."""
        if self.reduction == "none":
            return errors
        return errors.sum() / total if self.reduction == "mean" else errors.sum()

    def extra_repr(self) -> str:
        """Describe settings."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.described)


def windows(
    image: Tensor, before: list[int], after: list[int], value: float, side: int, stride: int
) -> Tensor:
    """Windows (..., *positions, *window) of images (..., *spatial), each an image of its own.

    The last axes are padded with a value, by as many points as `before` and `after` tell for each
    of them; negative numbers crop them.
    """
    if torch.onnx.is_in_onnx_export() and torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            "curves of windows can only be exported to ONNX with `torch.onnx.export(dynamo=True)`"
        )
    sides = zip(reversed(before), reversed(after), strict=True)
    image = pad(image, [n for pair in sides for n in pair], value=value)
    for axis in range(image.dim() - len(before), image.dim()):
        image = image.unfold(axis, side, stride)
    return image


def masks_of_classes(indices: Tensor, count: int, n_spatial: int, first: int = 0) -> Tensor:
    """Masks (..., class, spatial) of the points of each class, from indices (..., 1, spatial)."""
    classes = torch.arange(first, count, device=indices.device)
    return indices == classes.view(-1, *[1] * n_spatial)


def check_probabilities(given: Any, name: str, advice: str) -> None:
    """Refuse an array or tensor of values that are no probabilities, rounded to 16 bits or not."""
    if isinstance(given, Tensor):
        low, high = (bound.item() for bound in given.detach().aminmax())
    else:
        low, high = float(given.min()), float(given.max())
    if low < -ROUNDING or high > 1 + ROUNDING:
        raise ValueError(
            f"`{name}` must be between 0 and 1 ({advice}), got {low if low < -ROUNDING else high:g}"
        )
