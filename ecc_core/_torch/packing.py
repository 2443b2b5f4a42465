"""Coefficients as the CUDA kernels pack them: those of eight points along z in one word."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["packed_shape", "unpack"]

PER_WORD = 8


def packed_shape(image: Tensor, keep: bool) -> tuple[int, ...]:
    """Shape (batch, words, height, width) of the words of images, or (batch, 0) without `keep`.

    The axes of a 2-D image are z and x, and the axis of a 1-D image is x.
    """
    batch, *spatial = image.shape
    if not keep:
        return batch, 0
    z = spatial[0] if len(spatial) > 1 else 1
    y = spatial[1] if len(spatial) > 2 else 1
    return batch, -(-z // PER_WORD), y, spatial[-1]


def unpack(words: Tensor, shape: torch.Size) -> Tensor:
    """Unpack int32 words to int8 coefficients of the given shape (batch, *spatial)."""
    numbers = torch.stack([(words << (4 * k)) >> 28 for k in range(PER_WORD)], 2).to(torch.int8)
    z = shape[1] if len(shape) > 2 else 1
    return numbers.flatten(1, 2)[:, :z].reshape(shape)
