"""The errors of persistence pairs, and their gradients, as an operator of torch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._torch.operators import no_second_derivatives, operator
from ecc_core.results import PersistencePairs
from ecc_core.topology import persistence_pairs

LEAST_ON_DEVICE = 1 << 17
"""Points of a batch. For fewer, launches on a device take longer than a core of the host."""
REFUSED = no_second_derivatives("errors of persistence pairs")


class Classes(NamedTuple):
    """The homology classes of images, with the points that cause their births and deaths."""

    groups: Tensor
    """The number of the image and dimension: image * n_spatial + dimension."""
    births: Tensor
    """Flat indices of points."""
    deaths: Tensor
    """The same; the number of points for a class that never dies."""


def _fake(images: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return images.new_empty(images.shape[:1]), images.new_empty(images.shape)


def _backward(ctx: Any, gradient: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if gradient is None:
        return (None,) * 5
    return pair_errors_backward(gradient, *ctx.saved_tensors[:2]), None, None, None, None


def _push(ctx: Any, *tangents: Tensor | None) -> tuple[Any, ...]:
    (slopes, images, *_), change = ctx.saved_tensors, tangents[0]
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
    where pairs are found.
    """
    count = len(images)
    points = images.numel()
    ndim = images.dim() - 1
    if not points:
        return images.new_zeros(count), torch.zeros_like(images)
    place = _place_of_pairs(images)
    given = images.detach().to(place)
    wanted = targets.to(place)
    shown = None if mask is None else mask.to(place)
    own, true = (_classes(batch, shown, connectivity) for batch in (given, wanted))
    inside = wanted.flatten()[true.births]
    numbers = torch.zeros(ndim * count, dtype=torch.int64, device=place)
    numbers.scatter_add_(0, true.groups, inside.to(torch.int64))
    values = pad(given.flatten().double(), (0, 1))
    births = values[own.births]
    deaths = values[own.deaths]
    lengths = births - deaths
    kept = _longest(lengths, own.groups, numbers)
    others = ~kept & (lengths >= min_persistence)
    squares = lengths.square() * others
    errors = torch.where(kept, (1 - births).square() + deaths.square(), squares)
    by_birth = torch.where(kept, 2 * (births - 1), 2 * lengths * others)
    by_death = torch.where(kept, 2 * deaths, -2 * lengths * others)
    slopes = values.new_zeros(points + 1)
    totals = values.new_zeros(count)
    for at, amounts in ((own.births, by_birth), (own.deaths, by_death)):
        slopes.index_put_((at,), amounts, accumulate=True)  # in an order that is always the same
    totals.index_put_((own.groups // ndim,), errors, accumulate=True)
    return _like(images, totals), _like(images, slopes[:-1]).reshape(images.shape)


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


def _place_of_pairs(images: Tensor) -> torch.device:
    """Return where the pairs of images are found: on their device, or in host memory."""
    on_device = images.is_cuda and images.numel() >= LEAST_ON_DEVICE and find_spec("cupy")
    return images.device if on_device else torch.device("cpu")


def _longest(lengths: Tensor, groups: Tensor, numbers: Tensor) -> Tensor:
    """Which classes are among the so many longest ones of their group."""
    order = torch.argsort(lengths, descending=True, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    ordered = groups[order]
    ranks = torch.arange(len(ordered), device=ordered.device)
    ranks = ranks - torch.searchsorted(ordered, ordered)
    kept = torch.empty_like(ordered, dtype=torch.bool)
    kept[order] = ranks < numbers[ordered]
    return kept


def _classes(images: Tensor, mask: Tensor | None, connectivity: int) -> Classes:
    """The classes of the superlevel sets of all images.

    All images are computed at once, side by side with points between them that never enter.
    """
    spatial = images.shape[1:]
    side = spatial[-1]
    row = _side_by_side(images)
    shown = torch.arange(row.shape[-1], device=row.device) % (side + 1) < side
    shown = shown.expand(row.shape) if mask is None else _side_by_side(mask)
    found = persistence_pairs(row, mask=shown, connectivity=connectivity, superlevel=True)
    pairs = cast(PersistencePairs[Tensor], found)  # of the same library as `row`
    image = pairs.birth_points[:, -1] // (side + 1)
    births, deaths = (
        _flat_index(image, points, spatial)
        for points in (pairs.birth_points, pairs.death_points.clamp(min=0))
    )
    deaths = torch.where(pairs.essential, images.numel(), deaths)
    dimensions = torch.as_tensor(pairs.dimensions, device=row.device)
    return Classes(len(spatial) * image + dimensions, births, deaths)


def _flat_index(image: Tensor, points: Tensor, spatial: torch.Size) -> Tensor:
    """Return the flat indices in a batch of points of its images side by side."""
    found = image
    for axis, length in enumerate(spatial[:-1]):
        found = found * length + points[:, axis]
    return found * spatial[-1] + points[:, -1] % (spatial[-1] + 1)


def _side_by_side(images: Tensor) -> Tensor:
    """Images (batch, *spatial) along the last axis, each followed by points of value 0."""
    return pad(images, (0, 1)).movedim(0, -2).flatten(-2)


def _like(images: Tensor, values: Tensor) -> Tensor:
    return values.to(images.device, images.dtype)
