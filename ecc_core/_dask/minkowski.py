"""Minkowski functionals of dask arrays, whose cells are counted block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._arrays import given_on_host
from ecc_core._arrays.request import Request
from ecc_core._blocks.minkowski import functionals_of_rows, minkowski_facts
from ecc_core._blocks.quantities import CellCounts
from ecc_core._dask import graph
from ecc_core._dask.arguments import lazy_request
from ecc_core._request.image import all_axes
from ecc_core.results import MinkowskiCurves, RegionMinkowski

__all__ = ["lazy_curves", "lazy_regions"]


def lazy_curves(
    image: Any, thresholds: Any, *, spacing: Any, estimator: Any, **options: Any
) -> MinkowskiCurves:
    """Return the lazy result of :func:`ecc_core.minkowski_curves` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    cells = _cells(request, spacing, estimator)
    counts = graph.sums_of_blocks(cells, request.images, request.mask)
    chosen, filtration = cells.estimators[0], request.filtration
    window = chosen.size(request.geometry.spatial, filtration)
    return MinkowskiCurves(
        cells.thresholds,
        _functionals(counts, cells),
        **minkowski_facts(filtration, chosen),
        window=None if request.mask is not None else window,
    )


def lazy_regions(
    image: Any, labels: Any, thresholds: Any, *, spacing: Any, estimator: Any, **options: Any
) -> RegionMinkowski:
    """Return the lazy result of :func:`ecc_core.region_minkowski` for dask arrays."""
    request = lazy_request(image, thresholds, labels=labels, axis=all_axes(image), **options)
    cells = _cells(request, spacing, estimator)
    table = graph.region_table(request.images, request.labels, cells)
    found, rows = graph.region_rows(table, request.labels.dtype.newbyteorder("="), None)
    facts = minkowski_facts(request.filtration, cells.estimators[0])
    return RegionMinkowski(found, cells.thresholds, _functionals(rows, cells), **facts)


def _cells(request: Request, spacing: Any, estimator: Any) -> CellCounts:
    return CellCounts.of(
        request.thresholds(), request.filtration, estimator, given_on_host(spacing)
    )


def _functionals(rows: Any, cells: CellCounts) -> Any:
    """Return functionals (..., measures, n) from a dask array of sums of cells (..., kinds * n)."""
    return rows.map_blocks(
        functionals_of_rows,
        estimators=cells.estimators,
        new_axis=rows.ndim,
        chunks=(*rows.chunks[:-1], (cells.filtration.ndim + 1,), (cells.thresholds.size,)),
        meta=np.empty((0,) * (rows.ndim + 1)),
    )
