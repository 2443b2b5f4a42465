"""Soft transforms on CUDA devices: launches of soft_orthants.cu and soft_project.cu.

Memory is allocated by torch.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_parameters, soft_plans
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct, processors
from ecc_core._backends.soft import Projected

ORTHANTS = Struct("soft_orthants.cu", "Orthants")
POINTS = Struct("soft_project.cu", "ProjectedPoints")
PROJECTED = Struct("soft_project.cu", "Projected")
THREADS = 128
MOST_CHUNKS = 64  # The most chunks of points, of which each has its own sums of curves.
MOST_SUMMED_CHUNKS = 8  # As kMostChunks: the most chunks whose sums are added up by the last block.
MOST_POINT_CHUNKS = 256  # As many blocks as keep a device busy, in four orthants.
MOST_IMAGES = 8  # The most images for which a block computes steps once.
BUSY_BLOCKS = 4  # Fewer blocks on a multiprocessor mostly wait.
SHARING = 4  # The threads that share a point where there are fewer.


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    grid = [n + (connectivity != 1) for n in weights.shape[1:]]
    out = weights.new_empty((len(weights), 1 << len(grid), *grid))
    _launch_orthants("soft_orthants", weights, connectivity, extension, out)
    return out


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    upstream = upstream.contiguous()
    out = torch.empty_like(weights)
    given = weights, connectivity, extension, upstream, out
    _launch_orthants("soft_orthant_gradients", *given)
    return out


def _launch_orthants(
    name: str, weights: Tensor, connectivity: int, extension: str, *arguments: Tensor
) -> None:
    with soft.launching(weights) as (device, stream):
        kind = tuple(weights.shape), weights.dtype, connectivity, extension
        call = plan_orthants(name, *kind, len(arguments), device)
        soft.launch(call, stream, (weights.data_ptr(),), *((t.data_ptr(),) for t in arguments))


@programs.plan
def plan_orthants(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    connectivity: int,
    extension: str,
    addresses: int,
    _device: int,
) -> Call:
    """Return the launch with one thread for each vertex or point, whichever there are more of."""
    cells = _cells(shape, connectivity, extension)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(shape) - 1}
    given = cells.struct, *[0] * addresses
    return plan_call("soft_orthants", name, macros, (cells.blocks,), THREADS, given)


class _Cells(NamedTuple):
    """The cells of images, and how many blocks have a thread for each vertex and point."""

    struct: Any
    blocks: int


def _cells(shape: tuple[int, ...], connectivity: int, extension: str) -> _Cells:
    cubes = connectivity != 1
    greatest = (extension == "max") != cubes
    images, *sides = shape
    grid = [n + cubes for n in sides]
    counts = (math.prod(sides), math.prod(grid))
    lead = [1] * (3 - len(grid))
    sizes = {"size": counts[0], "vertices": counts[1], "images": images}
    boxes = {"sides": [*lead, *sides], "grid": [*lead, *grid]}
    struct = ORTHANTS(**sizes, **boxes, cubes=cubes, greatest=greatest)
    return _Cells(struct, ceil_div(images * max(counts), THREADS))


class Ends(NamedTuple):
    """Launches before and after the projection of points in a step.

    They take the words of the kernels' Orthants, one or two addresses, and the words of
    `soft_parameters.Given`, then the addresses of levels, sharpness, vectors and tickets, or what
    `soft_parameters.plan_gradients` takes.
    """

    begin: Call
    finish: Call


@programs.plan
def plan_ends(
    shape: tuple[int, ...],
    connectivity: int,
    extension: str,
    levels: int,
    directions: int,
    rows: int,
    tickets: int,
    spacing: tuple[float, ...],
    _device: int,
) -> Ends:
    """Return launches for weights of float32, and parameters of so many levels and directions.

    The first one also clears so many tickets.
    """
    cells = _cells(shape, connectivity, extension)
    macros = {"REAL": "float", "AXES": len(shape) - 1}
    parameters = soft_parameters.struct_of(levels, directions, spacing)

    def plan(name: str, blocks: int, *arguments: object) -> Call:
        given = cells.struct, *arguments, np.int32(blocks)
        grid = (blocks + cells.blocks,)
        return plan_call("soft_transform", name, macros, grid, THREADS, given)

    begin = soft_parameters.parameter_blocks(directions)
    finish = soft_parameters.gradient_blocks(directions)
    gradients = soft_parameters.GRADIENTS(rows=rows)
    return Ends(
        plan("soft_begin", begin, 0, parameters, *[0] * 4, np.int32(tickets)),
        plan("soft_finish", finish, *[0] * 2, parameters, gradients),
    )


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    given = _contiguous(given)
    weights = given.weights
    shape = len(weights), len(given.vectors), given.heights.numel()
    found = weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)
    with soft.launching(weights) as (device, stream):
        calls = _calls(given, device)
        partial = weights.new_empty(calls.sums, dtype=torch.float64)
        soft.launch(calls.curves, stream, _addresses(given), (partial.data_ptr(),))
        soft.launch(calls.totals, stream, [t.data_ptr() for t in (partial, *found)])
    return found


def projection_gradients(
    given: Projected, upstream: Tensor, images_a_group: int, of_weights: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the weights and, for each group of images, of the vectors.

    Those of the weights are undefined unless `of_weights`.
    """
    given = _contiguous(given)
    weights = given.weights
    upstream = upstream.contiguous()
    by_weights = torch.empty_like(weights)
    by_vectors = weights.new_empty((len(weights), *given.vectors.shape))
    with soft.launching(weights) as (device, stream):
        calls = _calls(given, device)
        partial = upstream.new_empty(calls.vector_sums, dtype=torch.float64)
        wanted = by_weights.data_ptr() if of_weights else 0
        addresses = (upstream.data_ptr(),), (wanted,), (partial.data_ptr(),)
        soft.launch(calls.by_points, stream, _addresses(given), *addresses)
        soft.launch(calls.vector_totals, stream, [partial.data_ptr(), by_vectors.data_ptr()])
    if images_a_group > 1:
        by_vectors = by_vectors.view(-1, images_a_group, *given.vectors.shape).sum(1)
    return by_weights, by_vectors


