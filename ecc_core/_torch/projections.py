"""Soft transforms on the CPU: with windows of levels, or for float64 level by level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cpu.soft import transform as soft_transform
from ecc_core._torch import direct
from ecc_core._torch.cpu import check_numbers, threads

__all__ = ["Given", "checked", "curves", "direct_curves", "direct_gradients", "gradients"]


class Given(NamedTuple):
    """Arguments of the operator."""

    weights: Tensor
    positions: Tensor
    directions: Tensor
    orthants: Tensor
    heights: Tensor
    sharpness: Tensor


def checked(*arguments: Tensor) -> Given:
    """Check the values of the arguments."""
    given = Given(*arguments)
    check_numbers(given.heights.numpy(), given.sharpness, "heights")
    if not bool(given.directions.isfinite().all()):
        raise ValueError("`directions` must be finite and not zero")
    if not bool(given.weights.isfinite().all()):
        raise ValueError("`weights` must be finite")
    return given


def _projection(given: Given) -> soft_transform.Projection:
    return soft_transform.Projection(
        given.weights.numpy(),
        given.positions.double().numpy(),
        given.directions.double().numpy(),
        given.orthants.numpy().astype(np.intp),
        given.heights.double().numpy(),
        float(given.sharpness),
        threads(),
    )


def curves(given: Given) -> tuple[Tensor, Tensor, Tensor]:
    """Curves, and their derivatives with respect to heights and sharpness."""
    sums = soft_transform.curves(_projection(given)).astype(np.float32)
    return torch.from_numpy(sums[0]), torch.from_numpy(sums[1]), torch.from_numpy(sums[2])


def gradients(given: Given, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and, for each image, of the directions."""
    found = soft_transform.gradients(_projection(given), upstream.double().numpy())
    return torch.from_numpy(found[0]), torch.from_numpy(found[1].astype(np.float32))


def direct_curves(given: Given) -> tuple[Tensor, Tensor, Tensor]:
    """Same as :func:`curves`, for float64."""
    shape = (given.weights.shape[0], given.directions.shape[0], given.heights.numel())
    results = [given.weights.new_empty(shape) for _ in range(3)]
    for k in range(shape[1]):
        parts = direct.curves(*_of_direction(given, k), given.heights, given.sharpness)
        for result, part in zip(results, parts, strict=True):
            result[:, k] = part
    return results[0], results[1], results[2]


def direct_gradients(given: Given, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Same as :func:`gradients`, for float64."""
    by_weights = torch.zeros_like(given.weights)
    by_directions = given.directions.new_empty((len(given.weights), *given.directions.shape))
    numbers = given.heights, given.sharpness
    for k in range(len(given.directions)):
        heights, weights = _of_direction(given, k)
        row = upstream[:, k]
        entered = direct.entered(heights, *numbers, row)
        by_weights.index_add_(1, given.orthants[k : k + 1], entered[:, None])
        slopes = direct.gradients(heights, weights, *numbers, row)
        by_directions[:, k] = -slopes @ given.positions.T
    return by_weights, by_directions


def _of_direction(given: Given, k: int) -> tuple[Tensor, Tensor]:
    """Heights (1, points) and weights (batch, points) for direction k."""
    heights = given.directions[k : k + 1] @ given.positions
    return heights, given.weights.index_select(1, given.orthants[k : k + 1])[:, 0]
