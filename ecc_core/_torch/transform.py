"""The operator of soft transforms: curves of weighted points over their heights.

A vertex has one weight for each orthant of directions, because the orthant determines which vertex
of a cell is the highest.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ecc_core._backends import soft_curves
from ecc_core._backends.soft import Projected, Transformed
from ecc_core._torch.grids import orthants_in_torch, orthants_of, positions
from ecc_core._torch.operators import no_second_derivatives, operator
from ecc_core._torch.routes import bypasses_torch, is_plain


def shape_of(given: Transformed) -> tuple[int, ...]:
    """Return the shape of a transform."""
    batch = given.weights.shape[: -len(given.spacing)]
    return (*batch, given.directions.shape[0], given.heights.shape[0])


def transform(given: Transformed) -> Tensor:
    """Return transforms (..., k, n), by operators."""
    vectors = scaled(unit(given.directions), given.spacing)
    flat = given.weights.reshape(-1, *given.weights.shape[-len(given.spacing) :])
    owned = orthant_coefficients(flat, given.connectivity, given.extension)
    values, *_ = soft_projection(owned, vectors, given.heights, given.sharpness)
    found: Tensor = values.reshape(shape_of(given))
    return found


def fused_transform(
    given: Transformed, step: Tensor | None = None, is_logarithm: bool = False
) -> Tensor | None:
    """Return transforms (..., k, n) in one function of autograd, or None if operators must do it.

    With a step, `heights` are the free numbers from which increasing levels are computed. With
    `is_logarithm`, the sharpness is given by its logarithm.
    """
    if not bypasses_torch((*given[:4], step)):
        return None
    if not given.weights.is_cuda and given.weights.device.type != "cpu":
        return None
    # torch.compile, for which the first line returns, could not trace this.
    return soft_curves(given.weights.device.type).fused_transform(given, step, is_logarithm)


def unit(directions: Tensor) -> Tensor:
    """Return unit vectors along directions (..., d)."""
    return unit_and_length(directions)[0]


def unit_and_length(directions: Tensor) -> tuple[Tensor, Tensor]:
    """Return unit vectors along directions (..., d), and the lengths (..., 1) of the directions.

    Directions are divided by their largest component first, so that no square overflows or
    vanishes. This changes neither the unit vectors nor their derivatives.
    """
    largest = torch.linalg.vector_norm(directions, torch.inf, dim=-1, keepdim=True).detach()
    scaled_down = directions.div(largest)
    length = torch.linalg.vector_norm(scaled_down, dim=-1, keepdim=True)
    return scaled_down.div(length), length.mul(largest)


def orthant_coefficients(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    """Return for each orthant and vertex the sum of the signed weights of the cells that it owns.

    A vertex owns the cells of which it is the highest vertex in directions of the orthant. Weights
    of shape (batch, *spatial) give (batch, 2**d, *grid). The vertices are the points
    for connectivity 1 and otherwise the corners of their cubes. Orthants are numbered as in
    :func:`orthants_of`.
    """
    if bypasses_torch((weights,)) and not weights.is_meta:
        found: Tensor = _Orthants.apply(weights, connectivity, extension)  # type: ignore[no-untyped-call]
        return found
    return orthants_in_torch(weights, connectivity, extension)


class _Orthants(torch.autograd.Function):
    """The sums by kernels, which take a fifth of the time of operators of torch or less."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, *options: Any) -> Tensor:
        weights = weights.contiguous()
        ctx.save_for_backward(weights)
        ctx.options = options
        return soft_curves(weights.device.type).by_orthant(weights, *options)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (weights,) = ctx.saved_tensors
        if is_plain(gradient):
            gradients = soft_curves(weights.device.type).gradients_by_orthant
            return gradients(weights, gradient, *ctx.options), None, None
        with torch.enable_grad():
            sums = orthants_in_torch(weights, *ctx.options)
        return *torch.autograd.grad(sums, weights, gradient, create_graph=True), None, None


def scaled(vectors: Tensor, spacing: Sequence[float]) -> Tensor:
    """Multiply the components of vectors (k, d) by the spacing, without a copy to the device."""
    if all(step == 1 for step in spacing):
        return vectors
    return torch.stack([vectors[:, axis] * step for axis, step in enumerate(spacing)], 1)


def add_heights(images: Tensor, units: Tensor, scales: Tensor, spacing: Sequence[float]) -> Tensor:
    """Return images (..., k, spatial), the sums of images (..., spatial) and heights of points.

    Heights are those along unit vectors (k, d), times scales (k,).
    """
    shape = images.shape[images.dim() - len(spacing) :]
    vectors = units * scales[:, None]
    heights = scaled(vectors, spacing)[:, :, None] * positions(shape, vectors)
    return images.unsqueeze(images.dim() - len(spacing)) + heights.sum(1).view(len(units), *shape)


