"""What the public functions of arrays give for dask arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core import _checks
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    Axes,
    aligned,
    check_dask_image,
    check_no_workers,
    directed,
    given_thresholds,
    labelled,
    split_masked,
)
from ecc_core._dask.blocks import Settings
from ecc_core._request.filtration import Filtration
from ecc_core.results import EulerCurve, RegionCurves, curve_facts

__all__ = ["checked_blocks", "whole_coefficients", "whole_curve", "whole_regions"]

Array = NDArray[Any]


def whole_curve(
    image: Any,
    thresholds: ArrayLike,
    *,
    range: tuple[float, float] | None,
    connectivity: int | None,
    superlevel: bool,
    mask: Any | None,
    nan: Literal["raise", "omit"],
    axis: Axes,
    workers: int | None,
    direction: ArrayLike | None,
    direction_scale: float,
    spacing: ArrayLike | None,
) -> EulerCurve:
    """The lazy result of :func:`ecc_core.euler_curve` for a dask array."""
    check_no_workers(workers)
    added = None
    if direction is not None:
        image, added = directed(image, axis, direction, direction_scale, spacing)
    checked = checked_blocks(image, thresholds, range, connectivity, superlevel, mask, nan, axis)
    facts = curve_facts(replace(checked.settings.filtration, direction=added))
    return EulerCurve(checked.settings.thresholds, graph.curve_values(*checked), **facts)


class CheckedBlocks(NamedTuple):
    """A dask array, its mask of the same chunks, and how to compute its curve."""

    image: Any
    mask: Any | None
    settings: Settings
    ndim: int


def checked_blocks(
    image: Any,
    thresholds: ArrayLike,
    bounds: tuple[float, float] | None,
    connectivity: int | None,
    superlevel: bool,
    mask: Any | None,
    nan: str,
    axis: Axes,
) -> CheckedBlocks:
    """Checked arguments, the spatial axes of the image last."""
    image = check_dask_image(image)
    axes = _checks.spatial_axes(image.shape, axis)
    given = _checks.check_connectivity(connectivity, len(axes))
    _checks.check_nan(nan)
    at = given_thresholds(thresholds, bounds)
    order = (*(a for a in np.arange(image.ndim).tolist() if a not in axes), *axes)
    image, mask = split_masked(image, aligned(mask, image, axes))
    if mask is not None:
        mask = mask.transpose(order)
    settings = Settings(at, Filtration(len(axes), given, bool(superlevel), nan))
    return CheckedBlocks(image.transpose(order), mask, settings, len(axes))


def whole_regions(
    image: Any,
    labels: Any,
    thresholds: ArrayLike,
    *,
    range: tuple[float, float] | None,
    connectivity: int | None,
    superlevel: bool,
    workers: int | None = None,
    ids: ArrayLike | None = None,
) -> RegionCurves:
    """The lazy result of :func:`ecc_core.region_curves` for dask arrays."""
    check_no_workers(workers)
    image = check_dask_image(image)
    axes = _checks.spatial_axes(image.shape, None)
    given = _checks.check_connectivity(connectivity, len(axes))
    at = given_thresholds(thresholds, range)
    regions = labelled(labels, image)
    dtype = regions.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    image, mask = split_masked(image, None)
    if mask is not None:
        regions = np.where(mask, regions, regions.dtype.type(0))
    settings = Settings(at, Filtration(len(axes), given, bool(superlevel)))
    found, values = graph.region_rows(graph.region_table(image, regions, settings), dtype, wanted)
    return RegionCurves(found, at, values, **curve_facts(settings.filtration))


def check_ids(ids: ArrayLike, dtype: np.dtype[Any]) -> Array:
    """Positive labels that differ, in the labels' dtype."""
    array = np.asarray(ids)
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"`ids` must be integers, got {array.dtype}")
    if array.ndim != 1 or np.unique(array).size < array.size or (array < 1).any():
        raise ValueError(f"`ids` must be a list of different positive labels, got {ids!r}")
    cast = array.astype(dtype)
    if (cast != array).any():
        raise ValueError(f"`ids` must be labels of {dtype}, got {ids!r}")
    return cast


def whole_coefficients(
    image: Any, *, connectivity: int | None, superlevel: bool, mask: Any | None, nan: str
) -> Any:
    """The lazy array of :func:`ecc_core.euler_coefficients` for a dask array."""
    image = check_dask_image(image)
    axes = _checks.spatial_axes(image.shape, None)
    given = _checks.check_connectivity(connectivity, len(axes))
    _checks.check_nan(nan)
    image, mask = split_masked(image, aligned(mask, image, axes))
    settings = Settings(np.empty(0), Filtration(len(axes), given, bool(superlevel), nan))
    return graph.coefficient_map(image, mask, settings)
