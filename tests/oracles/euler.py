"""The truth: Euler characteristic curves by counting cells, in the plainest NumPy.

Everything is written from the definition and independently of the kernels, which are tested
against it. It takes NumPy arrays and checks nothing.

A d-dimensional image is turned into cells, each entering the growing sublevel set at its value:

- V-construction (``connectivity=1``): the grid points are the vertices. A cell spans 0 or 1 steps
  along each axis and enters with the last of its vertices.
- T-construction (``connectivity=d``): the grid points are closed cubes. A cell is a cube or one of
  its faces, edges and corners, and enters with the first of the cubes that contain it.

In 1-D the two have the same curve; ``connectivity=1`` is V there. At a border:

- closed: V has no cells beyond the last vertex. The outermost faces of T belong to one cube.
- periodic: indices count modulo the length of the axis.
- half-open: the last point of each axis serves to complete cells and has none of its own. A mask is
  a window of the image: points outside it enter, too, but only the coefficients of its points add
  up, and only the cells count whose first points along all axes are those of one of its points.

Values are replaced by their rank among the image's distinct values, so that every comparison below
is one of integers, and thresholds are compared with the values as Python numbers, which is exact
between any int and float. A superlevel set is the sublevel set of the reversed order. Points that
are masked or NaN never enter: they rank after everything else. Each axis may have its own border.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "cell_counts",
    "cell_ranks",
    "changing_levels",
    "directional",
    "euler_coefficients",
    "euler_curve",
    "euler_number",
    "minkowski_functionals",
    "region_curves",
]

Array = NDArray[Any]
Integers = NDArray[np.int64]
Extent = tuple[int, ...]
Boundary = str | Sequence[str]
"""The name of one border for all axes, or of one for each axis."""


class Order(NamedTuple):
    """The order in which the points of an image enter."""

    levels: Array
    """The distinct values of the points that enter, in the order of entry."""
    rank: Integers
    """For each point, the index of its value in `levels`; ``levels.size`` if it never enters."""


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


def cell_ranks(
    key: Integers, cubes: bool, never: int, boundary: Boundary = "closed"
) -> Iterator[tuple[Extent, Integers]]:
    """Yield for each kind of cell, its extent 0 or 1 along each axis, the keys of all such cells.

    `key` orders the points; `never` is at least as large as any key.
    """
    words = (boundary,) * key.ndim if isinstance(boundary, str) else boundary
    own = []  # Along each axis, the points at which cells of one point begin.
    for axis, word in enumerate(words):
        widths = [(0, 0)] * key.ndim
        if word == "periodic":
            widths[axis] = (0, 1)
            key = np.pad(key, widths, mode="wrap")
        elif word == "closed" and cubes:
            widths[axis] = (1, 1)
            key = np.pad(key, widths, constant_values=never)
        inner = slice(1, -1) if cubes else slice(None)
        own.append(inner if word == "closed" else slice(-1))
    for extent in itertools.product((0, 1), repeat=key.ndim):
        # A cell has two points along an axis if it is an edge along it in V, or a face across it
        # in T, and otherwise one point.
        counts = [2 - e if cubes else 1 + e for e in extent]
        pairs = zip(own, counts, strict=True)
        parts = [inner if count == 1 else slice(None) for inner, count in pairs]
        grid = key[tuple(parts)]
        sizes = [n - c + 1 for n, c in zip(grid.shape, counts, strict=True)]
        points = []
        for offset in itertools.product(*map(range, counts)):
            part = [slice(o, o + n) for o, n in zip(offset, sizes, strict=True)]
            points.append(grid[tuple(part)])
        yield extent, (np.minimum if cubes else np.maximum).reduce(points)


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


def _entries(
    image: Array,
    thresholds: Iterable[Any],
    *,
    connectivity: int | None = None,
    superlevel: bool = False,
    mask: Array | None = None,
    boundary: Boundary = "closed",
) -> tuple[dict[Extent, Integers], Integers]:
    """Return how many cells of each extent enter at each level.

    With them, return the number of levels that have entered at each threshold.
    """
    windowed = mask is not None and boundary == "half-open"
    order = _order(image, superlevel, None if windowed else mask)
    never = order.levels.size
    cells = cell_ranks(order.rank, _uses_cubes(connectivity, image.ndim), never, boundary)
    if windowed and mask is not None:
        first = mask[(slice(-1),) * image.ndim]
        cells = ((extent, rank[first]) for extent, rank in cells)
    jumps = {e: np.bincount(rank.ravel(), minlength=never + 1)[:never] for e, rank in cells}
    levels = sorted(order.levels.tolist())
    numbers = np.asarray(thresholds).tolist()
    if superlevel:
        entered = [never - bisect_left(levels, t) for t in numbers]
    else:
        entered = [bisect_right(levels, t) for t in numbers]
    return jumps, np.array(entered, np.int64)


def _sums(jumps: Integers, entered: Integers) -> Integers:
    return np.append(0, np.cumsum(jumps))[entered]


def cell_counts(image: Array, thresholds: Iterable[Any], **options: Any) -> dict[Extent, Integers]:
    """Return for each extent the number of cells in the set at each threshold."""
    jumps, entered = _entries(image, thresholds, **options)
    return {extent: _sums(jump, entered) for extent, jump in jumps.items()}


def euler_curve(image: Array, thresholds: Iterable[Any], **options: Any) -> Integers:
    """Return the Euler characteristic of ``image <= t`` (superlevel ``>=``) for each threshold."""
    jumps, entered = _entries(image, thresholds, **options)
    if options.get("mask") is not None and options.get("boundary") == "half-open":
        return _window_curve(image, entered, **options)
    signed = [(-1) ** sum(extent) * jump for extent, jump in jumps.items()]
    return _sums(np.sum(signed, axis=0), entered)


def _window_curve(
    image: Array,
    entered: Integers,
    *,
    mask: Array,
    connectivity: int | None = None,
    superlevel: bool = False,
    boundary: str,
) -> Integers:
    levels, rank = _order(image, superlevel, None)
    own = euler_coefficients(image, connectivity=connectivity, superlevel=superlevel)
    jumps = np.zeros(levels.size + 1, np.int64)
    np.add.at(jumps, rank[mask], own[mask].astype(np.int64))
    return _sums(jumps[:-1], entered)


def minkowski_functionals(
    image: Array, thresholds: Iterable[Any], spacing: Iterable[float], **options: Any
) -> NDArray[np.float64]:
    """Return the functionals (d + 1, n) at each threshold, from volume to Euler number.

    The intrinsic volumes of an open box of m sides are (-1)**(m - k) times the symmetric functions
    of k of these; the functionals are multiples of them.
    """
    factors = {1: (1, 1), 2: (1, 2, 1), 3: (1, 0.5, 2, 1)}[image.ndim]
    volumes: Any = np.zeros((image.ndim + 1, len(np.asarray(thresholds))))
    for extent, count in cell_counts(image, thresholds, **options).items():
        sides = [h for h, e in zip(spacing, extent, strict=True) if e]
        for k in range(len(sides) + 1):
            symmetric = sum(map(math.prod, itertools.combinations(sides, k)))
            volumes[k] += (-1) ** (len(sides) - k) * symmetric * count
    volumes[0] = euler_curve(image, thresholds, **options)
    return np.asarray((volumes * np.array(factors)[:, None])[::-1])


def changing_levels(
    image: Array, *, superlevel: bool = False, mask: Array | None = None, **options: Any
) -> Array:
    """Return, increasing, the values of the image at which its curve changes."""
    levels = np.sort(_order(image, superlevel, mask).levels)
    curve = euler_curve(image, levels, superlevel=superlevel, mask=mask, **options)
    before = np.append(curve[1:], 0) if superlevel else np.append(0, curve[:-1])
    return levels[curve != before]


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
    # The first of equal points must be the last to enter in V, and the first in T.
    late_first = not cubes
    key = rank * image.size + (image.size - 1 - raster if late_first else raster)
    never = levels.size * image.size
    coefficients = np.zeros(image.size, dtype=np.int64)
    for extent, cell_key in cell_ranks(key, cubes, never):
        owner = cell_key[cell_key < never] % max(image.size, 1)
        if late_first:
            owner = image.size - 1 - owner
        coefficients += (-1) ** sum(extent) * np.bincount(owner, minlength=image.size)
    return coefficients.reshape(image.shape).astype(np.int8)


def region_curves(
    image: Array, labels: Array, thresholds: Iterable[Any], **options: Any
) -> tuple[Array, Integers]:
    """Return the positive labels, increasing, and the curve of each as if it were alone."""
    present = np.unique(labels[labels > 0])
    curves = np.zeros((present.size, len(np.asarray(thresholds))), np.int64)
    for row, label in zip(curves, present, strict=True):
        row[:] = euler_curve(image, thresholds, mask=labels == label, **options)
    return present, curves
