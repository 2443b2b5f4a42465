"""A discrete gradient that two filtrations of a volume have in common.

Image persistence takes rows in the order of one filtration and columns in that of another one. An
edge and a square can be removed as a pair if they enter with one point in the former, and with one
point, which may be another, in the latter (discrete Morse theory for several filtrations: Allili,
Kaczynski and Landi, 2017). So each edge whose last points are p and q in the two orders is matched
with a square of the same last points, if there is one:

- If p = q, the square lies between two ends of p that are lower in both orders. A tree of each
  component of what both lower links have in common matches all ends but one, as in ``stars.py``.
- Otherwise the edge is the one between p and q, and any square will do, since only one edge of it
  has these last points.

Where both lower links are equal and connected, nothing is left of the star of a point. The other
points are *special*, and what is left of their stars is listed here: edges that close a loop in the
order of rows, and squares that fill none in the order of columns. Those that fill one are columns
in any case, and known from the forest of the complement.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cpu.betti.blocks import SPARE, grid_of
from ecc_core._backends.cpu.betti.links import MOST_MEMBERS, Points, link_of
from ecc_core._backends.cpu.betti.scan import words_at
from ecc_core._backends.cpu.betti.stars import (
    ABSENT,
    AXES,
    EDGES,
    END_BITS,
    ENDS,
    LINK_BITS,
    PAIRS,
    PARENT_BITS,
    ROOT,
    SIDES,
    SQUARE_BITS,
    edge_offsets,
    match_both_links,
    squares_of,
    tree_words,
    write_star,
)
from ecc_core._backends.cpu.betti.trees import EntryOrder
from ecc_core._backends.cpu.betti.volume import Volume
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import LANES, ONE, bare, count_bits, count_trailing_zeros

Array = NDArray[Any]

NO_CLASS = -1
END_BITS_OF_ROW = 3
"""Bits of an end in the number of a class of edges."""


def _beside(end: int) -> list[int]:
    """Return the ends that have a square with another one."""
    return [other for other in range(EDGES) if AXES[other] != AXES[end]]


BESIDE = np.array([_beside(end) for end in range(EDGES)])


def _corner_bits() -> Array:
    """Return the member of the link at the corner of the square between two ends."""
    bits = np.zeros((EDGES, EDGES), np.int64)
    for s, (v, w) in enumerate(SIDES):
        bits[v, w] = bits[w, v] = SQUARE_BITS[s]
    return bits


_CORNER_BITS = _corner_bits()


class Special(NamedTuple):
    """Points some of whose cells are not matched."""

    volume: Volume
    """The volume, with the gradient of both filtrations."""
    places: Array
    links: Array
    """The lower links of these points in the orders of rows and columns, (2, places of volume)."""


def match_both(rows: EntryOrder, columns: EntryOrder) -> Special:
    """Return the gradient of two filtrations, and the points where it leaves cells."""
    staged = rows.staged
    width = LANES * ceil_div(staged.size + SPARE, LANES)
    volume = Volume(np.zeros(3 * width, np.uint8), staged.shape, None)
    grid = grid_of(staged.field.source.shape, staged.field.source.shape)
    borders, framed = grid.borders(staged.block, rows.kind.complement)
    special = np.empty(math.prod(staged.block.shape), np.int32)
    links = np.empty((2, width), np.uint32)
    edges = edge_offsets(staged.steps, width)
    count = scan_both(
        keys=(rows.keys, columns.keys),
        layout=staged.layout,
        borders=borders,
        framed=framed,
        planes=np.empty(2 * MOST_MEMBERS, np.uint64),
        stars=(tree_words(), edges),
        gradient=volume.gradient,
        special=special,
        links=links,
    )
    special = special[:count]
    moves = np.array(ENDS) @ staged.steps
    match_crossing(special, links, moves, edges, volume.gradient)
    return Special(volume, special, links)


@kernel()
def scan_both(keys, layout, borders, framed, planes, stars, gradient, special, links):
    """Match the edges that have one last point in both filtrations; see ``scan_links``.

    Writes the special points and their links, and returns how many there are.
    """
    slices, rows, columns, slice_step, row_step = layout
    first_keys = bare(keys[0])
    second_keys = bare(keys[1])
    planes = bare(planes)
    gradient = bare(gradient)
    special = bare(special)
    links = bare(links)
    count = np.int64(0)
    for z, y in np.ndindex(slices, rows):
        for x in range(0, columns, LANES):
            start = (z + 1) * slice_step + (y + 1) * row_step + 1 + x
            own, sides = words_at(z, y, x, layout)
            points = Points(start, (slice_step, row_step), own, sides, borders, framed)
            apart, differ = match_both_links(first_keys, second_keys, points, planes, gradient)
            left = (apart | differ) & own
            while left:
                bit = np.uint64(count_trailing_zeros(left))
                left &= left - ONE
                place = np.uint64(start) + bit
                one = link_of(planes, 0, bit) & LINK_BITS
                other = link_of(planes, MOST_MEMBERS, bit) & LINK_BITS
                if apart >> bit & ONE:
                    tree = np.int64(stars[0][one & other])
                    write_star(tree, np.int64(place), stars[1], None, gradient)
                special[count] = place
                links[0, place] = one
                links[1, place] = other
                count += 1
    return count


@kernel()
def match_crossing(special, links, moves, edges, gradient):
    """Match edges that have two last points with squares that have the same ones."""
    special = bare(special)
    links = bare(links)
    gradient = bare(gradient)
    for i in range(special.size):
        place = np.int64(special[i])
        of_rows = np.int64(links[0, place])
        of_columns = np.int64(links[1, place])
        crossing = 0
        for v in range(EDGES):
            crossing |= (of_columns & ~of_rows) >> END_BITS[v] << v & 1 << v
        while crossing:
            v = count_trailing_zeros(np.uint64(crossing))
            crossing &= crossing - 1
            # The end is the last point of this edge in the order of rows, and so is special, too.
            beyond = np.int64(links[0, np.uint64(place + moves[v])])
            squares = 0
            # Links are in no order that a processor could predict, so there is no branch.
            for k in range(BESIDE.shape[1]):
                w = BESIDE[v, k]
                here = of_columns >> END_BITS[w] & of_columns >> _CORNER_BITS[v, w]
                there = beyond >> END_BITS[w] & beyond >> _CORNER_BITS[EDGES - 1 - v, w]
                squares |= (here & there & 1) << k
            if squares:
                w = BESIDE[v, count_trailing_zeros(np.uint64(squares))]
                gradient[np.uint64(4 * place + edges[v] >> 2)] = w + 1


class LeftCells(NamedTuple):
    """Edges or squares that the gradient leaves in the stars of special points."""

    places: Array
    parts: Array
    """The end of an edge, or a set of squares."""
    classes: Array
    """The class that may begin or end with each, or `NO_CLASS`."""


def row_cells(special: Special, closing: Array) -> LeftCells:
    """Return the edges that are not matched, and close loops in the order of rows.

    `closing` has a set of ends for each place of the volume: those of the components of lower links
    that close a loop. A class is numbered by the place and the first end of the component.
    """
    room = EDGES * special.places.size
    cells = LeftCells(np.empty(room, np.int32), np.empty(room, np.uint8), np.empty(room, np.int64))
    volume = special.volume
    edges = edge_offsets(volume.steps, volume.width)
    count = list_rows(
        special=special.places,
        links=special.links,
        closing=closing,
        edges=edges,
        gradient=volume.gradient,
        trees=(tree_words(), end_sets()),
        cells=cells,
    )
    return LeftCells(*(part[:count] for part in cells))


@kernel()
def list_rows(special, links, closing, edges, gradient, trees, cells):
    """List the edges that no square is matched with, except one of each component that joins.

    The first edges of components that close a loop come before the others.
    """
    links = bare(links)
    gradient = bare(gradient)
    sets = bare(trees[1])
    count = 0
    for i in range(special.size):
        place = np.int64(special[i])
        link = np.uint64(links[0, place])
        ends = np.int64(sets[0, link])
        left = ends & ~matched_ends(place, edges, gradient)
        roots = np.int64(sets[1, link])
        if left == roots and closing[place] == 0:
            continue
        connected = roots & roots - 1 == 0
        tree = np.int64(trees[0][link])
        while roots:
            root = count_trailing_zeros(np.uint64(roots))
            roots &= roots - 1
            component = ends if connected else component_of(tree, ends, root)
            first = count_trailing_zeros(np.uint64(left & component))
            left ^= 1 << first
            if closing[place] & component:
                cells.places[count] = place
                cells.parts[count] = first
                cells.classes[count] = place << END_BITS_OF_ROW | root
                count += 1
        while left:
            cells.places[count] = place
            cells.parts[count] = count_trailing_zeros(np.uint64(left))
            cells.classes[count] = NO_CLASS
            left &= left - 1
            count += 1
    return count


@cache
def end_sets() -> Array:
    """Return the ends of all links, and those that are roots of trees, as sets of bits, (2, n)."""
    trees = tree_words()
    sets = np.zeros((2, trees.size), np.uint8)
    for end in range(EDGES):
        parent = trees >> np.uint32(PARENT_BITS * end) & np.uint32(7)
        sets[0] |= (parent != ABSENT).astype(np.uint8) << end
        sets[1] |= (parent == ROOT).astype(np.uint8) << end
    return sets


@subroutine()
def matched_ends(place, edges, gradient):
    """Return the ends of a point whose edges are matched."""
    matched = 0
    for end in range(EDGES):
        matched |= (gradient[np.uint64(4 * place + edges[end] >> 2)] != 0) << end
    return matched


@subroutine()
def component_of(tree, ends, root):
    """Return the ends whose tree has a root."""
    component = 0
    while ends:
        end = count_trailing_zeros(np.uint64(ends))
        ends &= ends - 1
        component |= (root_of(tree, end) == root) << end
    return component


@subroutine()
def root_of(tree, end):
    """Return the root of an end in the trees of a link."""
    parent = tree >> PARENT_BITS * end & 7
    while parent < ROOT:
        end = parent
        parent = tree >> PARENT_BITS * end & 7
    return end


def column_cells(special: Special) -> LeftCells:
    """Return the squares that no edge is matched with, and that fill no loop of columns."""
    room = EDGES * special.places.size
    cells = LeftCells(np.empty(room, np.int32), np.empty(room, np.uint16), np.empty(room, np.int64))
    volume = special.volume
    edges = edge_offsets(volume.steps, volume.width)
    count = list_columns(special.places, special.links, edges, volume.gradient, end_sets(), cells)
    return LeftCells(*(part[:count] for part in cells))


@kernel()
def list_columns(special, links, edges, gradient, sets, cells):
    """Complete the squares that are matched in the star of a point to trees of its lower link."""
    links = bare(links)
    gradient = bare(gradient)
    sets = bare(sets)
    count = 0
    parents = np.empty(EDGES, np.int64)
    for i in range(special.size):
        place = np.int64(special[i])
        link = np.int64(links[1, place])
        ends = np.int64(sets[0, np.uint64(link)])
        matched = ends & matched_ends(place, edges, gradient)
        roots = np.int64(sets[1, np.uint64(link)])
        missing = count_bits(np.uint64(ends ^ matched)) - count_bits(np.uint64(roots))
        if missing == 0:
            continue
        for v in range(EDGES):
            parents[v] = v
        while matched:
            v = count_trailing_zeros(np.uint64(matched))
            matched &= matched - 1
            byte = np.int64(gradient[np.uint64(4 * place + edges[v] >> 2)])
            join_ends(parents, v, byte - 1)
        squares = squares_of(link)
        while missing:
            s = count_trailing_zeros(np.uint64(squares))
            squares &= squares - 1
            if join_ends(parents, PAIRS[s, 0], PAIRS[s, 1]):
                cells.places[count] = place
                cells.parts[count] = 1 << s
                cells.classes[count] = NO_CLASS
                count += 1
                missing -= 1
    return count


@subroutine()
def join_ends(parents, one, other):
    """Join the trees of two ends, and return whether they were different ones."""
    while parents[one] != one:
        one = parents[one]
    while parents[other] != other:
        other = parents[other]
    parents[other] = one
    return one != other
