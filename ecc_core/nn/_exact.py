"""Exact curves and transforms as torch operators without gradients."""

import math
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import has_kernels
from ecc_core._torch.operators import operator
from ecc_core.curves import euler_curve
from ecc_core.nn._arguments import plain
from ecc_core.transforms import euler_transform


def _without_gradient(argument: Any) -> Any:
    return plain(argument).detach() if isinstance(argument, Tensor) else argument


def straight_through(operator: Any, soft: Tensor, *arguments: Any) -> Tensor:
    """Apply an exact operator to a batch of images, with the gradients of the soft values."""
    if torch.onnx.is_in_onnx_export():
        raise RuntimeError('ONNX has no operators for layers with hard="forward"')
    found = operator(*map(_without_gradient, arguments)).reshape(soft.shape)
    exact: Tensor = found.to(soft.dtype)
    return exact + (soft - soft.detach())


def place_of_curves(images: Tensor) -> torch.device:
    """Return where exact curves are computed: in host memory, where a device has no kernels."""
    return images.device if has_kernels(images.device.type) else torch.device("cpu")


def flatten(image: Tensor, n_spatial: int) -> Tensor:
    """Reshape images (..., *spatial) to (batch, *spatial)."""
    first = image.ndim - n_spatial
    return image.reshape(math.prod(image.shape[:first]), *image.shape[first:])


def _fake_curve(image: Tensor, thresholds: Tensor, *_: Any) -> Tensor:
    return image.new_empty((image.shape[0], thresholds.shape[0]), dtype=torch.int64)


@operator(_fake_curve, stacked=(0, 2))
def exact_curve(
    image: Tensor,
    thresholds: Tensor,
    mask: Tensor | None,
    direction: Tensor | None,
    direction_scale: Tensor | None,
    spacing: list[float],
    connectivity: int,
    superlevel: bool,
) -> Tensor:
    """Curves (batch, n) of images (batch, *spatial) with a mask (batch or 1, *spatial)."""
    place = place_of_curves(image)
    shown = None if mask is None else mask.expand(image.shape)
    found: Tensor = euler_curve(
        image.to(place),
        thresholds.to(place),
        mask=None if shown is None else shown.to(place),
        direction=None if direction is None else direction.tolist(),
        direction_scale=None if direction_scale is None else direction_scale.item(),
        spacing=None if direction is None else spacing,
        connectivity=connectivity,
        superlevel=superlevel,
        axis=range(1, image.ndim),
    ).values
    return found.to(image.device)


def _fake_transform(weights: Tensor, directions: Tensor, heights: Tensor, *_: Any) -> Tensor:
    shape = weights.shape[0], directions.shape[0], heights.shape[0]
    return weights.new_empty(shape, dtype=torch.float64)


@operator(_fake_transform, stacked=(0,))
def exact_transform(
    weights: Tensor,
    directions: Tensor,
    heights: Tensor,
    spacing: list[float],
    connectivity: int,
) -> Tensor:
    """Transforms (batch, k, n) of weights (batch, *spatial)."""
    values = weights.new_empty((len(weights), len(directions), len(heights)), dtype=torch.float64)
    place = place_of_curves(weights)
    given, vectors, levels = (part.to(place) for part in (weights, directions, heights))
    for row, image in zip(values, given, strict=True):
        found: Any = euler_transform(
            image, vectors, levels, spacing=spacing, connectivity=connectivity, weighted=True
        ).values
        row.copy_(found)
    return values
