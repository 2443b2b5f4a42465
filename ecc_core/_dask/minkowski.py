"""Minkowski functionals of dask arrays, whose cells are counted block by block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ecc_core._arrays import given_on_host, on_host
from ecc_core._blocks.blocks import Settings
from ecc_core._blocks.minkowski import (
    counts_of_block,
    functionals,
    functionals_of_rows,
    minkowski_facts,
    table_of_block,
)
from ecc_core._blocks.regions import add_tables
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    check_dask_image,
    check_no_workers,
    given_thresholds,
    labelled,
    split_masked_chunks,
)
from ecc_core._dask.borders import bordered
from ecc_core._dask.graph import da, dask
from ecc_core._dask.whole import checked_blocks
from ecc_core._request.estimator import Estimator, estimator_of
from ecc_core._request.filtration import Boundary, filtration_of
from ecc_core._request.image import geometry_of
from ecc_core.results import MinkowskiCurves, RegionMinkowski

__all__ = ["lazy_curves", "lazy_regions"]


def lazy_curves(
    image: Any,
    thresholds: Any,
    *,
    range: Any,
    spacing: Any,
    boundary: Any,
    connectivity: Any,
    superlevel: Any,
    mask: Any,
    nan: Any,
    axis: Any,
    workers: Any,
    estimator: Any,
) -> MinkowskiCurves:
    """Return the lazy result of :func:`ecc_core.minkowski_curves` for a dask array."""
    check_no_workers(workers)
    checked = checked_blocks(
        check_dask_image(image),
        thresholds,
        range,
        connectivity,
        superlevel,
        mask,
        nan,
        axis,
        boundary,
    )
    array, kept, settings, ndim = checked
    filtration = settings.filtration
    chosen = estimator_of(estimator, given_on_host(spacing), filtration)
    counts = _counts(array, kept, settings, chosen)
    measures = (*counts.chunks[:-2], (ndim + 1,), counts.chunks[-1])
    values = counts.map_blocks(functionals, chosen, chunks=measures, dtype=np.float64)
    if not chosen.exact:
        euler = bordered(graph.curve_values, *checked)
        meta = np.empty((0,) * euler.ndim, np.int64)
        euler = euler.map_blocks(on_host, meta=meta).astype(np.float64)
        values = da.concatenate([values[..., :-1, :], euler[..., None, :]], axis=-2)
        values = values.rechunk(measures)
    return MinkowskiCurves(
        settings.thresholds,
        values,
        **minkowski_facts(filtration, chosen),
        window=None
        if kept is not None
        else chosen.size(array.shape[array.ndim - ndim :], filtration),
    )


def lazy_regions(
    image: Any,
    labels: Any,
    thresholds: Any,
    *,
    range: Any,
    spacing: Any,
    connectivity: Any,
    superlevel: Any,
    workers: Any,
    estimator: Any,
) -> RegionMinkowski:
    """Return the lazy result of :func:`ecc_core.region_minkowski` for dask arrays."""
    check_no_workers(workers)
    image = check_dask_image(image)
    filtration = filtration_of(geometry_of(image.shape).ndim, connectivity, superlevel)
    chosen = estimator_of(estimator, given_on_host(spacing), filtration)
    estimators = [chosen]
    if not chosen.exact:
        estimators.append(estimator_of("exact", None, filtration))
    settings = Settings(given_thresholds(thresholds, range), filtration)
    regions = labelled(labels, image)
    image, mask = split_masked_chunks(image, None)
    if mask is not None:
        regions = np.where(mask, regions, regions.dtype.type(0))
    table = _region_table(image, regions, settings, estimators)
    found, rows = graph.region_rows(table, regions.dtype.newbyteorder("="), None)
    values = rows.map_blocks(
        functionals_of_rows,
        estimators=estimators,
        new_axis=1,
        chunks=(rows.chunks[0], (image.ndim + 1,), (settings.thresholds.size,)),
        meta=np.empty((0, 0, 0)),
    )
    facts = minkowski_facts(filtration, chosen)
    return RegionMinkowski(found, settings.thresholds, values, **facts)


def _region_table(image: Any, labels: Any, settings: Settings, estimators: list[Estimator]) -> Any:
    """Return labels and their numbers of cells, a dask array of shape (unknown, 1 + columns)."""
    kinds = sum(len(estimator.cells.groups) for estimator in estimators)
    columns = 1 + kinds * settings.thresholds.size
    if image.size == 0:
        return da.zeros((0, columns), dtype=np.int64, chunks=-1)
    depth = dict.fromkeys(np.arange(image.ndim).tolist(), (0, 1))
    reaching = [da.overlap.overlap(array, depth, boundary="none") for array in (image, labels)]
    blocks = da.map_blocks(
        table_of_block,
        *reaching,
        settings=dask.delayed(settings, traverse=False, pure=True),
        estimators=dask.delayed(estimators, traverse=False, pure=True),
        dtype=np.int64,
        meta=np.empty((0,) * image.ndim, np.int64),
    )
    tables = blocks.to_delayed().ravel().tolist()
    add = dask.delayed(add_tables, pure=True)
    while len(tables) > graph.FAN_IN:
        starts = np.arange(0, len(tables), graph.FAN_IN).tolist()
        tables = [add(tables[i : i + graph.FAN_IN]) for i in starts]
    return da.from_delayed(add(tables), (np.nan, columns), dtype=np.int64)


def _counts(image: Any, mask: Any | None, settings: Settings, estimator: Estimator) -> Any:
    """Return the numbers of cells, (*batch, kinds, n)."""
    filtration = settings.filtration
    spatial = range(image.ndim - filtration.ndim, image.ndim)
    sizes = (len(estimator.cells.groups), settings.thresholds.size)
    if image.size == 0:
        batch = image.shape[: spatial[0]]
        return da.zeros((*batch, *sizes), dtype=np.int64, chunks=-1)
    arrays = [image] if mask is None else [image, mask]
    if filtration.boundary.wraps:
        settings = settings._replace(filtration=replace(filtration, boundary=Boundary.HALF_OPEN))
        arrays = [_wrapped(array, spatial) for array in arrays]
    depth = dict.fromkeys(spatial, (0, 1))
    reaching = [da.overlap.overlap(array, depth, boundary="none") for array in arrays]
    ones = tuple((1,) * image_blocks for image_blocks in reaching[0].numblocks[spatial[0] :])
    blocks = da.map_blocks(
        counts_of_block,
        *reaching,
        settings=dask.delayed(settings, traverse=False, pure=True),
        estimator=dask.delayed(estimator, traverse=False, pure=True),
        dtype=np.int64,
        chunks=(*image.chunks[: spatial[0]], *ones, *((size,) for size in sizes)),
        new_axis=(image.ndim, image.ndim + 1),
        meta=np.empty((0,) * (image.ndim + 2), np.int64),
    )
    return blocks.sum(axis=tuple(spatial))


def _wrapped(image: Any, axes: Any) -> Any:
    """Return an image that is continued by its first points along each axis."""
    for axis in axes:
        first = image[(slice(None),) * axis + (slice(0, 1),)]
        image = da.concatenate([image, first], axis=axis)
    return image
