"""Minkowski functionals from numbers of cells, and the numbers of cells of blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._arrays import on_host
from ecc_core._arrays.origin import origin_of
from ecc_core._backends.spans import Cut
from ecc_core._blocks.blocks import Settings
from ecc_core._request.estimator import Estimator
from ecc_core._request.filtration import Filtration
from ecc_core._request.image import check_label_values
from ecc_core.results import curve_facts

__all__ = [
    "NO_EXACT",
    "counts_of_block",
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
    open_ends = int(filtration.boundary.is_window)
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
