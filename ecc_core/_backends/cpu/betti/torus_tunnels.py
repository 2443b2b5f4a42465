"""Tunnels of volumes that are periodic along all axes: rows and columns are found point by point.

Rows without a partner, or columns for connectivity 3, are tunnels that never end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.basins import find
from ecc_core._backends.cpu.betti.halo import home_of, index_type, wrap_halo
from ecc_core._backends.cpu.betti.stars import (
    EDGES,
    ENDS,
    LINK,
    PARENT_BITS,
    ROOT,
    WIDE_LINK,
    cycles_around,
    edge_offsets,
    hole_with,
    tree_words,
    write_star,
)
from ecc_core._backends.cpu.betti.tunnels import (
    Cells,
    numbered_rows,
    ordered_columns,
    reduced,
)
from ecc_core._backends.cpu.betti.volume import Volume, no_gradient
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.order import entry_order
from ecc_core._request.filtration import Filtration

Array = NDArray[Any]


def torus_tunnel_pairs(image: Array, never: Array, filtration: Filtration) -> tuple[Array, Array]:
    """Return the points at which the tunnels of a volume are born and die, in C order.

    No axis has length 1. `never` tells which points, in C order, never enter: they enter after all
    others here. Tunnels that are born and die at one point are left out. The death of the three
    that never die is -1.
    """
    order = entry_order(image, never, filtration.superlevel)
    order = order[::-1] if filtration.cubes else order
    wraps = filtration.boundary.wraps
    ranks = np.empty(order.size, index_type(order.size))
    ranks[order] = np.arange(order.size, dtype=ranks.dtype)
    padded = wrap_halo(np.pad(ranks.reshape(image.shape), 1), wraps)
    shape = padded.shape
    ranks = padded.reshape(-1)
    home = home_of(image.shape, wraps)
    gradient = no_gradient(shape)
    volume = Volume(gradient, shape, home)
    inner = [index + 1 for index in np.unravel_index(order, image.shape)]
    places = np.ravel_multi_index(inner, shape)
    ends, narrow, wide = (
        np.array(offsets) @ volume.steps for offsets in (ENDS, LINK.members, WIDE_LINK.members)
    )
    edges = edge_offsets(volume.steps, volume.width)
    write_gradients(places, ranks, narrow, edges, home, tree_words(), gradient)
    loops = np.empty((2 * EDGES * order.size, 2), np.int64)
    count = row_loops(places, ranks, narrow, ends, home, tree_words(), loops)
    row_places, roots = loops[:count].T.copy()
    holes = np.empty((8 * order.size, 3), np.int64)
    count = column_loops(places[::-1], ranks, wide, home, holes)
    column_places, members, links = holes[:count].T.copy()
    cycles = cycles_around(links.astype(np.uint32), members)
    rows = Cells(row_places, ranks[row_places].astype(np.uint64), roots.astype(np.uint8))
    columns = Cells(column_places, ranks[column_places].astype(np.uint64), cycles)
    found = reduced(volume, numbered_rows(volume, rows), ordered_columns(volume, columns), 1)
    births = found.rows
    deaths = found.columns
    left = found.rows_left
    if filtration.cubes:
        births, deaths, left = deaths, births, found.columns_left
    lives = births != deaths
    births, deaths, left = (
        _in_image(part, image.shape) for part in (births[lives], deaths[lives], left)
    )
    return np.append(births, left), np.append(deaths, np.full(left.size, -1))


def _in_image(places: Array, shape: tuple[int, ...]) -> Array:
    """Convert places in a volume with a halo to places in the volume."""
    index = np.unravel_index(places, [n + 2 for n in shape])
    inner: Array = np.ravel_multi_index(tuple(i - 1 for i in index), shape)
    return inner


@subroutine()
def lower_link(ranks, place, offsets):
    """Return which neighbours of a point come before it, as a set of bits."""
    link = np.int64(0)
    for i in range(offsets.size):
        link |= np.int64(ranks[place + offsets[i]] < ranks[place]) << i
    return link


@kernel()
def write_gradients(places, ranks, offsets, edges, home, trees, gradient):
    """Write the gradient of the edges of all points."""
    for place in places:
        tree = np.int64(trees[lower_link(ranks, place, offsets)])
        write_star(tree, place, edges, home, gradient)


@kernel()
def row_loops(places, ranks, offsets, ends, home, trees, loops):
    """Join points in their order, and list edges that close loops: (place, end)."""
    parents = np.arange(ranks.size)
    count = 0
    for place in places:
        tree = np.int64(trees[lower_link(ranks, place, offsets)])
        for end in range(EDGES):
            if tree >> PARENT_BITS * end & 7 != ROOT:
                continue
            root = find(parents, place)
            other = find(parents, home[place + ends[end]])
            if root == other:
                loops[count, 0] = place
                loops[count, 1] = end
                count += 1
            parents[root] = other
    return count


@kernel()
def column_loops(places, ranks, offsets, home, loops):
    """Join points in the opposite order, and list loops: (place, member, upper link)."""
    parents = np.arange(ranks.size)
    count = 0
    for place in places:
        upper = ~lower_link(ranks, place, offsets) & ((1 << offsets.size) - 1)
        seen = np.int64(0)
        for member in range(offsets.size):
            if not upper >> member & 1:
                continue
            hole = hole_with(upper, member)
            if hole & seen:
                continue
            seen |= hole
            root = find(parents, place)
            other = find(parents, home[place + offsets[member]])
            if root == other:
                loops[count, 0] = place
                loops[count, 1] = member
                loops[count, 2] = upper
                count += 1
            parents[root] = other
    return count
