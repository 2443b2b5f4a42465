"""The truth: Euler characteristic curves by counting cells, in the plainest NumPy.

Everything is written from the definition and independently of the kernels, which are tested
against it. It takes NumPy arrays and checks nothing.

A d-dimensional image is turned into cells, each entering the growing sublevel set at its value:

- V-construction (``connectivity=1``): the grid points are the vertices. A cell spans 0 or 1 steps
  along each axis and enters with the last of its vertices.
- T-construction (``connectivity=d``): the grid points are closed cubes. A cell is a cube or one of
  its faces, edges and corners, and enters with the first of the cubes that contain it.

In 1-D the two have the same curve; ``connectivity=1`` is V there.

Values are replaced by their rank among the image's distinct values, so that every comparison below
is one of integers, and thresholds are compared with the values as Python numbers, which is exact
between any int and float. A superlevel set is the sublevel set of the reversed order. Points that
are masked or NaN never enter: they rank after everything else.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "cell_values",
    "changing_levels",
    "directional",
    "euler_coefficients",
    "euler_curve",
    "euler_number",
    "region_curves",
]

Array = NDArray[Any]
Integers = NDArray[np.int64]


class Order(NamedTuple):
    """The order in which the points of an image enter."""

    levels: Array
    """Distinct values of the points that enter, first to enter first."""
    rank: Integers
    """For each point the index of its value in `levels`; ``levels.size`` if it never enters."""


class Cells(NamedTuple):
    """Every cell that enters."""

    values: Array
    """Value at which each cell enters, in the image's dtype."""
    dimensions: Integers
    """Dimension of each cell."""


def _order(image: Array, superlevel: bool, mask: Array | None) -> Order:
    enters = ~np.isnan(image)
    if mask is not None:
        enters = enters & mask
    levels, index = np.unique(image[enters], return_inverse=True)
    if superlevel:
        levels, index = levels[::-1], levels.size - 1 - index
    rank = np.full(image.shape, levels.size, dtype=np.int64)
    rank[enters] = index
    return Order(levels, rank)


def _uses_cubes(connectivity: int | None, ndim: int) -> bool:
    return connectivity != 1 and ndim > 1


def _cells(key: Integers, cubes: bool, never: int) -> Iterator[tuple[int, Integers]]:
    """Yield for each kind of cell its dimension and the keys of all cells of that kind.

    `key` orders the points; `never` is at least as large as any key. A kind of cell is its extent,
    0 or 1, along each axis.
    """
    if cubes:
        key = np.pad(key, 1, constant_values=never)
    for extent in itertools.product((0, 1), repeat=key.ndim):
        if not cubes:  # the two ends of an edge, or a vertex
            counts, grid = [1 + e for e in extent], key
        else:  # the cube itself, not one of the padding, or the two cubes beside a face
            counts = [2 - e for e in extent]
            grid = key[tuple(slice(1, -1) if e else slice(None) for e in extent)]
        sizes = [n - c + 1 for n, c in zip(grid.shape, counts, strict=True)]
        points = [
            grid[tuple(slice(o, o + n) for o, n in zip(offset, sizes, strict=True))]
            for offset in itertools.product(*(range(c) for c in counts))
        ]
        decide = np.minimum if cubes else np.maximum
        yield sum(extent), decide.reduce(points)


def cell_values(image: Array, cubes: bool, mask: Array | None = None) -> Cells:
    """Return every cell of a 1-D to 3-D image with its value (sublevel) and its dimension."""
    levels, rank = _order(image, False, mask)
    values, dimensions = [], []
    for dimension, cell_rank in _cells(rank, cubes, levels.size):
        entering = cell_rank[cell_rank < levels.size]
        values.append(levels[entering])
        dimensions.append(np.full(entering.size, dimension))
    return Cells(np.concatenate(values), np.concatenate(dimensions))


