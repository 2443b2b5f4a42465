"""The order of axes, which is the same for all formats."""

from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.stored import Opened, rows_of
from ecc_core._io.views import Box

LAST = "CZYXS"
"""The axes that follow all others, in this order. Time is the first axis."""


def in_order(opened: Opened) -> Opened:
    """Return an image with its axes in the order T, others, C, Z, Y, X, S; nothing is read."""
    axes = opened.axes
    if len(axes) != len(opened.array.shape):  # another one is requested
        return opened
    order = sorted(range(len(axes)), key=lambda i: (axes[i] != "T", LAST.find(axes[i])))
    if order == list(range(len(axes))):
        return opened
    array, file_of = opened.array, opened.file_of
    ordered, as_stored = itemgetter(*order), itemgetter(*np.argsort(order))
    return replace(
        opened,
        array=array.transpose(order) if isinstance(array, np.ndarray) else _View(array, order),
        axes="".join(ordered(axes)),
        chunks=ordered(opened.chunks or rows_of(array)),
        parts=opened.parts and ordered(opened.parts),
        file_of=file_of and (lambda chunk: file_of(as_stored(chunk))),
    )


class _View:
    """An array with its axes in another order. Indexing reads only the requested part."""

    def __init__(self, array: Any, order: list[int]) -> None:
        self.array, self.order = array, order
        self.shape = tuple(array.shape[i] for i in order)
        self.dtype = array.dtype

    def __getitem__(self, box: Box) -> NDArray[Any]:
        parts = dict(zip(self.order, box, strict=True))
        values: NDArray[Any] = np.asanyarray(self.array[tuple(parts[i] for i in range(len(parts)))])
        return values.transpose(self.order)
