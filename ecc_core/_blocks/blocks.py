"""Curves and surfaces of blocks: of a block on its own, and with the terms between blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays.origin import origin_of
from ecc_core._backends.borders import closed, stretch
from ecc_core._blocks.planes import (
    Array,
    BlockSums,
    Box,
    Term,
    flattened,
    outermost,
)
from ecc_core._request.filtration import Filtration

__all__ = [
    "AnySettings",
    "Settings",
    "SurfaceSettings",
    "add",
    "coefficients_of",
    "curve_of",
    "differences",
    "emit",
    "with_terms",
]

Values = NDArray[np.int64]


class Settings(NamedTuple):
    """Arguments of a backend's ``curve``."""

    thresholds: Array
    filtration: Filtration

    @property
    def size(self) -> int:
        """Values of a curve."""
        return self.thresholds.size

    def curve(self, image: Array, mask: Array | None = None) -> Values:
        """Curve of each image of a box on its own, (images, n)."""
        filtration = closed(self.filtration, image.ndim - 1)  # planes have fewer axes
        backend = origin_of(image).backend()
        # A scheduler runs several tasks at once: each of them is one thread.
        values: Values = backend.curve(image, self.thresholds, filtration, mask=mask, workers=1)
        return values

    def region_curves(self, image: Array, labels: Array) -> tuple[Array, Values]:
        """Labels of a box without a batch axis, and their curves, (labels, n)."""
        filtration = closed(self.filtration, image.ndim)
        backend = origin_of(image).backend()
        return backend.region_curves(image, labels, self.thresholds, filtration, workers=1)


class SurfaceSettings(NamedTuple):
    """How surfaces are computed, as curves over all pairs of thresholds in C order."""

    thresholds: tuple[Array, Array]
    filtrations: tuple[Filtration, Filtration]

    @property
    def filtration(self) -> Filtration:
        """That of the first image; both have the same complex."""
        return self.filtrations[0]

    @property
    def size(self) -> int:
        """Values of a surface."""
        return math.prod(at.size for at in self.thresholds)

    def curve(self, first: Array, second: Array, mask: Array | None = None) -> Values:
        """Surface of each pair of images of a box on its own, (images, n * m)."""
        a, b = (filtration.in_axes(first.ndim - 1) for filtration in self.filtrations)
        backend = origin_of(first).surfaces()
        values: Values = backend.surface(
            first, second, self.thresholds, (a, b), mask=mask, workers=1
        )
        return values.reshape((len(first), self.size))


AnySettings = Settings | SurfaceSettings


def curve_of(box: Box, settings: AnySettings) -> Values:
    """Return the curve of each image of a box on its own, (images, n)."""
    if box[0].ndim == 1:
        box = tuple(array[:, None] for array in box)
    return settings.curve(*box)


def emit(image: Array, *others: Array, settings: AnySettings, ndim: int) -> BlockSums:
    """Return the curve of a block and copies of its outermost planes."""
    batch = image.shape[: image.ndim - ndim]
    spatial = image.shape[image.ndim - ndim :]
    box = tuple(array.reshape((math.prod(batch), *spatial)) for array in (image, *others))
    return BlockSums(
        batch,
        curve_of(box, settings),
        outermost(box, slice(0, 1)),
        outermost(box, slice(-1, None)),
    )


def coefficients_of(image: Array, *mask: Array, settings: Settings) -> NDArray[np.int8]:
    """Return the coefficients of a block that is padded by the nearest points of its neighbours."""
    kept = mask[0][None] if mask else None
    values: NDArray[np.int8] = (
        origin_of(image)
        .backend()
        .coefficients(image[None], settings.filtration, mask=kept, workers=1)[0]
    )
    return values


def with_terms(block: BlockSums, terms: list[Term], settings: AnySettings) -> Values:
    """Return the sum of a block's curve and the given terms, (*batch, n)."""
    values = block.own.copy()
    for batch in _batches(terms):
        values += _signed_sum(batch, settings)
    return values.reshape((*block.batch, values.shape[-1]))


def _batches(terms: list[Term]) -> list[list[Term]]:
    """Terms to be computed at once: slabs, planes, and all that is smaller."""
    batches: dict[tuple[int, bool], list[Term]] = {}
    for sign, box in terms:
        box = flattened(box)
        _, thickness, *others = box[0].shape
        batches.setdefault((len(others), thickness > 2), []).append((sign, box))
    return list(batches.values())


def _signed_sum(terms: list[Term], settings: AnySettings) -> Values:
    """Return the signed sum of the curves of boxes, computed as one batch, (images, n).

    Boxes are padded to the largest shape by repeating the last plane, which keeps their curves.
    """
    shapes = [box[0].shape for _, box in terms]
    images, *spatial = map(max, zip(*shapes, strict=True))
    parts = range(len(terms[0][1]))
    batch = [np.concatenate([stretch(box[part], spatial) for _, box in terms]) for part in parts]
    curves = curve_of(tuple(batch), settings).reshape((len(terms), images, -1))
    signed = [sign * values for (sign, _), values in zip(terms, curves, strict=True)]
    summed: Values = sum(signed[1:], start=signed[0])
    return summed


def add(shares: Sequence[Values]) -> Values:
    """Sum of shares."""
    summed: Values = sum(shares[1:], start=shares[0])
    return summed


def differences(curves: Values, *, superlevel: bool) -> Values:
    """Signed histograms: what enters at each threshold, in the order of entry."""
    changed = curves.copy()
    if superlevel:
        changed[..., :-1] -= curves[..., 1:]
    else:
        changed[..., 1:] -= curves[..., :-1]
    return changed
