"""Layers of curves on the CPU, as one function of autograd from their parameters to curves.

For small images most nodes of autograd take longer than the numbers that they compute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu.soft.image_windows import ImageWindows
from ecc_core._backends.cpu.soft.sums import Sums
from ecc_core._backends.image_cuts import Cut
from ecc_core._backends.soft import LayerParameters
from ecc_core._torch.host_coefficients import as_points, coefficients_of_points
from ecc_core._torch.host_parameters import (
    Levels,
    are_alike,
    as_gradient,
    check_levels,
    doubles,
    sharpness_of,
)
from ecc_core._torch.layer_operators import layer_by_operators
from ecc_core._torch.operators import gradients_in_torch
from ecc_core._torch.routes import is_plain
from ecc_core._torch.threads import threads

Array = NDArray[Any]


class _Options(NamedTuple):
    """What is known of a layer besides its tensors."""

    n_spatial: int
    connectivity: int
    superlevel: bool
    cut: Cut | None

    @property
    def sign(self) -> int:
        """What values and levels are multiplied by to become those of sublevel sets."""
        return -1 if self.superlevel else 1


def layer_curves(
    image: Tensor,
    parameters: LayerParameters,
    *,
    n_spatial: int,
    connectivity: int,
    superlevel: bool,
    spacing: tuple[float, ...],
    cut: Cut | None = None,
) -> Tensor | None:
    """Return the curves of `SoftCurves.layer_curves`, or None if operators must compute them.

    These compute curves along directions, of images without points, of tensors of several dtypes,
    and of a step with a gradient.
    """
    levels, step, log_sharpness, directions, _ = parameters
    tensors = image, levels, step, log_sharpness
    if directions is not None or not are_alike(tensors):
        return None
    if (step is not None and step.requires_grad) or 0 in (*image.shape, levels.shape[0]):
        return None
    options = _Options(n_spatial, connectivity, superlevel, cut)
    found: Tensor = _Curves.apply(*tensors, options)  # type: ignore[no-untyped-call]
    return found


class _Curves(torch.autograd.Function):
    """The function of `layer_curves`."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        free: Tensor,
        step: Tensor | None,
        log_sharpness: Tensor,
        options: _Options,
    ) -> Tensor:
        levels = Levels.of(free, step)
        sharpness = sharpness_of(log_sharpness, is_logarithm=True)
        check_levels(levels.values, sharpness, "thresholds")
        values = _values(image, options)
        weights = coefficients_of_points(values, options.connectivity)
        found = _sums(values, weights, levels, sharpness, options).curves()
        curves, slopes, spreads = found.astype(values.dtype)
        kept = map(torch.from_numpy, (values, weights, slopes, spreads))
        ctx.save_for_backward(image, free, step, log_sharpness, *kept)
        ctx.numbers = levels, sharpness
        ctx.options = options
        return _arranged(torch.from_numpy(curves), image.shape, options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        *tensors, kept, weights, slopes, spreads = ctx.saved_tensors
        options: _Options = ctx.options
        image, free, _, log_sharpness = tensors
        wanted = ctx.needs_input_grad[: len(tensors)]
        if not is_plain(gradient):
            with torch.enable_grad():
                curves = _by_operators(options, *tensors)
            return *gradients_in_torch(curves, tensors, wanted, gradient), None
        levels, sharpness = ctx.numbers
        upstream = doubles(_by_image(gradient, options, slopes.shape[1]))
        by_image = by_free = by_log_sharpness = None
        if wanted[0]:
            values = kept.numpy()
            sums = _sums(values, weights.numpy(), levels, sharpness, options)
            by_values = sums.gradients(-options.sign * upstream, double=False)
            by_image = _of_images(by_values.reshape(values.shape), image, options)
        if wanted[1]:
            by_levels = (upstream * slopes.numpy()).sum(0) * options.sign
            by_free = as_gradient(levels.gradients(by_levels), free)
        if wanted[3]:
            by_sharpness = np.vdot(upstream, spreads.numpy()) * sharpness
            by_log_sharpness = as_gradient(by_sharpness, log_sharpness)
        return by_image, by_free, None, by_log_sharpness, None


def _values(image: Tensor, options: _Options) -> Array:
    """Return values (batch, *spatial) of sublevel filtrations: of images, or of their windows."""
    spatial = image.shape[image.dim() - options.n_spatial :]
    images = image.reshape(-1, *spatial).numpy()
    if options.cut is None:
        return np.ascontiguousarray(-images if options.superlevel else images)
    windows = ImageWindows(options.cut, threads()).values(images, options.sign)
    return windows.reshape(-1, *windows.shape[1 + options.n_spatial :])


def _of_images(by_values: Array, image: Tensor, options: _Options) -> Tensor:
    """Return the gradients of images by those of `_values`, but for the sign."""
    if options.cut is not None:
        spatial = image.shape[image.dim() - options.n_spatial :]
        images = image.numel() // int(np.prod(spatial))
        windows = by_values.reshape(images, *options.cut.positions, *by_values.shape[1:])
        shape = images, *spatial
        by_values = ImageWindows(options.cut, threads()).gradients(windows, shape)
    return as_gradient(by_values, image)


def _sums(
    values: Array, weights: Array, levels: Levels, sharpness: float, options: _Options
) -> Sums:
    return Sums(
        values=as_points(values),
        weights=weights,
        levels=options.sign * levels.values,
        sharpness=sharpness,
        workers=threads(),
    )


def _arranged(curves: Tensor, shape: torch.Size, options: _Options) -> Tensor:
    """Return curves (batch, n) in the order in which the layer returns them."""
    lead = shape[: len(shape) - options.n_spatial]
    if options.cut is None:
        return curves.view(*lead, -1)
    positions = options.cut.positions
    by_level = curves.view(-1, *positions, curves.shape[1]).movedim(-1, 1)
    return by_level.reshape(*lead[:-1], lead[-1] * curves.shape[1], *positions)


def _by_image(gradient: Tensor, options: _Options, count: int) -> Tensor:
    """Return the gradients of curves (batch, n) by those of what the layer returns."""
    if options.cut is not None:
        gradient = gradient.reshape(-1, count, *options.cut.positions).movedim(1, -1)
    return gradient.reshape(-1, count)


def _by_operators(options: _Options, image: Tensor, *numbers: Any) -> Tensor:
    levels, step, log_sharpness = numbers
    return layer_by_operators(
        image,
        LayerParameters(levels, step, log_sharpness, directions=None, log_scales=None),
        n_spatial=options.n_spatial,
        connectivity=options.connectivity,
        superlevel=options.superlevel,
        spacing=(),
        cut=options.cut,
    )
