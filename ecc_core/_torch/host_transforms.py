"""Soft transforms on the CPU: for operators, and of plain tensors as one function of autograd.

Derivatives by heights and sharpness, which the operator of a transform returns image by image, are
computed in the backward pass of the function, for all images together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu.soft.coefficients import Cells
from ecc_core._backends.cpu.soft.transform import Projection
from ecc_core._backends.soft import Projected, Transformed
from ecc_core._torch.host_parameters import (
    Floats,
    Levels,
    Vectors,
    are_alike,
    as_gradient,
    check_levels,
    doubles,
    sharpness_of,
)
from ecc_core._torch.increasing import increasing_in_torch
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain
from ecc_core._torch.threads import threads
from ecc_core._torch.transform import shape_of, transform


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    return torch.from_numpy(Cells(weights.numpy(), connectivity, extension, threads()).sums())


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    cells = Cells(weights.numpy(), connectivity, extension, threads())
    return torch.from_numpy(cells.gradients(upstream.numpy()))


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    projection = _projection(given)
    check_levels(projection.levels, projection.sharpness, "heights")
    _check_projection(projection)
    curve, slopes, spreads = map(
        torch.from_numpy, projection.curves().astype(projection.weights.dtype)
    )
    return curve, slopes, spreads


def _check_projection(projection: Projection) -> None:
    if not np.isfinite(projection.directions).all():
        raise ValueError("`directions` must be finite and not zero")
    if not np.isfinite(projection.weights).all():
        raise ValueError("`weights` must be finite")


def projection_gradients(
    given: Projected, upstream: Tensor, images_a_group: int, of_weights: bool
) -> tuple[Tensor, Tensor]:
    projection = _projection(given)
    groups = len(given.weights) // images_a_group
    found = projection.gradients(doubles(upstream), groups, of_weights, of_sharpness=False)
    by_weights = torch.from_numpy(found.weights).view(given.weights.shape)
    return by_weights, torch.from_numpy(found.directions).to(given.weights.dtype)


def _projection(given: Projected) -> Projection:
    return _project(
        given.weights.numpy(),
        vectors=doubles(given.vectors),
        levels=doubles(given.heights),
        sharpness=float(given.sharpness),
    )


def _project(
    weights: NDArray[Any], vectors: Floats, levels: Floats, sharpness: float
) -> Projection:
    """Return the projection of weights (batch, orthants, *grid)."""
    return Projection(
        weights=weights.reshape(*weights.shape[:2], -1),
        positions=places_of(weights.shape[2:]),
        directions=vectors,
        levels=levels,
        sharpness=sharpness,
        workers=threads(),
    )


@lru_cache(maxsize=4)
def places_of(grid: tuple[int, ...]) -> Floats:
    """Return the positions (d, points) of a grid, relative to its centre.

    They are cached because a layer needs the same ones in every step.
    """
    places = np.indices(grid, np.float64).reshape(len(grid), -1)
    places -= places[:, -1:] / 2
    return places


class Options(NamedTuple):
    """What is known of a transform besides its tensors."""

    connectivity: int
    extension: str
    spacing: tuple[float, ...]
    is_logarithm: bool
    """Whether the sharpness is given by its logarithm."""


def fused_transform(
    given: Transformed, step: Tensor | None = None, is_logarithm: bool = False
) -> Tensor | None:
    """Return the transforms (..., k, n) of weights (..., spatial), or None if operators must.

    These compute transforms without values, those of tensors of several dtypes, and of a step with
    a gradient. With a step, `heights` are the free numbers from which increasing levels are
    computed. The transforms have gradients. The caller has excluded compiled graphs, `torch.func`
    and tensor subclasses.
    """
    tensors = *given[:4], step
    if not are_alike(tensors) or (step is not None and step.requires_grad):
        return None
    if 0 in (*given.weights.shape, given.directions.shape[0], given.heights.shape[0]):
        return None
    options = Options(*given[4:], is_logarithm)
    found: Tensor = _Transforms.apply(*tensors, options)  # type: ignore[no-untyped-call]
    return found.view(shape_of(given))


class _Numbers(NamedTuple):
    """Parameters of a transform, as NumPy numbers."""

    vectors: Vectors
    levels: Levels
    sharpness: float

    @classmethod
    def of(cls, tensors: Sequence[Tensor | None], options: Options) -> _Numbers:
        """`tensors` are directions, heights, sharpness and step."""
        directions, heights, sharpness, step = tensors
        assert directions is not None
        assert heights is not None
        assert sharpness is not None
        slope = sharpness_of(sharpness, options.is_logarithm)
        return cls(Vectors.along(directions), Levels.of(heights, step), slope)

    def projection(self, owned: NDArray[Any], spacing: tuple[float, ...]) -> Projection:
        """Return the projection of sums of weights (batch, orthants, *grid)."""
        vectors = self.vectors.units * spacing
        return _project(owned, vectors, self.levels.values, self.sharpness)


class _Transforms(torch.autograd.Function):
    """The function of `fused_transform`, which returns (images, k, n)."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, *others: Any) -> Tensor:
        *tensors, options = others
        numbers = _Numbers.of(tensors, options)
        check_levels(numbers.levels.values, numbers.sharpness, "heights")
        owned = _cells(weights, options).sums()
        projection = numbers.projection(owned, options.spacing)
        _check_projection(projection)
        (curves,) = projection.curves(derivatives=False)
        ctx.save_for_backward(weights, *tensors, torch.from_numpy(owned))
        ctx.numbers = numbers
        ctx.options = options
        return torch.from_numpy(curves.astype(owned.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *tensors, owned = ctx.saved_tensors
        options: Options = ctx.options
        numbers: _Numbers = ctx.numbers
        wanted = ctx.needs_input_grad[: len(tensors)]
        if not is_plain(gradient):
            with torch.enable_grad():
                values = _by_operators(options, *tensors).view(gradient.shape)
            return *gradients_in_torch(values, tensors, wanted, gradient), None
        weights, directions, heights, sharpness, _ = tensors
        of_weights, of_directions, of_heights, of_sharpness, _ = wanted
        projection = numbers.projection(owned.numpy(), options.spacing)
        found = projection.gradients(doubles(gradient), 1, of_weights, of_sharpness)
        by_weights = by_directions = by_heights = by_sharpness = None
        if of_weights:
            by_weights = as_gradient(_cells(weights, options).gradients(found.weights), weights)
        if of_directions:
            by_units = found.directions[0] * options.spacing
            by_directions = as_gradient(numbers.vectors.gradients(by_units), directions)
        if of_heights:
            by_heights = as_gradient(numbers.levels.gradients(found.levels[0]), heights)
        if of_sharpness:
            rate = numbers.sharpness if options.is_logarithm else 1.0
            by_sharpness = as_gradient(found.sharpness * rate, sharpness)
        return by_weights, by_directions, by_heights, by_sharpness, None, None


def _cells(weights: Tensor, options: Options) -> Cells:
    """Return the cells of weights, as images (batch, *spatial)."""
    spatial = weights.shape[weights.dim() - len(options.spacing) :]
    images = weights.reshape(-1, *spatial).numpy()
    return Cells(images, options.connectivity, options.extension, threads())


def _by_operators(options: Options, weights: Tensor, *numbers: Any) -> Tensor:
    """Return the transforms by operators of torch, whose gradients can be batched and recorded."""
    directions, heights, sharpness, step = numbers
    if step is not None:
        heights = increasing_in_torch(heights, step)
    if options.is_logarithm:
        sharpness = sharpness.exp().reshape(())
    return transform(Transformed(weights, directions, heights, sharpness, *options[:3]))
