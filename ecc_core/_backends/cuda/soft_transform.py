"""Soft transforms on CUDA devices: launches of soft_orthants.cu and soft_project.cu."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cuda.calls import Call, plan_call
from ecc_core._backends.cuda.kernels import ELEMENTS, Struct
from ecc_core._backends.cuda.soft import launch, launching
from ecc_core._backends.cuda.soft_plans import element_of
from ecc_core._backends.soft import Projected

ORTHANTS = Struct("soft_orthants.cu", "Orthants")
POINTS = Struct("soft_project.cu", "ProjectedPoints")
THREADS = 128
CHUNKS = 64  # of points, at most


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Sums (batch, orthants, *grid) of the signed weights of cells."""
    grid = [n + (connectivity != 1) for n in weights.shape[1:]]
    out = weights.new_empty((len(weights), 1 << len(grid), *grid))
    _launch_orthants("soft_orthants", weights, connectivity, extension, out)
    return out


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    """Gradients of contiguous weights by those of the sums."""
    upstream, out = upstream.contiguous(), torch.empty_like(weights)
    given = weights, connectivity, extension, upstream, out
    _launch_orthants("soft_orthant_gradients", *given)
    return out


def _launch_orthants(
    name: str, weights: Tensor, connectivity: int, extension: str, *arguments: Tensor
) -> None:
    greatest = (extension == "max") == (connectivity == 1)
    with launching(weights) as (device, stream):
        shape, cubes = tuple(weights.shape), connectivity != 1
        call = _orthants(name, shape, weights.dtype, cubes, greatest, len(arguments), device)
        launch(call, stream, (weights.data_ptr(),), *((t.data_ptr(),) for t in arguments))


@lru_cache(maxsize=256)
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
    counts, lead = (math.prod(sides), math.prod(grid)), [1] * (3 - len(grid))
    sizes = {"size": counts[0], "vertices": counts[1], "images": images}
    boxes = {"sides": [*lead, *sides], "grid": [*lead, *grid]}
    struct = ORTHANTS(**sizes, **boxes, cubes=cubes, greatest=greatest)
    blocks = -(-images * max(counts) // THREADS)
    macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": len(grid)}
    return plan_call("soft_orthants", name, macros, (blocks,), THREADS, (struct, *[0] * addresses))


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, k, n) and their derivatives by the heights and by the sharpness."""
    weights = given.weights
    shape = len(weights), len(given.vectors), given.heights.numel()
    found = weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)
    with launching(weights) as (device, stream):
        plans, tensors = _plans(*_key(given), device), [t.contiguous() for t in given]
        points = [t.data_ptr() for t in tensors]
        partial = weights.new_empty(3 * plans.chunks * math.prod(shape), dtype=torch.float64)
        launch(plans.curves, stream, points, (partial.data_ptr(),))
        launch(plans.totals, stream, [t.data_ptr() for t in (partial, *found)])
    return found


def projection_gradients(
    given: Projected, upstream: Tensor, of_weights: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and, for each image, of the vectors.

    Those of the weights are undefined unless `of_weights`.
    """
    weights, upstream = given.weights, upstream.contiguous()
    by_weights = torch.empty_like(weights, memory_format=torch.contiguous_format)
    by_vectors = weights.new_empty((len(weights), *given.vectors.shape))
    with launching(weights) as (device, stream):
        plans, tensors = _plans(*_key(given), device), [t.contiguous() for t in given]
        points = [t.data_ptr() for t in tensors]
        if of_weights:
            addresses = (upstream.data_ptr(),), (by_weights.data_ptr(),)
            launch(plans.by_weights, stream, points, *addresses)
        partial = weights.new_empty(plans.chunks * by_vectors.numel(), dtype=torch.float64)
        addresses = (upstream.data_ptr(),), (partial.data_ptr(),)
        launch(plans.by_vectors, stream, points, *addresses)
        launch(plans.vector_totals, stream, [partial.data_ptr(), by_vectors.data_ptr()])
    return by_weights, by_vectors


class _Plans(NamedTuple):
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


def _key(given: Projected) -> tuple[tuple[int, ...], torch.dtype, int, int]:
    shape, dtype = tuple(given.weights.shape), given.weights.dtype
    return shape, dtype, len(given.vectors), given.heights.numel()


@lru_cache(maxsize=256)
def _plans(
    shape: tuple[int, ...], dtype: torch.dtype, vectors: int, levels: int, _device: int
) -> _Plans:
    images, orthants, *grid = shape
    axes, points = len(grid), math.prod(grid)
    chunk = THREADS * -(-points // (THREADS * CHUNKS))
    chunks = -(-points // chunk)
    sizes = {"points": points, "grid": [*grid, *[0] * (3 - axes)], "chunk": chunk}
    struct = POINTS(**sizes, directions_count=vectors, levels_count=levels)

    def plan(name: str, blocks: tuple[int, ...], *arguments: object) -> Call:
        macros = {"REAL": ELEMENTS[element_of(dtype)], "AXES": axes}
        return plan_call("soft_project", name, macros, blocks, THREADS, arguments)

    def total(parts: int, size: int) -> Call:
        numbers = np.int64(size), np.int32(chunks)
        return plan("soft_total", (-(-size // THREADS), parts), *[0] * 4, *numbers)

    each = chunks, vectors, images
    by_weights = (-(-points // THREADS), orthants, images)
    return _Plans(
        chunks,
        plan("soft_project", each, struct, 0),
        plan("soft_by_weights", by_weights, struct, 0, 0),
        plan("soft_by_vectors", each, struct, 0, 0),
        total(3, images * vectors * levels),
        total(1, images * vectors * axes),
    )
