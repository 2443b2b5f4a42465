"""Lower links: the neighbours of a point that come before it, found for 64 points at once.

Points are ordered by key, equal keys by their place in the image. The *lower link* of a point is
the set of its neighbours that come before it. If it is empty, the point is a minimum. If it has
several components, the point may join as many components of the image, and is a *fork*.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ecc_core._backends.cpu import llvm

LANES = 64
MOST = 32  # members of a link, and room between two sets of planes
ROUNDS = 3
Offset = tuple[int, int, int]


class Link(NamedTuple):
    """The neighbours of a point, and which of them are adjacent to each other.

    Attributes
    ----------
    members : list of offsets (z, y, x)
        In raster order; bit i of a set of members is ``members[i]``.
    ends : list of int
        The members that are adjacent to the point itself. The others only connect these.
    near : uint32 array
        For each member, the set of members adjacent to it.
    connectivity : int
        1: points are adjacent along axes; `ndim`: also along diagonals.
    """

    members: list[Offset]
    ends: list[int]
    near: np.ndarray
    connectivity: int


def _adjacent(a: Offset, b: Offset, connectivity: int) -> bool:
    gaps = [abs(i - j) for i, j in zip(a, b, strict=True)]
    return (sum(gaps) if connectivity == 1 else max(gaps)) == 1


def _link(ndim: int, connectivity: int) -> Link:
    steps = (-1, 0, 1)
    cube = [(z, y, x) for z in steps for y in steps for x in steps if (z, y, x) != ORIGIN]
    members = [m for m in cube if ndim == 3 or m[0] == 0]
    if connectivity == 1:
        members = [m for m in members if sum(map(abs, m)) <= 2]
    near = np.zeros(len(members), np.uint32)
    for (i, a), (j, b) in itertools.product(enumerate(members), repeat=2):
        near[i] |= _adjacent(a, b, connectivity) << j
    ends = [i for i, m in enumerate(members) if _adjacent(m, ORIGIN, connectivity)]
    return Link(members, ends, near, connectivity)


ORIGIN = (0, 0, 0)
LINKS = {(n, connectivity): _link(n, connectivity) for n in (2, 3) for connectivity in (1, n)}
_BY_SIZE = {len(link.ends): link for link in LINKS.values()}  # 4, 8, 6, 26


def neighbours(ndim: int, connectivity: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the neighbours of a point, nearest first, and the set not adjacent to each of them."""
    link = LINKS[3 if ndim == 3 else 2, connectivity]
    ends = sorted(link.ends, key=lambda i: sum(map(abs, link.members[i])))
    apart = [sum((~link.near[i] >> j & 1) << k for k, j in enumerate(ends)) for i in ends]
    return np.array([link.members[i] for i in ends]), np.array(apart, np.uint64)


@intrinsic
def compare_links(
    typingctx: Any,
    keys: Any,
    at: Any,
    steps: Any,
    ends: Any,
    inside: Any,
    sides: Any,
    framed: Any,
    framed_sides: Any,
    labels: Any,
    planes: Any,
) -> Any:
    """Compare the 64 points from ``keys[at]`` on with their neighbours.

    `steps` are the strides of slices and rows. The link is the one with as many neighbours as the
    tuple `ends` is long. Neighbours outside of the image are given by nine words,
    ``inside[3 * (z + 1) + y + 1]``, all ones if that row exists, and by the words `sides` of the
    points that have neighbours on their left and right. Of those that do not exist some are in a
    frame, and come before every point: by `framed` and `framed_sides` in the same way.

    Writes to ``labels[at:]`` -n if the n-th end, counted from 1, is the lowest neighbour, and 0 if
    no neighbour comes before the point; to ``planes[i]`` the points that member i comes before; and
    to ``planes[32 + i]`` those where member i is known to be in the same component of the lower
    link as its first end. Returns the minima, and the points with an end of which that is unknown.
    """
    word, index = types.uint64, types.int64
    link = _BY_SIZE[len(ends)]

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointers = [
            llvm.data(context, builder, sig.args[k], args[k]) if k in (0, 4, 6, 8, 9) else args[k]
            for k in range(10)
        ]
        lower = _compare(builder, context.get_value_type(sig.args[0].dtype), link, pointers)
        seen, reached = _reach(builder, link, lower)
        apart: Any = llvm.I64(0)
        for i, word in enumerate(reached):
            builder.store(word, builder.gep(pointers[9], [llvm.I64(MOST + i)]))
        for i in link.ends:
            apart = builder.or_(apart, builder.and_(lower[i], builder.not_(reached[i])))
        words = [builder.not_(seen), apart]
        return context.make_tuple(builder, sig.return_type, words)

    pair, words = types.UniTuple(index, 2), types.UniTuple(word, 2)
    rows = inside, words, framed, words
    return words(keys, index, pair, ends, *rows, labels, planes), codegen


