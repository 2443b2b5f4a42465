"""Soft curves and transforms in operators of torch, for devices without kernels.

Every point is summed at every level, for as many levels at once as fit into a bounded memory. This
needs neither kernels nor a compiler, and takes longer than kernels, which visit only the levels
near the value of a point.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ecc_core._backends.soft import (
    LayerOptions,
    LayerParameters,
    Projected,
    SoftImages,
    Transformed,
)
from ecc_core._torch.cells import Ties, coefficients_of, filtration
from ecc_core._torch.grids import orthants_in_torch, orthants_of, positions

TERMS_AT_ONCE = 1 << 24
"""The number of logistic functions, points times levels, that are in memory together."""

Sums = tuple[Tensor, Tensor, Tensor]
"""Curves, and their derivatives by level and by sharpness."""


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    values = _values(images)
    weights = _coefficients(values, images, "raster").to(torch.int8)
    kept = weights if keep else weights[:, :0].clone()
    return *_curves_of(values, weights, images), kept


def weighted_curves(images: SoftImages, coefficients: Tensor) -> Sums:
    return _curves_of(_values(images), coefficients, images)


def _curves_of(values: Tensor, coefficients: Tensor, images: SoftImages) -> Sums:
    """Return the sums for values of the sublevel filtration and their coefficients."""
    sign = -1 if images.superlevel else 1
    levels = sign * images.thresholds
    found = sums(values.flatten(1), coefficients[:, None], levels, images.sharpness)
    curve, slopes, spreads = (rows[:, 0] for rows in found)
    return curve, sign * slopes, spreads


def gradient(
    upstream: Tensor,
    coefficients: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Return the gradient of the images. `double` is ignored: sums are in the dtype of values."""
    image_values = _values(images)
    weights = coefficients
    if split or not coefficients.shape[1]:
        weights = _coefficients(image_values, images, "split" if split else "raster")
    sign = -1 if images.superlevel else 1
    levels = sign * images.thresholds
    values = image_values.flatten(1)
    slopes = sums_of_slopes(values, upstream[:, None], levels, images.sharpness)
    found = -sign * _weights(values, weights) * slopes[:, 0]
    return found.view_as(image_values).to(dtype)


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    return orthants_in_torch(weights, connectivity, extension)


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    with torch.enable_grad():
        given = weights.detach().requires_grad_()
        found = orthants_in_torch(given, connectivity, extension)
    return torch.autograd.grad(found, given, upstream)[0]


def projections(given: Projected) -> Sums:
    heights, weights = _projected(given)
    curve, slopes, spreads = sums(heights, weights, given.heights, given.sharpness)
    return curve.transpose(0, 1), slopes.transpose(0, 1), spreads.transpose(0, 1)


def projection_gradients(
    given: Projected, upstream: Tensor, images_a_group: int, of_weights: bool
) -> tuple[Tensor, Tensor]:
    heights, weights = _projected(given)
    rows = upstream.transpose(0, 1)
    slopes = weights * sums_of_slopes(heights, rows, given.heights, given.sharpness)
    places = positions(given.weights.shape[2:], given.vectors)
    by_vectors = -_product(slopes, places.T).transpose(0, 1)
    by_vectors = by_vectors.reshape(-1, images_a_group, *given.vectors.shape).sum(1)
    by_weights = torch.zeros_like(given.weights)
    if of_weights:
        entered = _sums_of_steps(heights, rows, given.heights, given.sharpness)
        orthants = orthants_of(given.vectors)
        by_weights.flatten(2).index_add_(1, orthants, entered.transpose(0, 1))
    return by_weights, by_vectors


def layer_curves(image: Tensor, parameters: LayerParameters, options: LayerOptions) -> None:
    """Leave layers to operators, since there are no kernels for all passes."""


def fused_transform(given: Transformed, step: Tensor | None, is_logarithm: bool) -> None:
    """Leave transforms to operators, since there are no kernels for all passes."""


