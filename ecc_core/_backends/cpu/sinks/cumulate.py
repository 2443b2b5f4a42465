"""Curves from signed histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["cumulate_rows"]


@kernel()
def cumulate_rows(histograms: Any, descending: Any, entered: Any, curves: Any) -> None:
    """Add to each curve the sums of a histogram over the first ``entered[i]`` keys.

    `descending`: the keys enter from the largest to the smallest.
    """
    count, bins = histograms.shape
    reached = np.zeros(bins + 1, np.int64)
    for row in range(count):
        for i in range(bins):
            key = bins - 1 - i if descending else i
            reached[i + 1] = reached[i] + histograms[row, key]
        for i in range(entered.size):
            curves[row, i] += reached[entered[i]]
