"""What the public functions of arrays give for dask arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import given_on_host
from ecc_core._arrays.request import Request
from ecc_core._blocks.minkowski import functionals_of_rows, minkowski_facts
from ecc_core._blocks.quantities import CellCounts, Curve, Surface
from ecc_core._dask import graph
from ecc_core._dask.arguments import (
    Axes,
    aligned,
    check_no_workers,
    given_thresholds,
    lazy_request,
    paired,
    split_masked_chunks,
)
from ecc_core._request.filtration import filtrations_of
from ecc_core._request.image import all_axes, check_ids, geometry_by_axis
from ecc_core.results import (
    EulerCurve,
    EulerSurface,
    MinkowskiCurves,
    RegionCurves,
    RegionMinkowski,
    curve_facts,
    surface_facts,
)


def whole_curve(image: Any, thresholds: ArrayLike, **options: Any) -> EulerCurve:
    """The lazy result of :func:`ecc_core.euler_curve` for a dask array."""
    request = lazy_request(image, thresholds, **options)
    at = request.thresholds()
    curve = Curve(at, replace(request.filtration, direction=None))  # the image has the term
    values = graph.sums_of_blocks(curve, request.images, request.mask)
    return EulerCurve(at, values, **curve_facts(request.filtration))


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
    ordered = (array.transpose(geometry.order) for array in arrays)
    values = graph.sums_of_blocks(Surface((a, b), *filtrations), *ordered)
    shape = (*geometry.batch, a.size, b.size)
    return EulerSurface(a, b, values.reshape(shape), **surface_facts(filtrations))


def whole_regions(
    image: Any, labels: Any, thresholds: ArrayLike, *, ids: ArrayLike | None = None, **options: Any
) -> RegionCurves:
    """The lazy result of :func:`ecc_core.region_curves` for dask arrays."""
    request = lazy_request(image, thresholds, labels=labels, **options)
    at, filtration = request.thresholds(), request.filtration
    dtype = request.labels.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    table = graph.sums_of_blocks(
        Curve(at, filtration), request.images, request.labels, regions=True
    )
    found, values = graph.region_rows(table, dtype, wanted)
    return RegionCurves(found, at, values, **curve_facts(filtration))


def whole_coefficients(image: Any, **options: Any) -> Any:
    """The lazy array of :func:`ecc_core.euler_coefficients` for a dask array."""
    request = lazy_request(image, axis=all_axes(image), **options)
    curve = Curve(np.empty(0), request.filtration)
    return graph.coefficient_map(request.images, request.mask, curve)


def whole_minkowski(
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


def whole_region_minkowski(
    image: Any, labels: Any, thresholds: Any, *, spacing: Any, estimator: Any, **options: Any
) -> RegionMinkowski:
    """Return the lazy result of :func:`ecc_core.region_minkowski` for dask arrays."""
    request = lazy_request(image, thresholds, labels=labels, **options)
    cells = _cells(request, spacing, estimator)
    table = graph.sums_of_blocks(cells, request.images, request.labels, regions=True)
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
