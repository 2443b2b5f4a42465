"""The errors of persistence pairs, and their gradients, as an operator of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._request.filtration import Filtration
from ecc_core._torch.operators import no_second_derivatives, operator
from ecc_core.nn._classes import classes_of, place_of_pairs, ranks_by_length

REFUSED = no_second_derivatives("errors of persistence pairs")


def _fake(images: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return images.new_empty(images.shape[:1]), images.new_empty(images.shape)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 5
    return pair_errors_backward(gradient, *ctx.saved_tensors[:2]), None, None, None, None


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    slopes, images, *_ = ctx.saved_tensors
    change = tangents[0]
    if change is None:
        return slopes.new_zeros(slopes.shape[:1]), None
    return pair_errors_push(change, slopes, images), None


error_operator = operator(_fake, stacked=(0, 1, 2), backward=_backward, push=_push)
"""Makes an operator of a function of images, targets, a mask and two options.

It returns the error of each image, and its gradient.
"""


@error_operator
def pair_errors(
    images: Tensor,
    targets: Tensor,
    mask: Tensor | None,
    connectivity: int,
    min_persistence: float,
) -> tuple[Tensor, Tensor]:
    """The error (batch,) of each image (batch, *spatial), and its gradient (batch, *spatial).

    Targets and the mask are booleans of the shape of the images. Everything is computed in float64,
    where pairs are found. On a device, kernels take the place of these operators for float32.
    """
    count = len(images)
    points = images.numel()
    ndim = images.dim() - 1
    if not points:
        return images.new_zeros(count), torch.zeros_like(images)
    place = place_of_pairs(images)
    given = images.detach().to(place)
    wanted = targets.to(place)
    shown = None if mask is None else mask.to(place)
    if place.type == "cuda" and images.dtype == torch.float32:
        found = _errors_by_kernels(given, wanted, shown, connectivity, min_persistence)
        if found is not None:
            return found
    options = shown, connectivity, True
    own = classes_of(given, *options)
    true = classes_of(wanted, *options)
    inside = wanted.flatten()[true.births]
    numbers = torch.zeros(ndim * count, dtype=torch.int64, device=place)
    numbers.scatter_add_(0, true.groups, inside.to(torch.int64))
    values = pad(given.flatten().double(), (0, 1))
    births = values[own.births]
    deaths = values[own.deaths]
    lengths = births - deaths
    kept = ranks_by_length(lengths, own.groups) < numbers[own.groups]
    others = ~kept & (lengths >= min_persistence)
    squares = lengths.square() * others
    errors = torch.where(kept, (1 - births).square() + deaths.square(), squares)
    by_birth = torch.where(kept, 2 * (births - 1), 2 * lengths * others)
    by_death = torch.where(kept, 2 * deaths, -2 * lengths * others)
    # Sums over the classes of each point, which are few, in an order that is always the same.
    sums = values.new_zeros(points + 1, 2)
    at_births = torch.stack([by_birth, errors], 1)
    at_deaths = torch.stack([by_death, torch.zeros_like(errors)], 1)
    for at, amounts in ((own.births, at_births), (own.deaths, at_deaths)):
        sums.index_put_((at,), amounts, accumulate=True)
    slopes, of_points = sums[:-1].unbind(1)
    totals = of_points.reshape(count, -1).sum(1)
    return _like(images, totals), _like(images, slopes).reshape(images.shape).contiguous()


def _errors_by_kernels(
    images: Tensor, targets: Tensor, mask: Tensor | None, connectivity: int, least: float
) -> tuple[Tensor, Tensor] | None:
    """Return the errors and the gradient of images on a device; None for too many points."""
    from ecc_core._backends.cuda.arrays import adopt, as_cupy
    from ecc_core._backends.cuda.pair_errors import MOST_POINTS, pair_errors

    if images.numel() > MOST_POINTS:
        return None
    filtration = Filtration(images.dim() - 1, connectivity, superlevel=True)
    shown = None if mask is None else as_cupy(mask.contiguous())
    with adopt(images.contiguous()) as view:
        wanted = as_cupy(targets.contiguous())
        errors, slopes = pair_errors(view.array, wanted, shown, filtration, least)
        return view.wrap(errors), view.wrap(slopes)


# The images are arguments of the derivatives, so that further ones are refused, and not zero.
@operator(
    lambda _gradient, slopes, _images: slopes.new_empty(slopes.shape),
    stacked=(0, 1, 2),
    backward=REFUSED,
)
def pair_errors_backward(gradient: Tensor, slopes: Tensor, _images: Tensor) -> Tensor:
    """The gradient of the images, of which there is no further one."""
    return gradient.reshape(-1, *[1] * (slopes.dim() - 1)) * slopes


@operator(
    lambda _change, slopes, _images: slopes.new_empty(slopes.shape[:1]),
    stacked=(0, 1, 2),
    backward=REFUSED,
)
def pair_errors_push(change: Tensor, slopes: Tensor, _images: Tensor) -> Tensor:
    """The tangent (batch,) of the errors for one of the images."""
    return (change * slopes).flatten(1).sum(1)


def _like(images: Tensor, values: Tensor) -> Tensor:
    return values.to(images.device, images.dtype)
