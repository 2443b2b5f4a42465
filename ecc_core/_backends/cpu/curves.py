"""From checked NumPy arrays to Euler curves and coefficients.

Every function takes an image of shape (batch, *spatial) with 1 to 3 spatial axes, a mask of the
same shape or None, and the number of worker threads; only the image and labels of regions have no
batch axis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.borders import bordered_curve, bordered_exact_curve, closed
from ecc_core._backends.cpu.encoders.plans import DIRECT_16_BIT, coefficient_plan, curve_plans
from ecc_core._backends.cpu.exact import sum_levels
from ecc_core._backends.cpu.order import narrowed
from ecc_core._backends.cpu.scans.blocks import Scanner
from ecc_core._backends.cpu.scans.layouts import MOST_BLOCK_COLUMNS
from ecc_core._backends.cpu.scans.rows import MOST_COLUMNS, write_rows
from ecc_core._backends.cpu.scans.stacks import (
    add_histograms,
    parts_of,
    spatial_order,
    write_coefficients,
)
from ecc_core._backends.cpu.sources import Source
from ecc_core._request.boundary import CLOSED, HALF_OPEN, PERIODIC, Boundary
from ecc_core._request.filtration import Filtration
from ecc_core._request.levels import distinct_values
from ecc_core._request.masks import as_booleans

Array = NDArray[Any]
Values = NDArray[np.int64]


def curve(
    image: Array,
    thresholds: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> Values:
    """Return the Euler characteristic of each image at sorted thresholds, (batch, n) int64."""
    result = np.zeros((image.shape[0], thresholds.size), np.int64)
    if image.size == 0 or thresholds.size == 0:
        return result
    boundary = filtration.boundary
    if not (boundary.is_closed or _scans_border(image, boundary)):
        options: Any = {"mask": mask, "workers": workers}
        flat = closed(filtration, filtration.ndim)
        result += curve(image, thresholds, flat, **options)
        result += bordered_curve(curve, image, thresholds, filtration, **options)
        return result
    cubes = filtration.cubes
    direction = filtration.direction
    dtype = np.dtype(np.float64) if direction else image.dtype.newbyteorder("=")
    in_rows = filtration.ndim == 1 and len(image) > 1 and image.shape[1] <= MOST_COLUMNS
    counts = boundary.is_closed and not in_rows
    plans = curve_plans(
        dtype,
        thresholds,
        filtration.superlevel,
        cubes,
        masked=mask is not None,
        points=image[0].size,
        counts=counts,
    )
    order, flips = ([], []) if direction else spatial_order(image[0])
    key_size = plans[-1].key_dtype.itemsize
    for part, source, shown in parts_of(
        image, mask, order=order, flips=flips, key_size=key_size, direction=direction
    ):
        if in_rows:
            write_rows(
                source, shown, plans=plans, nan=filtration.nan, workers=workers, out=result[part]
            )
            continue
        scanner = Scanner(
            source=source, mask=shown, filtration=filtration, cubes=cubes, order=order
        )
        add_histograms(scanner, plans, workers, result[part])
    return result


def _scans_border(image: Array, boundary: Boundary) -> bool:
    """Return whether a scan can treat a border that is not closed by the halos of its blocks.

    It can if whole rows are in one block wherever opposite sides touch, and no axis of a half-open
    window has to be flipped. Other borders are corrected by the curves of planes (`borders.py`).
    """
    if len(boundary.axes) == 1 or not {*boundary.axes} <= {CLOSED, PERIODIC, HALF_OPEN}:
        return False
    if True in boundary.wraps and max(image.shape[1:]) > MOST_BLOCK_COLUMNS:
        return False
    if min(image.strides[1:]) >= 0:
        return True
    steps = zip(image.strides[1:], boundary.missing, strict=True)
    return not any(missing and step < 0 for step, missing in steps)


def number(
    image: Array,
    level: Array,
    filtration: Filtration,
    *,
    mask: Array | None = None,
    workers: int | None = None,
) -> int:
    """Return the Euler characteristic of the only image of a batch at one level, (1,)."""
    return int(curve(image, level, filtration, mask=mask, workers=workers).item())


def after_range(filtration: Filtration) -> Filtration:
    """Return the filtration: looking for NaN costs nothing, and skipping it needs more kernels."""
    return filtration


def coefficients(
    image: Array, filtration: Filtration, *, mask: Array | None = None, workers: int | None = None
) -> NDArray[np.int8]:
    """Return the coefficient of every point of each image, int8 of the image's shape."""
    out = np.zeros(image.shape, np.int8)
    if image.size == 0:
        return out
    spatial = filtration.ndim
    cubes = filtration.cubes
    if image.dtype == np.bool_:
        image = as_booleans(image)
    given = image
    image = narrowed(image, mask is not None)
    dtype = image.dtype.newbyteorder("=")
    plan = coefficient_plan(dtype, filtration.superlevel, cubes, mask is not None)

    def volume(array: Array, i: int) -> Any:
        if spatial == 3:
            return array[i]
        if spatial == 2:
            return array
        return array[:, None]

    # Images of one or two axes are scanned together, as the slices of one stack.
    count = image.shape[0] if spatial == 3 else 1
    for i in range(count):
        shown = None if mask is None else Source(volume(mask, i), "mask")
        scanner = Scanner(Source(volume(image, i)), shown, filtration, cubes)
        write_coefficients(scanner, plan, workers, volume(out, i))
    if cubes and spatial == 3:  # The scan of the T-construction has all signs reversed in 3-D.
        np.negative(out, out=out)
    if mask is not None:
        out[~mask] = 0
    if given.dtype.kind == "f" and filtration.nan == "omit":
        out[np.isnan(given)] = 0
    return out


def exact_curve(
    image: Array, filtration: Filtration, *, mask: Array | None = None, workers: int | None = None
) -> tuple[Array, Values]:
    """Return the levels at which the curve of the only image changes, and the curve there."""
    superlevel = filtration.superlevel
    if not filtration.boundary.is_closed:
        return bordered_exact_curve(
            exact_curve, curve, image, filtration, mask=mask, workers=workers
        )
    if filtration.direction is not None:
        image = filtration.direction.add(image, (0,) * filtration.ndim)
        filtration = replace(filtration, direction=None)
    dtype = image.dtype.newbyteorder("=")
    if dtype.itemsize == 1 or (dtype.itemsize == 2 and image.size >= DIRECT_16_BIT):
        levels = _every_value(dtype)
        values = curve(image, levels, filtration, mask=mask, workers=workers)[0]
        of_entry = slice(None, None, -1 if superlevel else 1)
        jumps = np.diff(values[of_entry], prepend=0)[of_entry]
        return levels[jumps != 0], values[jumps != 0]
    counts = coefficients(image, filtration, mask=mask, workers=workers)
    levels, jumps = sum_levels(image, counts)
    if superlevel:
        return levels, np.cumsum(jumps[::-1])[::-1]
    return levels, np.cumsum(jumps)


def _every_value(dtype: np.dtype[Any]) -> Array:
    """Return all values of a dtype of 8 or 16 bits but NaN, in their order."""
    count = 2 if dtype == np.bool_ else 1 << 8 * dtype.itemsize
    values = np.arange(count, dtype=np.uint32).astype(f"u{dtype.itemsize}").view(dtype)
    return distinct_values(values[~np.isnan(values)])
