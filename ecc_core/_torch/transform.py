"""The operator of soft transforms: curves of weighted points over their heights.

A point has one weight for each orthant of directions, see :mod:`ecc_core._torch.orthants`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._torch.operators import no_second_derivatives, operator

__all__ = ["soft_projection"]


def _fake(*given: Tensor) -> tuple[Tensor, ...]:
    weights, _, directions, _, heights, _ = given
    shape = weights.shape[0], directions.shape[0], heights.shape[0]
    return weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)


def _plain(*given: Tensor) -> tuple[Tensor, ...]:
    """The curves alone, as sums over the points."""
    weights, positions, directions, orthants, heights, sharpness = given
    z = sharpness * (heights - (directions @ positions).unsqueeze(2))  # (k, points, n)
    shares = weights.index_select(1, orthants)  # (batch, k, points)
    return ((shares.unsqueeze(3) * torch.sigmoid(z)).sum(2),)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*output[1:], *inputs)
    ctx.save_for_forward(*output[1:], *inputs)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 6
    needed = ctx.needs_input_grad
    found = soft_projection_backward(gradient, *ctx.saved_tensors, bool(needed[0]))
    by_weights, by_directions, by_height, by_sharpness = found
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


@operator(_fake, stacked=(0,), backward=_backward, push=_push, setup=_setup, plain=_plain)
def soft_projection(
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (batch, k, n) of weights (batch, orthants, points), and derivatives.

    The derivatives are those by the height and by the sharpness.
    `positions` has shape (d, points), `directions` (k, d), and `orthants` (k,) with dtype int32.
    """
    given = weights, positions, directions, orthants, heights, sharpness
    return soft_curves(weights.device.type).projections(*given)


def _fake_backward(gradient: Tensor, *saved: Any) -> tuple[Tensor, ...]:
    slopes, _, weights, _, directions, *_ = saved
    batch = weights.shape[0]
    return (
        weights.new_empty(weights.shape),
        directions.new_empty((batch, *directions.shape)),
        slopes.new_empty(slopes.shape),
        slopes.new_empty((batch,)),
    )


REFUSED = no_second_derivatives("transforms")


@operator(_fake_backward, stacked=(0, 1, 2, 3), backward=REFUSED)
def soft_projection_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
    of_weights: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of the weights, and for each image of directions, heights and sharpness.

    Those of the weights are undefined unless `of_weights`.
    """
    given = weights, positions, directions, orthants, heights, sharpness
    found = soft_curves(weights.device.type).projection_gradients(gradient, of_weights, *given)
    return *found, gradient * slopes, (gradient * spreads).sum((1, 2))


@operator(lambda *given: _fake(*given[2:])[0], stacked=(0, 2), backward=REFUSED)
def soft_projection_push(
    by_weights: Tensor | None,
    by_directions: Tensor | None,
    weights: Tensor,
    positions: Tensor,
    directions: Tensor,
    orthants: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> Tensor:
    """Tangent (batch, k, n) of the curves for tangents of the weights and of the directions."""
    project = soft_curves(weights.device.type).projections
    count, others = directions.shape[0], (heights, sharpness)
    total = weights.new_zeros((weights.shape[0], count, heights.shape[0]))
    if by_weights is not None:
        total += project(by_weights, positions, directions, orthants, *others)[0]
    if by_directions is not None:
        moved = weights.index_select(1, orthants) * (by_directions @ positions)
        each = torch.arange(count, dtype=orthants.dtype, device=orthants.device)
        total -= project(moved, positions, directions, each, *others)[1]
    return total
