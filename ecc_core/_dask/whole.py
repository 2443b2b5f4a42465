"""What the public functions of arrays give for dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ecc_core._arrays import given_on_host
from ecc_core._blocks.quantities import Curve, Functionals, Quantity, Surface
from ecc_core._blocks.work import RegionT
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
    kind: Callable[..., RegionT],
    computed: type[Quantity],
    image: Any,
    labels: Any,
    thresholds: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    spacing: Any = None,
    estimator: str = "exact",
    **options: Any,
) -> RegionT:
    """The lazy result of a quantity for the regions of dask arrays."""
    request = lazy_request(image, thresholds, labels=labels, **options)
    lengths = estimator, given_on_host(spacing)
    quantity = computed.of(request.thresholds(), request.filtration, *lengths)
    dtype = request.labels.dtype.newbyteorder("=")
    wanted = None if ids is None else check_ids(ids, dtype)
    table = graph.sums_of_blocks(quantity, request.images, request.labels, regions=True)
    found, rows = graph.region_rows(table, dtype, wanted)
    values = _curves(rows, quantity)
    return kind(found, quantity.thresholds, values, **quantity.facts)


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
    lengths = estimator, given_on_host(spacing)
    cells = Functionals.of(request.thresholds(), request.filtration, *lengths)
    counts = graph.sums_of_blocks(cells, request.images, request.mask)
    window = cells.estimator.size(request.geometry.spatial, request.filtration)
    return MinkowskiCurves(
        cells.thresholds,
        _curves(counts, cells),
        **cells.facts,
        window=None if request.mask is not None else window,
    )


def _curves(sums: Any, quantity: Quantity) -> Any:
    """Return values of results (..., k, n) or (..., n) from a dask array of sums (..., size)."""
    like = quantity.curves(np.zeros((0,) * (sums.ndim - 1) + (quantity.size,), np.int64))
    if like.ndim == sums.ndim:
        return sums
    return sums.map_blocks(
        quantity.curves,
        new_axis=sums.ndim,
        chunks=(*sums.chunks[:-1], *((n,) for n in like.shape[-2:])),
        meta=like[..., :0, :0],
    )
