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
from ecc_core._backends.cpu.llvm import LANES

MOST_MEMBERS = 32  # A link has fewer members; two sets of planes lie so many words apart.
ROUNDS = 3  # Links are searched by so many steps for all points at once.
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


class Points(NamedTuple):
    """64 points of a staged block that follow each other in a row."""

    at: Any
    """The place of the first one."""
    steps: Any
    """Strides of slices and rows."""
    own: Any
    """A word with a bit for each point: whether it belongs to the block."""
    sides: Any
    """Six words, two for each axis: the points on each side of the block."""
    borders: Any
    """A word for each side: all ones if the image ends there, so that points on this side have no
    neighbours beyond, otherwise 0."""
    frames: Any
    """A word for each side: all ones if neighbours beyond are in a frame, which comes before every
    point, otherwise 0."""


def _axes_crossed(member: Offset) -> int:
    """Return along how many axes a neighbour is apart from the point."""
    return sum(map(abs, member))


def _link(ndim: int, connectivity: int) -> Link:
    """Return the link of points adjacent along axes (1), or along diagonals too (`ndim`)."""

    def adjacent(a: Offset, b: Offset) -> bool:
        gaps = [abs(i - j) for i, j in zip(a, b, strict=True)]
        return (sum(gaps) if connectivity == 1 else max(gaps)) == 1

    def adjacent_to(member: Offset) -> int:
        """Return the members adjacent to one, as bits."""
        return sum(1 << j for j, other in enumerate(members) if adjacent(member, other))

    slices = (-1, 0, 1) if ndim == 3 else (0,)
    around = [m for m in itertools.product(slices, (-1, 0, 1), (-1, 0, 1)) if m != ORIGIN]
    members = [m for m in around if connectivity > 1 or _axes_crossed(m) <= 2]
    near = [adjacent_to(member) for member in members]
    ends = [i for i, m in enumerate(members) if adjacent(m, ORIGIN)]
    return Link(members, ends, np.array(near, np.uint32))


LINKS = {(n, connectivity): _link(n, connectivity) for n in (2, 3) for connectivity in (1, n)}
_BY_SIZE = {len(link.ends): link for link in LINKS.values()}
"""Links by their number of ends: 4, 8, 6 or 26."""


