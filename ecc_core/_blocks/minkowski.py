"""Minkowski functionals from numbers of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.estimator import Estimator
from ecc_core._request.filtration import Filtration
from ecc_core.results import curve_facts

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


def functionals_of_rows(rows: Counts, *, estimators: Sequence[Estimator]) -> NDArray[np.float64]:
    """Return functionals (..., measures, n) from numbers of all kinds of cells (..., kinds * n).

    The Euler characteristic is that of the last estimator.
    """
    kinds = [len(estimator.cells.groups) for estimator in estimators]
    counts = rows.reshape((*rows.shape[:-1], sum(kinds), rows.shape[-1] // sum(kinds)))
    values = functionals(counts[..., : kinds[0], :], estimators[0])
    if len(estimators) > 1:
        euler = functionals(counts[..., -kinds[-1] :, :], estimators[-1])
        values[..., -1, :] = euler[..., -1, :]
    return values