@intrinsic
def link_of(typingctx: Any, planes: Any, first: Any, bit: Any) -> Any:
    """Return a set of members at one of 64 points: bit `bit` of 32 planes from `first` on."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = llvm.data(context, builder, sig.args[0], args[0])
        words = llvm.load(builder, data, args[1], llvm.I64, MOST)
        moved = builder.lshr(words, llvm.each(builder, args[2], MOST))
        link = builder.trunc(moved, ir.VectorType(llvm.I1, MOST))
        return builder.zext(builder.bitcast(link, ir.IntType(32)), llvm.I64)

    return types.uint64(planes, types.int64, types.uint64), codegen


def _compare(builder: Any, element: Any, link: Link, arguments: list[Any]) -> list[Any]:
    """Emit the comparisons; return for each member the points that it comes before."""
    keys, at, steps, _, inside, side_words, framed, framed_words, labels, planes = arguments
    strides = [builder.extract_value(steps, k) for k in range(2)]
    sides = {x: builder.extract_value(side_words, k) for k, x in enumerate((-1, 1))}
    framed_sides = {x: builder.extract_value(framed_words, k) for k, x in enumerate((-1, 1))}
    own = llvm.load(builder, keys, at, element, LANES)
    lowest, code = own, llvm.splat(llvm.I8, LANES, 0)
    lower: list[Any] = [None] * len(link.members)
    # Of equal neighbours the last one compared is taken: the first in raster order, so that paths
    # over a plateau are short.
    for i in reversed(range(len(link.members))):
        z, y, x = link.members[i]
        place = builder.add(at, llvm.I64(x))
        for number, stride in zip((z, y), strides, strict=True):
            if number:
                place = (builder.add if number > 0 else builder.sub)(place, stride)
        key = llvm.load(builder, keys, place, element, LANES)
        before = "<=" if link.members[i] < ORIGIN else "<"
        row = [llvm.I64(3 * z + y + 4)]
        exists, beyond = (builder.load(builder.gep(rows, row)) for rows in (inside, framed))
        if x:
            exists = builder.and_(exists, sides[x])
            beyond = builder.or_(beyond, framed_sides[x])
        wins = builder.bitcast(builder.icmp_unsigned(before, key, own), llvm.I64)
        lower[i] = builder.or_(builder.and_(wins, exists), beyond)
        builder.store(lower[i], builder.gep(planes, [llvm.I64(i)]))
        if i in link.ends:
            there = builder.bitcast(exists, ir.VectorType(llvm.I1, LANES))
            least = builder.and_(builder.icmp_unsigned(before, key, lowest), there)
            number = llvm.splat(llvm.I8, LANES, link.ends.index(i) + 1)
            code = builder.select(least, number, code)
            lowest = builder.select(least, key, lowest)
    wide = builder.sext(code, ir.VectorType(ir.IntType(32), LANES))
    llvm.store(builder, builder.neg(wide), labels, at)
    return lower


def _reach(builder: Any, link: Link, lower: list[Any]) -> tuple[Any, list[Any]]:
    """Return where any end is lower, and what a few steps in the lower link reach from one end.

    These steps reach all of a link that looks like a half-space. Where they miss an end, points are
    looked at one by one.
    """
    seen: Any = llvm.I64(0)
    reached: list[Any] = [llvm.I64(0)] * len(lower)
    for i in sorted(link.ends, key=lambda i: sum(map(abs, link.members[i]))):
        reached[i] = builder.and_(lower[i], builder.not_(seen))
        seen = builder.or_(seen, lower[i])
    for _ in range(ROUNDS):
        if len(lower) == 26:
            grown = _dilate(builder, link.members, reached)
            reached = [builder.and_(g, low) for g, low in zip(grown, lower, strict=True)]
        else:
            reached = _step(builder, link, lower, reached)
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


def _step(builder: Any, link: Link, lower: list[Any], planes: list[Any]) -> list[Any]:
    """Return for each place the union of it and of those adjacent to it; the ends come last."""
    reached = list(planes)
    for i in sorted(range(len(reached)), key=lambda i: -sum(map(abs, link.members[i]))):
        for j in range(len(reached)):
            if link.near[i] >> j & 1:
                reached[i] = builder.or_(reached[i], reached[j])
        reached[i] = builder.and_(reached[i], lower[i])
    return reached
