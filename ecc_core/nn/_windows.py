"""Soft curves of the sliding windows of images, each an image of its own."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core.nn import functional

__all__ = ["Curves", "padded", "window_curves"]


class Curves(NamedTuple):
    """Settings of the curves of images (..., *spatial)."""

    thresholds: Tensor
    sharpness: Tensor | float
    connectivity: int
    superlevel: bool
    n_spatial: int

    def __call__(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        return functional.soft_euler_curve(
            images,
            self.thresholds,
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            n_spatial=self.n_spatial,
        )


def padded(image: Tensor, before: list[int], after: list[int], value: float) -> Tensor:
    """Pad the last axes of an image; negative numbers crop them."""
    sides = zip(reversed(before), reversed(after), strict=True)
    return pad(image, [n for pair in sides for n in pair], value=value)


def window_curves(
    image: Tensor, curves: Curves, side: int, stride: int, mask: Tensor | None = None
) -> Tensor:
    """Curves (..., *positions, n) of the windows of images (..., *spatial), without padding.

    The window at a position begins at position * stride along each axis and is an image of its own.
    Points where `mask`, of the shape of the images, is False never enter.
    """
    if torch.onnx.is_in_onnx_export() and torch._C._get_tracing_state() is not None:
        raise RuntimeError(
            "curves of windows can only be exported to ONNX with `torch.onnx.export(dynamo=True)`"
        )
    last = image.dim()
    for axis in range(last - curves.n_spatial, last):
        image = image.unfold(axis, side, stride)
        mask = None if mask is None else mask.unfold(axis, side, stride)
    return curves(image, mask)
