"""The operator of soft transforms of batches of simplicial complexes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import SoftShapes
from ecc_core._torch.operators import no_second_derivatives, operator
from ecc_core._torch.transform import unit, unit_and_length

FORWARD = no_second_derivatives("soft simplicial transforms have no forward-mode derivatives, and")


def _fake(
    points: Tensor,
    weights: Tensor | None,
    directions: Tensor,
    scale: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
) -> Tensor:
    return points.new_empty((count, directions.shape[0], levels.shape[0]))


def _plain(
    points: Tensor,
    weights: Tensor | None,
    directions: Tensor,
    scale: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
) -> Tensor:
    """Return the curves as sums over the simplices."""
    heights = points @ (unit(directions) * scale).T
    found = heights.new_zeros((count, directions.shape[0], levels.shape[0]))
    for rows in [torch.arange(len(points), device=points.device)[:, None], *simplices]:
        sign = 1 if rows.shape[1] % 2 else -1
        entry = heights[rows].amax(1).unsqueeze(2)
        steps = sign * torch.sigmoid(sharpness * (levels - entry))
        if weights is not None:
            steps = steps * weights[rows].amax(1)[:, None, None]
        found = found.index_add(0, shapes[rows[:, 0]], steps)
    return found


def _backward(ctx: Any, gradient: Tensor | None) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    needed = ctx.needs_input_grad
    all_arguments = needed[1] or needed[4] or needed[5]
    found = soft_simplices_backward(gradient, *ctx.saved_tensors, *ctx.options, all_arguments)
    used = [part if need else None for part, need in zip(found, needed, strict=False)]
    # `simplices` is a sequence: torch.library expects a list of its gradients, and
    # torch.autograd.Function a single None.
    of_simplices = needed[8]
    none = [None] * len(of_simplices) if isinstance(of_simplices, list | tuple) else None
    return *used, None, None, none


@operator(_fake, stacked=(), backward=_backward, push=FORWARD, plain=_plain)
def soft_simplices(
    points: Tensor,
    weights: Tensor | None,
    directions: Tensor,
    scale: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
) -> Tensor:
    """Return curves (count, k, n) of `count` shapes along k directions."""
    given = SoftShapes(
        points=points,
        weights=weights,
        simplices=simplices,
        vectors=unit(directions) * scale,
        levels=levels,
        sharpness=sharpness,
        batch=shapes,
        shapes=count,
    )
    return soft_curves(points.device.type).simplicial_curves(given)


def _fake_backward(
    gradient: Tensor,
    points: Tensor,
    weights: Tensor | None,
    directions: Tensor,
    scale: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
    all_arguments: bool,
) -> tuple[Tensor, ...]:
    return (
        points.new_empty(points.shape),
        points.new_empty(points.shape[:1] if all_arguments else 0),
        directions.new_empty(directions.shape),
        scale.new_empty(()),
        levels.new_empty(levels.shape if all_arguments else 0),
        sharpness.new_empty(() if all_arguments else 0),
    )


@operator(_fake_backward, stacked=(), backward=no_second_derivatives("soft simplicial transforms"))
def soft_simplices_backward(
    gradient: Tensor,
    points: Tensor,
    weights: Tensor | None,
    directions: Tensor,
    scale: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
    all_arguments: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of points, weights, directions, scale, levels and sharpness.

    Those of weights, levels and sharpness are empty unless `all_arguments`.
    """
    units, lengths = unit_and_length(directions)
    given = SoftShapes(
        points=points,
        weights=weights,
        simplices=simplices,
        vectors=units * scale,
        levels=levels,
        sharpness=sharpness,
        batch=shapes,
        shapes=count,
    )
    find_gradients = soft_curves(points.device.type).simplicial_gradients
    found = find_gradients(given, gradient.detach(), all_arguments)
    # A vector is scale * direction / |direction|, so that its derivative by the direction is
    # perpendicular to the vector.
    along = (found.vectors * units).sum(dim=1, keepdim=True)
    by_directions = (found.vectors - along * units) * (scale / lengths)
    others = [
        points.new_empty(0) if part is None else part
        for part in (found.weights, found.levels, found.sharpness)
    ]
    return found.points, others[0], by_directions, along.sum(), others[1], others[2]
