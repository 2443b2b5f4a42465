"""Lower links: the neighbours of a point that come before it, found for 64 points at once.

Points are ordered by key, equal keys by their place in the image. The *lower link* of a point is
the set of its neighbours that come before it. If it is empty, the point is a minimum. If it has
several components, the point may join as many components of the image, and is a *fork*.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm
from ecc_core._backends.cpu.compiling import kernel, subroutine
from ecc_core._backends.cpu.llvm import ALL, LANES, NONE, ONE, bare, count_trailing_zeros

MOST = 32  # members of a link, and room between two sets of planes
ROUNDS = 3
ORIGIN = (0, 0, 0)
Offset = tuple[int, int, int]


class Link(NamedTuple):
    """The neighbours of a point, and which of them are adjacent to each other."""

    members: list[Offset]
    """Offsets (z, y, x) in raster order; bit i of a set of members is ``members[i]``."""
    ends: list[int]
    """The members that are adjacent to the point itself. The others only connect these."""
    near: np.ndarray
    """For each member, the set of members adjacent to it, uint32."""


def _link(ndim: int, connectivity: int) -> Link:
    """Return the link of points adjacent along axes (1), or along diagonals too (`ndim`)."""

    def adjacent(a: Offset, b: Offset) -> bool:
        gaps = [abs(i - j) for i, j in zip(a, b, strict=True)]
        return (sum(gaps) if connectivity == 1 else max(gaps)) == 1

    cube = itertools.product((-1, 0, 1) if ndim == 3 else (0,), (-1, 0, 1), (-1, 0, 1))
    members = [m for m in cube if m != ORIGIN and (connectivity > 1 or sum(map(abs, m)) <= 2)]
    near = [sum(adjacent(a, b) << j for j, b in enumerate(members)) for a in members]
    ends = [i for i, m in enumerate(members) if adjacent(m, ORIGIN)]
    return Link(members, ends, np.array(near, np.uint32))


LINKS = {(n, connectivity): _link(n, connectivity) for n in (2, 3) for connectivity in (1, n)}
_BY_SIZE = {len(link.ends): link for link in LINKS.values()}  # 4, 8, 6, 26


def neighbours(ndim: int, connectivity: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the neighbours of a point, nearest first, and the set not adjacent to each of them."""
    link = LINKS[3 if ndim == 3 else 2, connectivity]
    ends = sorted(link.ends, key=lambda i: sum(map(abs, link.members[i])))
    apart = [sum((~link.near[i] >> j & 1) << k for k, j in enumerate(ends)) for i in ends]
    return np.array([link.members[i] for i in ends]), np.array(apart, np.uint64)


def neighbour_keys(builder: Any, keys: Any, at: Any, steps: list[Any], offset: Offset) -> Any:
    """Emit the keys of the neighbours of 64 points; `steps` are the strides of slices and rows."""
    place = builder.add(at, llvm.I64(offset[2]))
    for number, stride in zip(offset[:2], steps, strict=True):
        if number:
            place = (builder.add if number > 0 else builder.sub)(place, stride)
    return keys.load(place, LANES)


@llvm.operation(types.UniTuple(types.uint64, 2))
def compare_links(builder, keys, at, steps, ends, sides, borders, frames, labels, planes):
    """Compare the 64 points from ``keys[at]`` on with their neighbours.

    `steps` are the strides of slices and rows. The link is the one with as many neighbours as the
    tuple `ends` is long. Of the six words in `sides`, two for each axis, each holds the points on
    one side of the block. Where the word in `borders` is all ones and not 0, the image ends at
    this side, so that these points have no neighbours beyond. Where that in `frames` is, those
    neighbours are in a frame, and come before every point.

    Writes to ``labels[at:]`` -n if the n-th end, counted from 1, is the lowest neighbour, and 0 if
    no neighbour comes before the point; to ``planes[i]`` the points that member i comes before; and
    to ``planes[32 + i]`` those where member i is known to be in the same component of the lower
    link as its first end. Returns the minima, and the points with an end of which that is unknown.
    """
    link = _BY_SIZE[len(ends)]
    missing, framed = (
        [builder.and_(*pair) for pair in zip(sides, words, strict=True)]
        for words in (borders, frames)
    )
    own = keys.load(at, LANES)
    lowest, code = own, llvm.splat(llvm.I8, LANES, 0)
    lower: list[Any] = [None] * len(link.members)
    # Of equal neighbours the last one compared is taken: the first in raster order, so that paths
    # over a plateau are short.
    for i in reversed(range(len(link.members))):
        crossed = [2 * axis + (step > 0) for axis, step in enumerate(link.members[i]) if step]
        out, beyond = (
            functools.reduce(builder.or_, [words[side] for side in crossed])
            for words in (missing, framed)
        )
        exists = builder.not_(out)
        key = neighbour_keys(builder, keys, at, steps, link.members[i])
        before = "<=" if link.members[i] < ORIGIN else "<"
        wins = builder.bitcast(builder.icmp_unsigned(before, key, own), llvm.I64)
        lower[i] = builder.or_(builder.and_(wins, exists), beyond)
        builder.store(lower[i], planes.one(llvm.I64(i)))
        if i in link.ends:
            there = builder.bitcast(exists, ir.VectorType(llvm.I1, LANES))
            least = builder.and_(builder.icmp_unsigned(before, key, lowest), there)
            number = llvm.splat(llvm.I8, LANES, link.ends.index(i) + 1)
            code = builder.select(least, number, code)
            lowest = builder.select(least, key, lowest)
    wide = builder.sext(code, ir.VectorType(labels.element, LANES))
    labels.store(builder.neg(wide), at)
    seen, reached = _reach(builder, link, lower)
    apart: Any = llvm.I64(0)
    for i, word in enumerate(reached):
        builder.store(word, planes.one(llvm.I64(MOST + i)))
        if i in link.ends:
            apart = builder.or_(apart, builder.and_(lower[i], builder.not_(word)))
    return [builder.not_(seen), apart]


