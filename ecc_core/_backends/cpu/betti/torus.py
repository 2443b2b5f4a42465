"""Persistence of images that are periodic along some axes, as functions on a torus.

Along each of the other axes a layer of points that never enter lies between the last point and the
first. Then all axes are periodic, and the sets of points that have entered are the same.

Components are joined point by point, in the order in which points enter. Each point of a tree knows
across which sides of the image the path to its parent leads, in three bits, one for each axis. An
edge within a tree closes a loop, whose sides tell to which class of the torus it belongs, with
coefficients in Z/2.

By Alexander duality on a torus, components of the complement are classes of dimension d - 1, which
end as it shrinks; only the last one is the class of dimension d, the torus itself. A class of loops
that the complement loses is one of dimension d - 1 that begins and never ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import kind_of
from ecc_core._backends.cpu.betti.links import neighbours
from ecc_core._backends.cpu.betti.torus_tunnels import torus_tunnel_pairs
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, ONE, bare, count_trailing_zeros
from ecc_core._backends.cpu.order import entry_order
from ecc_core._request.boundary import PERIODIC, Boundary
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]
Points = NDArray[np.int64]

MOST_NARROW = 1 << 28
"""The most points for which paths fit in 32 bits."""


def periodic_pairs(
    image: Array, never: Array, dimension: int, filtration: Filtration
) -> tuple[Points, Points]:
    """Return the points at which classes are born and die, in any order; -1 for no death.

    The image, which is not empty, is periodic along at least one axis. `never` tells which points,
    in C order, never enter: they enter after all others here.
    """
    wraps = filtration.boundary.wraps
    if all(wraps):
        return _torus_pairs(image, never, dimension, filtration)
    layers = [(0, int(not touch)) for touch in wraps]
    values = np.pad(image, layers)
    absent = np.pad(never.reshape(image.shape), layers, constant_values=True).reshape(-1)
    torus = replace(filtration, boundary=Boundary.alike(PERIODIC, filtration.ndim))
    births, deaths = _torus_pairs(values, absent, dimension, torus)
    born = ~absent[births]
    births = births[born]
    deaths = deaths[born]
    dies = (deaths >= 0) & ~absent[deaths]
    found = _without_layers(births, values.shape, image.shape)
    ends = _without_layers(np.where(dies, deaths, 0), values.shape, image.shape)
    return found, np.where(dies, ends, -1)


def _without_layers(points: Points, padded: tuple[int, ...], shape: tuple[int, ...]) -> Points:
    """Return the indices of points in an image from those in the padded one."""
    found: Points = np.ravel_multi_index(np.unravel_index(points, padded), shape)
    return found


def _torus_pairs(
    image: Array, never: Array, dimension: int, filtration: Filtration
) -> tuple[Points, Points]:
    """Return what :func:`periodic_pairs` does for an image that is periodic along all axes."""
    order = entry_order(image, never, filtration.superlevel)
    if dimension == filtration.ndim:
        return order[-1:].astype(np.int64), np.array([-1])
    if dimension == 0:
        births, deaths, _ = _joined(order, image.shape, filtration, complement=False)
        births = np.append(births, np.int64(order[0]))
        return births, np.append(deaths, -1)
    if dimension == filtration.ndim - 1:
        deaths, births, loops = _joined(order[::-1], image.shape, filtration, complement=True)
        births = np.append(births, loops)
        return births, np.append(deaths, np.full(loops.size, -1))
    if 1 not in image.shape:
        return torus_tunnel_pairs(image, never, filtration)
    # Each axis of length 1 is a circle, by which the rest is multiplied (Künneth's formula): a
    # class of the rest stays one, and becomes another one of the next dimension.
    rest = np.atleast_1d(image.squeeze())
    own = filtration.in_axes(rest.ndim)
    components, cycles = (_torus_pairs(rest, never, k, own) for k in (0, 1))
    parts = [cycles] + [components] * (3 - rest.ndim)
    births, deaths = map(np.concatenate, zip(*parts, strict=True))
    return births, deaths


def _joined(
    order: Array, shape: tuple[int, ...], filtration: Filtration, *, complement: bool
) -> tuple[Points, Points, Points]:
    """Return the points at which components begin and end, and those that close new loops."""
    shape = (1,) * (2 - len(shape)) + shape  # Rows are treated as planes.
    offsets, apart = neighbours(len(shape), kind_of(filtration, complement=complement).connectivity)
    if 1 in shape:  # A point is its own neighbour then, and all edges of loops must be seen.
        apart[:] = ALL
    extent = (1,) * (3 - len(shape)) + shape
    size = order.size
    ends = np.empty((size // 2 + 1, 2), np.int64)
    loops = np.empty(3, np.int64)
    paths = np.full(size, -1, np.int32 if size < MOST_NARROW else np.int64)
    ranks = np.empty(size, np.uint32 if size < 1 << 32 else np.uint64)
    ranks[order] = np.arange(size, dtype=ranks.dtype)
    # The kernel is compiled for one layout only.
    order = np.ascontiguousarray(order)
    count, closed = _join(order, ranks, paths, extent, offsets, apart, ends, loops)
    births, deaths = ends[:count].T
    return births, deaths, loops[:closed]


@subroutine()
def _root(paths, place):
    """Return the root of a point and the sides that the path to it crosses; halve the path.

    A path has 8 times the place of the parent, and the sides in the last three bits.
    """
    crossed = np.int64(0)
    path = np.int64(paths[place])
    while path >> 3 != place:
        above = np.int64(paths[path >> 3])
        path = above ^ (path & 7)
        paths[place] = path
        crossed ^= path & 7
        place = path >> 3
        path = np.int64(paths[place])
    return place, crossed


@kernel()
def _join(order, ranks, paths, shape, offsets, apart, ends, loops):
    """Join points in this order, and list where components begin and end.

    `paths` are -1 before points enter. Of the neighbours of a point, those adjacent to one that has
    entered are joined with it already. Lists also the points that close a loop of a class that
    those before do not span; returns the numbers of both.
    """
    ranks = bare(ranks)
    paths = bare(paths)
    ends = bare(ends)
    steps = offsets[:, 0] * shape[1] * shape[2] + offsets[:, 1] * shape[2] + offsets[:, 2]
    flat = not offsets[:, 0].any()
    count = 0
    # Sets of the 8 combinations of the three loops around the torus, a bit each.
    closed = 0
    spanned = 1
    for place in order:
        place = np.int64(place)
        paths[place] = place << 3
        root = place
        turn = np.int64(0)
        z, rest = divmod(place, shape[1] * shape[2])
        y, x = divmod(rest, shape[2])
        inside = flat or 0 < z < shape[0] - 1
        inside = inside and 0 < y < shape[1] - 1 and 0 < x < shape[2] - 1
        left = (ONE << np.uint64(apart.size)) - ONE
        while left:
            k = np.uint64(count_trailing_zeros(left))
            left &= left - ONE
            beside = place + steps[k]
            edge = np.int64(0)
            if not inside:
                beside = np.int64(0)
                for axis in range(3):
                    index = (z, y, x)[axis] + offsets[k, axis]
                    across = np.int64(index < 0) - np.int64(index >= shape[axis])
                    beside = beside * shape[axis] + index + across * shape[axis]
                    edge |= (across & 1) << axis
            if paths[beside] < 0:
                continue
            left &= apart[k]
            other, crossed = _root(paths, beside)
            crossed ^= turn ^ edge
            if other == root:
                if not spanned >> crossed & 1:
                    for known in range(8):
                        if spanned >> known & 1 and not spanned >> (known ^ crossed) & 1:
                            spanned |= 1 << (known ^ crossed)
                    loops[closed] = place
                    closed += 1
                continue
            if ranks[other] < ranks[root]:
                root, other, turn = other, root, turn ^ crossed
            paths[other] = root << 3 | crossed
            if other != place:
                ends[count, 0] = other
                ends[count, 1] = place
                count += 1
    return count, closed
