"""Vectors along directions, and the heights of points along them: launches of soft_units.cu.

Tensors are contiguous, and their floats of one type. Memory is allocated by torch.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct

UNITS = Struct("soft_units.cu", "Units")
GRID = Struct("soft_units.cu", "Grid")
THREADS = 128
WARP = 32
MOST_DIRECTIONS = 65535  # The most rows of a grid of blocks.
CHUNK = 1 << 10  # points per block of sums


class Units(NamedTuple):
    """Unit vectors along directions (k, d), times the spacing, and times scales (k,) if given."""

    directions: Tensor
    scales: Tensor | None
    spacing: tuple[float, ...]

    @property
    def addresses(self) -> tuple[int, int]:
        scales = 0 if self.scales is None else self.scales.data_ptr()
        return self.directions.data_ptr(), scales


def vectors(units: Units) -> Tensor:
    """Return the vectors, (k, d)."""
    found = torch.empty_like(units.directions)
    with soft.launching(found) as (device, stream):
        call = plan_vectors(*_kind(units), device)
        soft.launch(call, stream, units.addresses, (found.data_ptr(),))
    return found


def unit_gradients(
    units: Units, sums: Tensor, by_direction: Tensor | None, by_scale: Tensor | None
) -> None:
    """Write the gradients of directions and scales, where there are tensors for them.

    `sums` (rows, k, d) are gradients of the vectors in float64, whose rows are to be added up.
    """
    addresses = [(0 if t is None else t.data_ptr(),) for t in (sums, by_direction, by_scale)]
    with soft.launching(sums) as (device, stream):
        call = plan_gradients(len(sums), *_kind(units), device)
        soft.launch(call, stream, units.addresses, *addresses)


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


def _kind(units: Units) -> tuple[int, int, torch.dtype, tuple[float, ...]]:
    count, axes = units.directions.shape
    return count, axes, units.directions.dtype, units.spacing


def _macros(dtype: torch.dtype, axes: int) -> dict[str, Any]:
    return {"REAL": ELEMENTS[element_of(dtype)], "AXES": axes}


@programs.plan
def plan_vectors(
    count: int, axes: int, dtype: torch.dtype, spacing: tuple[float, ...], _device: int
) -> Call:
    grid = (ceil_div(count, THREADS),)
    given = _units(count, spacing), 0
    return plan_call("soft_units", "soft_units", _macros(dtype, axes), grid, THREADS, given)


@programs.plan
def plan_gradients(
    rows: int, count: int, axes: int, dtype: torch.dtype, spacing: tuple[float, ...], _device: int
) -> Call:
    given = _units(count, spacing), 0, 0, 0, np.int32(rows)
    macros = _macros(dtype, axes)
    return plan_call("soft_units", "soft_unit_gradients", macros, (count,), WARP, given)


def _units(count: int, spacing: tuple[float, ...]) -> Any:
    """Return the kernels' Units without addresses."""
    return UNITS(spacing=[*spacing, *[1.0] * (3 - len(spacing))], count=count)


def _on_grid(
    name: str, images: int, grid: Sequence[int], count: int, like: Tensor, device: int
) -> Call:
    return _plan_on_grid(name, images, tuple(grid), count, like.dtype, device)


@programs.plan
def _plan_on_grid(
    name: str, images: int, grid: tuple[int, ...], count: int, dtype: torch.dtype, _device: int
) -> Call:
    """Return the launch of a kernel that takes a Grid and two or three addresses."""
    points = math.prod(grid)
    sides = [*grid, *[1] * (4 - len(grid))]
    struct = GRID(points=points, images=images, chunk=CHUNK, sides=sides)
    macros = _macros(dtype, len(grid))
    blocks = ceil_div(points, THREADS)
    if name == "soft_add_heights":
        return plan_call("soft_units", name, macros, (blocks, count), THREADS, (struct, 0, 0, 0))
    if name == "soft_height_totals":
        blocks = ceil_div(images * points, THREADS)
        given = struct, 0, 0, np.int32(count)
        return plan_call("soft_units", name, macros, (blocks,), THREADS, given)
    chunks = ceil_div(points, CHUNK)
    return plan_call("soft_units", name, macros, (chunks, count), THREADS, (struct, 0, 0))