def _fake(weights: Tensor, vectors: Tensor, heights: Tensor, *_: Any) -> tuple[Tensor, ...]:
    shape = weights.shape[0], vectors.shape[0], heights.shape[0]
    return weights.new_empty(shape), weights.new_empty(shape), weights.new_empty(shape)


def _plain(
    weights: Tensor, vectors: Tensor, heights: Tensor, sharpness: Tensor
) -> tuple[Tensor, ...]:
    """Return the curves without their derivatives, as sums over the points."""
    tops = vectors @ positions(weights.shape[2:], vectors)
    z = sharpness * (heights - tops.unsqueeze(2))  # (k, points, n)
    own = weights.flatten(2).index_select(1, orthants_of(vectors))  # (batch, k, points)
    return ((own.unsqueeze(3) * torch.sigmoid(z)).sum(2),)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 4
    needed = ctx.needs_input_grad
    images = max(gradient.shape[0], 1)
    found = soft_projection_backward(gradient, *ctx.saved_tensors, images, needed[0], needed[3])
    by_weights, by_vectors, by_height, by_sharpness = found
    return (
        by_weights if needed[0] else None,
        by_vectors.sum(0) if needed[1] else None,
        by_height.sum((0, 1)) if needed[2] else None,
        by_sharpness.sum() if needed[3] else None,
    )


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    slopes, spreads, *given = ctx.saved_tensors
    by_weights, by_vectors, by_height, by_sharpness = tangents
    total = torch.zeros_like(slopes)
    if by_weights is not None or by_vectors is not None:
        total = soft_projection_push(by_weights, by_vectors, *given)
    if by_height is not None:
        total = total + slopes * by_height
    if by_sharpness is not None:
        total = total + spreads * by_sharpness
    return total, None, None


@operator(_fake, stacked=(0,), backward=_backward, push=_push, plain=_plain)
def soft_projection(
    weights: Tensor,
    vectors: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return curves (batch, k, n) of weights (batch, orthants, *grid), and derivatives.

    The derivatives are those by height and by sharpness.
    """
    given = Projected(weights, vectors, heights, sharpness)
    if not (weights.numel() and vectors.numel() and heights.numel()):
        return tuple(found.zero_() for found in _fake(*given))  # type: ignore[return-value]
    return soft_curves(weights.device.type).projections(given)


def _fake_backward(gradient: Tensor, *saved: Any) -> tuple[Tensor, ...]:
    slopes, _, weights, vectors, _, _, images_a_group, *_ = saved
    batch = weights.shape[0]
    return (
        weights.new_empty(weights.shape),
        vectors.new_empty((batch // images_a_group, *vectors.shape)),
        slopes.new_empty(slopes.shape),
        slopes.new_empty((batch,)),
    )


REFUSED = no_second_derivatives("soft Euler characteristic transforms")


@operator(_fake_backward, stacked=(0, 1, 2, 3), backward=REFUSED)
def soft_projection_backward(
    gradient: Tensor,
    slopes: Tensor,
    spreads: Tensor,
    weights: Tensor,
    vectors: Tensor,
    heights: Tensor,
    sharpness: Tensor,
    images_a_group: int,
    of_weights: bool,
    of_sharpness: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return gradients of the weights, of vectors, and for each image of heights and sharpness.

    Those of the vectors are sums over groups of images that follow each other, since it takes
    longer to compute them for each image. Those of the weights are undefined unless `of_weights`,
    and those of the sharpness zero unless `of_sharpness`.
    """
    given = Projected(weights, vectors, heights, sharpness)
    if not (weights.numel() and vectors.numel() and heights.numel()):
        found = _fake_backward(gradient, slopes, spreads, *given, images_a_group)
        return tuple(x.zero_() for x in found)  # type: ignore[return-value]
    projection_gradients = soft_curves(weights.device.type).projection_gradients
    by_weights, by_vectors = projection_gradients(given, gradient, images_a_group, of_weights)
    by_sharpness = (
        (gradient * spreads).sum((1, 2)) if of_sharpness else slopes.new_zeros(len(slopes))
    )
    return by_weights, by_vectors, gradient * slopes, by_sharpness


@operator(lambda *given: _fake(*given[2:])[0], stacked=(0, 2), backward=REFUSED)
def soft_projection_push(
    by_weights: Tensor | None,
    by_vectors: Tensor | None,
    weights: Tensor,
    vectors: Tensor,
    heights: Tensor,
    sharpness: Tensor,
) -> Tensor:
    """Return the tangent (batch, k, n) of the curves for those of the weights and vectors."""
    total = weights.new_zeros((weights.shape[0], vectors.shape[0], heights.shape[0]))
    if by_weights is not None:
        total += soft_projection(by_weights, vectors, heights, sharpness)[0]
    if by_vectors is not None:
        rates = by_vectors @ positions(weights.shape[2:], vectors)
        for k, rate in enumerate(rates):
            moved = weights * rate.view(weights.shape[2:])
            total[:, k] -= soft_projection(moved, vectors[k : k + 1], heights, sharpness)[1][:, 0]
    return total
