"""Losses from the literature that the studies compare with, written after their papers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d

import ecc_core as ecc

ITERATIONS = 5  # of the soft skeleton: half the width of the widest structure


def soft_skeleton(image: Tensor) -> Tensor:
    """Iterated difference of an image and its opening, Algorithm 1 of Shit et al."""

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
    """Soft clDice (Shit et al., CVPR 2021, arXiv:2003.07311)."""
    own, true = soft_skeleton(prediction), soft_skeleton(target)
    precision = ((own * target).sum((1, 2, 3)) + 1) / (own.sum((1, 2, 3)) + 1)
    recall = ((true * prediction).sum((1, 2, 3)) + 1) / (true.sum((1, 2, 3)) + 1)
    return (1 - 2 * precision * recall / (precision + recall)).mean()


def persistence_loss(prediction: Tensor, target: Tensor, window: int) -> Tensor:
    """TopoLoss (Hu et al., NeurIPS 2019, arXiv:1906.05404), over the windows of images.

    The most persistent components and holes of the prediction, as many as the target has, are
    moved to birth 1 and death 0, and all others to the diagonal.
    """
    total = prediction.new_zeros(())
    rows = [x.unfold(2, window, window).unfold(3, window, window) for x in (prediction, target)]
    own, true = (x.flatten(0, 3) for x in rows)
    wanted = ecc.betti_curves(true, [0.5], superlevel=True, axis=(1, 2)).values[..., 0]
    for image, numbers in zip(own, wanted.tolist(), strict=True):
        for dimension, number in enumerate(numbers):
            pairs = ecc.persistence_pairs(image.detach().numpy(), dimension, superlevel=True)
            births = image[tuple(torch.as_tensor(pairs.birth_points).T)]
            ends = torch.isfinite(torch.as_tensor(pairs.deaths))  # one component never dies
            deaths = births.new_zeros(len(births))
            points = torch.as_tensor(pairs.death_points)[ends]
            deaths = deaths.masked_scatter(ends, image[tuple(points.T)])
            order = (births - deaths).detach().argsort(descending=True)
            kept, others = order[:number], order[number:]
            total = total + (1 - births[kept]).square().sum() + deaths[kept].square().sum()
            total = total + (births[others] - deaths[others]).square().sum()
    return total / len(own)