def _calls(given: Projected, device: int) -> "Projection":
    weights = given.weights
    shape = tuple(weights.shape)
    counts = len(given.vectors), given.heights.numel()
    return plan_projection(shape, weights.dtype, *counts, True, False, device)


def _contiguous(given: Projected) -> Projected:
    return Projected(*(t.contiguous() for t in given))


def _addresses(given: Projected) -> list[int]:
    """Return the addresses that the kernels of soft_project.cu take."""
    return [t.data_ptr() for t in given]


class Projection(NamedTuple):
    """Launches for weights of one shape, and the sizes of their results.

    The first two take the addresses of weights, vectors, levels and sharpness, then one or three
    more; the others those of partial sums of the chunks of points and of their totals. With
    tickets, `curves` also takes their address and those of curves and derivatives, and then does
    what `totals` does, which takes longer if there are many chunks.
    """

    size: int
    """The size of curves."""
    sums: int
    """The number of partial sums of curves and of their derivatives."""
    vector_sums: int
    """The number of partial sums of gradients of vectors."""
    rows: int
    """The rows of partial sums of vectors, which are to be added up."""
    tickets: int
    curves: Call
    by_points: Call
    totals: Call
    vector_totals: Call


@programs.plan
def plan_projection(
    shape: tuple[int, ...],
    dtype: torch.dtype,
    vectors: int,
    levels: int,
    by_image: bool,
    has_totals: bool,
    device: int,
) -> Projection:
    """Return the launches for weights (images, orthants, *grid).

    With `by_image` the gradients of vectors are summed for each image. With `has_totals`, the
    launch `by_points` also computes the gradients of levels and sharpness, and `curves` has tickets
    if there are few chunks.
    """
    images, orthants, *grid = shape
    axes = len(grid)
    points = math.prod(grid)
    together = min(MOST_IMAGES, 1 << (images - 1).bit_length())
    groups = ceil_div(images, together)
    chunk, chunks = _chunks(points, MOST_CHUNKS)
    sharing = 1
    point_chunk, point_chunks = _chunks(points, MOST_POINT_CHUNKS)
    if point_chunks * orthants * groups < BUSY_BLOCKS * processors(device):
        sharing = SHARING
        point_chunk, point_chunks = _chunks(points, MOST_POINT_CHUNKS, THREADS // sharing)
    rows = point_chunks * (images if by_image else groups)
    sizes = {"points": points, "grid": [*grid, *[0] * (3 - axes)], "chunk": chunk}
    counts = {"images": images, "directions_count": vectors, "levels_count": levels}
    struct = POINTS(**sizes, **counts)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": axes, "IMAGES": together}

    def plan(name: str, blocks: tuple[int, ...], *arguments: object) -> Call:
        return plan_call("soft_project", name, macros, blocks, THREADS, arguments)

    def total(parts: int, size: int, summands: int) -> Call:
        numbers = np.int64(size), np.int32(summands)
        return plan("soft_total", (ceil_div(size, THREADS), parts), *[0] * 4, *numbers)

    size = images * vectors * levels
    tickets = vectors * groups if has_totals and chunks <= MOST_SUMMED_CHUNKS else 0
    sums = soft_plans.total_blocks(levels) if has_totals else 0
    totals = soft_plans.TOTALS(images=images * vectors, levels=levels, blocks=sums)
    behind = ceil_div(sums, point_chunks * orthants)  # The blocks along z that write totals.
    grid_of_points = point_chunks, orthants, groups + behind
    given = struct, 0, 0, 0, np.int32(point_chunk), np.int32(by_image), totals
    name = "soft_by_points"
    return Projection(
        size,
        3 * chunks * size,
        rows * vectors * axes,
        rows,
        tickets,
        plan("soft_project", (chunks, vectors, groups), struct, 0, 0, PROJECTED()),
        plan_call(name, name, {**macros, "PARTS": sharing}, grid_of_points, THREADS, given),
        total(3, size, chunks),
        total(1, images * vectors * axes, point_chunks),
    )


def _chunks(points: int, most: int, at_once: int = THREADS) -> tuple[int, int]:
    """Return the points of a chunk, of which a block takes some at once, and the chunks."""
    chunk = at_once * ceil_div(points, at_once * most)
    return chunk, ceil_div(points, chunk)
