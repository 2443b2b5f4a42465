"""The operator of soft curves of points whose coefficients are given, and its derivatives."""

from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.curve import soft_curve_backward
from ecc_core._torch.operators import operator

OF_POINTS = None, 1, "raster"
"""No directional terms, and a connectivity and ties, which no sum over points depends on."""


def _fake(image: Tensor, coefficients: Tensor, thresholds: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return tuple(thresholds.new_empty((image.shape[0], thresholds.shape[0])) for _ in range(3))


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 6
    needs_image, _, needs_thresholds, needs_sharpness = ctx.needs_input_grad[:4]
    wanted = "image" if needs_image else "none"
    found = _gradients(gradient, ctx.saved_tensors, ctx.options[0], wanted)
    by_image, by_thresholds, by_sharpness = found
    return (
        by_image if needs_image else None,
        None,
        by_thresholds.sum(0) if needs_thresholds else None,
        by_sharpness.sum() if needs_sharpness else None,
        None,
        None,
    )


def _gradients(
    gradient: Tensor, saved: tuple[Any, ...], superlevel: bool, wanted: str
) -> tuple[Tensor, Tensor, Tensor]:
    slopes, spreads, image, coefficients, thresholds, sharpness, mask = saved
    terms, connectivity, ties = OF_POINTS
    found: tuple[Tensor, Tensor, Tensor] = soft_curve_backward(
        gradient,
        slopes,
        spreads,
        coefficients,
        image,
        thresholds,
        sharpness,
        terms,
        mask,
        connectivity,
        superlevel,
        ties,
        wanted,
    )
    return found


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    slopes, spreads, image, coefficients, thresholds, sharpness, mask = ctx.saved_tensors
    by_image, _, by_threshold, by_sharpness = tangents[:4]
    total = torch.zeros_like(slopes)
    if by_image is not None:
        change = by_image.to(slopes.dtype)
        for j in range(thresholds.shape[0]):
            one = slice(j, j + 1)
            rows = slopes[:, one], spreads[:, one]
            saved = *rows, image, coefficients, thresholds[one], sharpness, mask
            by_level = _gradients(torch.ones_like(rows[0]), saved, ctx.options[0], "wide")[0]
            total[:, j] = (by_level * change).flatten(1).sum(1)
    if by_threshold is not None:
        total = total + slopes * by_threshold
    if by_sharpness is not None:
        total = total + spreads * by_sharpness
    return total, None, None


@operator(_fake, stacked=(0, 1, 4), backward=_backward, push=_push)
def weighted_soft_curve(
    image: Tensor,
    coefficients: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    mask: Tensor | None,
    superlevel: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, n) of images (batch, *spatial), with derivatives by threshold and sharpness.

    The coefficients are (batch, points) of int8. `thresholds` and `sharpness` are float64 for a
    float64 image and float32 for any other.
    """
    terms, connectivity, _ = OF_POINTS
    given = SoftImages(image, thresholds, sharpness, terms, mask, connectivity, superlevel)
    return soft_curves(image.device.type).weighted_curves(given, coefficients)
