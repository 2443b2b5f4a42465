"""Soft transforms on CUDA devices: launches of soft_orthants.cu and soft_project.cu.

Memory is allocated by torch.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft
from ecc_core._backends.cuda.arrays import element_of
from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.soft import Projected

ORTHANTS = Struct("soft_orthants.cu", "Orthants")
POINTS = Struct("soft_project.cu", "ProjectedPoints")
THREADS = 128
MOST_CHUNKS = 64  # The most chunks of points.


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
    greatest = (extension == "max") == (connectivity == 1)
    with soft.launching(weights) as (device, stream):
        shape = tuple(weights.shape)
        cubes = connectivity != 1
        call = _orthants(name, shape, weights.dtype, cubes, greatest, len(arguments), device)
        soft.launch(call, stream, (weights.data_ptr(),), *((t.data_ptr(),) for t in arguments))


@programs.plan
def _orthants(
    name: str,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    cubes: bool,
    greatest: bool,
    addresses: int,
    _device: int,
) -> Call:
    """Return the launch with one thread for each vertex or point, whichever there are more of."""
    images, *sides = shape
    grid = [n + cubes for n in sides]
    counts = (math.prod(sides), math.prod(grid))
    lead = [1] * (3 - len(grid))
    sizes = {"size": counts[0], "vertices": counts[1], "images": images}
    boxes = {"sides": [*lead, *sides], "grid": [*lead, *grid]}
    struct = ORTHANTS(**sizes, **boxes, cubes=cubes, greatest=greatest)
    blocks = ceil_div(images * max(counts), THREADS)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(grid)}
    return plan_call("soft_orthants", name, macros, (blocks,), THREADS, (struct, *[0] * addresses))


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    given = _contiguous(given)
    weights = given.weights
    shape = len(weights), len(given.vectors), given.heights.numel()
    found = weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)
    with soft.launching(weights) as (device, stream):
        calls = _calls(given, device)
        points = _addresses(given)
        partial = weights.new_empty(3 * calls.chunks * math.prod(shape), dtype=torch.float64)
        soft.launch(calls.curves, stream, points, (partial.data_ptr(),))
        soft.launch(calls.totals, stream, [t.data_ptr() for t in (partial, *found)])
    return found


def projection_gradients(
    given: Projected, upstream: Tensor, of_weights: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and, for each image, of the vectors.

    Those of the weights are undefined unless `of_weights`.
    """
    given = _contiguous(given)
    weights = given.weights
    upstream = upstream.contiguous()
    by_weights = torch.empty_like(weights)
    if of_weights:
        write_weight_gradients(given, upstream, by_weights)
    by_vectors = weights.new_empty((len(weights), *given.vectors.shape))
    partial = vector_sums(given, upstream)
    with soft.launching(weights) as (device, stream):
        totals = _calls(given, device).vector_totals
        soft.launch(totals, stream, [partial.data_ptr(), by_vectors.data_ptr()])
    return by_weights, by_vectors


def write_weight_gradients(given: Projected, upstream: Tensor, out: Tensor) -> None:
    """Write the gradients of the weights; all tensors here and below are contiguous."""
    with soft.launching(upstream) as (device, stream):
        addresses = (upstream.data_ptr(),), (out.data_ptr(),)
        soft.launch(_calls(given, device).by_weights, stream, _addresses(given), *addresses)


def vector_sums(given: Projected, upstream: Tensor) -> Tensor:
    """Return sums (rows, k, d) of the gradients of the vectors, whose rows are to be added up.

    There are rows for each image.
    """
    with soft.launching(upstream) as (device, stream):
        calls = _calls(given, device)
        shape = calls.chunks * len(given.weights), *given.vectors.shape
        partial = upstream.new_empty(shape, dtype=torch.float64)
        addresses = (upstream.data_ptr(),), (partial.data_ptr(),)
        soft.launch(calls.by_vectors, stream, _addresses(given), *addresses)
    return partial


def _calls(given: Projected, device: int) -> "_Projection":
    weights = given.weights
    shape = tuple(weights.shape)
    return _plan_projection(shape, weights.dtype, len(given.vectors), given.heights.numel(), device)


def _contiguous(given: Projected) -> Projected:
    return Projected(*(t.contiguous() for t in given))


def _addresses(given: Projected) -> list[int]:
    """The addresses that the kernels of soft_project.cu take."""
    return [t.data_ptr() for t in given]


class _Projection(NamedTuple):
    """Launches for weights of one shape.

    The first three take the addresses of weights, vectors, levels and sharpness, then two or one
    more; the others those of partial sums of the chunks of points and of their totals.
    """

    chunks: int
    curves: Call
    by_weights: Call
    by_vectors: Call
    totals: Call
    vector_totals: Call


@programs.plan
def _plan_projection(
    shape: tuple[int, ...], dtype: torch.dtype, vectors: int, levels: int, _device: int
) -> _Projection:
    images, orthants, *grid = shape
    axes = len(grid)
    points = math.prod(grid)
    chunk = THREADS * ceil_div(points, THREADS * MOST_CHUNKS)
    chunks = ceil_div(points, chunk)
    sizes = {"points": points, "grid": [*grid, *[0] * (3 - axes)], "chunk": chunk}
    struct = POINTS(**sizes, directions_count=vectors, levels_count=levels)

    def plan(name: str, blocks: tuple[int, ...], *arguments: object) -> Call:
        macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": axes}
        return plan_call("soft_project", name, macros, blocks, THREADS, arguments)

    def total(parts: int, size: int) -> Call:
        numbers = np.int64(size), np.int32(chunks)
        return plan("soft_total", (ceil_div(size, THREADS), parts), *[0] * 4, *numbers)

    each = chunks, vectors, images
    by_weights = (ceil_div(points, THREADS), orthants, images)
    return _Projection(
        chunks,
        plan("soft_project", each, struct, 0),
        plan("soft_by_weights", by_weights, struct, 0, 0),
        plan("soft_by_vectors", each, struct, 0, 0),
        total(3, images * vectors * levels),
        total(1, images * vectors * axes),
    )
