"""Curves of small images by the parameters of a layer: the launches of both passes of one shape.

What is computed from parameters, images with heights and windows is in the memory that the forward
pass keeps. Floats are float32 and contiguous, and there is no mask. Memory is allocated by torch.
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
from ecc_core._backends.cuda.soft_windows import Cut

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


class Given(NamedTuple):
    """Addresses of images and parameters, or 0 for those that there are not."""

    images: int
    levels: int
    """Of free numbers, if levels are increasing."""
    step: int
    log_sharpness: int
    directions: int
    log_scales: int


class Wanted(NamedTuple):
    """Addresses of the gradients of what is given, or 0 for those that are not wanted."""

    images: int
    levels: int
    log_sharpness: int
    directions: int
    log_scales: int


class _Places(NamedTuple):
    """What is kept from the forward pass, or its gradients."""

    levels: int
    sharpness: int
    vectors: int
    source: int
    """The images of which curves are computed: those given, with heights, or windows of them."""


class LayerSteps:
    """The launches for images (..., *spatial) of one shape.

    Attributes
    ----------
    kept : int
        Floats that the forward pass keeps for the backward pass.
    work : int
        Floats that the backward pass needs besides.
    strides : tuple of int
        Of contiguous curves: from an image to the next, from a level to the next, and between
        positions.
    is_small : bool
        Whether there are launches for images of this size; otherwise nothing else is planned.
    """

    def __init__(self, kind: Kind, shape: tuple[int, ...], place: int, device: int) -> None:
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
        self.strides = kind.levels * positions, positions, 1

        coordinates = kind.directions * len(kind.spacing)
        rows = ceil_div(math.prod(grid), soft_heights.CHUNK) if kind.directions else 0
        points = count * math.prod(spatial) if self._has_own_source else 0
        self._kept_places = _offsets(kind.levels, 1, coordinates, start=curve.kept)
        self.kept = self._kept_places.source + points
        doubles = rows * coordinates
        self._work_places = _offsets(kind.levels, 1, 2 * doubles, start=0)
        self.work = self._work_places.source + points

        floats = torch.float32
        of_parameters = kind.directions, floats, kind.spacing, device
        levels = kind.levels if kind.is_increasing else 0
        self._parameters = soft_parameters.plan_parameters(levels, *of_parameters)
        self._by_parameters = soft_parameters.plan_gradients(levels, rows, *of_parameters)
        if kind.cut is not None:
            cut = shape, kind.cut, floats
            windows = images * positions * math.prod(spatial)
            self._enter = soft_windows.plan("cut_windows", *cut, windows, device)
            points_given = images * math.prod(grid)
            self._leave = soft_windows.plan("window_gradients", *cut, points_given, device)
        elif kind.directions:
            on_grid = images, grid, kind.directions, floats, device
            self._enter = soft_heights.plan_on_grid("soft_add_heights", *on_grid)
            self._leave = soft_heights.plan_on_grid("soft_height_totals", *on_grid)
            self._sum_heights = soft_heights.plan_on_grid("soft_height_sums", *on_grid)

    def forward(self, stream: int, given: Given, curves: int, kept: int) -> None:
        """Write the curves and what is kept."""
        places = _at(kept, self._kept_places)
        written = (places.levels,), (places.sharpness,), (places.vectors,)
        soft.launch(self._parameters, stream, self._parameters_of(given), *written)
        if self._kind.cut is not None:
            soft.launch(self._enter, stream, (), (given.images,), (places.source,))
        elif self._kind.directions:
            read = (given.images,), (places.vectors,)
            soft.launch(self._enter, stream, (), *read, (places.source,))
        self._curve.forward(stream, self._curve_given(given, places), curves, kept, 0)

    def backward(
        self,
        stream: int,
        given: Given,
        kept: int,
        upstream: tuple[int, int, int, int],
        wanted: Wanted,
        work: int,
    ) -> None:
        """Write the gradients that are wanted, by those of the curves: an address and `strides`."""
        kind = self._kind
        found = _at(work, self._work_places)
        by_vectors = wanted.directions or wanted.log_scales
        by_source = wanted.images
        if self._has_own_source:
            by_source = found.source if wanted.images or by_vectors else 0
        by_levels = wanted.levels
        if kind.is_increasing and wanted.levels:
            by_levels = found.levels
        by_sharpness = found.sharpness if wanted.log_sharpness else 0
        curve = self._curve_given(given, _at(kept, self._kept_places))
        by_curve = curve_steps.Wanted(by_source, by_levels, by_sharpness)
        self._curve.backward(stream, curve, kept, upstream, by_curve)
        if self._has_own_source and wanted.images:
            soft.launch(self._leave, stream, (), (by_source,), (wanted.images,))
        if by_vectors:
            soft.launch(self._sum_heights, stream, (), (by_source,), (found.vectors,))
        numbers = wanted.levels if kind.is_increasing else 0
        if numbers or wanted.log_sharpness or by_vectors:
            rest = soft_parameters.Wanted(
                numbers=numbers,
                log_sharpness=wanted.log_sharpness,
                directions=wanted.directions,
                log_scales=wanted.log_scales,
            )
            read = found.levels, found.sharpness, found.vectors
            parameters = self._parameters_of(given)
            soft_parameters.launch_gradients(self._by_parameters, stream, parameters, read, rest)

    def _parameters_of(self, given: Given) -> soft_parameters.Given:
        return soft_parameters.Given(
            numbers=given.levels if self._kind.is_increasing else 0,
            step=given.step,
            log_sharpness=given.log_sharpness,
            directions=given.directions,
            log_scales=given.log_scales,
        )

    def _curve_given(self, given: Given, places: _Places) -> curve_steps.Given:
        source = places.source if self._has_own_source else given.images
        levels = places.levels if self._kind.is_increasing else given.levels
        return curve_steps.Given(source, levels, places.sharpness)


def _offsets(*sizes: int, start: int) -> _Places:
    """Return where parts of so many floats begin, one after another; the last has any size."""
    first, *others = (ALIGNED * ceil_div(size, ALIGNED) for size in (start, *sizes))
    return _Places(*accumulate(others, initial=first))


def _at(address: int, places: _Places) -> _Places:
    """Return the addresses of parts of memory of floats."""
    levels, sharpness, vectors, source = places
    return _Places(
        address + 4 * levels,
        address + 4 * sharpness,
        address + 4 * vectors,
        address + 4 * source,
    )


@programs.plan
def plan_layer(kind: Kind, shape: tuple[int, ...], place: int, device: int) -> LayerSteps | None:
    """Return the launches for images, at an address modulo 16; None if they are not small."""
    steps = LayerSteps(kind, tuple(shape), place, device)
    return steps if steps.is_small else None
