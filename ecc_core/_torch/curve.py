"""The operator of soft curves: forward, backward, and what torch must know of them.

The curve comes with its derivatives by the thresholds and by the sharpness, which cost next to
nothing with it. The gradient of the image is an operator of its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core._torch import cpu
from ecc_core._torch.batching import vmapped

__all__ = ["soft_curve", "soft_curve_backward"]

DOUBLE = "soft Euler characteristic curves have no second derivatives"


@torch.library.custom_op("ecc::soft_curve", mutates_args=(), device_types="cpu")
def soft_curve(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
    ties: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, n) of images (batch, *spatial), and derivatives by level and by sharpness.

    `thresholds`, `sharpness` and `tilt` are float32, or float64 with an image of float64.
    """
    points = cpu.points(
        image, thresholds, sharpness, tilt, mask, construction, superlevel, "raster"
    )
    return cpu.curves(points)


@torch.library.custom_op("ecc::soft_curve_backward", mutates_args=(), device_types="cpu")
def soft_curve_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
    ties: str,
    wanted: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the images, and of thresholds (batch, n) and sharpness (batch,) image by image.

    `wanted`: "none" (an empty tensor), the gradient of the image in its own dtype ("image"), or in
    float32 although that is narrower ("wide").
    """
    by_image = image.new_empty(0)
    if wanted != "none":
        points = cpu.points(
            image, thresholds, sharpness, tilt, mask, construction, superlevel, ties
        )
        by_image = cpu.gradient(points, gradient if superlevel else -gradient)
        by_image = by_image.reshape(image.shape).to(_dtype(image, wanted))
    return by_image, gradient * slopes, (gradient * spreads).sum(1)


@soft_curve.register_kernel("cuda")
def _(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
    ties: str,
) -> tuple[Tensor, Tensor, Tensor]:
    from ecc_core._torch import cuda

    return cuda.curves(image, thresholds, sharpness, tilt, mask, construction, superlevel)


@soft_curve_backward.register_kernel("cuda")
def _(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    tilt: Tensor | None,
    mask: Tensor | None,
    construction: str,
    superlevel: bool,
    ties: str,
    wanted: str,
) -> tuple[Tensor, Tensor, Tensor]:
    from ecc_core._torch import cuda

    by_image = image.new_empty(0)
    if wanted != "none":
        by_image = cuda.gradient(
            gradient,
            image,
            thresholds,
            sharpness,
            tilt,
            mask,
            construction,
            superlevel,
            ties,
            _dtype(image, wanted),
        )
    return by_image, gradient * slopes, (gradient * spreads).sum(1)


def _dtype(image: Tensor, wanted: str) -> torch.dtype:
    wide = wanted == "wide" and image.dtype != torch.float64
    return torch.float32 if wide else image.dtype


@soft_curve.register_fake
def _(image: Tensor, thresholds: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    shape = (image.shape[0], thresholds.shape[0])
    return thresholds.new_empty(shape), thresholds.new_empty(shape), thresholds.new_empty(shape)


@soft_curve_backward.register_fake
def _(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, image: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (0,) if rest[-1] == "none" else image.shape
    by_image = image.new_empty(shape, dtype=_dtype(image, rest[-1]))
    return by_image, torch.empty_like(slopes), slopes.new_empty(image.shape[:1])


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.mark_non_differentiable(*output[1:])
    ctx.options = inputs[5:]
    ctx.save_for_backward(*output[1:], *inputs[:5])


def _backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Any, ...]:
    needs_image, needs_thresholds, needs_sharpness, needs_tilt = ctx.needs_input_grad[:4]
    wanted = "wide" if needs_tilt else "image" if needs_image else "none"
    found = soft_curve_backward(gradient, *ctx.saved_tensors, *ctx.options, wanted)
    by_image, by_thresholds, by_sharpness = found
    by_tilt = None
    if needs_tilt:
        axes = range(1, by_image.dim())
        by_tilt = torch.cat([by_image.sum([0, *(a for a in axes if a != axis)]) for axis in axes])
    return (
        by_image.to(ctx.saved_tensors[2].dtype) if needs_image else None,
        by_thresholds.sum(0) if needs_thresholds else None,
        by_sharpness.sum() if needs_sharpness else None,
        by_tilt,
        *(None,) * 4,
    )


def _no_backward(ctx: Any, *gradients: Any) -> Any:
    raise RuntimeError(DOUBLE)


soft_curve.register_autograd(_backward, setup_context=_setup)
soft_curve_backward.register_autograd(_no_backward)
soft_curve.register_vmap(vmapped(soft_curve, stacked=(0, 4)))
soft_curve_backward.register_vmap(vmapped(soft_curve_backward, stacked=(0, 1, 2, 3, 7)))
