"""The losses that the study compares: ours, those of topolosses, and one after its paper.

`pip install topolosses opencv-python torchvision pot` installs those of others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from study_images import Subject
from torch import Tensor
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    max_pool2d,
    max_pool3d,
    one_hot,
)

from ecc_core.nn import BettiMatchingLoss, EulerCurveLoss, PersistenceLoss

Loss = Callable[[Tensor, Tensor], Tensor]
"""A function of logits and a mask of zeros and ones, both (batch, 1, *shape)."""

BASE = "cross entropy + Dice"


class Candidate(NamedTuple):
    """A loss that is added to the base, with one of these weights."""

    loss: Loss
    weights: tuple[float, ...]


def base_loss(logits: Tensor, mask: Tensor) -> Tensor:
    """Return cross entropy plus soft Dice, the loss to which the others are added."""
    probabilities = logits.sigmoid()
    axes = tuple(range(1, logits.ndim))
    overlap = (probabilities * mask).sum(axes)
    sizes = probabilities.sum(axes) + mask.sum(axes)
    dice = (2 * overlap + 1) / (sizes + 1)
    return binary_cross_entropy_with_logits(logits, mask) + (1 - dice).mean()


def neighbour_penalty(logits: Tensor, mask: Tensor) -> Tensor:
    """Return same-class neighbour penalization (Valverde et al., CVPR 2026, arXiv:2603.18671).

    It is the base loss after each logit is replaced by the worst one of the points of the same
    class among the 3 x 3 around it.
    """
    pool = max_pool2d if logits.ndim == 4 else max_pool3d
    inside = mask > 0
    lowest = -pool(torch.where(inside, -logits, -torch.inf), 3, 1, 1)
    highest = pool(torch.where(inside, -torch.inf, logits), 3, 1, 1)
    return base_loss(torch.where(inside, lowest, highest), mask)


def two_classes(mask: Tensor) -> Tensor:
    """Return one channel for the background, and one for the objects."""
    return one_hot(mask[:, 0].long(), 2).movedim(-1, 1).to(mask.dtype)


def of_probabilities(loss: Loss) -> Loss:
    """Give a loss of topolosses the probabilities of both classes."""

    def function(logits: Tensor, mask: Tensor) -> Tensor:
        own = logits.sigmoid()
        found: Tensor = loss(torch.cat([1 - own, own], 1), two_classes(mask))
        return found

    return function


def warping(loss: Loss) -> Loss:
    """Give `WarpingLoss` logits of both classes.

    It compares predicted classes with the first channel of the target, in which it has to find the
    objects, and it fails if no point is critical: the loss is zero then.
    """

    def function(logits: Tensor, mask: Tensor) -> Tensor:
        both = torch.cat([torch.zeros_like(logits), logits], 1)
        try:
            return loss(both, two_classes(mask).flip(1))
        except IndexError:
            return logits.sum() * 0

    return function


def candidates(subject: Subject) -> dict[str, Candidate]:
    """Return the losses that images of a subject can be trained with."""
    ndim = subject.ndim
    options = {"n_spatial": ndim, "from_logits": True}
    few = (0.03, 0.1, 0.3)
    found = {
        "EulerCurveLoss": Candidate(EulerCurveLoss(**options), (50.0, 200.0, 800.0)),
        "PersistenceLoss": Candidate(PersistenceLoss(**options), few),
        "BettiMatchingLoss": Candidate(BettiMatchingLoss(**options), few),
        "SCNP": Candidate(neighbour_penalty, (0.5, 2.0, 8.0)),
    }
    if ndim == 2:
        found |= of_topolosses(subject)
    return found


def of_topolosses(subject: Subject) -> dict[str, Candidate]:
    """Return the losses of the package topolosses."""
    from topolosses.losses import CLDiceLoss, HutopoLoss, TopographLoss, WarpingLoss

    warnings.filterwarnings("ignore", module="topolosses")
    alone = {"use_base_loss": False, "alpha": 1.0}
    skeleton = subject.skeleton
    return {
        "clDice": Candidate(of_probabilities(CLDiceLoss(skeleton, **alone)), (0.5, 2.0, 8.0)),
        "TopoLoss": Candidate(of_probabilities(HutopoLoss(**alone)), (0.01, 0.03, 0.1)),
        "Topograph": Candidate(of_probabilities(TopographLoss(**alone)), (0.03, 0.1, 0.3)),
        "warping": Candidate(warping(WarpingLoss(**alone)), (1.0, 4.0, 16.0)),
    }
