"""The homology classes of batches of images, and what layers need of them as operators of torch."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from ecc_core._backends import has_kernels
from ecc_core._request.options import ImageOptions
from ecc_core._torch.operators import operator
from ecc_core.errors import NAN_MESSAGE, NAN_SHOWN_MESSAGE
from ecc_core.nn._exact import place_of_curves
from ecc_core.persistence import flat_pairs
from ecc_core.topology import betti_curves

LEAST_ON_DEVICE = 1 << 16
"""Points of a batch. For fewer, launches on a device take longer than a core of the host.

A loss of 2^19 points, forward and backward, takes 2.6 to 3.5 ms on an H200, nearly all of it on its
host, whatever the number of points. On a core, 2^16 points take 4 ms if they are smooth and 9 to 10
ms if they are noise, and in volumes 10 and 59 ms, where the device took 16 and 14 ms.
"""


class Classes(NamedTuple):
    """The homology classes of images, with the points that cause their births and deaths."""

    groups: Tensor
    """The number of the image and dimension: image * n_spatial + dimension."""
    births: Tensor
    """Flat indices of points."""
    deaths: Tensor
    """The same; the number of points for a class that never dies."""


def check_no_export() -> None:
    """Refuse models that are exported to ONNX."""
    if torch.onnx.is_in_onnx_export():
        raise RuntimeError("ONNX has no operators for persistence pairs")


def place_of_pairs(images: Tensor) -> torch.device:
    """Return where the pairs of images are found: on their device, or in host memory."""
    many = images.is_cuda and images.numel() >= LEAST_ON_DEVICE
    return images.device if many and has_kernels("cuda") else torch.device("cpu")


def classes_of(
    images: Tensor,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    min_persistence: float = 0,
) -> Classes:
    """The classes of all images (batch, *spatial), with a mask of the same shape.

    All images are computed at once, side by side with points between them that never enter.
    """
    spatial = images.shape[1:]
    side = spatial[-1]
    row = _side_by_side(images)
    shown = torch.arange(row.shape[-1], device=row.device) % (side + 1) < side
    shown = shown.expand(row.shape) if mask is None else _side_by_side(mask)
    options = ImageOptions(mask=shown, connectivity=connectivity, superlevel=superlevel)
    try:
        found = flat_pairs(row, options, min_persistence)
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError(NAN_SHOWN_MESSAGE) from None
    births, deaths, counts = cast(tuple[Tensor, Tensor, list[int]], found)
    image, points = _in_batch(torch.stack([births, deaths]), row.shape[-1], spatial)
    groups = len(spatial) * image[0]
    for start in itertools.accumulate(counts[:-1]):
        groups[start:] += 1  # The groups of the next dimension begin here.
    return Classes(groups, points[0], points[1].masked_fill(deaths < 0, images.numel()))


def _in_batch(points: Tensor, width: int, spatial: torch.Size) -> tuple[Tensor, Tensor]:
    """Return numbers of images that lie side by side, and flat indices of points in the batch.

    Each of these operations is a launch on a device.
    """
    side = spatial[-1]
    # The line of an image, numbered over all other axes.
    line = points.div(width, rounding_mode="trunc")
    along = points.sub(line, alpha=width)
    image = along.div(side + 1, rounding_mode="trunc")
    x = along.sub(image, alpha=side + 1)
    lines = line.add(image, alpha=math.prod(spatial[:-1]))
    return image, x.add(lines, alpha=side)


def _side_by_side(images: Tensor) -> Tensor:
    """Images (batch, *spatial) along the last axis, each followed by points of value 0."""
    return pad(images, (0, 1)).movedim(0, -2).flatten(-2)


def _given_classes(
    images: Tensor,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    min_persistence: float = 0,
) -> Classes:
    """The classes of images that an operator is given; the mask is (batch or 1, *spatial)."""
    place = place_of_pairs(images)
    shown = None if mask is None else mask.expand(images.shape).to(place)
    return classes_of(
        widest(images).to(place),
        shown,
        connectivity=connectivity,
        superlevel=superlevel,
        min_persistence=min_persistence,
    )


def widest(images: Tensor) -> Tensor:
    """Convert floats of 16 bits, whose classes are those of the same values in float32."""
    return images.detach().float() if images.dtype.itemsize < 4 else images.detach()


def _fake_coefficients(images: Tensor, *_: Any) -> Tensor:
    shape = images.shape[0], images.dim() - 1, math.prod(images.shape[1:])
    return images.new_empty(shape, dtype=torch.int8)


@operator(_fake_coefficients, stacked=(0, 1))
def betti_coefficients(
    images: Tensor,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    min_persistence: float,
) -> Tensor:
    """Births less deaths of each dimension at each point: (batch, dimensions, points), int8.

    Images are (batch, *spatial). Only classes count that last at least `min_persistence`.
    """
    count = len(images)
    ndim = images.dim() - 1
    points = math.prod(images.shape[1:])
    if not images.numel():
        return images.new_zeros((count, ndim, points), dtype=torch.int8)
    found = _given_classes(
        images,
        mask,
        connectivity=connectivity,
        superlevel=superlevel,
        min_persistence=min_persistence,
    )
    dies = found.deaths < images.numel()
    at = torch.cat([found.births, found.deaths[dies]]) % points
    groups = torch.cat([found.groups, found.groups[dies]])
    amounts = torch.ones_like(at, dtype=torch.int8)
    amounts[len(found.births) :] = -1
    total = amounts.new_zeros(count * ndim * points)
    total.index_add_(0, groups * points + at, amounts)
    return total.view(count, ndim, points).to(images.device)


def _fake_longest(images: Tensor, _mask: Tensor | None, count: int, *_: Any) -> Tensor:
    shape = images.shape[0], images.dim() - 1, count, 2
    return images.new_empty(shape, dtype=torch.int64)


@operator(_fake_longest, stacked=(0, 1))
def longest_classes(
    images: Tensor, mask: Tensor | None, count: int, connectivity: int, superlevel: bool
) -> Tensor:
    """Where the classes that last longest are born and die: (batch, dimensions, count, 2), int64.

    Points are numbered in C order within their image (batch, *spatial). A class that never dies
    dies with the last point that enters. Where there are fewer classes, the number is that of the
    points.
    """
    ndim = images.dim() - 1
    points = math.prod(images.shape[1:])
    total = images.new_full((len(images) * ndim, count, 2), points, dtype=torch.int64)
    if not images.numel():
        return total.view(len(images), ndim, count, 2)
    found = _given_classes(images, mask, connectivity, superlevel)
    place = found.births.device
    values = widest(images).to(place)
    values = -values if superlevel else values
    if mask is not None:
        values = values.masked_fill(~mask.to(place), -torch.inf)
    values = values.flatten()
    of_image = found.groups // ndim
    last = of_image * points + values.view(len(images), points).argmax(1)[of_image]
    deaths = torch.where(found.deaths < images.numel(), found.deaths, last)
    lengths = values[deaths].double() - values[found.births].double()
    ranks = ranks_by_length(lengths, found.groups)
    kept = ranks < count
    rows = torch.stack([found.births, deaths], 1)[kept] % points
    total = total.to(place)
    total[found.groups[kept], ranks[kept]] = rows
    return total.view(len(images), ndim, count, 2).to(images.device)


def ranks_by_length(lengths: Tensor, groups: Tensor) -> Tensor:
    """The rank of each class in its group, the longest first; of equal ones, the first."""
    order = torch.argsort(lengths, descending=True, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    ordered = groups[order]
    places = torch.arange(len(ordered), device=ordered.device)
    ranks = torch.empty_like(places)
    ranks[order] = places - torch.searchsorted(ordered, ordered)
    return ranks


def _fake_curves(images: Tensor, thresholds: Tensor, *_: Any) -> Tensor:
    shape = images.shape[0], images.dim() - 1, thresholds.shape[0]
    return images.new_empty(shape, dtype=torch.int64)


@operator(_fake_curves, stacked=(0, 2))
def exact_betti_curves(
    images: Tensor,
    thresholds: Tensor,
    mask: Tensor | None,
    connectivity: int,
    superlevel: bool,
    min_persistence: float,
) -> Tensor:
    """Betti curves (batch, dimensions, n) of images (batch, *spatial)."""
    place = place_of_curves(images)
    shown = None if mask is None else mask.expand(images.shape)
    found = betti_curves(
        widest(images).to(place),
        thresholds.to(place),
        mask=None if shown is None else shown.to(place),
        connectivity=connectivity,
        superlevel=superlevel,
        min_persistence=min_persistence,
        axis=range(1, images.dim()),
    ).values
    return cast(Tensor, found).to(images.device)
