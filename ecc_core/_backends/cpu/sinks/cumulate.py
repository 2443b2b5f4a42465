"""Curves from signed histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ecc_core._backends.cpu.compiling import kernel


@kernel()
def cumulate(
    histograms: Any, rows: Any, descending: Any, sign: Any, entered: Any, curves: Any
) -> None:
    """Add to each curve the sums of the histogram in its row, times `sign`.

    Value i of a curve is the sum over the first ``entered[i]`` keys. `descending`: the keys enter
    from the largest to the smallest. Curves have the `rows` that are given, none where they are -1,
    or their own if `rows` is None.
    """
    bins = histograms.shape[1]
    reached = np.zeros(bins + 1, np.int64)
    places = bins - entered if descending else entered
    for i in range(len(curves)):
        row = i if rows is None else rows[i]
        if row < 0:
            continue
        histogram, curve = histograms[np.uint64(row)], curves[i]
        total = 0
        for key in range(bins):
            total += histogram[key]
            reached[key + 1] = total
        start, factor = (sign * total, -sign) if descending else (0, sign)
        for k in range(places.size):
            curve[k] += start + factor * reached[np.uint64(places[k])]
