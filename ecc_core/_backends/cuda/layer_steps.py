"""Curves of small images by the parameters of a layer: the launches of both passes of one shape.

What is computed from parameters, images with heights and windows is in the memory that the forward
pass keeps. There is no mask.
"""

import math
from itertools import accumulate
from typing import NamedTuple

import torch

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import (
    curve_steps,
    programs,
    soft,
    soft_heights,
    soft_parameters,
    soft_plans,
    soft_windows,
)
from ecc_core._backends.cuda.curve_steps import CurveSteps
from ecc_core._backends.cuda.passes import NONE, Named, Pass, named
from ecc_core._backends.cuda.steps import Steps
from ecc_core._backends.image_cuts import Cut

ALIGNED = 4  # Floats: the images that kernels read begin at a multiple of 16 bytes.


class Kind(NamedTuple):
    """What a layer computes of images: their curves, or those of windows or along directions."""

    n_spatial: int
    connectivity: int
    superlevel: bool
    levels: int
    is_increasing: bool
    """Whether levels are given by free numbers."""
    directions: int = 0
    spacing: tuple[float, ...] = (1.0,)
    cut: Cut | None = None


GIVEN = "images", "levels", "step", "log_sharpness", "directions", "log_scales"
"""What is given: images and parameters. Levels are free numbers, if they are increasing."""
FOUND = "by_images", "by_levels", "by_step", "by_log_sharpness", "by_directions", "by_log_scales"
"""The gradients of what is given, of which that of the step is never wanted."""
KEPT = "own_sharpness", "source", "windows", "slopes", "spreads"
"""What is kept from the forward pass, but for coefficients.

`source` are the images of which curves are computed: with heights, or windows of those given.
"""
WORK = "level_gradients", "vector_sums", "source_gradients"


