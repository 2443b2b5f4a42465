"""Kernel: minima, forks, and the steps between points of a block, from their lower links."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ecc_core._backends.cpu.betti.links import MOST_MEMBERS, Points, compare_links, link_of
from ecc_core._backends.cpu.betti.stars import LINK_BITS, match_links, roots_of, write_star
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, LANES, NONE, ONE, bare, count_trailing_zeros


class Stars(NamedTuple):
    """The arrays that a scan needs to write the gradient of a block."""

    trees: Any
    """The trees of all links, see :func:`tree_words`."""
    gradient: Any
    """The gradient of the staged points, which is all 0 before the scan."""
    edges: Any
    """The :func:`edge_offsets` of the staged points."""


@subroutine()
def representatives(link, known, ends, near):
    """Return one end of each component of a lower link; `known` is part of the first one."""
    found = known & ends
    found &= ~found + ONE
    rest = link & ~known
    while rest & ends:
        seed = rest & ends
        seed &= ~seed + ONE
        rest ^= seed
        front = seed
        touched = NONE
        while front:
            around = np.uint64(near[np.uint64(count_trailing_zeros(front))])
            front &= front - ONE
            touched |= around
            front |= around & rest
            rest &= ~around
        if not touched & known:
            found |= seed
    return found


@subroutine()
def words_at(z, y, x, layout):
    """Return which of the 64 points from one on lie in the block, and on which of its sides."""
    slices, rows, columns, _, _ = layout
    size = min(columns - x, LANES)
    own = ALL >> np.uint64(LANES - size)
    above = ALL if z == 0 else NONE
    below = ALL if z == slices - 1 else NONE
    before = ALL if y == 0 else NONE
    behind = ALL if y == rows - 1 else NONE
    first = ONE if x == 0 else NONE
    last = own & ~(own >> ONE) if x + size == columns else NONE
    return own, (above, below, before, behind, first, last)


@kernel()
def scan_links(
    keys, labels, layout, borders, framed, frame, link, planes, listed, lower_links, stars
):
    """Find minima, forks, and the lowest neighbour of each point, see :func:`compare_links`.

    A block is staged with one point of halo on each side. `layout` is (slices, rows, columns, step
    of slices, step of rows): the numbers of own points, and the distances of neighbours in the
    staged arrays. The first own point lies one step along each axis from the start. `link` has the
    distances of its ends, their set, and `Link.near`. `borders` and `framed` are those of
    `Grid.borders`; `frame` tells whether there is a frame at all.

    Minima are numbered in raster order (from 1 with a frame), written to `labels` and listed first;
    then follow the points whose lower link falls apart, and one end of each of its components. All
    members of these links are written to `lower_links`, if it has room. If there are `stars`,
    points are adjacent along axes, and their gradient is written too.

    Returns the number of nodes, the number of forks, and the sum over them of the number of
    components less 1.
    """
    slices, rows, columns, slice_step, row_step = layout
    ends = link[0]
    end_set = link[1]
    near = bare(link[2])
    keys = bare(keys)
    labels = bare(labels)
    planes = bare(planes)
    minima = bare(listed[0])
    forks = bare(listed[1])
    links = bare(listed[2])
    lower_links = bare(lower_links)
    nodes = np.int64(1 if frame else 0)
    count = np.int64(0)
    room = np.int64(0)
    for z, y in np.ndindex(slices, rows):
        for x in range(0, columns, LANES):
            own, sides = words_at(z, y, x, layout)
            start = (z + 1) * slice_step + (y + 1) * row_step + 1 + x
            points = Points(start, (slice_step, row_step), own, sides, borders, framed)
            if stars is None:
                lowest, apart = compare_links(keys, points, ends, labels, planes)
            else:
                lowest, apart = match_links(keys, points, labels, planes, stars.gradient)
            lowest &= own
            while lowest:
                place = start + count_trailing_zeros(lowest)
                lowest &= lowest - ONE
                minima[nodes] = place
                labels[place] = nodes
                nodes += 1
            apart &= own
            while apart:
                bit = np.uint64(count_trailing_zeros(apart))
                apart &= apart - ONE
                lower = link_of(planes, 0, bit)
                if stars is None:
                    known = link_of(planes, MOST_MEMBERS, bit)
                    found = representatives(lower, known, end_set, near)
                else:
                    tree = np.int64(stars.trees[lower & LINK_BITS])
                    write_star(tree, start + bit, stars.edges, None, stars.gradient)
                    found = roots_of(tree)
                if found & (found - ONE):
                    forks[count] = start + np.int64(bit)
                    links[count] = found
                    if lower_links.size:
                        lower_links[count] = lower
                    count += 1
                    while found & (found - ONE):
                        found &= found - ONE
                        room += 1
    return nodes, count, room
