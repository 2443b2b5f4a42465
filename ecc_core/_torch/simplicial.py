"""The operator of soft transforms of batches of simplicial complexes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import SoftShapes
from ecc_core._torch.operators import no_second_derivatives, operator

FORWARD = no_second_derivatives("soft simplicial transforms have no forward-mode derivatives, and")


def _fake(
    points: Tensor, weights: Tensor | None, vectors: Tensor, levels: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    count = rest[2]
    derivatives = rest[4]
    one = vectors.shape[0], levels.shape[0]
    others = [points.new_empty((count if derivatives else 0, *one)) for _ in range(2)]
    return points.new_empty((count, *one)), *others


def _plain(
    points: Tensor,
    weights: Tensor | None,
    vectors: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
    derivatives: bool,
) -> tuple[Tensor, ...]:
    """The curves alone, as sums over the simplices."""
    heights = points @ vectors.T
    found = heights.new_zeros((count, vectors.shape[0], levels.shape[0]))
    for rows in [torch.arange(len(points), device=points.device)[:, None], *simplices]:
        sign = 1 if rows.shape[1] % 2 else -1
        entry = heights[rows].amax(1).unsqueeze(2)
        steps = sign * torch.sigmoid(sharpness * (levels - entry))
        if weights is not None:
            steps = steps * weights[rows].amax(1)[:, None, None]
        found = found.index_add(0, shapes[rows[:, 0]], steps)
    return (found,)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    needed = ctx.needs_input_grad
    found = soft_simplices_backward(
        gradient, *ctx.saved_tensors, *ctx.options[:2], needed[1], needed[3], needed[4]
    )
    used = [part if need else None for part, need in zip(found, needed, strict=False)]
    # torch.library wants the structure of the arguments, and torch.autograd.Function does not.
    of_simplices = needed[7]
    none = [None] * len(of_simplices) if isinstance(of_simplices, list | tuple) else None
    return *used, None, None, none, None


@operator(_fake, stacked=(), backward=_backward, push=FORWARD, plain=_plain)
def soft_simplices(
    points: Tensor,
    weights: Tensor | None,
    vectors: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
    derivatives: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Curves (count, k, n) of shapes, and their derivatives by the height and by the sharpness.

    Unless `derivatives`, these are empty.
    """
    given = SoftShapes(
        points=points,
        weights=weights,
        simplices=simplices,
        vectors=vectors,
        levels=levels,
        sharpness=sharpness,
        batch=shapes,
        shapes=count,
    )
    return soft_curves(points.device.type).simplicial_curves(given, derivatives)


def _fake_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    points: Tensor,
    weights: Tensor | None,
    vectors: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    *_: Any,
) -> tuple[Tensor, ...]:
    others = points.new_empty(points.shape[:1]), vectors.new_empty(vectors.shape)
    return (
        points.new_empty(points.shape),
        *others,
        levels.new_empty(levels.shape),
        sharpness.new_empty(()),
    )


@operator(_fake_backward, stacked=(), backward=no_second_derivatives("soft simplicial transforms"))
def soft_simplices_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    points: Tensor,
    weights: Tensor | None,
    vectors: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
    of_weights: bool,
    of_levels: bool,
    of_sharpness: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of points, weights, vectors, levels and sharpness.

    Those of weights, levels and sharpness are zero unless they are asked for.
    """
    given = SoftShapes(
        points=points,
        weights=weights,
        simplices=simplices,
        vectors=vectors,
        levels=levels,
        sharpness=sharpness,
        batch=shapes,
        shapes=count,
    )
    find_gradients = soft_curves(points.device.type).simplicial_gradients
    by_points, by_weights, by_vectors = find_gradients(given, gradient.detach(), of_weights)
    by_levels = torch.zeros_like(levels)
    by_sharpness = torch.zeros_like(sharpness)
    if of_levels:
        by_levels = (gradient * slopes).sum((0, 1))
    if of_sharpness:
        by_sharpness = (gradient * spreads).sum()
    return by_points, by_weights, by_vectors, by_levels, by_sharpness
