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
    spans = np.zeros((len(cells.groups), len(shape), 2), np.int64)
    spans[..., 1] = np.array(shape) - boundary.missing
    if boundary.is_closed:
        spans[..., int(cells.every)] -= np.array(cells.extents)
    return spans
