"""Soft transforms of one shape: all launches of a forward and a backward pass, planned together."""

import math
from itertools import accumulate
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs, soft, soft_parameters, soft_plans, soft_transforms
from ecc_core._backends.cuda.passes import NONE, Pass, named
from ecc_core._backends.cuda.steps import Steps


class Form(NamedTuple):
    """How levels and sharpness are given: as they are, or by the parameters of a layer."""

    is_increasing: bool
    """Levels are given by free numbers and a step."""
    is_logarithm: bool
    """The sharpness is given by its logarithm."""


FLOATS_A_DOUBLE = 2

GIVEN = "weights", "directions", "levels", "sharpness", "step"
"""What is transformed: weights (images, *grid), directions (k, d) and levels (n,).

With a step, levels are given by free numbers; it is 0 without.
"""
KEPT = "owned", "vectors", "own_levels", "own_sharpness", "slopes", "spreads"
"""What is kept from the forward pass. `owned` are weights by orthant."""
SCRATCH = "sums", "tickets"
WORK = "vector_sums", "level_gradients", "sharpness_gradient", "owned_gradients"
FOUND = "by_weights", "by_directions", "by_levels", "by_sharpness", "by_step"
"""The gradients of what is given, of which that of the step is never wanted."""


class TransformSteps(Steps):
    """The launches for weights of one shape."""

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
        super().__init__()
        grid = shape[len(shape) - len(spacing) :]
        images = math.prod(shape[: len(shape) - len(spacing)])
        vertices = [n + (connectivity != 1) for n in grid]
        orthants = 1 << len(grid)
        kind = torch.float32
        owned = images * orthants * math.prod(vertices)

        weights = (images, *grid), kind, connectivity, extension
        name = "soft_orthant_gradients"
        self._orthant_gradients = soft_transforms.plan_orthants(name, *weights, 2, device)
        points = (images, orthants, *vertices), kind, directions, levels, False, True, device
        projection = self._projection = soft_transforms.plan_projection(*points)
        numbers = levels if form.is_increasing else 0
        parameters = directions, kind, spacing, device
        counts = numbers, directions, projection.rows, projection.tickets, spacing
        ends = (images, *grid), connectivity, extension, *counts, device
        self._ends = soft_transforms.plan_ends(*ends)
        self._by_parameters = soft_parameters.plan_gradients(numbers, projection.rows, *parameters)
        rows = images * directions
        self._totals = soft_plans.tabulation(0, 0, rows, levels, True, False, device)

        self._form = form
        self._levels = levels
        sizes = owned, directions * len(grid), levels, 1, projection.size
        places = list(accumulate(sizes, initial=0))
        self._kept_offsets = [4 * place for place in places]
        self.kept = places[-1] + projection.size
        sums = FLOATS_A_DOUBLE * projection.sums
        self.scratch = sums + projection.tickets
        self._scratch_offsets = 0, 4 * sums
        # These parts hold sums of gradients of vectors, gradients of levels and of the sharpness,
        # and the gradients of `owned`.
        doubles = projection.vector_sums, ceil_div(levels, 2), 1, ceil_div(owned, 2)
        *doubles_before, total = accumulate(doubles, initial=0)
        self.work = FLOATS_A_DOUBLE * total
        self._work_offsets = [8 * place for place in doubles_before]
        self._forward = self._plan_forward()

    def _plan_forward(self) -> Pass:
        written = "own_levels, own_sharpness, vectors, tickets"
        begin = named(self._ends.begin, f"weights, owned, {self._parameters_given}, {written}")
        if self._projection.tickets:
            words = f"{self._points}, sums, tickets, curves slopes spreads"
            launches = [begin, named(self._projection.curves, words)]
        else:
            launches = [
                begin,
                named(self._projection.curves, f"{self._points}, sums"),
                named(self._projection.totals, "sums, curves, slopes, spreads"),
            ]
        return Pass((*GIVEN, *KEPT, *SCRATCH, "curves"), launches)

    def _plan_backward(self, wanted: tuple[bool, ...]) -> Pass:
        of_weights, of_directions, of_levels, of_sharpness, _ = wanted
        names = (name if is_wanted else NONE for name, is_wanted in zip(FOUND, wanted, strict=True))
        _, by_directions, by_levels, by_sharpness, _ = names
        numbers = by_levels if self._form.is_increasing else NONE
        if numbers != NONE:
            by_levels = "level_gradients"
        logarithm = by_sharpness if self._form.is_logarithm else NONE
        if logarithm != NONE:
            by_sharpness = "sharpness_gradient"
        rows = f"upstream {self._levels} 1 0 {soft_plans.WITHOUT_POSITIONS} slopes spreads"
        totals = f"{rows} {by_levels} {by_sharpness}"
        by_owned = "owned_gradients" if of_weights else NONE
        sums = "vector_sums" if of_directions else NONE
        launches = []
        if of_weights or of_directions:
            words = f"{self._points}, upstream, {by_owned}, {sums}, , , {totals}"
            launches.append(named(self._projection.by_points, words))
        elif of_levels or of_sharpness:
            launches.append(named(self._totals, totals))
        of_parameters = numbers != NONE or logarithm != NONE or of_directions
        read = f"{by_levels} {by_sharpness} {sums}"
        found = f"{numbers} {logarithm} {by_directions} {NONE}"
        parameters = f"{self._parameters_given}, {read} {found}"
        cells = "weights, owned_gradients, by_weights"
        if of_weights and of_parameters:
            launches.append(named(self._ends.finish, f"{cells}, {parameters}"))
        elif of_weights:
            launches.append(named(self._orthant_gradients, cells))
        elif of_parameters:
            launches.append(named(self._by_parameters, parameters))
        return Pass((*GIVEN, *KEPT, *WORK, *FOUND, "upstream"), launches)

    @property
    def _parameters_given(self) -> str:
        """The words of `soft_parameters.Given`."""
        numbers = "levels" if self._form.is_increasing else NONE
        logarithm = "sharpness" if self._form.is_logarithm else NONE
        return f"{numbers} step {logarithm} directions {NONE}"

    @property
    def _points(self) -> str:
        """The words that the projection of points takes."""
        levels = "own_levels" if self._form.is_increasing else "levels"
        sharpness = "own_sharpness" if self._form.is_logarithm else "sharpness"
        return f"owned vectors {levels} {sharpness}"


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
) -> TransformSteps:
    """Return the launches for weights (..., *grid)."""
    with soft.planning(device):
        return TransformSteps(
            shape, connectivity, extension, directions, levels, spacing, form, device
        )