def _reach(builder: Any, link: Link, lower: list[Any]) -> tuple[Any, list[Any]]:
    """Return where any end is lower, and what a few steps in the lower link reach from one end.

    These steps reach all of a link that looks like a half-space. Where they miss an end, points are
    looked at one by one.
    """
    seen: Any = llvm.I64(0)
    reached: list[Any] = [llvm.I64(0)] * len(lower)
    nearest = sorted(range(len(lower)), key=lambda i: sum(map(abs, link.members[i])))
    for i in nearest:
        if i in link.ends:
            reached[i] = builder.and_(lower[i], builder.not_(seen))
            seen = builder.or_(seen, lower[i])
    for _ in range(ROUNDS):
        if len(lower) == 26:
            grown = _dilate(builder, link.members, reached)
            reached = [builder.and_(g, low) for g, low in zip(grown, lower, strict=True)]
            continue
        for i in reversed(nearest):  # the ends come last
            around = [reached[j] for j in range(len(lower)) if link.near[i] >> j & 1]
            reached[i] = functools.reduce(builder.or_, around, reached[i])
            reached[i] = builder.and_(reached[i], lower[i])
    return seen, reached


def _dilate(builder: Any, members: list[Offset], planes: list[Any]) -> list[Any]:
    """Return for each place of a cube the union over all places that touch it, axis by axis."""
    cube: dict[Any, Any] = dict(zip(members, planes, strict=True)) | {ORIGIN: llvm.I64(0)}
    for axis in range(3):
        grown = {}
        for place in [place for place in cube if place[axis] == 0]:
            low, high = ((*place[:axis], side, *place[axis + 1 :]) for side in (-1, 1))
            grown[low] = builder.or_(cube[low], cube[place])
            grown[high] = builder.or_(cube[high], cube[place])
            grown[place] = builder.or_(grown[low], cube[high])
        cube = grown
    return [cube[m] for m in members]


@llvm.operation(types.uint64)
def link_of(builder, planes, first, bit):
    """Return a set of members at one of 64 points: bit `bit` of 32 planes from `first` on."""
    words = planes.load(first, MOST)
    moved = builder.lshr(words, llvm.each(builder, bit, MOST))
    link = builder.trunc(moved, ir.VectorType(llvm.I1, MOST))
    return builder.zext(builder.bitcast(link, ir.IntType(MOST)), llvm.I64)


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
        front, touched = seed, NONE
        while front:
            around = np.uint64(near[np.uint64(count_trailing_zeros(front))])
            front &= front - ONE
            touched |= around
            front |= around & rest
            rest &= ~around
        if not touched & known:
            found |= seed
    return found


@kernel()
def scan_links(keys, labels, layout, borders, framed, frame, link, planes, listed, lower_links):
    """Find minima, forks, and the lowest neighbour of each point, see :func:`compare_links`.

    A block is staged with one point of halo on each side. `layout` is (slices, rows, columns, step
    of slices, step of rows): the numbers of own points, and the distances of neighbours in the
    staged arrays. The first own point lies one step along each axis from the start. `link` has the
    distances of its ends, their set, and `Link.near`. `borders` and `framed` are those of
    `Grid.borders`; `frame` tells whether there is a frame at all.

    Minima are numbered in raster order (from 1 with a frame), written to `labels` and listed first;
    then follow the points whose lower link falls apart, and one end of each of its components. All
    members of these links are written to `lower_links`, if it has room.
    Returns the number of nodes, the number of forks, and the sum over them of the number of
    components less 1.
    """
    slices, rows, columns, slice_step, row_step = layout
    ends, end_set, near = link[0], link[1], bare(link[2])
    keys, labels, planes = bare(keys), bare(labels), bare(planes)
    minima, forks, links = bare(listed[0]), bare(listed[1]), bare(listed[2])
    lower_links = bare(lower_links)
    nodes, count, room = np.int64(1 if frame else 0), np.int64(0), np.int64(0)
    for z, y in np.ndindex(slices, rows):
        above, below = ALL if z == 0 else NONE, ALL if z == slices - 1 else NONE
        before, behind = ALL if y == 0 else NONE, ALL if y == rows - 1 else NONE
        for x in range(0, columns, LANES):
            size = min(columns - x, LANES)
            own = ALL >> np.uint64(LANES - size)
            first = ONE if x == 0 else NONE
            last = own & ~(own >> ONE) if x + size == columns else NONE
            start = (z + 1) * slice_step + (y + 1) * row_step + 1 + x
            sides = above, below, before, behind, first, last
            steps = slice_step, row_step
            lowest, apart = compare_links(
                keys, start, steps, ends, sides, borders, framed, labels, planes
            )
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
                lower, known = link_of(planes, 0, bit), link_of(planes, MOST, bit)
                found = representatives(lower, known, end_set, near)
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
