"""Soft curves and transforms on the CPU, as sums over points weighted by their coefficients."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends import backend
from ecc_core._backends.cpu.soft import coefficients as soft_coefficients
from ecc_core._backends.cpu.soft.coefficients import Cells
from ecc_core._backends.cpu.soft.sums import Sums
from ecc_core._backends.cpu.soft.transform import Projection
from ecc_core._backends.soft import Projected, SoftImages
from ecc_core._request.filtration import Filtration
from ecc_core._torch.cells import coefficients_of, filtration
from ecc_core._torch.host_shapes import simplicial_curves as simplicial_curves
from ecc_core._torch.host_shapes import simplicial_gradients as simplicial_gradients
from ecc_core._torch.threads import threads
from ecc_core.errors import NAN_MESSAGE, NAN_SHOWN_MESSAGE

Array = NDArray[Any]
Floats = NDArray[np.float64]


def curves(images: SoftImages, keep: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    values = _values(images)
    weights = _coefficients(values, images.connectivity)
    kept = torch.from_numpy(weights if keep else weights[:, :0].copy())
    return *_sums(values, weights, images), kept


def weighted_curves(images: SoftImages, coefficients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _sums(_values(images), coefficients.contiguous().numpy(), images)


def _sums(values: Array, weights: Array, images: SoftImages) -> tuple[Tensor, Tensor, Tensor]:
    """Return the curves, and their derivatives by threshold and by sharpness.

    `values` are those of the sublevel filtration and `weights` the coefficients of the points.
    """
    levels = _doubles(images.thresholds)
    slope = _checked(levels, images.sharpness, "thresholds")
    sign = -1 if images.superlevel else 1
    sums = Sums(
        values=_points(values),
        weights=weights,
        levels=sign * levels,
        sharpness=slope,
        workers=threads(),
    ).curves()
    sums[1] *= sign
    curve, slopes, spreads = map(torch.from_numpy, sums.astype(values.dtype))
    return curve, slopes, spreads


def gradient(
    upstream: Tensor,
    coefficients: Tensor,
    images: SoftImages,
    split: bool,
    dtype: torch.dtype,
    double: bool,
) -> Tensor:
    """Return the gradient of the images.

    That of a point is its coefficient times the sum of upstream * sharpness * s'(z) over the
    levels. With `double`, sums are in double precision: gradients of directions need it, because
    their terms cancel.
    """
    values = _values(images)
    weights = coefficients.contiguous().numpy()
    if split:
        divided = coefficients_of(torch.from_numpy(values), images.connectivity, "split")
        weights = _points(divided.numpy())
    elif not coefficients.shape[1]:
        weights = _coefficients(values, images.connectivity)
    sign = -1 if images.superlevel else 1
    levels = sign * _doubles(images.thresholds)
    slope = float(images.sharpness)
    sums = Sums(
        values=_points(values), weights=weights, levels=levels, sharpness=slope, workers=threads()
    )
    found = sums.gradients(-sign * _doubles(upstream), double)
    return torch.from_numpy(found.reshape(values.shape)).to(dtype)


def by_orthant(weights: Tensor, connectivity: int, extension: str) -> Tensor:
    return torch.from_numpy(Cells(weights.numpy(), connectivity, extension, threads()).sums())


def gradients_by_orthant(
    weights: Tensor, upstream: Tensor, connectivity: int, extension: str
) -> Tensor:
    cells = Cells(weights.numpy(), connectivity, extension, threads())
    return torch.from_numpy(cells.gradients(upstream.numpy()))


def projections(given: Projected) -> tuple[Tensor, Tensor, Tensor]:
    projection = _projection(given)
    _checked(projection.levels, given.sharpness, "heights")
    if not np.isfinite(projection.directions).all():
        raise ValueError("`directions` must be finite and not zero")
    if not np.isfinite(projection.weights).all():
        raise ValueError("`weights` must be finite")
    curve, slopes, spreads = map(
        torch.from_numpy, projection.curves().astype(projection.weights.dtype)
    )
    return curve, slopes, spreads


def projection_gradients(
    given: Projected, upstream: Tensor, of_weights: bool
) -> tuple[Tensor, Tensor]:
    found = _projection(given).gradients(_doubles(upstream), of_weights)
    by_weights, by_directions = map(torch.from_numpy, found)
    return by_weights.view(given.weights.shape), by_directions.to(given.weights.dtype)


def _projection(given: Projected) -> Projection:
    weights = given.weights.flatten(2).numpy()
    vectors = _doubles(given.vectors)
    places = _places(tuple(given.weights.shape[2:]))
    levels = _doubles(given.heights)
    sharpness = float(given.sharpness)
    return Projection(
        weights=weights,
        positions=places,
        directions=vectors,
        levels=levels,
        sharpness=sharpness,
        workers=threads(),
    )


@lru_cache(maxsize=4)
def _places(grid: tuple[int, ...]) -> Floats:
    """Return the positions (d, points) of a grid, relative to its centre.

    They are cached because a layer needs the same ones in every step.
    """
    places = np.indices(grid, np.float64).reshape(len(grid), -1)
    places -= places[:, -1:] / 2
    return places


def _values(images: SoftImages) -> Array:
    """Return values (batch, *spatial) of the sublevel filtration, in the dtype of the levels."""
    terms = images.direction_terms
    if terms is not None and not bool(terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{terms[~terms.isfinite()][0]:g} * x"
        )
    image = images.image.to(images.thresholds.dtype)
    return filtration(image, terms, images.mask, images.superlevel).contiguous().numpy()


def _points(values: Array) -> Array:
    """Return the values of images as (batch, points)."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def _coefficients(values: Array, connectivity: int) -> Array:
    """Return the coefficients (batch, points); those of points at +inf are undefined."""
    spatial = values.shape[1:]
    filtration = Filtration(len(spatial), connectivity)
    try:
        if len(spatial) < 3 and math.prod(spatial) <= soft_coefficients.LARGEST_IMAGE:
            rows = values if len(spatial) == 2 else values[:, None]
            found = soft_coefficients.coefficients(rows, filtration.cubes, threads())
        else:
            found = backend("cpu").coefficients(values, filtration, workers=threads())
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise ValueError(NAN_SHOWN_MESSAGE) from None
    return _points(found.reshape(values.shape))


def _doubles(numbers: Tensor) -> Floats:
    return numbers.numpy().astype(np.float64, order="C")


def _checked(levels: Floats, sharpness: Tensor, name: str) -> float:
    """Return the sharpness as a float; refuse levels that are NaN and a wrong sharpness."""
    if np.isnan(levels).any():
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    slope = float(sharpness)
    if not 0 < slope < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {slope:g}")
    return slope
