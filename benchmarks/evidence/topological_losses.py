"""Losses from the literature that the studies compare with, written after their papers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import max_pool2d, pad

import ecc_core as ecc

THRESHOLDS, SHARPNESS = 8, 32.0
"""Those of EulerCurveLoss."""
ITERATIONS = 5
"""Iterations of soft skeletons, half the width of the widest structure."""


def soft_skeleton(image: Tensor) -> Tensor:
    """Return iterated differences of an image and its opening (Algorithm 1 of Shit et al.)."""

    def erode(x: Tensor) -> Tensor:
        return torch.minimum(-max_pool2d(-x, (3, 1), 1, (1, 0)), -max_pool2d(-x, (1, 3), 1, (0, 1)))

    def opened(x: Tensor) -> Tensor:
        return max_pool2d(erode(x), 3, 1, 1)

    skeleton = torch.relu(image - opened(image))
    for _ in range(ITERATIONS):
        image = erode(image)
        change = torch.relu(image - opened(image))
        skeleton = skeleton + torch.relu(change - skeleton * change)
    return skeleton


def centreline_dice(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the loss soft clDice (Shit et al., CVPR 2021, arXiv:2003.07311)."""
    own = soft_skeleton(prediction)
    true = soft_skeleton(target)
    precision = ((own * target).sum((1, 2, 3)) + 1) / (own.sum((1, 2, 3)) + 1)
    recall = ((true * prediction).sum((1, 2, 3)) + 1) / (true.sum((1, 2, 3)) + 1)
    return (1 - 2 * precision * recall / (precision + recall)).mean()


class Pairs(NamedTuple):
    """Persistence pairs of the superlevel sets of images (count, side, side).

    `groups` are 2 * image + dimension, `births` and `deaths` indices into ``images.flatten()``; the
    death of a class that remains is the number of points.
    """

    groups: Tensor
    births: Tensor
    deaths: Tensor


def windows(images: Tensor, side: int) -> Tensor:
    """Return squares (count, side, side) that tile images (batch, 1, rows, columns)."""
    return images.unfold(2, side, side).unfold(3, side, side).flatten(0, 3)


def pairs_of(images: Tensor) -> Pairs:
    """Find the pairs of all images at once, in a row of them with columns that never enter."""
    side = images.shape[-1]
    padded = pad(images.detach(), (0, 1))
    row = padded.movedim(0, 1).reshape(side, -1).numpy()
    mask = np.arange(row.shape[1]) % (side + 1) < side
    found: list[NDArray[np.int64]] = []
    for dimension in range(2):
        pairs = ecc.persistence_pairs(
            row, dimension, superlevel=True, mask=np.broadcast_to(mask, row.shape)
        )
        image = pairs.birth_points[:, 1] // (side + 1)
        points = [pairs.birth_points, pairs.death_points]
        births, deaths = (
            side * (side * image + y) + x % (side + 1) for y, x in (p.T for p in points)
        )
        deaths = np.where(np.isfinite(pairs.deaths), deaths, images.numel())
        found.append(np.stack([2 * image + dimension, births, deaths]))
    return Pairs(*torch.from_numpy(np.concatenate(found, 1)))


def betti_curve_loss(prediction: Tensor, target: Tensor, window: int) -> Tensor:
    """Return the mean difference of the soft Betti curves of windows, over their points.

    Soft Betti curves take a step from 0 to 1 at each birth minus one at each death, as soft as the
    steps of EulerCurveLoss. Superfluous components and holes do not cancel in them.
    """
    own, true = (soft_betti_curves(windows(x, window)) for x in (prediction, target))
    return (own - true).abs().sum(1).mean() / window**2


def soft_betti_curves(images: Tensor) -> Tensor:
    """Return soft numbers of components and holes (count, 2, n) of superlevel sets of images."""
    groups, births, deaths = pairs_of(images)
    values = torch.cat([images.flatten(), images.new_tensor([-torch.inf])])
    levels = (torch.arange(THRESHOLDS) + 0.5) / THRESHOLDS
    steps = (SHARPNESS * (values[:, None] - levels)).sigmoid()
    found = images.new_zeros(2 * len(images), THRESHOLDS)
    return found.index_add(0, groups, steps[births] - steps[deaths]).reshape(-1, 2, THRESHOLDS)
