"""Layers of curves on the CPU, as one function of autograd from their parameters to curves.

For small images most nodes of autograd take longer than the numbers that they compute.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu.soft.image_windows import ImageWindows
from ecc_core._backends.cpu.soft.sums import Sums
from ecc_core._backends.soft import LayerOptions, LayerParameters
from ecc_core._torch.host_coefficients import as_points, coefficients_of_points
from ecc_core._torch.host_parameters import (
    Levels,
    Vectors,
    are_alike,
    as_gradient,
    check_levels,
    doubles,
    sharpness_of,
)
from ecc_core._torch.host_transforms import places_of
from ecc_core._torch.layer_operators import layer_by_operators
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain
from ecc_core._torch.threads import threads
from ecc_core._torch.transform import add_heights

Array = NDArray[Any]

LEAST_LENGTH = 1e-12
"""Directions are divided by no less, as in `torch.nn.functional.normalize`."""


def layer_curves(
    image: Tensor, parameters: LayerParameters, options: LayerOptions
) -> Tensor | None:
    """Return the curves of `SoftCurves.layer_curves`, or None if operators must compute them.

    These compute curves of images without points, of tensors of several dtypes, and of a step with
    a gradient.
    """
    levels, step, *_ = parameters
    if not are_alike((image, *parameters)):
        return None
    if (step is not None and step.requires_grad) or 0 in (*image.shape, levels.shape[0]):
        return None
    found: Tensor = _Curves.apply(image, *parameters, options)  # type: ignore[no-untyped-call]
    return found


class _Curves(torch.autograd.Function):
    """The function of `layer_curves`."""

    @staticmethod
    def forward(ctx: Any, image: Tensor, *others: Any) -> Tensor:
        *given, options = others
        parameters = LayerParameters(*given)
        levels = Levels.of(parameters.levels, parameters.step)
        sharpness = sharpness_of(parameters.log_sharpness, is_logarithm=True)
        check_levels(levels.values, sharpness, "thresholds")
        values = _values(image, parameters, options)
        weights = coefficients_of_points(values, options.connectivity)
        found = _sums(values, weights, levels, sharpness, options).curves()
        curves, slopes, spreads = found.astype(values.dtype)
        kept = map(torch.from_numpy, (values, weights, slopes, spreads))
        ctx.save_for_backward(image, *parameters, *kept)
        ctx.numbers = levels, sharpness
        ctx.options = options
        return _arranged(torch.from_numpy(curves), image.shape, parameters, options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        image, *given, values, weights, slopes, spreads = ctx.saved_tensors
        options: LayerOptions = ctx.options
        parameters = LayerParameters(*given)
        tensors: tuple[Any, ...] = image, *parameters
        needs = ctx.needs_input_grad
        if not is_plain(gradient):
            with torch.enable_grad():
                curves = layer_by_operators(image, parameters, options)
            return *gradients_in_torch(curves, tensors, needs[: len(tensors)], gradient), None
        wanted = LayerParameters(*needs[1 : len(tensors)])
        levels, sharpness = ctx.numbers
        upstream = doubles(_by_image(gradient, options, slopes.shape[1]))
        by_image = None
        found = dict.fromkeys(LayerParameters._fields)
        if needs[0] or wanted.directions or wanted.log_scales:
            sums = _sums(values.numpy(), weights.numpy(), levels, sharpness, options)
            by_values = sums.gradients(-_sign(options) * upstream, double=False).reshape(
                values.shape
            )
            by_image = _of_images(by_values, image, options) if needs[0] else None
            if parameters.directions is not None:
                found |= _of_directions(by_values, image, parameters, options)
        if wanted.levels:
            by_levels = (upstream * slopes.numpy()).sum(0) * _sign(options)
            found["levels"] = as_gradient(levels.gradients(by_levels), parameters.levels)
        if wanted.log_sharpness:
            by_sharpness = np.vdot(upstream, spreads.numpy()) * sharpness
            found["log_sharpness"] = as_gradient(by_sharpness, parameters.log_sharpness)
        return by_image, *found.values(), None


def _sign(options: LayerOptions) -> int:
    """Return what values and levels are multiplied by to become those of sublevel sets."""
    return -1 if options.superlevel else 1


def _values(image: Tensor, parameters: LayerParameters, options: LayerOptions) -> Array:
    """Return values (batch, *spatial) of sublevel filtrations.

    They are those of images, of their windows, or of images with heights along each direction.
    """
    spatial = image.shape[image.dim() - options.n_spatial :]
    if options.cut is not None:
        images = image.reshape(-1, *spatial).numpy()
        windows = ImageWindows(options.cut, threads()).values(images, _sign(options))
        return windows.reshape(-1, *windows.shape[1 + options.n_spatial :])
    directions, log_scales = parameters.directions, parameters.log_scales
    if directions is not None and log_scales is not None:
        units = directions / _lengths(directions)
        image = add_heights(image, units, log_scales.exp(), options.spacing)
    images = image.reshape(-1, *spatial).numpy()
    return np.ascontiguousarray(-images if options.superlevel else images)


def _of_images(by_values: Array, image: Tensor, options: LayerOptions) -> Tensor:
    """Return the gradients of images by those of `_values`, but for the sign."""
    spatial = image.shape[image.dim() - options.n_spatial :]
    images = image.numel() // math.prod(spatial)
    if options.cut is None:
        return as_gradient(by_values.reshape(images, -1, *spatial).sum(1), image)
    windows = by_values.reshape(images, *options.cut.positions, *by_values.shape[1:])
    found = ImageWindows(options.cut, threads()).gradients(windows, (images, *spatial))
    return as_gradient(found, image)


def _of_directions(
    by_values: Array, image: Tensor, parameters: LayerParameters, options: LayerOptions
) -> dict[str, Tensor]:
    """Return the gradients of directions and of their scales by those of `_values`."""
    directions, log_scales = parameters.directions, parameters.log_scales
    assert directions is not None
    assert log_scales is not None
    spatial = tuple(image.shape[image.dim() - options.n_spatial :])
    by_heights = by_values.reshape(-1, len(directions), math.prod(spatial)).sum(0, dtype=np.float64)
    by_vectors = by_heights @ places_of(spatial).T * options.spacing
    lengths = _lengths(directions)
    vectors = Vectors(doubles(directions / lengths), doubles(lengths))
    scales = np.exp(doubles(log_scales))[:, None]
    by_scales = (by_vectors * vectors.units).sum(1, keepdims=True)
    return {
        "directions": as_gradient(vectors.gradients(by_vectors * scales), directions),
        "log_scales": as_gradient(by_scales * scales, log_scales),
    }


def _lengths(directions: Tensor) -> Tensor:
    """Return the lengths (k, 1) of directions, above 0 as those of `torch.nn.functional.normalize`.

    A direction that has been set to zero then adds no heights, and its gradient is finite.
    """
    lengths: Tensor = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    return lengths.clamp_min(LEAST_LENGTH)


def _sums(
    values: Array, weights: Array, levels: Levels, sharpness: float, options: LayerOptions
) -> Sums:
    return Sums(
        values=as_points(values),
        weights=weights,
        levels=_sign(options) * levels.values,
        sharpness=sharpness,
        workers=threads(),
    )


def _arranged(
    curves: Tensor, shape: torch.Size, parameters: LayerParameters, options: LayerOptions
) -> Tensor:
    """Return curves (batch, n) in the order in which the layer returns them."""
    lead = shape[: len(shape) - options.n_spatial]
    if parameters.directions is not None:
        return curves.view(*lead, len(parameters.directions), -1)
    if options.cut is None:
        return curves.view(*lead, -1)
    positions = options.cut.positions
    by_level = curves.view(-1, *positions, curves.shape[1]).movedim(-1, 1)
    return by_level.reshape(*lead[:-1], lead[-1] * curves.shape[1], *positions)


def _by_image(gradient: Tensor, options: LayerOptions, count: int) -> Tensor:
    """Return the gradients of curves (batch, n) by those of what the layer returns."""
    if options.cut is not None:
        gradient = gradient.reshape(-1, count, *options.cut.positions).movedim(1, -1)
    return gradient.reshape(-1, count)
