"""Soft transforms of simplicial complexes on the CPU, and checks of those on any device."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecc_core._backends.cpu.soft.points import DOUBLE_REACH
from ecc_core._backends.cpu.soft.simplex_kernels import (
    APART,
    DIRECTIONS_NOT_FINITE,
    LEVELS_NOT_NUMBERS,
    OUTSIDE,
    POINTS_NOT_FINITE,
    REPEATED,
    SHAPE_OUTSIDE,
    WEIGHTS_NOT_FINITE,
    check_simplices,
    examine,
)
from ecc_core._backends.cpu.soft.simplices import SoftComplexes
from ecc_core._backends.soft import SoftShapeGradients, SoftShapes
from ecc_core._request.simplicial import apart_error, outside_error, repeated_error
from ecc_core._torch.threads import threads

MESSAGES = {
    POINTS_NOT_FINITE: "`points` must be finite",
    WEIGHTS_NOT_FINITE: "`weights` must be finite",
    DIRECTIONS_NOT_FINITE: "`directions` must be finite and not zero",
    LEVELS_NOT_NUMBERS: "`thresholds` must not contain NaN, got NaN",
}
NO_WEIGHTS = np.empty(0)


def simplicial_curves(given: SoftShapes) -> Tensor:
    return torch.from_numpy(_complexes(given).curves())


def simplicial_gradients(
    given: SoftShapes, upstream: Tensor, all_arguments: bool
) -> SoftShapeGradients:
    complexes = _complexes(given)
    flow = upstream.contiguous().numpy()
    found = complexes.all_gradients(flow) if all_arguments else complexes.gradients(flow)
    dtype = given.points.dtype
    known: list[Any] = [
        None if part is None else torch.as_tensor(part, dtype=dtype) for part in found
    ]
    return SoftShapeGradients(*known)


def raise_for_values(given: SoftShapes) -> None:
    """Copy values that kernels have refused to the host, where the check raises the error."""
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
    _complexes(host)


def _complexes(given: SoftShapes) -> SoftComplexes:
    """Return checked arrays for the kernels; tensors must be on the CPU."""
    points = _array(given.points)
    weights = None if given.weights is None else _array(given.weights)
    vectors = _array(given.vectors)
    levels = given.levels.numpy().astype(np.float64)
    shapes = _array(given.batch)
    offsets = np.empty(given.shapes + 1, np.int64)
    own = NO_WEIGHTS if weights is None else weights
    found = examine(points, own, vectors, levels, shapes, offsets)
    wrong, highest, in_order, increasing = found
    if wrong:
        raise _value_error(wrong, given)
    sharpness = float(given.sharpness)
    if not 0 < sharpness < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {sharpness:g}")
    simplices = [_array(rows) for rows in given.simplices]
    for rows in simplices:
        _check_rows(rows, shapes)
    order = None
    if not increasing:
        order = levels.argsort()
        levels = levels[order]
    # Infinite levels become finite ones so far from all heights that steps are 0 or 1 there.
    beyond = highest + 2 * DOUBLE_REACH / sharpness
    np.clip(levels, -beyond, beyond, out=levels)
    members = np.arange(len(shapes)) if in_order else np.argsort(shapes, kind="stable")
    return SoftComplexes(
        points=points,
        weights=weights,
        simplices=simplices,
        vectors=vectors,
        levels=levels,
        order=order,
        sharpness=sharpness,
        members=members,
        offsets=offsets,
        workers=threads(),
    )


def _array(tensor: Tensor) -> Any:
    return tensor.contiguous().numpy()


def _value_error(wrong: int, given: SoftShapes) -> ValueError:
    """Return the error of a value that `examine` has found."""
    if wrong != SHAPE_OUTSIDE:
        return ValueError(MESSAGES[wrong])
    first = int(given.batch.min())
    last = int(given.batch.max())
    return ValueError(
        f"`batch` must hold numbers of shapes from 0 to {given.shapes - 1}, got "
        f"{first if first < 0 else last}"
    )


def _check_rows(rows: Any, shapes: Any) -> None:
    wrong, i = check_simplices(rows, shapes)
    if wrong == OUTSIDE:
        raise outside_error(rows[i], len(shapes))
    if wrong == APART:
        raise apart_error(rows[i])
    if wrong == REPEATED:
        raise repeated_error(rows[i])
