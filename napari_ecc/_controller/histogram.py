"""The histogram of an image's values, and Otsu's threshold of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from napari_ecc._controller.curves import Field
from napari_ecc._controller.layers import is_lazy
from napari_ecc._model.explorer import Curve, Histogram
from napari_ecc._workers import Step

__all__ = ["compute_histogram"]

BINS = 128
MOST_POINTS = 2**22
"""Of a larger image evenly spaced points are taken."""


def compute_histogram(field: Field, curve: Curve) -> Iterator[Step]:
    """The values over the range of a curve's thresholds.

    Yields
    ------
    Step
        Its value is the `Histogram`; None for data that are not in memory, which would be read for
        it once more, or without values in the range.
    """
    if is_lazy(field.data):
        yield Step(None)
        return
    step = max(1, round((field.data.size / MOST_POINTS) ** (1 / field.data.ndim)))
    sparse = (slice(None, None, step),) * field.data.ndim
    values = field.data[sparse]
    if field.mask is not None:
        values = values[field.mask[sparse]]
    low, high = float(curve.thresholds[0]), float(curve.thresholds[-1])
    whole = field.data.dtype.kind in "biu" and high - low < BINS
    edges = (
        np.arange(low, high + 2) - 0.5 if whole else np.linspace(low, max(high, low + 1), BINS + 1)
    )
    counts = np.histogram(values.astype(np.float64, copy=False), edges)[0]
    yield Step(Histogram(edges, counts, _otsu(edges, counts)) if counts.any() else None)


def _otsu(edges: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """The threshold that divides the values best into two classes."""
    from skimage.filters import threshold_otsu

    middles = (edges[1:] + edges[:-1]) / 2
    if np.count_nonzero(counts) < 2:
        return float(middles[counts.argmax()])
    return float(threshold_otsu(hist=(counts, middles)))