def sums(values: Tensor, weights: Tensor, levels: Tensor, sharpness: Tensor) -> Sums:
    """Return the sums (rows, sets, n) of weight * s(z), and their derivatives.

    Here z is sharpness * (level - value), and s is the logistic function. Values are (rows, points)
    and weights (rows, sets, points). Points at -inf have entered at every level and points at +inf
    never enter. Neither contributes to the derivatives. For NaN, and a sharpness that is not
    positive and finite, sums are NaN.
    """
    dtype = values.dtype
    sharpness = torch.where((sharpness > 0) & sharpness.isfinite(), sharpness, torch.nan)
    first = (weights * (values == -torch.inf)[:, None]).sum(2, dtype=dtype)
    weights = _weights(values[:, None], weights.to(dtype))
    values = _finite(values)
    curves, slopes, spreads = (
        values.new_empty((*weights.shape[:2], levels.numel())) for _ in range(3)
    )
    for some in _levels_at_once(values, levels):
        distances = _distances(values, levels[some])
        s = torch.sigmoid(sharpness * distances)
        curves[:, :, some] = first[:, :, None] + _product(weights, s)
        s = s * (1 - s)
        slopes[:, :, some] = sharpness * _product(weights, s)
        spreads[:, :, some] = _product(weights, (s * distances).masked_fill_(distances.isinf(), 0))
    return curves, slopes, spreads


def sums_of_slopes(values: Tensor, upstream: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
    """Return the sums (rows, sets, points) of upstream * sharpness * s'(z) over the levels.

    `upstream` is (rows, sets, n).
    """
    values = _finite(values)
    total = values.new_zeros((*upstream.shape[:2], values.shape[1]))
    for some in _levels_at_once(values, levels):
        s = torch.sigmoid(sharpness * _distances(values, levels[some]))
        total += _product(upstream[:, :, some] * sharpness, (s * (1 - s)).transpose(1, 2))
    return total


def _sums_of_steps(values: Tensor, upstream: Tensor, levels: Tensor, sharpness: Tensor) -> Tensor:
    """Return the sums (rows, sets, points) of upstream (rows, sets, n) * s(z) over the levels."""
    total = values.new_zeros((*upstream.shape[:2], values.shape[1]))
    for some in _levels_at_once(values, levels):
        s = torch.sigmoid(sharpness * _distances(values, levels[some]))
        total += _product(upstream[:, :, some], s.transpose(1, 2))
    return total


def _product(first: Tensor, second: Tensor) -> Tensor:
    """Return the matrix product in the dtype of its factors, which autocast would round."""
    with torch.autocast(first.device.type, enabled=False):
        return first @ second


def _levels_at_once(values: Tensor, levels: Tensor) -> Iterator[slice]:
    """Yield slices of the levels, each of as many as fit into the bounded memory."""
    step = max(1, TERMS_AT_ONCE // max(values.numel(), 1))
    for first in range(0, levels.numel(), step):
        yield slice(first, first + step)


def _distances(values: Tensor, levels: Tensor) -> Tensor:
    """Return the differences of level and value, (rows, points, n)."""
    return levels - values[:, :, None]


def _finite(values: Tensor) -> Tensor:
    return values.masked_fill(values.isinf(), 0)


def _weights(values: Tensor, weights: Tensor) -> Tensor:
    """Return the weights of points; those of infinite points become 0."""
    return weights * values.isfinite()


def _values(images: SoftImages) -> Tensor:
    """Return values (batch, *spatial) of the sublevel filtration, in the dtype of the levels."""
    image = images.image.to(images.thresholds.dtype)
    return filtration(image, images.direction_terms, images.mask, images.superlevel)


def _coefficients(values: Tensor, images: SoftImages, ties: Ties) -> Tensor:
    """Return the coefficients (batch, points) of values; those of points at +inf are undefined."""
    return coefficients_of(values, images.connectivity, ties).flatten(1)


def _projected(given: Projected) -> tuple[Tensor, Tensor]:
    """Return heights (k, points) of a grid along each vector, and weights (k, batch, points)."""
    heights = _product(given.vectors, positions(given.weights.shape[2:], given.vectors))
    own = given.weights.flatten(2).index_select(1, orthants_of(given.vectors))
    return heights, own.transpose(0, 1)