class LayerSteps(Steps):
    """The launches for images (..., *spatial) of one shape.

    Attributes
    ----------
    is_small : bool
        Whether there are launches for images of this size; otherwise nothing else is planned.
    """

    def __init__(self, kind: Kind, shape: tuple[int, ...], place: int, device: int) -> None:
        super().__init__()
        batch, grid = shape[: -kind.n_spatial], shape[-kind.n_spatial :]
        images = math.prod(batch)
        self._kind = kind
        self._has_own_source = kind.cut is not None or kind.directions > 0
        positions = soft_plans.WITHOUT_POSITIONS
        count = images
        spatial = grid
        if kind.cut is not None:
            positions = math.prod(kind.cut.positions)
            count = images * positions
            spatial = (kind.cut.side,) * kind.n_spatial
        elif kind.directions:
            count = images * kind.directions
        curve = self._curve = CurveSteps(
            count,
            spatial,
            torch.float32,
            0 if self._has_own_source else place,
            kind.connectivity,
            kind.superlevel,
            kind.levels,
            positions,
            device,
        )
        self.is_small = curve.is_small
        if not self.is_small:  # Sizes may be too large for the numbers of other launches.
            return
        coordinates = kind.directions * len(kind.spacing)
        rows = ceil_div(math.prod(grid), soft_heights.POINTS_A_ROW) if kind.directions else 0
        points = count * math.prod(spatial) if self._has_own_source else 0
        places = _offsets(1, start=curve.kept)
        self.kept = places[-1] + points
        self._kept_offsets = *(4 * place for place in places), *curve.offsets
        doubles = rows * coordinates
        places = _offsets(kind.levels, 2 * doubles, start=0)
        self.work = places[-1] + points
        self._work_offsets = [4 * place for place in places]

        floats = torch.float32
        if kind.cut is not None:
            cut = shape, kind.cut, floats
            windows = images * positions * math.prod(spatial)
            self._enter = soft_windows.plan("cut_windows", *cut, windows, device)
            points_given = images * math.prod(grid)
            self._leave = soft_windows.plan("window_gradients", *cut, points_given, device)
        elif kind.directions:
            on_grid = images, grid, kind.directions, floats, device
            along = kind.spacing, kind.directions, floats, device
            self._enter = soft_heights.plan_addition(images, grid, *along)
            of_vectors = kind.directions, floats, kind.spacing, device
            self._by_vectors = soft_parameters.plan_gradients(0, rows, *of_vectors)
            self._leave = soft_heights.plan_on_grid("soft_height_totals", *on_grid)
            self._sum_heights = soft_heights.plan_on_grid("soft_height_sums", *on_grid)
            self._leave_and_sum = soft_heights.plan_on_grid("soft_height_gradients", *on_grid)

        names = *GIVEN, *KEPT, "coefficients", "curves"
        self._forward = Pass(names, self._forward_launches())

    def _forward_launches(self) -> list[Named]:
        launches = []
        if self._kind.cut is not None:
            launches.append(named(self._enter, ", images, source"))
        elif self._kind.directions:
            launches.append(named(self._enter, f", images, source, {self._directions}"))
        return launches + self._curve.forward(self._names)

    def _plan_backward(self, wanted: tuple[bool, ...]) -> Pass:
        of_images, of_levels, _, of_sharpness, of_directions, of_scales = wanted
        of_vectors = of_directions or of_scales
        by_source = "by_images" if of_images else NONE
        if self._has_own_source and (of_images or of_vectors):
            by_source = "source_gradients"
        by_levels = "by_levels" if of_levels else NONE
        numbers = by_levels if self._kind.is_increasing else NONE
        if numbers != NONE:
            by_levels = "level_gradients"
        by_sharpness = "by_log_sharpness" if of_sharpness else NONE
        by_curve = curve_steps.Wanted(by_source, by_levels, by_sharpness, numbers)
        launches = self._curve.backward(self._names, self._upstream, by_curve)
        if of_images and of_vectors:
            words = ", source_gradients, by_images, vector_sums"
            launches.append(named(self._leave_and_sum, words))
        elif of_images and self._has_own_source:
            launches.append(named(self._leave, ", source_gradients, by_images"))
        elif of_vectors:
            launches.append(named(self._sum_heights, ", source_gradients, vector_sums"))
        if of_vectors:
            directions = "by_directions" if of_directions else NONE
            scales = "by_log_scales" if of_scales else NONE
            sums = f"{NONE} {NONE} vector_sums"
            words = f"{self._directions}, {sums} {NONE} {NONE} {directions} {scales}"
            launches.append(named(self._by_vectors, words))
        names = *GIVEN, *KEPT, "coefficients", *WORK, *FOUND, "upstream"
        return Pass(names, launches)

    @property
    def _directions(self) -> str:
        """The words of `soft_parameters.Given`."""
        return f"{NONE} {NONE} {NONE} directions log_scales"

    @property
    def _upstream(self) -> str:
        """The words of the gradient of the curves, with its strides."""
        return f"upstream {self._kind.levels * self._curve.positions} {self._curve.positions} 1"

    @property
    def _names(self) -> curve_steps.Names:
        is_increasing = self._kind.is_increasing
        return curve_steps.NAMES._replace(
            images="source" if self._has_own_source else "images",
            thresholds=NONE if is_increasing else "levels",
            sharpness="own_sharpness",
            numbers="levels" if is_increasing else NONE,
            step="step" if is_increasing else NONE,
            log_sharpness="log_sharpness",
        )


def _offsets(*sizes: int, start: int) -> list[int]:
    """Return where parts of so many floats begin, one after another; the last has any size."""
    first, *others = (ALIGNED * ceil_div(size, ALIGNED) for size in (start, *sizes))
    return list(accumulate(others, initial=first))


@programs.plan
def plan_layer(kind: Kind, shape: tuple[int, ...], place: int, device: int) -> LayerSteps | None:
    """Return the launches for images, at an address modulo 16; None if they are not small."""
    with soft.planning(device):
        steps = LayerSteps(kind, tuple(shape), place, device)
    return steps if steps.is_small else None