def directional(
    image: Array, direction: Iterable[float], scale: float = 1.0, spacing: Any = 1.0
) -> NDArray[np.float64]:
    """Return ``image + scale * <u, x>`` in float64, u the direction's unit vector.

    x is the index, counted from the centre of the image and multiplied by the spacing.
    """
    vector = np.asarray(direction, dtype=np.float64)
    unit = vector / np.linalg.norm(vector)
    steps = np.broadcast_to(spacing, unit.shape)
    height = np.zeros(image.shape)
    for axis, index in enumerate(np.indices(image.shape)):
        height += unit[axis] * (index - (image.shape[axis] - 1) / 2) * steps[axis]
    return np.asarray(image.astype(np.float64) + scale * height)


def _jumps(order: Order, cubes: bool) -> Integers:
    """Return the change of the Euler characteristic at each level, in order of entry."""
    jumps = np.zeros(order.levels.size, dtype=np.int64)
    for dimension, rank in _cells(order.rank, cubes, order.levels.size):
        entering = rank[rank < order.levels.size]
        jumps += (-1) ** dimension * np.bincount(entering, minlength=order.levels.size)
    return jumps


def euler_curve(
    image: Array,
    thresholds: Iterable[Any],
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Array | None = None,
) -> Integers:
    """Return the Euler characteristic of ``image <= t`` (superlevel ``>=``) for each threshold."""
    order = _order(image, superlevel, mask)
    jumps = _jumps(order, _uses_cubes(connectivity, image.ndim))
    after = np.concatenate([[0], np.cumsum(jumps)])  # after[k]: k levels have entered
    levels = sorted(order.levels.tolist())
    numbers = np.asarray(thresholds).tolist()
    if superlevel:
        entered = [len(levels) - bisect_left(levels, t) for t in numbers]
    else:
        entered = [bisect_right(levels, t) for t in numbers]
    return after[np.array(entered, dtype=np.int64)].astype(np.int64)


def changing_levels(
    image: Array,
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Array | None = None,
) -> Array:
    """Return, increasing, the values of the image at which its curve changes."""
    order = _order(image, superlevel, mask)
    jumps = _jumps(order, _uses_cubes(connectivity, image.ndim))
    return np.sort(order.levels[jumps != 0])


def euler_number(image: Array, connectivity: int | None = None) -> int:
    """Return the Euler characteristic of the points where the image is positive."""
    return int(euler_curve(image > 0, [True], connectivity=connectivity, superlevel=True)[0])


def euler_coefficients(
    image: Array,
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Array | None = None,
) -> NDArray[np.int8]:
    """Return for each point the sum of (-1)**dimension over the cells that it owns.

    The owner of a cell is the point that gives it its value; among several, the first in C order.
    Points that never enter have coefficient 0.
    """
    levels, rank = _order(image, superlevel, mask)
    cubes = _uses_cubes(connectivity, image.ndim)
    raster = np.arange(image.size, dtype=np.int64).reshape(image.shape)
    # Break ties towards the first point: the last of the vertices, the first of the cubes.
    late_first = not cubes
    key = rank * image.size + (image.size - 1 - raster if late_first else raster)
    never = levels.size * image.size
    coefficients = np.zeros(image.size, dtype=np.int64)
    for dimension, cell_key in _cells(key, cubes, never):
        owner = cell_key[cell_key < never] % max(image.size, 1)
        if late_first:
            owner = image.size - 1 - owner
        coefficients += (-1) ** dimension * np.bincount(owner, minlength=image.size)
    return coefficients.reshape(image.shape).astype(np.int8)


def region_curves(
    image: Array,
    labels: Array,
    thresholds: Iterable[Any],
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
) -> tuple[Array, Integers]:
    """Return the positive labels, increasing, and the curve of each as if it were alone."""
    present = np.unique(labels[labels > 0])
    thresholds = np.asarray(thresholds)
    values = np.zeros((present.size, thresholds.size), dtype=np.int64)
    for row, label in enumerate(present):
        values[row] = euler_curve(
            image,
            thresholds,
            connectivity=connectivity,
            superlevel=superlevel,
            mask=labels == label,
        )
    return present, values
