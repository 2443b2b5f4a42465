"""The errors of matched classes, and their gradients, as an operator of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._request.options import ImageOptions
from ecc_core.matching import match_images
from ecc_core.nn._pairs import error_operator
from ecc_core.results import BettiMatching, PersistencePairs

Floats = NDArray[np.float64]


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
    values, true = (given.detach().cpu().numpy() for given in (images, targets))
    shown = None if mask is None else mask.cpu().numpy()
    spatial = tuple(range(1, values.ndim))
    options = ImageOptions(connectivity=connectivity, mask=shown, axis=spatial)
    errors = np.zeros(len(values))
    slopes = np.zeros(values.shape)
    for i, matching in enumerate(match_images(values, true, True, options)):
        errors[i] = _error(matching, min_persistence, slopes[i])
    return _like(images, errors), _like(images, slopes)


def _error(matching: BettiMatching, least: float, slopes: Floats) -> float:
    """Return the error of an image, and add its gradient to `slopes`."""
    prediction, target = matching.matched
    births, deaths = _values(prediction)
    born, died = _values(target)
    _add(slopes, prediction, 2 * (births - born), 2 * (deaths - died))
    total = float(((births - born) ** 2 + (deaths - died) ** 2).sum())
    false = matching.unmatched_prediction
    missing = matching.unmatched_target
    lengths = _lengths(false, least)
    _add(slopes, false, lengths, -lengths)
    return total + float((lengths**2).sum() + (_lengths(missing, least) ** 2).sum()) / 2


def _lengths(pairs: PersistencePairs[Any], least: float) -> Floats:
    """Return how long classes last, and 0 for those that last less than `least`."""
    lengths: Floats = np.subtract(*_values(pairs))
    return np.where(lengths >= least, lengths, 0)


def _values(pairs: PersistencePairs[Any]) -> tuple[Floats, Floats]:
    """Return births and deaths; what never dies, dies at 0."""
    deaths = np.where(pairs.essential, 0, pairs.deaths.astype(np.float64))
    return pairs.births.astype(np.float64), deaths


def _add(slopes: Floats, pairs: PersistencePairs[Any], by_birth: Floats, by_death: Floats) -> None:
    """Add derivatives with respect to births and deaths at the points that cause them."""
    dies = ~pairs.essential
    np.add.at(slopes, tuple(pairs.birth_points.T), by_birth)
    np.add.at(slopes, tuple(pairs.death_points[dies].T), by_death[dies])


def _like(images: Tensor, values: Floats) -> Tensor:
    return torch.from_numpy(values).to(images.device, images.dtype)
