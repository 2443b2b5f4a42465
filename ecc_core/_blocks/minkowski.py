"""Minkowski functionals from numbers of cells, and the numbers of cells of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import given_on_host, on_host
from ecc_core._arrays.origin import kept_points, origin_of, region_labels
from ecc_core._backends.spans import Cut
from ecc_core._blocks.blocks import Settings
from ecc_core._request.estimator import Estimator, estimator_of
from ecc_core._request.filtration import Filtration, filtration_of
from ecc_core._request.image import check_label_values, geometry_by_axis, geometry_of, split_masked
from ecc_core._request.thresholds import parse_thresholds
from ecc_core.results import MinkowskiCurves, RegionMinkowski, curve_facts

__all__ = [
    "NO_EXACT",
    "counts_of_block",
    "curves_of_image",
    "curves_of_regions",
    "functionals",
    "functionals_of_rows",
    "minkowski_facts",
    "table_of_block",
]

Array = NDArray[Any]
Counts = NDArray[np.int64]

NO_EXACT = " for Minkowski functionals"


def functionals(counts: Counts, estimator: Estimator) -> NDArray[np.float64]:
    """Return functionals (..., measures, n) from numbers of cells (..., kinds, n)."""
    values: NDArray[np.float64] = np.matmul(estimator.weights, counts.astype(np.float64))
    return values


def minkowski_facts(filtration: Filtration, estimator: Estimator) -> dict[str, Any]:
    """Return the facts that results have in common."""
    return {
        **curve_facts(filtration),
        "spacing": estimator.spacing,
        "estimator": estimator.name,
    }


def curves_of_image(
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
    """Return the result of :func:`ecc_core.minkowski_curves` for an array in memory."""
    image, mask = split_masked(image, mask)
    origin = origin_of(image)
    array = origin.image(image)
    geometry = geometry_by_axis(array.shape, axis)
    filtration = filtration_of(geometry.ndim, connectivity, superlevel, nan, None, boundary)
    chosen = estimator_of(estimator, given_on_host(spacing), filtration)
    levels = parse_thresholds(given_on_host(thresholds), range, no_exact=NO_EXACT)
    options: dict[str, Any] = {"mask": None, "workers": origin.workers(workers)}
    if mask is not None:
        options["mask"] = geometry.stack(kept_points(origin, mask, geometry))
    images, backend = geometry.stack(array), origin.backend()
    find_range = partial(backend.value_range, images, filtration, **options)
    at = levels.over(find_range, geometry.spatial)
    counts = origin.cell_counts().cell_counts(images, at, chosen.cells, filtration, **options)
    values = functionals(counts, chosen)
    if not chosen.exact:
        euler = backend.curve(images, at, filtration, **options)
        values[:, -1] = on_host(euler)
    if origin.on_host:
        levels.warn_if_missed(at, values, find_range, "image")
    return MinkowskiCurves(
        origin.thresholds(thresholds, at),
        origin.wrap(values.reshape((*geometry.batch, geometry.ndim + 1, at.size))),
        **minkowski_facts(filtration, chosen),
        window=None if mask is not None else chosen.size(geometry.spatial, filtration),
    )


def curves_of_regions(
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
    """Return the result of :func:`ecc_core.region_minkowski` for arrays in memory."""
    image, mask = split_masked(image, None)
    origin = origin_of(image)
    array = origin.image(image)
    shape = tuple(array.shape)
    filtration = filtration_of(geometry_of(shape).ndim, connectivity, superlevel)
    chosen = estimator_of(estimator, given_on_host(spacing), filtration)
    threads = origin.workers(workers)
    levels = parse_thresholds(given_on_host(thresholds), range, no_exact=NO_EXACT)
    regions = region_labels(origin, labels, mask, shape)
    backend = origin.backend()
    labelled = (regions != 0)[None] if levels.needs_range else None
    find_range = partial(
        backend.value_range, array[None], filtration, mask=labelled, workers=threads
    )
    at = levels.over(find_range, shape)
    ids, counts = origin.cell_counts().region_cell_counts(
        array, regions, at, chosen.cells, filtration, workers=threads
    )
    values = functionals(counts, chosen)
    if origin.on_host:
        levels.warn_if_missed(at, values, find_range, "image")
    if not chosen.exact:
        _, euler = backend.region_curves(array, regions, at, filtration, workers=threads)
        values[:, -1] = on_host(euler)
    return RegionMinkowski(
        origin.wrap(ids),
        origin.thresholds(thresholds, at),
        origin.wrap(values),
        **minkowski_facts(filtration, chosen),
    )


def counts_of_block(
    image: Array, *mask: Array, settings: Settings, estimator: Estimator, block_info: Any = None
) -> Counts:
    """Return the numbers of cells of a block, (*batch, 1, ..., 1, kinds, n).

    The block includes the first points of its later neighbours. There is a 1 for each spatial axis.
    """
    filtration = settings.filtration
    ndim = filtration.ndim
    batch, spatial = image.shape[: image.ndim - ndim], image.shape[image.ndim - ndim :]
    arrays = [array.reshape((math.prod(batch), *spatial)) for array in (image, *mask)]
    counts: Counts = (
        origin_of(image)
        .cell_counts()
        .cell_counts(
            arrays[0],
            settings.thresholds,
            estimator.cells,
            filtration,
            mask=arrays[1] if mask else None,
            cut=cut_of(block_info, filtration),
            workers=1,
        )
    )
    return counts.reshape((*batch, *(1,) * ndim, *counts.shape[1:]))


def cut_of(block_info: Any, filtration: Filtration) -> Cut:
    """Return the place of a block, from the `block_info` of dask."""
    ndim = filtration.ndim
    place = block_info[0]["chunk-location"][-ndim:]
    counts = block_info[0]["num-chunks"][-ndim:]
    open_ends = int(filtration.boundary == "half-open")
    before = tuple(open_ends or int(i > 0) for i in place)
    after = tuple(open_ends or int(i + 1 < n) for i, n in zip(place, counts, strict=True))
    return Cut(before, after)


def table_of_block(
    image: Array,
    labels: Array,
    *,
    settings: Settings,
    estimators: Sequence[Estimator],
    block_info: Any = None,
) -> Counts:
    """Return a table of labels and their numbers of cells in a block, (labels, 1 + kinds * n)."""
    check_label_values(labels, labels.dtype)
    origin, cut = origin_of(image), cut_of(block_info, settings.filtration)
    columns = []
    for estimator in estimators:
        ids, counts = origin.cell_counts().region_cell_counts(
            image,
            labels,
            settings.thresholds,
            estimator.cells,
            settings.filtration,
            cut=cut,
            workers=1,
        )
        columns.append(counts.reshape((ids.size, counts.shape[1] * counts.shape[2])))
    return np.concatenate([on_host(ids).astype(np.int64)[:, None], *columns], axis=1)


def functionals_of_rows(rows: Counts, *, estimators: Sequence[Estimator]) -> NDArray[np.float64]:
    """Return functionals (labels, measures, n) from the rows of a table without their labels.

    The Euler characteristic is that of the last estimator.
    """
    kinds = [len(estimator.cells.groups) for estimator in estimators]
    counts = rows.reshape(len(rows), sum(kinds), rows.shape[1] // sum(kinds))
    values = functionals(counts[:, : kinds[0]], estimators[0])
    values[:, -1] = functionals(counts[:, -kinds[-1] :], estimators[-1])[:, -1]
    return values
