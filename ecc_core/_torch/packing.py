"""Coefficients of the points of an image as CUDA kernels leave them: eight in a word, along z."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["packed_shape", "unpack"]

A_WORD = 8


def packed_shape(image: Tensor, keep: bool) -> tuple[int, ...]:
    """Shape of the words of images (batch, *spatial): (batch, words, height, width), or no words.

    Of an image of two axes the first counts as z, a line is along x.
    """
    batch, *spatial = image.shape
    if not keep:
        return batch, 0
    z = spatial[0] if len(spatial) > 1 else 1
    y = spatial[1] if len(spatial) > 2 else 1
    return batch, -(-z // A_WORD), y, spatial[-1]


def unpack(words: Tensor, shape: torch.Size) -> Tensor:
    """Coefficients, int8 of the shape (batch, *spatial), from int32 words."""
    numbers = torch.stack([(words << (4 * k)) >> 28 for k in range(A_WORD)], 2).to(torch.int8)
    z = shape[1] if len(shape) > 2 else 1
    return numbers.flatten(1, 2)[:, :z].reshape(shape)
