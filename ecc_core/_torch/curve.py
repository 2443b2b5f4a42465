"""The operator of soft curves and its derivatives, as registered with torch.

The forward operator also returns the derivatives by thresholds and sharpness, which cost next to
nothing along with the curve. A second operator computes the gradient of the image.

Each implementation is registered separately since `torch.library.custom_op` would check in every
call that no result shares memory with an argument, which takes longer than the kernels.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ecc_core._torch import direct
from ecc_core._torch.batching import keep_nothing, saving, transformable, vmapped
from ecc_core._torch.cells import Ties, cell_values, filtration, spread
from ecc_core._torch.packing import packed_shape

__all__ = ["by_direction_terms", "gradients_of", "no_second_derivatives", "soft_curve"]

NAME, NAME_BACKWARD = "ecc::soft_curve", "ecc::soft_curve_backward"
NAME_PUSH = "ecc::soft_curve_push"
COMMON = (
    "Tensor image, Tensor thresholds, Tensor sharpness, Tensor? direction_terms, Tensor? mask,"
    " int connectivity, bool superlevel, str ties"
)
torch.library.define(
    NAME,
    f"({COMMON}, bool keep) -> (Tensor curve, Tensor slopes, Tensor spreads, Tensor packed)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    NAME_BACKWARD,
    f"(Tensor gradient, Tensor slopes, Tensor spreads, Tensor packed, {COMMON}, str wanted)"
    " -> (Tensor by_image, Tensor by_threshold, Tensor by_sharpness)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    NAME_PUSH,
    f"(Tensor change, {COMMON}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
FORWARD = torch.ops.ecc.soft_curve.default
BACKWARD = torch.ops.ecc.soft_curve_backward.default
PUSH = torch.ops.ecc.soft_curve_push.default


def _on_cpu(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    keep: bool,
) -> tuple[Tensor, ...]:
    from ecc_core._torch import cpu

    values = cpu.values(image, thresholds, direction_terms, mask, superlevel)
    options = values, thresholds, sharpness, connectivity, superlevel
    found = cpu.small_curves(*options) if cpu.is_small(values) else cpu.curves(*options)
    *rows, coefficients = found
    return *rows, coefficients if keep else coefficients.new_empty((image.shape[0], 0))


def _backward_on_cpu(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    packed: Tensor,
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: str,
    wanted: str,
) -> tuple[Tensor, ...]:
    from ecc_core._torch import cpu

    rows = gradient, slopes, spreads
    if wanted == "none":
        return image.new_empty(0), *cpu.by_levels(*rows)
    values = cpu.values(image, thresholds, direction_terms, mask, superlevel)
    if ties == "split" or not packed.shape[1]:
        packed = cpu.coefficients(values, connectivity, ties)
    small = cpu.is_small(values) and ties == "raster"
    compute = cpu.small_gradients if small else cpu.gradients
    found = compute(values, packed, thresholds, sharpness, superlevel, rows, wanted == "wide")
    return found[0].to(_dtype(image, wanted)), *found[1:]


def _on_cuda(image: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    from ecc_core._torch import cuda

    *options, _, keep = rest
    return cuda.curves(cuda.arguments(image, *options), _keeps(image, keep))


def _backward_on_cuda(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, packed: Tensor, image: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    *options, ties, wanted = rest
    by_levels = gradient * slopes, (gradient * spreads).sum(1)
    if wanted == "none":
        return image.new_empty(0), *by_levels
    from ecc_core._torch import cuda

    given = cuda.arguments(image, *options)
    dtype = _dtype(image, wanted)
    return cuda.gradient(given, gradient, packed, ties == "split", dtype), *by_levels


def _push_on_cpu(change: Tensor, image: Tensor, *options: Any) -> Tensor:
    from ecc_core._torch import cpu

    thresholds, sharpness, terms, mask, connectivity, superlevel, ties = options
    values = cpu.values(image, thresholds, terms, mask, superlevel)
    levels = torch.from_numpy(cpu.sublevel(thresholds, superlevel))
    weights = cpu.coefficients(values, connectivity, ties)
    return _pushed(change, values.flatten(1), weights, levels, float(sharpness), superlevel)


def _push_on_cuda(change: Tensor, image: Tensor, *rest: Any) -> Tensor:
    from ecc_core._torch import cuda

    *options, ties = rest
    given = cuda.arguments(image, *options)
    points = cuda.points(given, ties == "split")
    return _pushed(change, *points, given.sharpness, given.superlevel)


def _pushed(
    change: Tensor,
    values: Tensor,
    weights: Tensor,
    levels: Tensor,
    sharpness: Tensor | float,
    superlevel: bool,
) -> Tensor:
    """Tangent (batch, n) of the curves for the tangent of the filtration."""
    change = change.flatten(1).to(values.dtype)
    change = change if superlevel else -change
    return direct.curves(values, weights * change, levels, sharpness)[1]


def _keeps(image: Tensor, keep: bool) -> bool:
    """Whether CUDA keeps packed coefficients, which the backward pass of float64 does not use."""
    return keep and image.dtype != torch.float64


def _dtype(image: Tensor, wanted: str) -> torch.dtype:
    wide = wanted == "wide" and image.dtype != torch.float64
    return torch.float32 if wide else image.dtype


def _plain(
    image: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    ties: Ties,
    keep: bool,
) -> tuple[Tensor, ...]:
    """The curve alone, as a sum over the cells."""
    values = filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel)
    levels = -thresholds if superlevel else thresholds
    curve = torch.zeros_like(levels)
    for extent, cells in cell_values(values, connectivity, ties):
        entered = torch.sigmoid(sharpness * (levels - cells.flatten(1).unsqueeze(2))).sum(1)
        curve = curve + entered if sum(extent) % 2 == 0 else curve - entered
    return (curve,)


def _fake(image: Tensor, thresholds: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    results = [thresholds.new_empty((image.shape[0], thresholds.shape[0])) for _ in range(3)]
    keep = rest[-1]
    if image.is_cuda:
        shape, dtype = packed_shape(image, _keeps(image, keep)), torch.int32
    else:
        shape = (image.shape[0], math.prod(image.shape[1:]) if keep else 0)
        dtype = torch.int8
    return *results, image.new_empty(shape, dtype=dtype)


def _fake_backward(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, packed: Tensor, image: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    shape = (0,) if rest[-1] == "none" else image.shape
    by_image = image.new_empty(shape, dtype=_dtype(image, rest[-1]))
    return by_image, torch.empty_like(slopes), slopes.new_empty(image.shape[:1])


def _setup(
    ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.options = inputs[5:8]
    return *output[1:], *inputs[:5]


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    return gradients_of(ctx.needs_input_grad, ctx.saved_tensors, ctx.options, gradient)


def gradients_of(
    needed: tuple[bool, ...], saved: tuple[Any, ...], options: tuple[Any, ...], gradient: Tensor
) -> tuple[Any, ...]:
    """Gradients of the arguments of the operator, from the tensors that `_setup` saves."""
    needs_image, needs_thresholds, needs_sharpness, needs_terms = needed[:4]
    wanted = "wide" if needs_terms else "image" if needs_image else "none"
    found = soft_curve_backward(gradient, *saved, *options, wanted)
    by_image, by_thresholds, by_sharpness = found
    return (
        by_image.to(saved[3].dtype) if needs_image else None,
        by_thresholds.sum(0) if needs_thresholds else None,
        by_sharpness.sum() if needs_sharpness else None,
        by_direction_terms(by_image, saved[6].dtype) if needs_terms else None,
        *(None,) * 5,
    )


def by_direction_terms(by_image: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient of the terms along each axis, summed in float64 since terms cancel."""
    axes = range(1, by_image.dim())
    others = [[0, *(a for a in axes if a != axis)] for axis in axes]
    return torch.cat([by_image.sum(dims, dtype=torch.float64) for dims in others]).to(dtype)


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    slopes, spreads, _, image, thresholds, sharpness, direction_terms, mask = ctx.saved_tensors
    by_image, by_threshold, by_sharpness, by_terms = tangents[:4]
    change = None if by_image is None else by_image.to(slopes.dtype)
    if by_terms is not None:
        along = spread(by_terms, image.shape[1:]).expand(image.shape)
        change = along if change is None else change + along
    total = torch.zeros_like(slopes)
    if change is not None:
        total = soft_curve_push(
            change, image, thresholds, sharpness, direction_terms, mask, *ctx.options
        )
    if by_threshold is not None:
        total = total + slopes * by_threshold
    if by_sharpness is not None:
        total = total + spreads * by_sharpness
    return total, None, None, None


