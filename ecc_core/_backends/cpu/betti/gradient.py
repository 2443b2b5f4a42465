"""Kernels: a discrete gradient of a volume, whose critical cells carry all of its topology.

The volume is staged as *ranks*, the places of its points in the strict order in which they enter,
with one point of halo on each side. A cell belongs to its last vertex, the point with which it
enters, and the cells of a point are its *lower star* (Robins, Wood and Sheppard, 2011). Each of
them is matched with another one of the same star or is critical: the star collapses onto as few
cells as its topology allows. A halo of ranks behind all others adds no cells, one of ranks before
all others is a set that is there from the beginning. For a periodic volume the halo has the ranks
of the opposite sides, and `home` tells for each place the one of the same point in the volume;
otherwise it is None.

A point or a cell is numbered by its lowest corner c: edges along axis a are ``3 * c + a``, squares
normal to axis a likewise. The gradient consists of

- ``points``: the other end of the edge that a point is matched with, or itself (minima),
- ``cubes``: the cube beyond the square that a cube is matched with, or itself (maxima),
- ``edges``: ``PAIRED - d`` for an edge that is matched with the square that it spans with the
  direction d (two for each axis, the second one upwards), a number from 0 on for a critical edge,
  and ``IGNORED`` for one that is matched with a point.
"""

from __future__ import annotations

import numpy as np

from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import bare

IGNORED = -1
PAIRED = -2
MOST_CRITICAL = 8  # more than there are critical edges, or squares, in one star

# A neighbour is known by its bit in the 3 x 3 x 3 neighbourhood, a cell of the star by that of the
# neighbour at its opposite corner.
_CENTRE = 13
_STRIDES = (9, 3, 1)
_BITS = np.arange(27)
_FLAT = tuple(int(sum(1 << b for b in _BITS if b // s % 3 == 1)) for s in _STRIDES)
_ENDS = np.array([_CENTRE + s * (2 * up - 1) for s in _STRIDES for up in (0, 1)])
_SQUARES = np.array(
    [[a + b - _CENTRE if v // 2 != w // 2 else 31 for w, b in enumerate(_ENDS)]
     for v, a in enumerate(_ENDS)]
)  # fmt: skip
_CUBES = np.array(
    [_CENTRE + sum(s * (2 * (k >> a & 1) - 1) for a, s in enumerate(_STRIDES)) for k in range(8)]
)
_FACES = np.array(
    [[c - s * (2 * (k >> a & 1) - 1) for a, s in enumerate(_STRIDES)] for k, c in enumerate(_CUBES)]
)


@subroutine()
def at_home(home, place):
    """Return the place in the volume of a point that may be in the halo."""
    if home is None:
        return place
    return home[place]


@subroutine()
def lower_star(ranks, place, steps):
    """Return the cells of the lower star of a point as a set of bits, its own among them."""
    rank = ranks[place]
    star, bit = np.int64(1 << _CENTRE), np.int64(1)
    for dz in range(-1, 2):
        for dy in range(-1, 2):
            row = place + dz * steps[0] + dy * steps[1]
            for neighbour in range(row - 1, row + 2):
                if ranks[neighbour] < rank:
                    star |= bit
                bit <<= 1
    for axis in range(3):  # a cell needs all of its corners
        flat, stride = star & _FLAT[axis], _STRIDES[axis]
        star &= flat | flat << stride | flat >> stride
    return star


@subroutine()
def match_cubes(star, place, steps, home, cubes):
    """Match the cubes of a star with squares that belong to no other cube left; return the rest."""
    left = 0
    for k in range(8):
        left |= (star >> _CUBES[k] & 1) << k
    if left == 255:  # a maximum
        corner = at_home(home, place - steps[0] - steps[1] - steps[2])
        cubes[corner] = corner
        left ^= 1
    while left:
        for k in range(8):
            for axis in range(3):
                beyond, face = k ^ 1 << axis, _FACES[k, axis]
                if left >> k & 1 and not left >> beyond & 1 and star >> face & 1:
                    corner = place
                    for a in range(3):
                        corner -= 0 if k >> a & 1 else steps[a]
                    beside = corner + (-steps[axis] if k >> axis & 1 else steps[axis])
                    cubes[at_home(home, corner)] = at_home(home, beside)
                    left ^= 1 << k
                    star ^= 1 << face
    return star


@subroutine()
def match_edges(star, place, steps, home, points, edges, critical, count):
    """Match the edges of a star with squares, along a tree in each component of the link.

    The root of the first one is matched with the point, the others are critical: they are listed.
    Returns the squares that are left, and the number of critical edges.
    """
    points[place] = place
    seen = 0
    for root in range(6):
        if seen >> root & 1 or not star >> _ENDS[root] & 1:
            continue
        step = steps[root >> 1]
        if seen == 0:
            points[place] = at_home(home, place + (step if root & 1 else -step))
        else:
            corner = at_home(home, place if root & 1 else place - step)
            edge = 3 * corner + (root >> 1)
            critical[count, 0], critical[count, 1] = place, edge
            count += 1
        seen |= 1 << root
        front = 1 << root
        while front:
            for v in range(6):
                if not front >> v & 1:
                    continue
                front ^= 1 << v
                for w in range(6):
                    if star >> _SQUARES[v, w] & 1 and not seen >> w & 1:
                        corner = at_home(home, place if w & 1 else place - steps[w >> 1])
                        edges[3 * corner + (w >> 1)] = PAIRED - v
                        star ^= 1 << _SQUARES[v, w]
                        seen |= 1 << w
                        front |= 1 << w
    return star, count


@kernel()
def match_stars(
    ranks, shape, steps, home, first, last, points, cubes, edges, critical_edges, critical_squares
):
    """Match the cells of all points in some slices, and list (point, cell) of those left over.

    Returns the numbers of critical edges and squares.
    """
    ranks, points, cubes, edges = bare(ranks), bare(points), bare(cubes), bare(edges)
    critical_edges, critical_squares = bare(critical_edges), bare(critical_squares)
    found_edges, found_squares = 0, 0
    for z in range(first, last):
        for y in range(shape[1]):
            row = (z + 1) * steps[0] + (y + 1) * steps[1] + 1
            for place in range(row, row + shape[2]):
                star = lower_star(ranks, place, steps)
                star = match_cubes(star, place, steps, home, cubes)
                star, found_edges = match_edges(
                    star, place, steps, home, points, edges, critical_edges, found_edges
                )
                for v in range(4):
                    for w in range((v | 1) + 1, 6):
                        if star >> _SQUARES[v, w] & 1:
                            corner = place
                            corner -= 0 if v & 1 else steps[v >> 1]
                            corner -= 0 if w & 1 else steps[w >> 1]
                            critical_squares[found_squares, 0] = place
                            normal = 3 - (v >> 1) - (w >> 1)
                            square = 3 * at_home(home, corner) + normal
                            critical_squares[found_squares, 1] = square
                            found_squares += 1
    return found_edges, found_squares
