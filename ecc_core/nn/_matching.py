"""The errors of matched classes, and their gradients, as an operator of torch.

Most images are small, such as windows, and to match a pair of them takes longer to begin than to
do. So several are stacked along their first axis, with a layer between them that never enters.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._arithmetic import ceil_div
from ecc_core._request.options import ImageOptions
from ecc_core.matching import match_images
from ecc_core.nn._pairs import error_operator
from ecc_core.results import BettiMatching, PersistencePairs

Array = NDArray[Any]
Floats = NDArray[np.float64]

MOST_STACKED = 1 << 16
"""Points of images that are stacked. Tunnels need a few hundred bytes for each."""


class _Ends(NamedTuple):
    """Classes by their values, and by numbers of points in a stack, the last of which is none."""

    births: Floats
    deaths: Floats
    birth_points: NDArray[np.int64]
    death_points: NDArray[np.int64]

    @property
    def lengths(self) -> Floats:
        return self.births - self.deaths


@error_operator
def match_errors(
    images: Tensor,
    targets: Tensor,
    mask: Tensor | None,
    connectivity: int,
    min_persistence: float,
) -> tuple[Tensor, Tensor]:
    """The error (batch,) of each image (batch, *spatial), and its gradient (batch, *spatial).

    Targets are of the shape and dtype of the images. Everything is computed in host memory, and
    errors in float64.
    """
    if not images.numel():
        return images.new_zeros(len(images)), torch.zeros_like(images)
    values = images.detach().cpu().numpy()
    true = targets.detach().cpu().numpy()
    shown = None if mask is None else mask.cpu().numpy()
    each = _images_of_stack(values)
    gap = int(each > 1)
    if gap and shown is None:
        shown = np.ones(values.shape, np.bool_)
    axis = tuple(range(1, values.ndim))
    stacks = _stacked(values, each, gap)
    options = ImageOptions(
        connectivity=connectivity,
        mask=None if shown is None else _stacked(shown, each, gap),
        axis=axis,
    )
    layers = values.shape[1] + gap
    errors = []
    slopes = []
    for matching in match_images(stacks, _stacked(true, each, gap), True, options):
        by_image, slope = _errors(matching, min_persistence, stacks.shape[1:], layers)
        errors.append(by_image)
        slopes.append(slope.reshape(-1, layers, *values.shape[2:]))
    count, depth = values.shape[:2]
    own = np.concatenate(slopes)[:count, :depth]
    return _like(images, np.concatenate(errors)[:count]), _like(images, own)


def _images_of_stack(images: Array) -> int:
    """Return how many images are stacked: as many as fit, but with work for every thread."""
    count = len(images)
    stacks = max(torch.get_num_threads(), ceil_div(images.size, MOST_STACKED))
    return ceil_div(count, min(stacks, count))


def _stacked(images: Array, each: int, gap: int) -> Array:
    """Return stacks of images (n, layers, ...), with so many layers of zeros behind each image."""
    count, layers, *others = images.shape
    stacks = ceil_div(count, each)
    found = np.zeros((stacks * each, layers + gap, *others), images.dtype)
    found[:count, :layers] = images
    return found.reshape(stacks, each * (layers + gap), *others)


def _errors(
    matching: BettiMatching, least: float, shape: tuple[int, ...], layers: int
) -> tuple[Floats, Floats]:
    """Return the error of each image of a stack of this shape, and the gradient of their sum."""
    prediction, target = (
        _ends_of(pairs, shape) for pairs in (matching.prediction, matching.target)
    )
    one, other = matching.matches.T
    birth_gap = np.zeros_like(prediction.births)
    death_gap = np.zeros_like(prediction.births)
    birth_gap[one] = prediction.births[one] - target.births[other]
    death_gap[one] = prediction.deaths[one] - target.deaths[other]
    false = np.where(prediction.lengths >= least, prediction.lengths, 0)
    false[one] = 0
    missing = np.where(target.lengths >= least, target.lengths, 0)
    missing[other] = 0
    points = math.prod(shape)
    image_size = points // (shape[0] // layers)
    images = points // image_size
    errors = np.zeros(images)
    for ends, squares in (
        (prediction, birth_gap**2 + death_gap**2 + false**2 / 2),
        (target, missing**2 / 2),
    ):
        errors += np.bincount(ends.birth_points // image_size, squares, images)
    slopes = np.zeros(points + 1)
    slopes += np.bincount(prediction.birth_points, 2 * birth_gap + false, points + 1)
    slopes += np.bincount(prediction.death_points, 2 * death_gap - false, points + 1)
    return errors, slopes[:-1]


def _ends_of(pairs: PersistencePairs[Any], shape: tuple[int, ...]) -> _Ends:
    """Return where classes begin and end; what never dies, dies at 0."""
    lasts = pairs.essential
    deaths = np.where(lasts, 0, pairs.deaths.astype(np.float64))
    death_points = np.full(lasts.size, math.prod(shape))
    death_points[~lasts] = np.ravel_multi_index(tuple(pairs.death_points[~lasts].T), shape)
    birth_points = np.ravel_multi_index(tuple(pairs.birth_points.T), shape)
    return _Ends(pairs.births.astype(np.float64), deaths, birth_points, death_points)


def _like(images: Tensor, values: Floats) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(images.device, images.dtype)
