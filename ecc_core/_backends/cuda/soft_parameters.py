"""Levels, sharpness and vectors by the parameters of layers, and soft_parameters.cu.

Tensors are contiguous, and their floats of one type. Memory is allocated by torch.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct

PARAMETERS = Struct("soft_parameters.cu", "Parameters")
GRADIENTS = Struct("soft_parameters.cu", "ParameterGradients")
WARP = 32


class Given(NamedTuple):
    """Addresses of parameters, or 0 for absent ones."""

    numbers: int = 0
    """Free numbers of increasing levels (n,), in units of a step."""
    step: int = 0
    log_sharpness: int = 0
    directions: int = 0
    """Directions (k, d), of any length."""
    log_scales: int = 0
    """The logarithms of scales (k,)."""


class Wanted(NamedTuple):
    """Addresses of the gradients of parameters, or 0 for those that are not wanted."""

    numbers: int = 0
    log_sharpness: int = 0
    directions: int = 0
    log_scales: int = 0


def increasing(free: Tensor, step: Tensor) -> Tensor:
    """Compute increasing levels from a first number and gaps without constraints."""
    found = torch.empty_like(free)
    with soft.launching(free) as (device, stream):
        call = plan_increasing(len(free), free.dtype, device)
        given = Given(numbers=free.data_ptr(), step=step.data_ptr())
        soft.launch(call, stream, given, (found.data_ptr(),))
    return found


def increasing_gradients(free: Tensor, step: Tensor, upstream: Tensor) -> Tensor:
    """Compute the gradient of the numbers by that of the levels."""
    found = torch.empty_like(free)
    with soft.launching(free) as (device, stream):
        call = plan_gradients(len(free), 0, 0, free.dtype, (1.0,), device)
        given = Given(numbers=free.data_ptr(), step=step.data_ptr())
        wanted = Wanted(numbers=found.data_ptr())
        launch_gradients(call, stream, given, (upstream.data_ptr(), 0, 0), wanted)
    return found


def vector_gradients(
    directions: Tensor,
    log_scales: Tensor,
    spacing: tuple[float, ...],
    sums: Tensor,
    by_direction: Tensor | None,
    by_log_scale: Tensor | None,
) -> None:
    """Write the gradients of directions and scales, where there are tensors for them.

    `sums` (rows, k, d) are gradients of the vectors in float64, whose rows are to be added up.
    """
    places = [0 if t is None else t.data_ptr() for t in (by_direction, by_log_scale)]
    with soft.launching(sums) as (device, stream):
        kind = directions.dtype, spacing, device
        call = plan_gradients(0, len(sums), len(directions), *kind)
        given = Given(directions=directions.data_ptr(), log_scales=log_scales.data_ptr())
        launch_gradients(call, stream, given, (0, 0, sums.data_ptr()), Wanted(0, 0, *places))


@programs.plan
def plan_increasing(levels: int, dtype: torch.dtype, _device: int) -> Call:
    """Return the launch that takes the words of `Given`, and the address of increasing levels."""
    spacing = (1.0,)
    given = struct_of(levels, 0, spacing), 0
    macros = _macros(dtype, spacing)
    return plan_call("soft_parameters", "soft_increasing", macros, (1,), WARP, given)


@programs.plan
def plan_gradients(
    levels: int,
    rows: int,
    count: int,
    dtype: torch.dtype,
    spacing: tuple[float, ...],
    _device: int,
) -> Call:
    """Return the launch of `launch_gradients`, by so many rows of sums of gradients of vectors."""
    given = struct_of(levels, count, spacing), GRADIENTS(rows=rows)
    macros = _macros(dtype, spacing)
    name = "soft_parameter_gradients"
    return plan_call("soft_parameters", name, macros, (gradient_blocks(count),), WARP, given)


def launch_gradients(
    call: Call, stream: int, given: Given, upstream: tuple[int, int, int], wanted: Wanted
) -> None:
    """Write gradients by those of levels and sharpness and by sums of those of vectors."""
    soft.launch(call, stream, given, (*upstream, *wanted))


def _macros(dtype: torch.dtype, spacing: tuple[float, ...]) -> dict[str, Any]:
    return {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(spacing)}


def parameter_blocks(count: int) -> int:
    """Return the warps that compute levels, sharpness and vectors of so many directions."""
    return 1 + ceil_div(count, WARP)


def gradient_blocks(count: int) -> int:
    """Return the warps that compute the gradients of parameters."""
    return 1 + count


def struct_of(levels: int, count: int, spacing: tuple[float, ...]) -> Any:
    """Return the kernels' Parameters without addresses."""
    steps = [*spacing, *[1.0] * (3 - len(spacing))]
    return PARAMETERS(spacing=steps, levels=levels, count=count)
