"""Sliding windows of images, each an image of its own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["windows"]


def windows(
    image: Tensor, before: list[int], after: list[int], value: float, side: int, stride: int
) -> Tensor:
    """Windows (..., *positions, *window) of images (..., *spatial).

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
