"""Soft curves of projections on CUDA devices: launches of soft_project.cu on torch's stream."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cuda.calls import by_value
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.soft import on_stream
from ecc_core._backends.cuda.soft_plans import ELEMENTS

__all__ = ["curves", "gradients"]

POINTS = np.dtype(
    [
        (name, "i8")
        for name in ("weights", "positions", "directions", "orthants", "levels", "sharpness")
    ]
    + [("points", "i8")]
    + [(name, "i4") for name in ("axes", "all_orthants", "count", "levels_count", "chunk", "pad")]
)
THREADS = 128
CHUNKS = 64  # of points, at most


def curves(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return curves (batch, k, n) and their derivatives by the heights and by the sharpness.

    Of weights (batch, orthants, points), positions (d, points), directions (k, d), their orthants
    (k,), heights (n,) and a sharpness.
    """
    weights, _, directions, _, heights, sharpness = tensors
    images, count, levels = len(weights), len(directions), heights.numel()
    if not (images * count * levels * weights.shape[2]):
        empty = weights.new_zeros((3, images, count, levels))
        return empty[0].clone(), empty[1].clone(), empty[2].clone()
    given = [t.contiguous() for t in tensors[:5]]
    with on_stream(weights) as device:
        struct, chunks = _points(given, sharpness)
        partial = torch.empty(
            (chunks, 3, images, count, levels), dtype=torch.float64, device=weights.device
        )
        kernel = _kernel("soft_project", device, weights.dtype)
        kernel((chunks, count, images), (THREADS,), (struct, partial.data_ptr()))
        sums = [partial[:, i].sum(0).to(weights.dtype) for i in range(3)]
    return sums[0], sums[1], sums[2]


def gradients(upstream: Tensor, of_weights: bool, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of the weights and, for each image, of the directions.

    Those of the weights are undefined unless `of_weights`.
    """
    weights, _, directions, _, heights, sharpness = tensors
    images, count, levels = len(weights), len(directions), heights.numel()
    if not (images * count * levels * weights.shape[2]):
        return torch.zeros_like(weights), directions.new_zeros((images, *directions.shape))
    given = [t.contiguous() for t in tensors[:5]]
    upstream = upstream.contiguous()
    with on_stream(weights) as device:
        struct, chunks = _points(given, sharpness)
        by_weights = torch.empty_like(given[0])
        if of_weights:
            kernel = _kernel("soft_by_weights", device, weights.dtype)
            grid = (-(-weights.shape[2] // THREADS), weights.shape[1], images)
            kernel(grid, (THREADS,), (struct, upstream.data_ptr(), by_weights.data_ptr()))
        partial = torch.empty(
            (chunks, images, *directions.shape), dtype=torch.float64, device=weights.device
        )
        kernel = _kernel("soft_by_directions", device, weights.dtype)
        arguments = (struct, upstream.data_ptr(), partial.data_ptr())
        kernel((chunks, count, images), (THREADS,), arguments)
        by_directions = partial.sum(0).to(directions.dtype)
    return by_weights, by_directions


@lru_cache(maxsize=32)
def _kernel(name: str, device: int, dtype: torch.dtype) -> Any:
    macros = (("REAL", ELEMENTS[dtype]), ("THREADS", THREADS))
    return function("soft_project", name, device, macros).kernel


def _points(given: list[Tensor], sharpness: Tensor) -> tuple[NDArray[Any], int]:
    """Return the kernels' Points and the number of chunks."""
    weights, positions, directions, _, heights = given
    points = weights.shape[2]
    chunk = THREADS * -(-points // (THREADS * CHUNKS))
    numbers = (points, len(positions), weights.shape[1], len(directions), heights.numel(), chunk, 0)
    struct = np.array([(*(t.data_ptr() for t in (*given, sharpness)), *numbers)], POINTS)
    return by_value(struct), -(-points // chunk)
