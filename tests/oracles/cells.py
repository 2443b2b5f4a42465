"""Numbers of cells of each orientation, by looking at every one of them.

A cell of the V-construction spans 0 or 1 steps from its lowest corner along each axis and enters
with the last of its vertices. A cell of the T-construction is a cube or lies between cubes, and
enters with the first of them. At a border:

- closed: V has no cells beyond the last vertex. The outermost faces of T belong to one cube.
- periodic: indices count modulo the length of the axis.
- half-open: the last point of each axis serves to complete cells and has none of its own.
"""

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["cell_counts", "euler_curve"]

Extent = tuple[int, ...]


def cell_counts(
    image: NDArray,
    thresholds: Iterable,
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: NDArray | None = None,
    boundary: str = "closed",
) -> dict[Extent, NDArray[np.int64]]:
    """For each extent (0 or 1 along each axis) the number of cells in the set at each threshold."""
    vertices = connectivity == 1 or image.ndim == 1
    shown = ~np.isnan(image) if mask is None else mask & ~np.isnan(image)
    counts = {extent: [] for extent in itertools.product((0, 1), repeat=image.ndim)}
    for threshold in np.asarray(thresholds).tolist():
        inside = np.zeros(image.shape, bool)
        for point in np.ndindex(image.shape):
            value = image[point].item()
            entered = value >= threshold if superlevel else value <= threshold
            inside[point] = shown[point] and entered
        for extent, found in counts.items():
            found.append(sum(_cells(inside, extent, vertices, boundary)))
    return {extent: np.array(found, np.int64) for extent, found in counts.items()}


def _cells(inside, extent, vertices, boundary):
    """Whether each cell of an extent is in the set."""
    # V: a long cell has two points along the axis. T: a flat cell has two cubes.
    pairs = [bool(e) == vertices for e in extent]
    for corner in itertools.product(*map(_starts(vertices, boundary), inside.shape, pairs)):
        points = itertools.product(
            *([i, i + 1] if pair else [i] for i, pair in zip(corner, pairs, strict=True))
        )
        if boundary == "periodic":
            points = [tuple(np.mod(point, inside.shape)) for point in points]
        outside = False
        states = [
            inside[point]
            if all(0 <= i < n for i, n in zip(point, inside.shape, strict=True))
            else outside
            for point in points
        ]
        yield all(states) if vertices else any(states)


def _starts(vertices, boundary):
    """Lowest indices along an axis, for cells of two points and of one."""

    def starts(length, pair):
        if boundary == "periodic":
            return range(length)
        if boundary == "half-open":
            return range(length - 1)
        if not pair:
            return range(length)
        return range(length - 1) if vertices else range(-1, length)

    return starts


def euler_curve(image, thresholds, **options):
    """Euler characteristic at each threshold."""
    counts = cell_counts(image, thresholds, **options)
    return sum((-1) ** sum(extent) * count for extent, count in counts.items())
