"""The cells of images: the points of each, and the one that gives it its value."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.plain.namespaces import like
from ecc_core._request.boundary import Border, Boundary


class Kind(NamedTuple):
    """The cells with the same extent along each axis."""

    pairs: tuple[int, ...]
    """1 for each axis along which the cells have two points, otherwise 0."""
    sign: int


def kinds(ndim: int, cubes: bool) -> Iterator[Kind]:
    """Yield the kinds of cells: vertices, edges and so on, or cubes, the faces between two, ..."""
    for pairs in itertools.product((0, 1), repeat=ndim):
        dimension = ndim - sum(pairs) if cubes else sum(pairs)
        yield Kind(pairs, (-1) ** dimension)


def values_of(xp: Any, points: Any, kind: Kind, cubes: bool, never: int, boundary: Boundary) -> Any:
    """Return the values of the cells of a kind, from those of the points of an image.

    A cell has the largest value of its vertices, or the smallest value of its cubes.
    """
    cells = points
    for axis, pairs in enumerate(kind.pairs):
        border = boundary.axes[axis]
        if pairs:
            low, high = _neighbours(xp, cells, axis=axis, cubes=cubes, never=never, border=border)
            cells = xp.minimum(low, high) if cubes else xp.maximum(low, high)
        elif border.missing:
            cells = cells[along(axis, slice(0, cells.shape[axis] - 1))]
    return cells


def _neighbours(
    xp: Any, cells: Any, axis: int, cubes: bool, never: int, border: Border
) -> tuple[Any, Any]:
    """Return the lower and the upper end of each pair along an axis."""
    if border.wraps:
        cells = xp.concat([cells, cells[along(axis, slice(0, 1))]], axis=axis)
    elif border.is_closed and cubes:
        cells = framed(xp, cells, axis, never)
    count = cells.shape[axis]
    return cells[along(axis, slice(0, count - 1))], cells[along(axis, slice(1, count))]


def framed(xp: Any, cells: Any, axis: int, value: int) -> Any:
    """Return int64 cells with one more cell of the given value at both ends of an axis."""
    shape = [1 if i == axis else n for i, n in enumerate(cells.shape)]
    outside = like(np.full(shape, value, np.int64), cells)
    return xp.concat([outside, cells, outside], axis=axis)


def along(axis: int, part: slice) -> tuple[slice, ...]:
    """Return the index of a part along an axis."""
    return (slice(None),) * axis + (part,)
