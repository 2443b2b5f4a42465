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
from ecc_core._torch.packing import packed_shape

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
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves (batch, n) of images (batch, *spatial), and derivatives by level and by sharpness.

    `thresholds`, `sharpness` and `tilt` are float32, or float64 with an image of float64. With
    `keep` CUDA devices return coefficients, packed, that spare the backward pass to find them.
    """
    points = cpu.points(
        image, thresholds, sharpness, tilt, mask, construction, superlevel, "raster"
    )
    return *cpu.curves(points), image.new_empty((image.shape[0], 0), dtype=torch.int32)


@torch.library.custom_op("ecc::soft_curve_backward", mutates_args=(), device_types="cpu")
def soft_curve_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    packed: Tensor,
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
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from ecc_core._torch import cuda

    given = cuda.arguments(image, thresholds, sharpness, tilt, mask, construction, superlevel)
    return cuda.curves(given, _keeps(image, keep))


@soft_curve_backward.register_kernel("cuda")
def _(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    packed: Tensor,
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
    if wanted == "none":
        return image.new_empty(0), gradient * slopes, (gradient * spreads).sum(1)
    from ecc_core._torch import cuda

    given = cuda.arguments(image, thresholds, sharpness, tilt, mask, construction, superlevel)
    rows = gradient.contiguous(), slopes, spreads
    return cuda.gradients(given, *rows, packed, ties == "split", _dtype(image, wanted))


def _keeps(image: Tensor, keep: bool) -> bool:
    """Whether coefficients are packed: not for float64, whose sums are taken level by level."""
    return keep and image.is_cuda and image.dtype != torch.float64


def _dtype(image: Tensor, wanted: str) -> torch.dtype:
    wide = wanted == "wide" and image.dtype != torch.float64
    return torch.float32 if wide else image.dtype


@soft_curve.register_fake
def _(image: Tensor, thresholds: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    shape = (image.shape[0], thresholds.shape[0])
    results = [thresholds.new_empty(shape) for _ in range(3)]
    packed = image.new_empty(packed_shape(image, _keeps(image, rest[-1])), dtype=torch.int32)
    return results[0], results[1], results[2], packed


@soft_curve_backward.register_fake
def _(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, packed: Tensor, image: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    shape = (0,) if rest[-1] == "none" else image.shape
    by_image = image.new_empty(shape, dtype=_dtype(image, rest[-1]))
    return by_image, torch.empty_like(slopes), slopes.new_empty(image.shape[:1])


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.mark_non_differentiable(*output[1:])
    ctx.options = inputs[5:8]
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
        by_image.to(ctx.saved_tensors[3].dtype) if needs_image else None,
        by_thresholds.sum(0) if needs_thresholds else None,
        by_sharpness.sum() if needs_sharpness else None,
        by_tilt,
        *(None,) * 5,
    )


def _no_backward(ctx: Any, *gradients: Any) -> Any:
    raise RuntimeError(DOUBLE)


soft_curve.register_autograd(_backward, setup_context=_setup)
soft_curve_backward.register_autograd(_no_backward)
soft_curve.register_vmap(vmapped(soft_curve, stacked=(0, 4)))
soft_curve_backward.register_vmap(vmapped(soft_curve_backward, stacked=(0, 1, 2, 3, 4, 8)))
