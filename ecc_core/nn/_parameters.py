"""Initial values of the layers, and the constraints on their parameters."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from ecc_core._arrays import given_on_host
from ecc_core._request.thresholds import parse_thresholds
from ecc_core._torch.operators import bypasses_torch, is_plain

Floats = NDArray[np.float64]

DTYPES = (torch.float32, torch.float64)
MANY = 1 << 20
SLOPE_OF_STEP = 4.0  # the tangent at the centre of sigmoid(l * z) rises from 0 to 1 over 4 / l


def increasing(free: Tensor, step: Tensor) -> Tensor:
    """Add up a first number and the softplus of all others, in units of `step`."""
    by_kernels = free.is_cuda and free.dtype in DTYPES and free.is_contiguous()
    if by_kernels and bypasses_torch((free, step)):
        found: Tensor = _Increasing.apply(free, step)  # type: ignore[no-untyped-call]
        return found
    return _in_torch(free, step)


def _in_torch(free: Tensor, step: Tensor) -> Tensor:
    return step * torch.cat([free[:1], softplus(free[1:])]).cumsum(0)


class _Increasing(torch.autograd.Function):
    """The same by one kernel each way, in place of thirteen."""

    @staticmethod
    def forward(ctx: Any, free: Tensor, step: Tensor) -> Tensor:
        from ecc_core._backends.cuda import soft

        ctx.save_for_backward(free, step)
        return soft.increasing(free, step)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        free, step = ctx.saved_tensors
        if is_plain(gradient):
            from ecc_core._backends.cuda import soft

            return soft.increasing_gradients(free, step, gradient.contiguous()), None
        with torch.enable_grad():
            levels = _in_torch(free, step)
        return *torch.autograd.grad(levels, free, gradient, create_graph=True), None


def free_increasing(values: Tensor, step: Tensor) -> Tensor:
    """Inverse of :func:`increasing`."""
    scaled = values / step
    gaps = scaled.diff()
    return torch.cat([scaled[:1], gaps + torch.log(-torch.expm1(-gaps))])


def as_levels(
    levels: Any, bounds: tuple[float, float] | None, name: str, learn: bool
) -> tuple[Floats, float | None]:
    """Levels from an int or an array, and their mean spacing if it is positive and finite."""
    given = parse_thresholds(given_on_host(levels), bounds, name=name, no_exact="")
    if given.needs_range:
        raise ValueError(f"`range` must be given where `{name}` is an int, got None")
    values = given.over(lambda: (None, None), ()).astype(np.float64)
    low, high = given.bounds or ((values[0], values[-1]) if values.size else (0.0, 0.0))
    if learn and not (np.isfinite(values).all() and (np.diff(values) > 0).all()):
        raise ValueError(f"`{name}` must be finite and distinct to be learned, got {values}")
    gap = float(high - low) / max(values.size - 1, 1)
    return values, gap if 0 < gap < math.inf else None


def bounds_of(data: Tensor, quantiles: tuple[float, float]) -> tuple[float, float]:
    """Two distinct quantiles of the finite values, estimated from about a million of them."""
    values = data.detach().flatten()
    values = values[:: -(-values.numel() // MANY) or 1]
    values = values[values.isfinite()].double()
    if values.numel() == 0:
        raise ValueError("`data` must have finite values, got none")
    low, high = torch.quantile(values, values.new_tensor(quantiles)).tolist()
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def log_of(number: Any, name: str) -> float:
    """The logarithm of a positive number."""
    if isinstance(number, bool | str | complex) or np.ndim(number):
        raise TypeError(f"`{name}` must be a real number, got {number!r}")
    if not 0 < number < math.inf:
        raise ValueError(f"`{name}` must be positive and finite, got {number}")
    return math.log(number)
