"""Ranges of the lowest corners of groups of points, for each boundary of an image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Boundary


def spans_of(shape: Sequence[int], cells: Cells, boundary: Boundary) -> NDArray[np.int64]:
    """Return the ranges of the lowest corners of each kind of group, (kinds, axes, 2).

    Groups that enter with their first point may extend one point beyond a closed border.
    """
    ndim = len(shape)
    spans = np.zeros((len(cells.groups), ndim, 2), np.int64)
    for kind, extent in enumerate(cells.extents):
        for axis, (length, long) in enumerate(zip(shape, extent, strict=True)):
            if boundary.is_closed:
                spans[kind, axis] = -(long and not cells.every), length - (long and cells.every)
            else:
                spans[kind, axis] = 0, length - boundary.missing
    return spans
