"""Soft transforms of one shape: all launches of a forward and a backward pass, planned together.

Floats are float32 and contiguous. Memory is allocated by torch.
"""

import math
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_plans, soft_transforms, soft_units


class Given(NamedTuple):
    """Addresses of what is transformed: weights (images, *grid), directions (k, d), levels (n,)."""

    weights: int
    directions: int
    levels: int
    sharpness: int


class Wanted(NamedTuple):
    """Addresses of the gradients of what is given, or 0 for those that are not wanted."""

    weights: int
    directions: int
    levels: int
    sharpness: int


class Steps:
    """The launches for weights of one shape, and the sizes of the memory that they need.

    Attributes
    ----------
    kept : int
        Floats that the forward pass keeps for the backward pass.
    sums : int
        float64 numbers that the forward pass needs besides.
    work : int
        float64 numbers that the backward pass needs.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        connectivity: int,
        extension: str,
        directions: int,
        levels: int,
        spacing: tuple[float, ...],
        device: int,
    ) -> None:
        grid = shape[len(shape) - len(spacing) :]
        images = math.prod(shape[: len(shape) - len(spacing)])
        vertices = [n + (connectivity != 1) for n in grid]
        orthants = 1 << len(grid)
        kind = torch.float32
        owned = images * orthants * math.prod(vertices)

        weights = (images, *grid), kind, connectivity, extension
        self._orthants = soft_transforms.plan_orthants("soft_orthants", *weights, 1, device)
        name = "soft_orthant_gradients"
        self._orthant_gradients = soft_transforms.plan_orthants(name, *weights, 2, device)
        points = (images, orthants, *vertices), kind, directions, levels, device
        projection = self._projection = soft_transforms.plan_projection(*points)
        units = directions, len(grid), kind, spacing, device
        self._vectors = soft_units.plan_vectors(*units)
        self._unit_gradients = soft_units.plan_gradients(projection.rows, *units)
        rows = images * directions
        self._totals = soft_plans.tabulation(0, 0, rows, levels, True, False, device)

        self._levels = levels
        self._places_of_kept = (0, owned, owned + directions * len(grid))
        self._size = projection.size
        self._vector_sums = projection.vector_sums
        self.kept = self._places_of_kept[-1] + 2 * projection.size
        self.sums = projection.sums
        self.work = projection.vector_sums + ceil_div(owned, 2)

    def forward(self, stream: int, given: Given, curves: int, kept: int, sums: int) -> None:
        """Write the curves (images, k, n), and what is kept."""
        owned, vectors, slopes, spreads = self._kept(kept)
        points = owned, vectors, given.levels, given.sharpness
        soft.launch(self._orthants, stream, (given.weights,), (owned,))
        soft.launch(self._vectors, stream, (given.directions, 0), (vectors,))
        soft.launch(self._projection.curves, stream, points, (sums,))
        soft.launch(self._projection.totals, stream, (sums, curves, slopes, spreads))

    def backward(
        self, stream: int, given: Given, kept: int, upstream: int, wanted: Wanted, work: int
    ) -> None:
        """Write the gradients that are wanted, by those of the curves."""
        owned, vectors, slopes, spreads = self._kept(kept)
        points = owned, vectors, given.levels, given.sharpness
        by_owned = work + 8 * self._vector_sums if wanted.weights else 0
        sums = work if wanted.directions else 0
        if by_owned or sums:
            call = self._projection.by_points
            soft.launch(call, stream, points, (upstream,), (by_owned,), (sums,))
        if by_owned:
            call = self._orthant_gradients
            soft.launch(call, stream, (given.weights,), (by_owned,), (wanted.weights,))
        if sums:
            call = self._unit_gradients
            soft.launch(call, stream, (given.directions, 0), (sums,), (wanted.directions,))
        if wanted.levels or wanted.sharpness:
            rows = upstream, self._levels, 1, slopes, spreads
            soft.launch(self._totals, stream, (*rows, wanted.levels, wanted.sharpness))

    def _kept(self, address: int) -> tuple[int, int, int, int]:
        """Return the addresses of weights by orthant, vectors, slopes and spreads."""
        owned, vectors, slopes = (address + 4 * place for place in self._places_of_kept)
        return owned, vectors, slopes, slopes + 4 * self._size


@programs.plan
def plan_steps(
    shape: tuple[int, ...],
    connectivity: int,
    extension: str,
    directions: int,
    levels: int,
    spacing: tuple[float, ...],
    device: int,
) -> Steps:
    """Return the launches for weights (..., *grid)."""
    return Steps(shape, connectivity, extension, directions, levels, spacing, device)
