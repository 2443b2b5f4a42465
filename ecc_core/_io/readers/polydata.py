"""VTK PolyData: points, polygons, strips of triangles and polylines, and values of the points."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Numbers = NDArray[np.int64]


class Cells(NamedTuple):
    """Cells of one kind, each of any number of points."""

    corners: Numbers
    """The points of all cells, cell by cell."""
    ends: Numbers
    """The place in `corners` after the last corner of each cell."""

    @classmethod
    def of(cls, corners: Array, ends: Array) -> "Cells":
        """Return cells, after a check that they follow each other and use all corners."""
        found = cls(corners.astype(np.int64), ends.astype(np.int64))
        starts = np.concatenate([[0], found.ends])
        if (np.diff(starts) < 0).any() or starts[-1] != len(corners):
            raise ValueError("damaged: its cells do not follow each other")
        return found

    @property
    def sizes(self) -> Numbers:
        """The number of points of each cell."""
        return np.diff(self.ends, prepend=0)


NO_CELLS = Cells(np.empty(0, np.int64), np.empty(0, np.int64))


class PolyData(NamedTuple):
    """The shape in a file."""

    points: Array
    """(n, 3) coordinates."""
    polygons: Cells = NO_CELLS
    strips: Cells = NO_CELLS
    lines: Cells = NO_CELLS

    @property
    def triangles(self) -> Numbers:
        """(m, 3) triangles of polygons, which are fans around the first point, and of strips."""
        for what, cells in (("polygons", self.polygons), ("strips", self.strips)):
            least = int(cells.sizes.min(initial=3))
            if least < 3:
                raise ValueError(f"damaged: its {what} must have at least 3 points, got {least}")
        first, place = _consecutive(self.polygons, 3)
        polygons = np.stack([first, place + 1, place + 2], axis=1)
        _, place = _consecutive(self.strips, 3)
        strips = np.stack([place, place + 1, place + 2], axis=1)
        return np.concatenate([self.polygons.corners[polygons], self.strips.corners[strips]])

    @property
    def edges(self) -> Numbers:
        """(m, 2) edges of the polylines."""
        _, place = _consecutive(self.lines, 2)
        return self.lines.corners[np.stack([place, place + 1], axis=1)]


def _consecutive(cells: Cells, width: int) -> tuple[Numbers, Numbers]:
    """Return the windows of `width` consecutive corners within cells.

    The first array has the place of the first corner of the window's cell, the second that of the
    first corner of the window.
    """
    numbers = np.maximum(cells.sizes - width + 1, 0)
    first = np.repeat(cells.ends - cells.sizes, numbers)
    before = np.repeat(np.cumsum(numbers) - numbers, numbers)
    return first, first + np.arange(len(first)) - before


def pick_values(components: Mapping[str, int], name: str) -> str:
    """Return the name of an array of values of points: `name`, or the only one with single values.

    `components` are the numbers of values that each array has for a point.
    """
    there = ", ".join(components) or "none"
    if name:
        if name not in components:
            raise ValueError(f"has no {name}; values of points: {there}")
        return name
    single = [own for own, count in components.items() if count == 1]
    if not single:
        raise ValueError(f"has no values of points, of which each has one; it has: {there}")
    if len(single) > 1:
        raise ValueError(
            f"must have one array of values, or one be named as in FILE/{single[0]}, got "
            f"{len(single)}: {', '.join(single)}"
        )
    return single[0]
