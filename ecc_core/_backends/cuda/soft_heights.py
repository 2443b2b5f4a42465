"""The heights of points along vectors, added to images: launches of soft_heights.cu.

Tensors are contiguous, and their floats of one type. Memory is allocated by torch.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct

GRID = Struct("soft_heights.cu", "Grid")
THREADS = 128
MOST_DIRECTIONS = 65535  # The most rows of a grid of blocks.
CHUNK = 1 << 10  # points per block of sums


def add_heights(images: Tensor, along: Tensor) -> Tensor:
    """Return images (images, k, *grid): the sums of images (images, *grid) and heights."""
    count = len(along)
    found = images.new_empty((len(images), count, *images.shape[1:]))
    with soft.launching(images) as (device, stream):
        call = _on_grid("soft_add_heights", len(images), images.shape[1:], count, along, device)
        soft.launch(call, stream, (), *((t.data_ptr(),) for t in (images, along, found)))
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
    shape = ceil_div(math.prod(grid), CHUNK), count, len(grid)
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
def plan_on_grid(
    name: str, images: int, grid: tuple[int, ...], count: int, dtype: torch.dtype, _device: int
) -> Call:
    """Return the launch of a kernel that takes a Grid and two or three addresses.

    Those of `soft_height_gradients` are what both other kernels take and write.
    """
    points = math.prod(grid)
    sides = [*grid, *[1] * (4 - len(grid))]
    struct = GRID(points=points, images=images, chunk=CHUNK, sides=sides)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(grid)}
    if name == "soft_add_heights":
        blocks = ceil_div(points, THREADS)
        return plan_call("soft_heights", name, macros, (blocks, count), THREADS, (struct, 0, 0, 0))
    totals = ceil_div(images * points, THREADS)
    sums = ceil_div(points, CHUNK) * count
    own = np.int32(count)
    if name == "soft_height_totals":
        return plan_call("soft_heights", name, macros, (totals,), THREADS, (struct, 0, 0, own))
    if name == "soft_height_sums":
        return plan_call("soft_heights", name, macros, (sums,), THREADS, (struct, 0, 0, own))
    both = struct, 0, 0, 0, own, np.int32(sums)
    return plan_call("soft_heights", name, macros, (sums + totals,), THREADS, both)
