"""Soft transforms of one shape: all launches of a forward and a backward pass, planned together.

Floats are float32 and contiguous. Memory is allocated by torch.
"""

import math
from itertools import accumulate
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_parameters, soft_plans, soft_transforms


class Given(NamedTuple):
    """Addresses of what is transformed: weights (images, *grid), directions (k, d), levels (n,).

    With a step, levels are given by free numbers; it is 0 without.
    """

    weights: int
    directions: int
    levels: int
    sharpness: int
    step: int


class Wanted(NamedTuple):
    """Addresses of the gradients of what is given, or 0 for those that are not wanted."""

    weights: int
    directions: int
    levels: int
    sharpness: int


class Form(NamedTuple):
    """How levels and sharpness are given: as they are, or by the parameters of a layer."""

    is_increasing: bool
    """Levels are given by free numbers and a step."""
    is_logarithm: bool
    """The sharpness is given by its logarithm."""


class _Kept(NamedTuple):
    """What is kept from the forward pass."""

    owned: int
    """Weights by orthant."""
    vectors: int
    levels: int
    sharpness: int
    slopes: int
    spreads: int


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
        form: Form,
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
        points = (images, orthants, *vertices), kind, directions, levels, False, device
        projection = self._projection = soft_transforms.plan_projection(*points)
        numbers = levels if form.is_increasing else 0
        parameters = directions, kind, spacing, device
        self._parameters = soft_parameters.plan_parameters(numbers, *parameters)
        self._by_parameters = soft_parameters.plan_gradients(numbers, projection.rows, *parameters)
        rows = images * directions
        self._totals = soft_plans.tabulation(0, 0, rows, levels, True, False, device)

        self._form = form
        self._levels = levels
        sizes = owned, directions * len(grid), levels, 1, projection.size
        self._places = _Kept(*accumulate(sizes, initial=0))
        self.kept = self._places.spreads + projection.size
        self.sums = projection.sums
        # Sums of gradients of vectors, gradients of levels and sharpness, and those of `owned`.
        work = projection.vector_sums, ceil_div(levels, 2), 1, ceil_div(owned, 2)
        *self._work_places, self.work = accumulate(work, initial=0)

    def forward(self, stream: int, given: Given, curves: int, kept: int, sums: int) -> None:
        """Write the curves (images, k, n), and what is kept."""
        own = self._kept(kept)
        written = (own.levels,), (own.sharpness,), (own.vectors,)
        soft.launch(self._parameters, stream, self._parameters_of(given), *written)
        soft.launch(self._orthants, stream, (given.weights,), (own.owned,))
        soft.launch(self._projection.curves, stream, self._points(given, own), (sums,))
        totals = sums, curves, own.slopes, own.spreads
        soft.launch(self._projection.totals, stream, totals)

    def backward(
        self, stream: int, given: Given, kept: int, upstream: int, wanted: Wanted, work: int
    ) -> None:
        """Write the gradients that are wanted, by those of the curves."""
        own = self._kept(kept)
        places = [work + 8 * place for place in self._work_places]
        vector_sums, level_gradients, sharpness_gradient, owned_gradients = places
        by_owned = owned_gradients if wanted.weights else 0
        sums = vector_sums if wanted.directions else 0
        if by_owned or sums:
            call = self._projection.by_points
            points = self._points(given, own)
            soft.launch(call, stream, points, (upstream,), (by_owned,), (sums,))
        if by_owned:
            call = self._orthant_gradients
            soft.launch(call, stream, (given.weights,), (by_owned,), (wanted.weights,))
        form = self._form
        numbers = wanted.levels if form.is_increasing else 0
        logarithm = wanted.sharpness if form.is_logarithm else 0
        by_levels = level_gradients if numbers else wanted.levels
        by_sharpness = sharpness_gradient if logarithm else wanted.sharpness
        if by_levels or by_sharpness:
            rows = upstream, self._levels, 1, 0, soft_plans.WITHOUT_POSITIONS
            derivatives = own.slopes, own.spreads
            soft.launch(self._totals, stream, (*rows, *derivatives, by_levels, by_sharpness))
        if numbers or logarithm or sums:
            read = by_levels, by_sharpness, sums
            rest = soft_parameters.Wanted(numbers, logarithm, wanted.directions)
            parameters = self._parameters_of(given)
            soft_parameters.launch_gradients(self._by_parameters, stream, parameters, read, rest)

    def _parameters_of(self, given: Given) -> soft_parameters.Given:
        return soft_parameters.Given(
            numbers=given.levels if self._form.is_increasing else 0,
            step=given.step,
            log_sharpness=given.sharpness if self._form.is_logarithm else 0,
            directions=given.directions,
        )

    def _points(self, given: Given, own: _Kept) -> tuple[int, int, int, int]:
        """Return the addresses that the projection of points takes."""
        levels = own.levels if self._form.is_increasing else given.levels
        sharpness = own.sharpness if self._form.is_logarithm else given.sharpness
        return own.owned, own.vectors, levels, sharpness

    def _kept(self, address: int) -> _Kept:
        """Return the addresses of what is kept."""
        return _Kept(*[address + 4 * place for place in self._places])


@programs.plan
def plan_steps(
    shape: tuple[int, ...],
    connectivity: int,
    extension: str,
    directions: int,
    levels: int,
    spacing: tuple[float, ...],
    form: Form,
    device: int,
) -> Steps:
    """Return the launches for weights (..., *grid)."""
    return Steps(shape, connectivity, extension, directions, levels, spacing, form, device)