def _fake_push(change: Tensor, image: Tensor, thresholds: Tensor, *_: Any) -> Tensor:
    return thresholds.new_empty((image.shape[0], thresholds.shape[0]))


def no_second_derivatives(ctx: Any, *gradients: Any) -> Any:
    """Backward pass of the gradients."""
    raise RuntimeError("soft Euler characteristic curves have no second derivatives")


ON_DEVICES = {"cpu": _on_cpu, "cuda": _on_cuda}
BACKWARD_ON_DEVICES = {"cpu": _backward_on_cpu, "cuda": _backward_on_cuda}
PUSH_ON_DEVICES = {"cpu": _push_on_cpu, "cuda": _push_on_cuda}

soft_curve = transformable(FORWARD, _setup, _backward, _push, ON_DEVICES, _plain)
"""Curves (batch, n) of images (batch, *spatial), with derivatives by threshold and sharpness.

`thresholds`, `sharpness` and `direction_terms` are float64 for a float64 image and float32 for any
other. With `keep` the coefficients are returned too, packed on CUDA devices, so that the backward
pass does not compute them again.
"""
soft_curve_backward = transformable(
    BACKWARD, keep_nothing, no_second_derivatives, no_second_derivatives, BACKWARD_ON_DEVICES
)
"""Gradients of the images, and for each image of thresholds (batch, n) and sharpness (batch,).

`wanted` tells which gradient of the images to return: "none" (an empty tensor), "image" (in their
dtype), or "wide" (in float32 for images of a narrower dtype).
"""
soft_curve_push = transformable(
    PUSH, keep_nothing, no_second_derivatives, no_second_derivatives, PUSH_ON_DEVICES
)
"""Tangent (batch, n) of the curves for the tangent (batch, *spatial) of the filtration."""

for name, implementations in (
    (NAME, ON_DEVICES),
    (NAME_BACKWARD, BACKWARD_ON_DEVICES),
    (NAME_PUSH, PUSH_ON_DEVICES),
):
    for device, implementation in implementations.items():
        torch.library.impl(name, device, implementation)

torch.library.register_fake(NAME, _fake)
torch.library.register_fake(NAME_PUSH, _fake_push)
torch.library.register_fake(NAME_BACKWARD, _fake_backward)
torch.library.register_autograd(NAME, _backward, setup_context=saving(_setup))
torch.library.register_autograd(NAME_BACKWARD, no_second_derivatives)
torch.library.register_autograd(NAME_PUSH, no_second_derivatives)
torch.library.register_vmap(NAME, vmapped(FORWARD, stacked=(0, 4)))
torch.library.register_vmap(NAME_PUSH, vmapped(PUSH, stacked=(0, 1, 5)))
torch.library.register_vmap(NAME_BACKWARD, vmapped(BACKWARD, stacked=(0, 1, 2, 3, 4, 8)))
