"""Windows of images and their gradients: launches of soft_windows.cu.

Tensors are contiguous floats of 32 or 64 bits. Memory is allocated by torch.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.image_cuts import Cut

WINDOW_GRID = Struct("soft_windows.cuh", "WindowGrid")
THREADS = 256


def windows(images: Tensor, cut: Cut) -> Tensor:
    """Return the windows (..., *positions, *window)."""
    shape = images.shape
    lead = shape[: len(shape) - len(cut.positions)]
    found = images.new_empty((*lead, *cut.positions, *[cut.side] * len(cut.positions)))
    if found.numel():
        _launch("cut_windows", images, found, cut, shape, found.numel())
    return found


def gradients(upstream: Tensor, shape: torch.Size, cut: Cut) -> Tensor:
    """Return the gradients of images of a shape by those of their windows."""
    found = upstream.new_empty(shape)
    if found.numel():
        _launch("window_gradients", upstream, found, cut, shape, found.numel())
    return found


def _launch(
    name: str, given: Tensor, found: Tensor, cut: Cut, shape: torch.Size, count: int
) -> None:
    with soft.launching(given) as (device, stream):
        call = plan(name, shape, cut, given.dtype, count, device)
        soft.launch(call, stream, (), (given.data_ptr(),), (found.data_ptr(),))


@programs.plan
def plan(
    name: str, shape: tuple[int, ...], cut: Cut, dtype: torch.dtype, count: int, _device: int
) -> Call:
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(cut.positions)}
    given = [grid_of(shape, cut), 0, 0, np.int64(count)]
    if name == "cut_windows":
        given.append(np.float64(cut.fill))
    return plan_call("soft_windows", name, macros, (ceil_div(count, THREADS),), THREADS, given)


def grid_of(shape: tuple[int, ...], cut: Cut) -> Any:
    """Return the kernels' WindowGrid for images of a shape."""
    axes = len(cut.positions)
    missing = [1] * (4 - axes)
    return WINDOW_GRID(
        images=math.prod(shape[: len(shape) - axes]),
        sides=[*shape[len(shape) - axes :], *missing],
        positions=[*cut.positions, *missing],
        before=[*cut.before, *missing],
        side=cut.side,
        stride=cut.stride,
    )
