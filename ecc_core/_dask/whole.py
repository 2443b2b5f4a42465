"""What the public functions of arrays give for dask arrays."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ecc_core._arrays import given_on_host
from ecc_core._blocks.blocks import Settings, SurfaceSettings
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    Axes,
    aligned,
    check_dask_image,
    check_no_workers,
    directed,
    given_thresholds,
    labelled,
    paired,
    split_masked_chunks,
)
from ecc_core._dask.borders import bordered
from ecc_core._request.filtration import direction_of, filtration_of, filtrations_of
from ecc_core._request.image import check_ids, geometry_by_axis, geometry_of
from ecc_core.results import EulerCurve, EulerSurface, RegionCurves, curve_facts, surface_facts

__all__ = ["checked_blocks", "whole_coefficients", "whole_curve", "whole_regions", "whole_surface"]

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
    direction_scale: float | None,
    spacing: ArrayLike | None,
    boundary: str,
) -> EulerCurve:
    """The lazy result of :func:`ecc_core.euler_curve` for a dask array."""
    check_no_workers(workers)
    image = check_dask_image(image)
    axes = geometry_by_axis(image.shape, axis).axes
    spatial = tuple(image.shape[a] for a in axes)
    added = direction_of(given_on_host(direction), direction_scale, spacing, spatial)
    if added is not None:
        image = directed(image, axes, added)
    checked = checked_blocks(
        image, thresholds, range, connectivity, superlevel, mask, nan, axes, boundary
    )
    filtration = filtration_of(len(axes), connectivity, superlevel, nan, added, boundary)
    values = bordered(graph.curve_values, *checked)
    return EulerCurve(checked.settings.thresholds, values, **curve_facts(filtration))


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
    boundary: str = "closed",
) -> CheckedBlocks:
    """Return checked arguments, with the spatial axes of the image last."""
    image = check_dask_image(image)
    geometry = geometry_by_axis(image.shape, axis)
    filtration = filtration_of(geometry.ndim, connectivity, superlevel, nan, None, boundary)
    at = given_thresholds(thresholds, bounds)
    image, mask = split_masked_chunks(image, aligned(mask, image, geometry.axes))
    if mask is not None:
        mask = mask.transpose(geometry.order)
    settings = Settings(at, filtration)
    return CheckedBlocks(image.transpose(geometry.order), mask, settings, geometry.ndim)


def whole_surface(
    first: Any,
    second: Any,
    thresholds: tuple[ArrayLike, ArrayLike],
    ranges: tuple[Any, Any],
    *,
    connectivity: int | None,
    superlevel: Any,
    mask: Any | None,
    nan: str,
    axis: Axes,
    workers: int | None,
) -> EulerSurface:
    """Return the lazy result of :func:`ecc_core.euler_surface` if an image is a dask array."""
    check_no_workers(workers)
    first, second = paired(first, second)
    geometry = geometry_by_axis(first.shape, axis, "first")
    filtrations = filtrations_of(geometry.ndim, connectivity, superlevel, nan)
    names = ("thresholds_first", "thresholds_second")
    a, b = map(given_thresholds, thresholds, ranges, names)
    first, mask = split_masked_chunks(first, aligned(mask, first, geometry.axes))
    second, mask = split_masked_chunks(second, mask)
    arrays = (first, second) if mask is None else (first, second, mask)
    ordered = tuple(array.transpose(geometry.order) for array in arrays)
    values = graph.sums_of_blocks(ordered, SurfaceSettings((a, b), filtrations), geometry.ndim)
    shape = (*geometry.batch, a.size, b.size)
    return EulerSurface(a, b, values.reshape(shape), **surface_facts(filtrations))


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
    filtration = filtration_of(geometry_of(image.shape).ndim, connectivity, superlevel)
    at = given_thresholds(thresholds, range)
    regions = labelled(labels, image)
    dtype = regions.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    image, mask = split_masked_chunks(image, None)
    if mask is not None:
        regions = np.where(mask, regions, regions.dtype.type(0))
    table = graph.region_table(image, regions, Settings(at, filtration))
    found, values = graph.region_rows(table, dtype, wanted)
    return RegionCurves(found, at, values, **curve_facts(filtration))


def whole_coefficients(
    image: Any, *, connectivity: int | None, superlevel: bool, mask: Any | None, nan: str
) -> Any:
    """The lazy array of :func:`ecc_core.euler_coefficients` for a dask array."""
    image = check_dask_image(image)
    geometry = geometry_of(image.shape)
    filtration = filtration_of(geometry.ndim, connectivity, superlevel, nan)
    image, mask = split_masked_chunks(image, aligned(mask, image, geometry.axes))
    return graph.coefficient_map(image, mask, Settings(np.empty(0), filtration))
