"""Soft curves on the CPU, as sums over points weighted by their coefficients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecc_core._backends.cpu import launch
from ecc_core._backends.cpu.soft import coefficients as soft_coefficients
from ecc_core._backends.cpu.soft import small
from ecc_core._backends.cpu.soft import sums as soft
from ecc_core._request.filtration import Filtration, uses_cubes
from ecc_core._request.resources import AtMost
from ecc_core._torch.cells import filtration, split_coefficients
from ecc_core.errors import NAN_MESSAGE

__all__ = [
    "by_levels",
    "check_numbers",
    "coefficients",
    "curves",
    "gradients",
    "is_small",
    "small_curves",
    "small_gradients",
    "sublevel",
    "threads",
    "values",
]

Rows = tuple[Tensor, Tensor, Tensor]


def values(
    image: Tensor,
    thresholds: Tensor,
    direction_terms: Tensor | None,
    mask: Tensor | None,
    superlevel: bool,
) -> Tensor:
    """Values (batch, *spatial) of the sublevel filtration, contiguous and of the levels' dtype."""
    if direction_terms is not None and not bool(direction_terms.isfinite().all()):
        raise ValueError(
            "`direction` must be finite and not zero and `direction_scale` finite, got "
            f"{direction_terms[~direction_terms.isfinite()][0]:g} * x"
        )
    return filtration(image.to(thresholds.dtype), direction_terms, mask, superlevel).contiguous()


def sublevel(thresholds: Tensor, superlevel: bool) -> NDArray[np.float64]:
    """Thresholds of the sublevel filtration."""
    levels: NDArray[np.float64] = thresholds.numpy().astype(np.float64)
    return -levels if superlevel else levels


def coefficients(values: Tensor, connectivity: int, ties: str) -> Tensor:
    """Coefficients (batch, points); those of points at +inf are undefined."""
    if ties == "split":
        return split_coefficients(values, connectivity).flatten(1)
    batch, *spatial = values.shape
    filtration = Filtration(len(spatial), connectivity)
    try:
        if len(spatial) < 3 and math.prod(spatial) <= soft_coefficients.LARGEST:
            found = soft_coefficients.coefficients(_rows(values), filtration.cubes, threads())
        else:
            found = launch.coefficients(values.numpy(), filtration, workers=threads())
    except ValueError as error:
        if str(error) != NAN_MESSAGE:
            raise
        raise _nan_in_image() from None
    return torch.from_numpy(found.reshape(batch, math.prod(spatial)))


def _rows(values: Tensor) -> NDArray[Any]:
    """Images (batch, rows, columns) of one or two axes."""
    given = values.numpy()
    return given if given.ndim == 3 else given[:, None]


def _nan_in_image() -> ValueError:
    return ValueError("`image` must not contain NaN where `mask` keeps it, got NaN")


def check_numbers(levels: NDArray[Any], sharpness: Tensor, name: str) -> float:
    """Check levels and sharpness, and return the sharpness."""
    if np.isnan(levels).any():
        raise ValueError(f"`{name}` must not contain NaN, got NaN")
    slope = float(sharpness)
    if not 0 < slope < math.inf:
        raise ValueError(f"`sharpness` must be positive and finite, got {slope:g}")
    return slope


def curves(
    values: Tensor, thresholds: Tensor, sharpness: Tensor, connectivity: int, superlevel: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Curves, their derivatives with respect to thresholds and sharpness, and coefficients."""
    levels = sublevel(thresholds, superlevel)
    slope = check_numbers(levels, sharpness, "thresholds")
    weights = coefficients(values, connectivity, "raster")
    given = values.flatten(1).numpy()
    sums = soft.curves(given, weights.numpy(), levels, slope, workers=threads())
    curve, slopes, spreads = (torch.from_numpy(rows.astype(given.dtype)) for rows in sums)
    return curve, -slopes if superlevel else slopes, spreads, weights


def by_levels(upstream: Tensor, slopes: Tensor, spreads: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients (batch, n) of thresholds and (batch,) of the sharpness."""
    rows = upstream.numpy()  # faster than torch for so few numbers
    by_threshold, by_sharpness = rows * slopes.numpy(), (rows * spreads.numpy()).sum(1)
    return torch.from_numpy(by_threshold), torch.from_numpy(by_sharpness)


def gradients(
    values: Tensor,
    weights: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    superlevel: bool,
    rows: Rows,
    double: bool,
) -> Rows:
    """Gradients of the images, and for each image of thresholds (batch, n) and sharpness (batch,).

    That of a point is its coefficient times the sum of upstream * sharpness * s'(z) over the
    levels. `rows` are the upstream gradient and the derivatives from :func:`curves`. `double` asks
    for sums in double precision, for gradients of directions, whose terms cancel.
    """
    upstream = rows[0].double().contiguous().numpy()
    given = values.flatten(1).numpy(), weights.numpy(), sublevel(thresholds, superlevel)
    signed = upstream if superlevel else -upstream
    out = torch.empty_like(values)
    into = out.flatten(1).numpy()
    soft.gradients(*given, float(sharpness), signed, into, workers=threads(), double=double)
    return out, *by_levels(*rows)


def is_small(values: Tensor) -> bool:
    """Whether images are so small that each pass is one call of a kernel."""
    return values.dim() < 4 and math.prod(values.shape[1:]) <= soft.FEW_POINTS


def small_curves(
    values: Tensor, thresholds: Tensor, sharpness: Tensor, connectivity: int, superlevel: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Same as :func:`curves`, for small images."""
    shape = values.shape[0], thresholds.shape[0]
    results = [torch.empty(shape, dtype=values.dtype) for _ in range(3)]
    weights = torch.empty(values.shape, dtype=torch.int8)
    levels = thresholds.contiguous().numpy()
    valid = small.curves(
        _rows(values),
        levels,
        sharpness.numpy(),
        uses_cubes(connectivity),
        superlevel,
        _rows(weights),
        (results[0].numpy(), results[1].numpy(), results[2].numpy()),
        threads(),
    )
    if not valid:
        check_numbers(levels, sharpness, "thresholds")
        raise _nan_in_image()
    return results[0], results[1], results[2], weights.flatten(1)


def small_gradients(
    values: Tensor,
    weights: Tensor,
    thresholds: Tensor,
    sharpness: Tensor,
    superlevel: bool,
    rows: Rows,
    double: bool,
) -> Rows:
    """Same as :func:`gradients`, for small images."""
    out = torch.empty_like(values)
    by_threshold = torch.empty_like(rows[1])
    by_sharpness = rows[1].new_empty(values.shape[0])
    given = _rows(values)
    upstream, slopes, spreads = (row.contiguous().numpy() for row in rows)
    small.gradients(
        given,
        weights.contiguous().numpy().reshape(given.shape),
        thresholds.contiguous().numpy(),
        sharpness.numpy(),
        superlevel,
        (upstream, slopes, spreads),
        double,
        (_rows(out), by_threshold.numpy(), by_sharpness.numpy()),
        threads(),
    )
    return out, by_threshold, by_sharpness


def threads() -> int:
    """Use at most as many threads as torch."""
    return AtMost(torch.get_num_threads())
