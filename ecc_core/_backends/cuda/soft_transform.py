"""Soft transforms on CUDA devices: launches of soft_orthants.cu and soft_project.cu."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cuda.calls import launch
from ecc_core._backends.cuda.compile import function
from ecc_core._backends.cuda.soft import on_stream
from ecc_core._backends.cuda.soft_plans import ELEMENTS
from ecc_core._backends.cuda.structures import Struct
from ecc_core._backends.soft import Projected

ORTHANTS = Struct("soft_orthants.cu", "Orthants")
POINTS = Struct("soft_project.cu", "ProjectedPoints")
FIELDS = "weights", "vectors", "levels", "sharpness"
THREADS = 128
CHUNKS = 64  # of points, at most


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Sums (batch, orthants, *grid) of the signed weights of cells."""
    grid = [n + (connectivity != 1) for n in weights.shape[1:]]
    out = weights.new_empty((len(weights), 1 << len(grid), *grid))
    _launch_orthants("soft_orthants", weights, connectivity, extension, out, (out,))
    return out


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    """Gradients of contiguous weights by those of the sums."""
    upstream, out = upstream.contiguous(), torch.empty_like(weights)
    given = weights, connectivity, extension, upstream, (upstream, out)
    _launch_orthants("soft_orthant_gradients", *given)
    return out


def _launch_orthants(
    name: str,
    weights: Tensor,
    connectivity: int,
    extension: str,
    sums: Tensor,
    arguments: tuple[Tensor, ...],
) -> None:
    """Launch with one thread for each vertex or point, whichever there are more of."""
    (images, *sides), grid = weights.shape, sums.shape[2:]
    counts = weights[0].numel(), sums[0, 0].numel()
    lead = [1] * (3 - len(grid))
    struct = ORTHANTS(
        weights=weights.data_ptr(),
        size=counts[0],
        vertices=counts[1],
        sides=[*lead, *sides],
        grid=[*lead, *grid],
        images=images,
        cubes=connectivity != 1,
        greatest=(extension == "max") == (connectivity == 1),
    )
    with on_stream(weights) as device:
        kernel = _kernel("soft_orthants", name, device, weights.dtype, len(grid))
        blocks = -(-images * max(counts) // THREADS)
        launch(kernel, (blocks,), THREADS, (struct, *(t.data_ptr() for t in arguments)))


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, k, n) and their derivatives by the heights and by the sharpness."""
    weights = given.weights
    with on_stream(weights) as device:
        struct, chunks, _kept = _points(given)
        count, levels = len(given.vectors), given.heights.numel()
        partial = torch.empty(
            (chunks, 3, len(weights), count, levels), dtype=torch.float64, device=weights.device
        )
        kernel = _kernel("soft_project", "soft_project", device, weights.dtype, len(given.grid))
        launch(kernel, (chunks, count, len(weights)), THREADS, (struct, partial.data_ptr()))
        # Results of an operator share no memory.
        sums = [row.to(weights.dtype, copy=True) for row in partial.sum(0)]
    return sums[0], sums[1], sums[2]


def projection_gradients(
    given: Projected, upstream: Tensor, of_weights: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of the weights and, for each image, of the vectors.

    Those of the weights are undefined unless `of_weights`.
    """
    weights, vectors, axes = given.weights, given.vectors, len(given.grid)
    upstream = upstream.contiguous()
    with on_stream(weights) as device:
        struct, chunks, _kept = _points(given)
        by_weights = torch.empty_like(weights, memory_format=torch.contiguous_format)
        if of_weights:
            kernel = _kernel("soft_project", "soft_by_weights", device, weights.dtype, axes)
            points = weights[0, 0].numel()
            grid = (-(-points // THREADS), weights.shape[1], len(weights))
            launch(kernel, grid, THREADS, (struct, upstream.data_ptr(), by_weights.data_ptr()))
        partial = torch.empty(
            (chunks, len(weights), *vectors.shape), dtype=torch.float64, device=weights.device
        )
        kernel = _kernel("soft_project", "soft_by_vectors", device, weights.dtype, axes)
        arguments = (struct, upstream.data_ptr(), partial.data_ptr())
        launch(kernel, (chunks, len(vectors), len(weights)), THREADS, arguments)
        by_vectors = partial.sum(0).to(vectors.dtype)
    return by_weights, by_vectors


def _kernel(source: str, name: str, device: int, dtype: torch.dtype, axes: int) -> Any:
    macros = {"REAL": ELEMENTS[dtype], "THREADS": THREADS, "AXES": axes}
    return function(source, name, device, macros)


def _points(given: Projected) -> tuple[NDArray[Any], int, list[Tensor]]:
    """Return the kernels' Points, the number of chunks, and the tensors that Points refers to."""
    grid = given.grid
    points = int(np.prod(grid))
    chunk = THREADS * -(-points // (THREADS * CHUNKS))
    tensors = [t.contiguous() for t in given]
    struct = POINTS(
        **{name: t.data_ptr() for name, t in zip(FIELDS, tensors, strict=True)},
        points=points,
        grid=[*grid, *[0] * (3 - len(grid))],
        directions_count=len(given.vectors),
        levels_count=given.heights.numel(),
        chunk=chunk,
    )
    return struct, -(-points // chunk), tensors
