"""The operator of soft transforms of batches of simplicial complexes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cpu.soft.simplices import (
    OUTSIDE,
    VALID,
    SoftComplexes,
    check_simplices,
)
from ecc_core._request.simplicial import name_of
from ecc_core._torch.cpu import threads
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
        steps = sign * torch.sigmoid(sharpness * (levels - heights[rows].amax(1).unsqueeze(2)))
        if weights is not None:
            steps = steps * weights[rows].amax(1)[:, None, None]
        found = found.index_add(0, shapes[rows[:, 0]], steps)
    return (found,)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 9
    needed = ctx.needs_input_grad
    of = needed[1], needed[3], needed[4]
    found = soft_simplices_backward(gradient, *ctx.saved_tensors, *ctx.options[:2], *of)
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
    given = _given(points, weights, vectors, levels, sharpness, shapes, count, simplices)
    _check(given)
    curves, slopes, spreads = map(torch.from_numpy, given.curves(derivatives))
    return curves, slopes, spreads


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
    given = _given(points, weights, vectors, levels, sharpness, shapes, count, simplices)
    arrays = given.gradients(gradient.detach().numpy(), of_weights)
    by_points, by_weights, by_vectors = (torch.from_numpy(x).to(points.dtype) for x in arrays)
    by_levels = torch.zeros_like(levels)
    by_sharpness = torch.zeros_like(sharpness)
    if of_levels:
        by_levels = (gradient * slopes).sum((0, 1))
    if of_sharpness:
        by_sharpness = (gradient * spreads).sum()
    return by_points, by_weights, by_vectors, by_levels, by_sharpness


def _given(
    points: Tensor,
    weights: Tensor | None,
    vectors: Tensor,
    levels: Tensor,
    sharpness: Tensor,
    shapes: Tensor,
    count: int,
    simplices: Sequence[Tensor],
) -> SoftComplexes:
    """Return what kernels take; tensors must be on the CPU."""
    return SoftComplexes(
        points.contiguous().numpy(),
        None if weights is None else weights.contiguous().numpy(),
        [part.contiguous().numpy() for part in simplices],
        vectors.contiguous().numpy(),
        levels.numpy().astype(np.float64),
        float(sharpness),
        shapes.contiguous().numpy(),
        count,
        threads(),
    )


def _check(given: SoftComplexes) -> None:
    """Check values, which kernels rely on."""
    if not np.isfinite(given.points).all():
        raise ValueError("`points` must be finite")
    if given.weights is not None and not np.isfinite(given.weights).all():
        raise ValueError("`weights` must be finite")
    if not np.isfinite(given.vectors).all():
        raise ValueError("`directions` must be finite and not zero")
    if np.isnan(given.levels).any():
        raise ValueError("`thresholds` must not contain NaN, got NaN")
    if not 0 < given.sharpness < np.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {given.sharpness:g}")
    if given.shapes.size:
        first = int(given.shapes.min())
        last = int(given.shapes.max())
        if first < 0 or last >= given.shape_count:
            raise ValueError(
                f"`batch` must hold numbers of shapes from 0 to {given.shape_count - 1}, got "
                f"{first if first < 0 else last}"
            )
    for rows in given.simplices:
        _check_rows(rows, given.shapes)


def _check_rows(rows: Any, shapes: Any) -> None:
    wrong, i = check_simplices(rows, shapes)
    if wrong == VALID:
        return
    what = f"the {name_of(rows.shape[1])} {tuple(rows[i].tolist())}"
    if wrong == OUTSIDE:
        raise ValueError(
            f"`simplices` must hold indices of points from 0 to {len(shapes) - 1}, got {what}"
        )
    raise ValueError(f"`simplices` must have all their points in one shape, got {what}")
