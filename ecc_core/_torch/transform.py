"""The operator of soft transforms: curves of weighted points over their heights.

A point has one weight for each orthant of directions, see :mod:`ecc_core._torch.orthants`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core._torch.batching import keep_nothing, saving, transformable, vmapped

__all__ = ["soft_projection"]

NAME, NAME_BACKWARD = "ecc::soft_projection", "ecc::soft_projection_backward"
NAME_PUSH = "ecc::soft_projection_push"
COMMON = (
    "Tensor weights, Tensor positions, Tensor directions, Tensor orthants, Tensor heights,"
    " Tensor sharpness"
)
torch.library.define(
    NAME,
    f"({COMMON}) -> (Tensor curves, Tensor slopes, Tensor spreads)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    NAME_BACKWARD,
    f"(Tensor gradient, Tensor slopes, Tensor spreads, {COMMON}) -> "
    "(Tensor by_weights, Tensor by_directions, Tensor by_height, Tensor by_sharpness)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    NAME_PUSH,
    f"(Tensor? by_weights, Tensor? by_directions, {COMMON}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
FORWARD = torch.ops.ecc.soft_projection.default
BACKWARD = torch.ops.ecc.soft_projection_backward.default
PUSH = torch.ops.ecc.soft_projection_push.default


@torch.library.impl(NAME, "cpu")
def _on_cpu(weights: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
    from ecc_core._torch import projections

    given = projections.checked(weights, *rest)
    if weights.dtype == torch.float64:
        return projections.direct_curves(given)
    return projections.curves(given)


@torch.library.impl(NAME_BACKWARD, "cpu")
def _backward_on_cpu(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, weights: Tensor, *rest: Tensor
) -> tuple[Tensor, ...]:
    from ecc_core._torch import projections

    given = projections.Given(weights, *rest)
    wide = weights.dtype == torch.float64
    compute = projections.direct_gradients if wide else projections.gradients
    return *compute(given, gradient), gradient * slopes, (gradient * spreads).sum((1, 2))


@torch.library.impl(NAME, "cuda")
def _on_cuda(*given: Tensor) -> tuple[Tensor, ...]:
    from ecc_core._backends.cuda import soft_transform

    return soft_transform.curves(*given)


@torch.library.impl(NAME_BACKWARD, "cuda")
def _backward_on_cuda(
    gradient: Tensor, slopes: Tensor, spreads: Tensor, *given: Tensor
) -> tuple[Tensor, ...]:
    from ecc_core._backends.cuda import soft_transform

    found = soft_transform.gradients(gradient, *given)
    return *found, gradient * slopes, (gradient * spreads).sum((1, 2))


@torch.library.impl(NAME_PUSH, "CompositeExplicitAutograd")
def _push_anywhere(
    by_weights: Tensor | None,
    by_directions: Tensor | None,
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    *rest: Tensor,
) -> Tensor:
    shape = (weights.shape[0], directions.shape[0], rest[0].shape[0])
    total = weights.new_zeros(shape)
    if by_weights is not None:
        total += FORWARD(by_weights, positions, directions, orthants, *rest)[0]
    if by_directions is not None:
        moved = weights.index_select(1, orthants) * (by_directions @ positions)
        each = torch.arange(shape[1], dtype=orthants.dtype, device=orthants.device)
        total -= FORWARD(moved, positions, directions, each, *rest)[1]
    return total


def _plain(
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> tuple[Tensor, ...]:
    """The curves alone, as sums over the points."""
    z = sharpness * (heights - (directions @ positions).unsqueeze(2))  # (k, points, n)
    shares = weights.index_select(1, orthants)  # (batch, k, points)
    return ((shares.unsqueeze(3) * torch.sigmoid(z)).sum(2),)


def _fake(
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    *_: Any,
) -> tuple[Tensor, ...]:
    shape = (weights.shape[0], directions.shape[0], heights.shape[0])
    return weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)


def _fake_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    *_: Any,
) -> tuple[Tensor, ...]:
    batch = weights.shape[0]
    return (
        weights.new_empty(weights.shape),
        directions.new_empty((batch, *directions.shape)),
        slopes.new_empty(slopes.shape),
        slopes.new_empty((batch,)),
    )


def _setup(
    ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]
) -> tuple[Tensor | None, ...]:
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    return *output[1:], *inputs


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 6
    found = soft_projection_backward(gradient, *ctx.saved_tensors)
    by_weights, by_directions, by_height, by_sharpness = found
    needed = ctx.needs_input_grad
    return (
        by_weights if needed[0] else None,
        None,
        by_directions.sum(0) if needed[2] else None,
        None,
        by_height.sum((0, 1)) if needed[4] else None,
        by_sharpness.sum() if needed[5] else None,
    )


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    slopes, spreads, *given = ctx.saved_tensors
    by_weights, _, by_directions, _, by_height, by_sharpness = tangents
    total = torch.zeros_like(slopes)
    if by_weights is not None or by_directions is not None:
        total = soft_projection_push(by_weights, by_directions, *given)
    if by_height is not None:
        total = total + slopes * by_height
    if by_sharpness is not None:
        total = total + spreads * by_sharpness
    return total, None, None


def _fake_push(by_weights: Tensor | None, by_directions: Tensor | None, *given: Tensor) -> Tensor:
    return _fake(*given)[0]


def _no_backward(ctx: Any, *gradients: Any) -> Any:
    raise RuntimeError("soft Euler characteristic transforms have no second derivatives")


soft_projection = transformable(FORWARD, _setup, _backward, _push, plain=_plain)
"""Curves (batch, k, n) of weights (batch, orthants, points), with derivatives by height, sharpness.

`positions` has shape (d, points), `directions` (k, d), and `orthants` (k,) with dtype int32.
"""
soft_projection_backward = transformable(BACKWARD, keep_nothing, _no_backward, _no_backward)
"""Gradients of the weights, and for each image of directions, heights and sharpness."""
soft_projection_push = transformable(PUSH, keep_nothing, _no_backward, _no_backward)
"""Tangent (batch, k, n) of the curves for tangents of the weights and of the directions."""

torch.library.register_fake(NAME, _fake)
torch.library.register_fake(NAME_PUSH, _fake_push)
torch.library.register_fake(NAME_BACKWARD, _fake_backward)
torch.library.register_autograd(NAME, _backward, setup_context=saving(_setup))
torch.library.register_autograd(NAME_BACKWARD, _no_backward)
torch.library.register_autograd(NAME_PUSH, _no_backward)
torch.library.register_vmap(NAME, vmapped(FORWARD, stacked=(0,)))
torch.library.register_vmap(NAME_PUSH, vmapped(PUSH, stacked=(0, 2)))
torch.library.register_vmap(NAME_BACKWARD, vmapped(BACKWARD, stacked=(0, 1, 2, 3)))
