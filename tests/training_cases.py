"""Training steps with each layer and loss, for several modules of tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ecc_core.nn import (
    BettiMatchingLoss,
    EulerCurveLayer,
    EulerCurveLoss,
    EulerCurveMap,
    EulerTransformLayer,
    PersistenceLoss,
)

CLASSES = 3


class TrainingCase(NamedTuple):
    """A model whose output is a loss, averaged over the images of a batch."""

    name: str
    make_model: Callable[[], nn.Module]
    """Makes a module that is called with images (batch, 1, rows, columns) and targets."""
    segments: bool
    """Whether targets are masks of the shape of the images; otherwise they are classes, (batch,)"""
    waits: bool = False
    """Whether a step waits for the device, because the number of pairs depends on the images."""


class Classifier(nn.Module):
    """Convolutions, a layer of curves, and a linear map to classes; returns the cross entropy."""

    def __init__(self, layer: nn.Module, features: int, width: int) -> None:
        super().__init__()
        self.features = convolutions(width)
        self.layer = layer
        self.head = nn.Linear(features, CLASSES)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        curves = self.layer(self.features(images)).flatten(1)
        return nn.functional.cross_entropy(self.head(curves), classes)


class Segmenter(nn.Module):
    """Convolutions whose output is compared with masks by a loss."""

    def __init__(self, loss: nn.Module, width: int) -> None:
        super().__init__()
        self.features = convolutions(width)
        self.loss = loss

    def forward(self, images: Tensor, masks: Tensor) -> Tensor:
        prediction = self.features(images).sigmoid()
        loss: Tensor = self.loss(prediction, masks)
        return loss


def convolutions(width: int) -> nn.Sequential:
    """Return convolutions from one channel to one channel, with `width` channels between."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(width, 1, 3, padding=1),
    )


def training_cases(width: int = 4) -> list[TrainingCase]:
    """Return a step for each layer and loss that computes on CUDA devices."""

    def curve() -> nn.Module:
        layer = EulerCurveLayer(
            8, range=(-1, 1), directions=2, direction_scale=0.02, learn_sharpness=True
        )
        return Classifier(layer, 16, width)

    def curve_map() -> nn.Module:
        layer = EulerCurveMap(4, window=8, stride=8, range=(-1, 1), normalize="side")
        return Classifier(nn.Sequential(layer, nn.AdaptiveAvgPool2d(2)), 16, width)

    def transform() -> nn.Module:
        layer = EulerTransformLayer(4, 6, range=(-12, 12), learn_sharpness=True)
        return Classifier(layer, 24, width)

    def curve_loss() -> nn.Module:
        return Segmenter(EulerCurveLoss(window=8), width)

    def persistence_loss() -> nn.Module:
        return Segmenter(PersistenceLoss(), width)

    def matching_loss() -> nn.Module:
        return Segmenter(BettiMatchingLoss(), width)

    return [
        TrainingCase("EulerCurveLayer", curve, segments=False),
        TrainingCase("EulerCurveMap", curve_map, segments=False),
        TrainingCase("EulerTransformLayer", transform, segments=False),
        TrainingCase("EulerCurveLoss", curve_loss, segments=True),
        TrainingCase("PersistenceLoss", persistence_loss, segments=True, waits=True),
        TrainingCase("BettiMatchingLoss", matching_loss, segments=True, waits=True),
    ]


def made(
    case: TrainingCase, device: torch.device | str, dtype: torch.dtype = torch.float32
) -> nn.Module:
    """Return the model of a case with parameters that are always the same."""
    torch.manual_seed(0)
    return case.make_model().to(device, dtype)


def batch(
    case: TrainingCase, images: int, side: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Return images and targets in host memory, always the same ones."""
    generator = torch.Generator().manual_seed(1)
    given = torch.rand((images, 1, side, side), generator=generator, dtype=dtype)
    if case.segments:
        return given, (given > 0.5).to(dtype)
    return given, torch.randint(CLASSES, (images,), generator=generator)
