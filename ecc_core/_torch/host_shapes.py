"""Soft transforms of simplicial complexes on the CPU, and checks of those on any device."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cpu.soft.simplex_kernels import (
    APART,
    OUTSIDE,
    REPEATED,
    check_simplices,
)
from ecc_core._backends.cpu.soft.simplices import SoftComplexes
from ecc_core._backends.soft import SoftShapes
from ecc_core._request.simplicial import apart_error, outside_error, repeated_error
from ecc_core._torch.threads import threads


def simplicial_curves(given: SoftShapes, derivatives: bool) -> tuple[Tensor, Tensor, Tensor]:
    complexes = _complexes(given)
    _check(complexes)
    curves, slopes, spreads = map(torch.from_numpy, complexes.curves(derivatives))
    return curves, slopes, spreads


def simplicial_gradients(
    given: SoftShapes, upstream: Tensor, of_weights: bool
) -> tuple[Tensor, Tensor, Tensor]:
    arrays = _complexes(given).gradients(upstream.numpy(), of_weights)
    points, weights, vectors = (torch.from_numpy(x).to(given.points.dtype) for x in arrays)
    return points, weights, vectors


def raise_for_values(given: SoftShapes) -> None:
    """Raise the error of values that kernels must not take; they are copied to the host."""
    weights = given.weights
    host = SoftShapes(
        points=given.points.cpu(),
        weights=None if weights is None else weights.cpu(),
        simplices=[rows.cpu() for rows in given.simplices],
        vectors=given.vectors.cpu(),
        levels=given.levels.cpu(),
        sharpness=given.sharpness.cpu(),
        batch=given.batch.cpu(),
        shapes=given.shapes,
    )
    _check(_complexes(host))


def _complexes(given: SoftShapes) -> SoftComplexes:
    """Return what kernels take; tensors must be on the CPU."""
    weights = given.weights
    return SoftComplexes(
        points=given.points.contiguous().numpy(),
        weights=None if weights is None else weights.contiguous().numpy(),
        simplices=[rows.contiguous().numpy() for rows in given.simplices],
        vectors=given.vectors.contiguous().numpy(),
        levels=given.levels.numpy().astype(np.float64),
        sharpness=float(given.sharpness),
        shapes=given.batch.contiguous().numpy(),
        shape_count=given.shapes,
        workers=threads(),
    )


def _check(given: SoftComplexes) -> None:
    """Check values, which kernels rely on."""
    if not np.isfinite(given.points).all():
        raise ValueError("`points` must be finite")
    if given.weights is not None and not np.isfinite(given.weights).all():
        raise ValueError("`weights` must be finite")
    if not np.isfinite(given.vectors).all():
        raise ValueError("`directions` must be finite and not zero")
    if np.isnan(given.levels).any():
        raise ValueError("`thresholds` must not contain NaN, got NaN")
    if not 0 < given.sharpness < np.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {given.sharpness:g}")
    if given.shapes.size:
        first = int(given.shapes.min())
        last = int(given.shapes.max())
        if first < 0 or last >= given.shape_count:
            raise ValueError(
                f"`batch` must hold numbers of shapes from 0 to {given.shape_count - 1}, got "
                f"{first if first < 0 else last}"
            )
    for rows in given.simplices:
        _check_rows(rows, given.shapes)


def _check_rows(rows: Any, shapes: Any) -> None:
    wrong, i = check_simplices(rows, shapes)
    if wrong == OUTSIDE:
        raise outside_error(rows[i], len(shapes))
    if wrong == APART:
        raise apart_error(rows[i])
    if wrong == REPEATED:
        raise repeated_error(rows[i])