def neighbours(ndim: int, connectivity: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the neighbours of a point, nearest first, and the set not adjacent to each of them."""
    link = LINKS[3 if ndim == 3 else 2, connectivity]
    ends = sorted(link.ends, key=lambda i: _axes_crossed(link.members[i]))

    def apart_from(end: int) -> int:
        """Return the ends that are not adjacent to one, as bits in the order of `ends`."""
        far = ~link.near[end]
        return sum((far >> other & 1) << bit for bit, other in enumerate(ends))

    apart = [apart_from(end) for end in ends]
    return np.array([link.members[i] for i in ends]), np.array(apart, np.uint64)


def neighbour_keys(builder: Any, keys: Any, at: Any, steps: list[Any], offset: Offset) -> Any:
    """Emit the keys of the neighbours of 64 points; `steps` are the strides of slices and rows."""
    place = builder.add(at, llvm.I64(offset[2]))
    for number, stride in zip(offset[:2], steps, strict=True):
        if number:
            place = (builder.add if number > 0 else builder.sub)(place, stride)
    return keys.load(place, LANES)


@llvm.operation(types.UniTuple(types.uint64, 2))
def compare_links(builder, keys, points, ends, labels, planes):
    """Compare 64 :class:`Points` with their neighbours.

    The link is the one with as many neighbours as the tuple `ends` is long.

    Writes to ``labels[points.at:]`` -n if the n-th end, counted from 1, is the lowest neighbour,
    and 0 if no neighbour comes before the point; to ``planes[i]`` the points that member i comes
    before; and to ``planes[32 + i]`` those where member i is known to be in the same component of
    the lower link as its first end. Returns the minima, and the points with an end of which that is
    unknown.
    """
    link = _BY_SIZE[len(ends)]
    lower = lower_neighbours(builder, link, keys, points, labels, planes)
    seen, reached = _reach(builder, link, lower)
    apart: Any = llvm.I64(0)
    for i, word in enumerate(reached):
        builder.store(word, planes.one(llvm.I64(MOST_MEMBERS + i)))
        if i in link.ends:
            apart = builder.or_(apart, builder.and_(lower[i], builder.not_(word)))
    return [builder.not_(seen), apart]


def lower_neighbours(
    builder: Any,
    link: Link,
    keys: Any,
    points: Points,
    labels: Any,
    planes: Any,
    first: int = 0,
) -> list[Any]:
    """Emit for each member of a link at which points it comes before them, and write the labels.

    :func:`compare_links` says what is written. Planes are written from the `first` on. The lowest
    neighbours are of no interest if there are no `labels`.
    """
    missing = [builder.and_(*pair) for pair in zip(points.sides, points.borders, strict=True)]
    framed = [builder.and_(*pair) for pair in zip(points.sides, points.frames, strict=True)]
    own = keys.load(points.at, LANES)
    lowest: Any = own
    # The bit planes of the end with the lowest key.
    code: list[Any] = [llvm.I64(0)] * len(link.ends).bit_length()
    lower: list[Any] = [None] * len(link.members)
    # Of equal neighbours the last one compared is taken: the first in raster order, so that paths
    # over a plateau are short.
    for i in reversed(range(len(link.members))):
        crossed = [2 * axis + (step > 0) for axis, step in enumerate(link.members[i]) if step]
        out = functools.reduce(builder.or_, [missing[side] for side in crossed])
        beyond = functools.reduce(builder.or_, [framed[side] for side in crossed])
        exists = builder.not_(out)
        key = neighbour_keys(builder, keys, points.at, points.steps, link.members[i])
        before = "<=" if link.members[i] < ORIGIN else "<"
        wins = builder.bitcast(builder.icmp_unsigned(before, key, own), llvm.I64)
        lower[i] = builder.or_(builder.and_(wins, exists), beyond)
        builder.store(lower[i], planes.one(llvm.I64(first + i)))
        if labels is not None and i in link.ends:
            least = builder.icmp_unsigned(before, key, lowest)
            least = builder.and_(least, llvm.lanes_of(builder, exists))
            lowest = builder.select(least, key, lowest)
            word = builder.bitcast(least, llvm.I64)
            number = link.ends.index(i) + 1
            for bit, found in enumerate(code):
                code[bit] = _set_or_clear(builder, found, word, number >> bit & 1)
    if labels is None:
        return lower
    number = llvm.splat(labels.element, LANES, 0)
    for bit, word in enumerate(code):
        values = [llvm.splat(labels.element, LANES, value) for value in (1 << bit, 0)]
        number = builder.or_(number, builder.select(llvm.lanes_of(builder, word), *values))
    labels.store(builder.neg(number), points.at)
    return lower


def _set_or_clear(builder: Any, word: Any, bits: Any, value: int) -> Any:
    """Return a word in which some bits have the given value."""
    return builder.or_(word, bits) if value else builder.and_(word, builder.not_(bits))


def _reach(builder: Any, link: Link, lower: list[Any]) -> tuple[Any, list[Any]]:
    """Return where any end is lower, and what a few steps in the lower link reach from one end.

    These steps reach all of a link that looks like a half-space. Points with an end that they miss
    are examined one by one.
    """
    seen: Any = llvm.I64(0)
    reached: list[Any] = [llvm.I64(0)] * len(lower)
    nearest = sorted(range(len(lower)), key=lambda i: _axes_crossed(link.members[i]))
    for i in nearest:
        if i in link.ends:
            reached[i] = builder.and_(lower[i], builder.not_(seen))
            seen = builder.or_(seen, lower[i])
    for _ in range(ROUNDS):
        if len(lower) == 26:
            grown = _dilate(builder, link.members, reached)
            reached = [builder.and_(g, low) for g, low in zip(grown, lower, strict=True)]
            continue
        for i in reversed(nearest):  # Ends come last, so that steps through corners reach them.
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
    words = planes.load(first, MOST_MEMBERS)
    moved = builder.lshr(words, llvm.each(builder, bit, MOST_MEMBERS))
    link = builder.trunc(moved, ir.VectorType(llvm.I1, MOST_MEMBERS))
    return builder.zext(builder.bitcast(link, ir.IntType(MOST_MEMBERS)), llvm.I64)
