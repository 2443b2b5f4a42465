"""Orthants of directions, coordinates of points, and coefficients, for all backends.

In a direction u the highest vertex of a cell is the one that lies furthest along every axis in the
sense of the sign of u. So for all directions of one orthant, each cell belongs to the same vertex,
its owner. The *coefficient* of a point is the sum of (-1)**dimension over the cells that it owns;
points where it is not zero are critical.

V-construction: a cell of p spans from p to p - s along some of the axes, s the signs of u. Its
2**k vertices must all be set. T-construction: by inclusion and exclusion over the cubes that are
*not* set, the coefficient of the cube corner q is (-1)**(d + 1) times that of the complement in
the V-construction, at the cube q - s/2, with cells that span along +s.

Kernels see three axes (slices, rows, columns); for images of fewer axes the leading ones have
length 1. The number of an orthant has three bits, (slices, rows, columns), which are set where the
sign is negative.
"""

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._request.filtration import uses_cubes

Floats = NDArray[np.float64]
Axes = tuple[int, ...]

ORTHANTS = 8


class Directions(NamedTuple):
    """Directions in the order of their orthants.

    `vectors` (k, 3) are zero along axes that the image does not have, `order` (k,) are the indices
    of the directions among those of the caller, and `orthant` (k,) are their orthants.
    """

    vectors: Floats
    order: NDArray[np.intp]
    orthant: NDArray[np.int64]


class Frame(NamedTuple):
    """The axes of an image and the coordinates of its points or corners.

    `axes` has 1 for the axes that the image has and 0 for the others, `positions` are coordinates
    along each axis, and no height has a magnitude above `reach`.
    """

    axes: Axes
    shape: tuple[int, ...]
    cubes: bool
    positions: tuple[Floats, ...]
    reach: float

    @property
    def sign(self) -> int:
        """The factor, 1 or -1, of the coefficients that the kernels compute."""
        return -1 if self.cubes and sum(self.axes) % 2 == 0 else 1


def sort_directions(directions: Floats) -> Directions:
    """Return (k, d) directions sorted by orthant."""
    count, ndim = directions.shape
    vectors = np.zeros((count, 3))
    vectors[:, 3 - ndim :] = directions
    orthant = (vectors < 0) @ np.array([4, 2, 1])
    order = np.argsort(orthant, kind="stable")
    return Directions(vectors[order], order, orthant[order])


def place_points(shape: tuple[int, ...], spacing: Floats, connectivity: int) -> Frame:
    """Return a frame with points at (index - centre) * spacing and corners half a step around."""
    missing = 3 - len(shape)
    cubes = uses_cubes(connectivity)
    positions = [np.zeros(1)] * missing
    for n, step in zip(shape, spacing, strict=True):
        points = n + 1 if cubes else n
        positions.append((np.arange(points) - (points - 1) / 2) * step)
    axes = (0,) * missing + (1,) * len(shape)
    # No component of a unit vector exceeds 1, so that this sum over the axes bounds the heights.
    reach = 0.0
    for along in positions:
        if along.size:
            reach += abs(float(along[0]))
    return Frame(
        axes=axes,
        shape=(1,) * missing + shape,
        cubes=cubes,
        positions=tuple(positions),
        reach=reach,
    )


@lru_cache(maxsize=6)
def coefficient_table(ndim: int, connectivity: int) -> NDArray[np.int64]:
    """Return the coefficient of the owner in a window of 2 points along each axis.

    The table has the shape (orthants, patterns). Bit ``4 * slice + 2 * row + column`` of a pattern
    tells whether that point of the window is set. Orthants with a negative sign along an axis that
    the image does not have are 0. The owner is the point of the window that lies furthest along s
    in the V-construction, and the centre of the window in the T-construction. Here cells are
    counted one by one, which is the definition; the mask kernel computes the same for whole planes.
    """
    cubes = uses_cubes(connectivity)
    present = (0,) * (3 - ndim) + (1,) * ndim
    patterns = np.arange(2 ** (2**ndim))
    table = np.zeros((ORTHANTS, patterns.size), dtype=np.int64)
    for orthant in range(2**ndim):
        far = [p * (1 - (orthant >> i & 1)) for p, i in zip(present, (2, 1, 0), strict=True)]
        extents = [(0, 1) if p else (0,) for p in present]
        for spans in itertools.product(*extents):
            sides = []
            for side, span, p in zip(far, spans, present, strict=True):
                both = bool(p) and bool(span) != cubes
                one = p - side if cubes else side
                sides.append((0, 1) if both else (one,))
            bits = [4 * z + 2 * y + x for z, y, x in itertools.product(*sides)]
            window = sum(1 << bit for bit in bits)
            inside = (patterns & window) != 0 if cubes else (patterns & window) == window
            table[orthant] += (-1) ** sum(spans) * inside
    table.flags.writeable = False
    return table
