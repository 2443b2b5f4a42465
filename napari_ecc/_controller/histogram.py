"""The histogram of an image's values, and Otsu's threshold of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from napari.utils.notifications import show_info
from numpy.typing import NDArray

from napari_ecc._controller.curves import Field
from napari_ecc._controller.layers import is_lazy
from napari_ecc._model.explorer import Curve, ExplorerModel, Histogram
from napari_ecc._workers import Runner, Step

__all__ = ["ValueHistogram", "compute_histogram"]

BINS = 128
MOST_POINTS = 2**22
"""Larger images are sampled at evenly spaced points."""


class ValueHistogram:
    """Finds the histogram of the explorer's model in the background.

    Parameters
    ----------
    model : ExplorerModel
        Its `histogram` is set.

    Attributes
    ----------
    runners : tuple of Runner
    """

    def __init__(self, model: ExplorerModel) -> None:
        self._model = model
        self._showing, self._dividing = Runner("Histogram"), Runner("Otsu's threshold")
        self.runners = self._showing, self._dividing

    def show(self, field: Field | None) -> None:
        """Compute the histogram of the values, if it is shown."""
        model, curve = self._model, self._model.curve
        if not model.show_histogram or field is None or curve is None:
            self._showing.cancel()
            model.histogram = None
            return

        def on_step(step: Step) -> None:
            model.histogram = step.value

        self._showing.submit(lambda: compute_histogram(field, curve), on_step)

    def find_otsu(self, field: Field | None, found: Callable[[float], None]) -> None:
        """Compute Otsu's threshold of the values."""
        curve = self._model.curve
        if field is None or curve is None:
            show_info("There is no complete curve yet.")
            return

        def on_step(step: Step) -> None:
            if step.value is None:
                show_info("There is no histogram of data that are not in memory.")
            else:
                found(step.value.otsu)

        self._dividing.submit(lambda: compute_histogram(field, curve), on_step)


def compute_histogram(field: Field, curve: Curve) -> Iterator[Step]:
    """Return the histogram of the values over the range of a curve's thresholds.

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
    """Return Otsu's threshold of the values."""
    from skimage.filters import threshold_otsu

    middles = (edges[1:] + edges[:-1]) / 2
    if np.count_nonzero(counts) < 2:
        return float(middles[counts.argmax()])
    return float(threshold_otsu(hist=(counts, middles)))
