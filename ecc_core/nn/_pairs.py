"""The errors of persistence pairs, and their gradients, as an operator of torch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._torch.operators import no_second_derivatives, operator
from ecc_core.topology import persistence_pairs

REFUSED = no_second_derivatives("errors of persistence pairs")


class Classes(NamedTuple):
    """The homology classes of images, with the points that cause their births and deaths."""

    groups: NDArray[np.int64]
    """The number of the image and dimension: image * n_spatial + dimension."""
    births: NDArray[np.int64]
    """Flat indices of points."""
    deaths: NDArray[np.int64]
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


@operator(_fake, stacked=(0, 1, 2), backward=_backward, push=_push)
def pair_errors(
    images: Tensor,
    targets: Tensor,
    mask: Tensor | None,
    connectivity: int,
    min_persistence: float,
) -> tuple[Tensor, Tensor]:
    """The error (batch,) of each image (batch, *spatial), and its gradient (batch, *spatial).

    Targets and the mask are booleans of the shape of the images. Everything is computed in host
    memory, and in float64.
    """
    count = len(images)
    points = images.numel()
    ndim = images.dim() - 1
    if not points:
        return images.new_zeros(count), torch.zeros_like(images)
    own, true = (_classes(given, mask, connectivity) for given in (images, targets))
    inside = targets.flatten().cpu().numpy()[true.births]
    numbers = np.bincount(true.groups[inside], minlength=ndim * count)
    values = np.append(images.flatten().cpu().numpy().astype(np.float64), 0.0)
    births = values[own.births]
    deaths = values[own.deaths]
    lengths = births - deaths
    kept = _longest(lengths, own.groups, numbers)
    others = ~kept & (lengths >= min_persistence)
    errors = np.where(kept, (1 - births) ** 2 + deaths**2, np.where(others, lengths**2, 0))
    by_birth = np.where(kept, 2 * (births - 1), np.where(others, 2 * lengths, 0))
    by_death = np.where(kept, 2 * deaths, np.where(others, -2 * lengths, 0))
    slopes: NDArray[Any] = np.bincount(own.births, by_birth, points + 1)
    slopes += np.bincount(own.deaths, by_death, points + 1)
    totals: NDArray[Any] = np.bincount(own.groups // ndim, errors, count)
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


def _longest(
    lengths: NDArray[np.float64], groups: NDArray[np.int64], numbers: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which classes are among the so many longest ones of their group."""
    order = np.lexsort([-lengths, groups])
    ordered = groups[order]
    ranks = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    kept = np.empty(len(ordered), bool)
    kept[order] = ranks < numbers[ordered]
    return kept


def _classes(images: Tensor, mask: Tensor | None, connectivity: int) -> Classes:
    """The classes of the superlevel sets of all images.

    All images are computed at once, side by side with points between them that never enter.
    """
    count, *spatial = images.shape
    side = spatial[-1]
    row = _side_by_side(images)
    shown = np.broadcast_to(np.arange(row.shape[-1]) % (side + 1) < side, row.shape)
    if mask is not None:
        shown = _side_by_side(mask)
    pairs = persistence_pairs(row, mask=shown, connectivity=connectivity, superlevel=True)
    image = pairs.birth_points[:, -1] // (side + 1)
    births, deaths = (
        np.ravel_multi_index(
            (image, *points[:, :-1].T, points[:, -1] % (side + 1)), (count, *spatial)
        )
        for points in (pairs.birth_points, np.maximum(pairs.death_points, 0))
    )
    deaths[pairs.essential] = images.numel()
    return Classes(len(spatial) * image + pairs.dimensions, births, deaths)


def _side_by_side(images: Tensor) -> NDArray[Any]:
    """Images (batch, *spatial) along the last axis, each followed by points of value 0."""
    return pad(images.detach().cpu(), (0, 1)).movedim(0, -2).flatten(-2).numpy()


def _like(images: Tensor, values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values).to(images.device, images.dtype)
