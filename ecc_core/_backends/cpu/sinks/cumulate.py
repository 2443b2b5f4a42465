"""Curves from signed histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel

__all__ = ["cumulate_rows"]


@kernel()
def cumulate_rows(histograms: Any, descending: Any, entered: Any, curves: Any) -> None:
    """Add to each curve the sums of a histogram over the first ``entered[i]`` keys.

    `entered` increases or decreases. `descending`: the keys enter from the largest to the smallest.
    """
    count, bins = histograms.shape
    thresholds = entered.size
    backwards = thresholds > 0 and entered[0] > entered[thresholds - 1]
    for row in range(count):
        reached, total = 0, np.int64(0)
        for step in range(thresholds):
            i = thresholds - 1 - step if backwards else step
            while reached < entered[i]:
                total += histograms[row, bins - 1 - reached if descending else reached]
                reached += 1
            curves[row, i] += total
