"""The heights of points along directions, added to images: launches of soft_heights.cu.

Tensors are contiguous, and their floats of one type. Memory is allocated by torch.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_parameters
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct

GRID = Struct("soft_heights.cu", "Grid")
THREADS = 128
MOST_DIRECTIONS = 65535  # The most rows of a grid of blocks.
# A block adds up the gradients of so many points, eight for each thread; the next kernel adds up
# the sums of all blocks, a row each.
POINTS_A_ROW = 1 << 10


def add_heights(
    images: Tensor, directions: Tensor, log_scales: Tensor, spacing: tuple[float, ...]
) -> Tensor:
    """Return images (images, k, *grid): the sums of images (images, *grid) and heights.

    Those are along directions (k, d), times scales (k,), which are given by their logarithms.
    """
    count = len(directions)
    found = images.new_empty((len(images), count, *images.shape[1:]))
    with soft.launching(images) as (device, stream):
        kind = len(images), tuple(images.shape[1:]), spacing, count, images.dtype, device
        places = (images.data_ptr(),), (found.data_ptr(),)
        given = soft_parameters.Given(
            directions=directions.data_ptr(), log_scales=log_scales.data_ptr()
        )
        soft.launch(plan_addition(*kind), stream, (), *places, given)
    return found


def height_totals(gradients: Tensor) -> Tensor:
    """Return the gradients of images (images, *grid) by those of `add_heights`."""
    images, count, *grid = gradients.shape
    found = gradients.new_empty((images, *grid))
    with soft.launching(gradients) as (device, stream):
        call = _on_grid("soft_height_totals", images, grid, count, gradients, device)
        soft.launch(call, stream, (), *((t.data_ptr(),) for t in (gradients, found)))
    return found


def height_sums(gradients: Tensor) -> Tensor:
    """Return sums (rows, k, d) of the gradients of vectors by those of `add_heights`."""
    images, count, *grid = gradients.shape
    shape = ceil_div(math.prod(grid), POINTS_A_ROW), count, len(grid)
    found = gradients.new_empty(shape, dtype=torch.float64)
    with soft.launching(gradients) as (device, stream):
        call = _on_grid("soft_height_sums", images, grid, count, gradients, device)
        soft.launch(call, stream, (), *((t.data_ptr(),) for t in (gradients, found)))
    return found


def _on_grid(
    name: str, images: int, grid: Sequence[int], count: int, like: Tensor, device: int
) -> Call:
    return plan_on_grid(name, images, tuple(grid), count, like.dtype, device)


@programs.plan
def plan_addition(
    images: int,
    grid: tuple[int, ...],
    spacing: tuple[float, ...],
    count: int,
    dtype: torch.dtype,
    _device: int,
) -> Call:
    """Return the launch that adds heights.

    It takes a Grid, the addresses of images and results, and the words of `soft_parameters.Given`.
    """
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(grid)}
    given = _grid(images, grid), 0, 0, soft_parameters.struct_of(0, count, spacing)
    blocks = ceil_div(math.prod(grid), THREADS), count
    return plan_call("soft_heights", "soft_add_heights", macros, blocks, THREADS, given)


def _grid(images: int, grid: tuple[int, ...]) -> Any:
    """Return the kernels' Grid."""
    sides = [*grid, *[1] * (4 - len(grid))]
    return GRID(points=math.prod(grid), images=images, chunk=POINTS_A_ROW, sides=sides)


@programs.plan
def plan_on_grid(
    name: str, images: int, grid: tuple[int, ...], count: int, dtype: torch.dtype, _device: int
) -> Call:
    """Return the launch of a kernel of gradients, which takes a Grid and two or three addresses.

    `soft_height_gradients` takes those of gradients and of the results of `soft_height_totals` and
    `soft_height_sums`.
    """
    points = math.prod(grid)
    struct = _grid(images, grid)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(grid)}
    totals = ceil_div(images * points, THREADS)
    sums = ceil_div(points, POINTS_A_ROW) * count
    own = np.int32(count)
    if name == "soft_height_totals":
        return plan_call("soft_heights", name, macros, (totals,), THREADS, (struct, 0, 0, own))
    if name == "soft_height_sums":
        return plan_call("soft_heights", name, macros, (sums,), THREADS, (struct, 0, 0, own))
    both = struct, 0, 0, 0, own, np.int32(sums)
    return plan_call("soft_heights", name, macros, (sums + totals,), THREADS, both)
