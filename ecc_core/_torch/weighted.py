"""The operator of soft curves of points whose coefficients are given, and its derivatives."""

from typing import Any

from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import SoftImages
from ecc_core._torch.curve import gradients_of, pushed
from ecc_core._torch.operators import operator

# Options of soft curves that have no effect if coefficients are given.
TERMS = None
CONNECTIVITY = 1
TIES = "raster"


def _fake(image: Tensor, coefficients: Tensor, thresholds: Tensor, *_: Any) -> tuple[Tensor, ...]:
    return tuple(thresholds.new_empty((image.shape[0], thresholds.shape[0])) for _ in range(3))


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 6
    needs_image, _, needs_thresholds, needs_sharpness = ctx.needs_input_grad[:4]
    needed = needs_image, needs_thresholds, needs_sharpness, False
    found = gradients_of(needed, _saved(ctx), _options(ctx), gradient)
    by_image, by_thresholds, by_sharpness = found[:3]
    return by_image, None, by_thresholds, by_sharpness, None, None


def _saved(ctx: Any) -> tuple[Any, ...]:
    """Return the saved tensors in the order of those of soft curves."""
    slopes, spreads, image, coefficients, thresholds, sharpness, mask = ctx.saved_tensors
    return slopes, spreads, coefficients, image, thresholds, sharpness, TERMS, mask


def _options(ctx: Any) -> tuple[int, bool, str]:
    return CONNECTIVITY, ctx.options[0], TIES


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    by_image, _, by_threshold, by_sharpness = tangents[:4]
    total = pushed(
        by_image, by_threshold, by_sharpness=by_sharpness, saved=_saved(ctx), options=_options(ctx)
    )
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
    """Return curves (batch, n) of images (batch, *spatial) and derivatives.

    The derivatives (batch, n) are those by threshold and by sharpness.

    The coefficients are (batch, points), int8. `thresholds` and `sharpness` are float64 for a
    float64 image and float32 for all others.
    """
    given = SoftImages(
        image=image,
        thresholds=thresholds,
        sharpness=sharpness,
        direction_terms=TERMS,
        mask=mask,
        connectivity=CONNECTIVITY,
        superlevel=superlevel,
    )
    return soft_curves(image.device.type).weighted_curves(given, coefficients)
