"""Parameters of layers as NumPy arrays, and their gradients.

Layers on the CPU are one function of autograd from parameters to curves, as in
`host_transforms.py`: for small images, nodes of autograd for a few numbers take as long as kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.transform import unit_and_length

Array = NDArray[Any]
Floats = NDArray[np.float64]

FLOATS = torch.float32, torch.float64


def are_alike(tensors: Sequence[Tensor | None]) -> bool:
    """Whether these are floats of 32 or 64 bits, all of one dtype, in host memory, not negated.

    Tensors of inference mode are not alike where gradients are recorded, since autograd cannot save
    them for the backward pass.
    """
    first = tensors[0]
    assert first is not None
    dtype = first.dtype
    if dtype not in FLOATS or first.layout is not torch.strided or first.is_nested:
        return False
    for tensor in tensors:
        if tensor is None:
            continue
        if tensor.dtype is not dtype or tensor.device.type != "cpu" or tensor.is_neg():
            return False
        if torch.is_grad_enabled() and tensor.is_inference():
            return False
    return True


def doubles(numbers: Tensor) -> Floats:
    """Return a copy in double precision.

    It is copied by torch, since the memory of a tensor that NumPy has seen cannot be resized any
    more, and FSDP does so with parameters.
    """
    copy = numbers.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    found: Floats = copy.numpy()
    return found


class Levels(NamedTuple):
    """Levels, and the free numbers from which increasing ones are computed, as in `increasing`."""

    values: Floats
    free: Floats
    """The levels themselves where there is no step."""
    step: float | None

    @classmethod
    def of(cls, numbers: Tensor, step: Tensor | None) -> Levels:
        free = doubles(numbers)
        if step is None:
            return cls(free, free, None)
        return cls(doubles(increasing_in_torch(numbers, step)), free, float(step))

    def gradients(self, by_values: Floats) -> Floats:
        """Return the gradients of the free numbers by those of the levels."""
        if self.step is None:
            return by_values
        by_gaps = by_values[::-1].cumsum()[::-1] * self.step
        rates = np.exp(-np.logaddexp(-self.free, 0))  # The derivative of softplus is a sigmoid.
        rates[:1] = 1
        found: Floats = by_gaps * rates
        return found


class Vectors(NamedTuple):
    """Unit vectors along directions (k, d), and the lengths (k, 1) of the directions."""

    units: Floats
    lengths: Floats

    @classmethod
    def along(cls, directions: Tensor) -> Vectors:
        return cls(*map(doubles, unit_and_length(directions)))

    def gradients(self, by_units: Floats) -> Floats:
        """Return the gradients of the directions, which are perpendicular to them."""
        along = (by_units * self.units).sum(1, keepdims=True)
        found: Floats = (by_units - along * self.units) / self.lengths
        return found


def as_gradient(found: Array, like: Tensor) -> Tensor:
    """Return a gradient as a tensor of the shape and dtype of another one."""
    return torch.from_numpy(np.asarray(found)).to(like.dtype).view(like.shape)


def sharpness_of(number: Tensor, is_logarithm: bool) -> float:
    """Return the sharpness, which may be given by its logarithm."""
    return float(number.exp() if is_logarithm else number)


def check_levels(levels: Floats, sharpness: float, name: str) -> None:
    """Refuse levels that are NaN and a wrong sharpness."""
    if np.isnan(levels).any():
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    if not 0 < sharpness < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {sharpness:g}")
