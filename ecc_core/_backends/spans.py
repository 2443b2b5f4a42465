"""Ranges of the lowest corners of groups of points, for each boundary of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.estimator import Cells
from ecc_core._request.filtration import Boundary

__all__ = ["Cut", "spans_of"]


class Cut(NamedTuple):
    """Place of a block in a closed image. It includes the first points of its later neighbours.

    Attributes
    ----------
    before, after : tuple of int
        1 for each axis along which there are earlier or later blocks, otherwise 0.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]


def spans_of(
    shape: Sequence[int], cells: Cells, boundary: Boundary, cut: Cut | None = None
) -> NDArray[np.int64]:
    """Return the ranges of the lowest corners of each kind of group, (kinds, axes, 2).

    Groups that enter with their first point may extend one point beyond a closed border. The groups
    of a block have their lowest corner in it, but not at last points that are a neighbour's.
    """
    ndim = len(shape)
    inside = cut or (Cut((1,) * ndim, (1,) * ndim) if boundary.is_window else None)
    before, after = inside or Cut((0,) * ndim, (0,) * ndim)
    spans = np.zeros((len(cells.groups), ndim, 2), np.int64)
    for kind, extent in enumerate(cells.extents):
        for axis, (length, long) in enumerate(zip(shape, extent, strict=True)):
            start, stop = 0, length
            if not boundary.wraps:
                if long and not cells.every and not before[axis]:
                    start = -1
                if after[axis] or (long and cells.every):
                    stop = length - 1
            spans[kind, axis] = start, stop
    return spans
