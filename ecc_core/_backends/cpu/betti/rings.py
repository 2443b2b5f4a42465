"""The rings of the points of an image in 2-D: which neighbours come before each of them.

The *ring* of a point has its 8 neighbours in clockwise order, one bit each. On one side, that of
those before or of those behind, neighbours are connected along diagonals too (*wide*), on the other
one along axes only (*narrow*). The ring of a *fork* falls apart: around it, as many components of
one side alternate with those of the other.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from ecc_core._backends.cpu.betti.links import neighbour_keys
from ecc_core._backends.cpu.compiling import kernel
from ecc_core._backends.cpu.llvm import (
    ALL,
    I1,
    I8,
    I64,
    LANES,
    NONE,
    ONE,
    bare,
    count_trailing_zeros,
    operation,
    splat,
)

Array = NDArray[Any]

RING = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
SIDES = range(1, 8, 2)


@operation(types.UniTuple(types.uint64, 3))
def compare_ring(
    builder: Any, keys: Any, at: Any, step: Any, rows: Any, sides: Any, flip: Any, rings: Any
) -> list[Any]:
    """Compare the 64 points from ``keys[at]`` on with their rings.

    `rows` are two words, all ones if there is a row before and a row behind, `sides` those of the
    points that have neighbours on their left and right. Writes to ``rings[at:]`` the neighbours on
    the narrow side of each point, one bit each: those that come before it, or after it if `flip` is
    all ones. Returns the forks, the points without neighbours on the wide side, and those without
    on the narrow side.
    """
    own = keys.load(at, LANES)
    narrow, ring = [], splat(I8, LANES, 0)
    for i, (y, x) in enumerate(RING):
        key = neighbour_keys(builder, keys, at, [step, step], (0, y, x))
        before = "<=" if (y, x) < (0, 0) else "<"
        word = builder.bitcast(builder.icmp_unsigned(before, key, own), I64)
        for number, exists in ((y, rows), (x, sides)):
            if number:
                word = builder.and_(word, exists[(number + 1) // 2])
        narrow.append(builder.xor(word, flip))
        lanes = builder.bitcast(narrow[-1], ir.VectorType(I1, LANES))
        bit, none = (splat(I8, LANES, value) for value in (1 << i, 0))
        ring = builder.or_(ring, builder.select(lanes, bit, none))
    rings.store(ring, at)
    ends = []  # of runs along the ring, whose corners count only between two sides
    for i in SIDES:
        following = builder.and_(narrow[(i + 1) % 8], narrow[(i + 2) % 8])
        ends.append(builder.and_(narrow[i], builder.not_(following)))
    either = [builder.or_(*ends[:2]), builder.or_(*ends[2:])]
    several = [builder.and_(*ends[:2]), builder.and_(*ends[2:]), builder.and_(*either)]
    all_narrow = functools.reduce(builder.and_, narrow)
    some_narrow = functools.reduce(builder.or_, [narrow[i] for i in SIDES])
    return [functools.reduce(builder.or_, several), all_narrow, builder.not_(some_narrow)]


class Tables(NamedTuple):
    """What to do at a point, by the set of neighbours on the narrow side.

    Attributes
    ----------
    counts : (256,) uint8 array
        Number of components on each side.
    members : (2, 256, 4) int64 array
        Steps to a member of each component, lower and upper ones. Those of the lower side are
        L1, ..., Lk along the ring, those of the upper side Uk, U1, ..., where Ui lies between Li
        and the next one.
    ways : (2, 256) int64 array
        A step to a lower and to an upper neighbour, 0 if there is none.
    """

    counts: Array
    members: Array
    ways: Array


@functools.lru_cache(maxsize=8)
def tables_of(step: int, wide_below: bool) -> Tables:
    """Return the tables for images with this distance between rows."""
    offsets = np.array([y * step + x for y, x in RING])
    counts = np.zeros(256, np.uint8)
    members, ways = np.zeros((2, 256, 4), np.int64), np.zeros((2, 256), np.int64)
    narrow, wide = members[::-1] if wide_below else members
    for ring in range(256):
        inside = [bool(ring >> i & 1) for i in range(8)]
        ends = [i for i in SIDES if inside[i] and not (inside[i - 7] and inside[i - 6])]
        after = [i - 6 if inside[i - 7] else i - 7 for i in ends]
        count = counts[ring] = len(ends)
        narrow[ring, :count], wide[ring, :count] = offsets[ends], offsets[after]
        for side, own in ((int(wide_below), inside), (int(not wide_below), np.invert(inside))):
            choices = [i for i in range(8) if own[i] and (i % 2 or side != int(wide_below))]
            if choices:
                ways[side, ring] = offsets[max(choices, key=functools.partial(_depth, own))]
        if wide_below:  # narrow, wide: U1 L2 U2 L3 ... Uk L1
            wide[ring, :count] = np.roll(wide[ring, :count], 1)
        members[1, ring, :count] = np.roll(members[1, ring, :count], 1)
    return Tables(counts, members, ways)


def _depth(own: Any, i: int) -> tuple[int, int]:
    """Return how far a neighbour is from those of the other side: it lies most up or down."""
    others = [min((i - j) % 8, (j - i) % 8) for j in range(8) if not own[j]]
    return min(others, default=8), i % 2


@kernel()
def scan_rings(
    keys: Any, shape: Any, flip: Any, rings: Any, minima: Any, maxima: Any, forks: Any
) -> Any:
    """Find the rings, and list the minima, maxima and forks of an image; return their numbers."""
    rows, columns = shape
    step = columns + 2
    keys, rings, forks = bare(keys), bare(rings), bare(forks)
    minima, maxima = bare(minima), bare(maxima)
    beyond = np.uint8(0 if flip else 255)  # nothing to go on to
    lows, highs, count = np.uint64(0), np.uint64(0), np.uint64(0)
    for y in range(rows):
        row = (y + 1) * step + 1
        around = ALL if y > 0 else NONE, ALL if y < rows - 1 else NONE
        for x in range(0, columns, LANES):
            size = min(columns - x, LANES)
            own = ALL >> np.uint64(LANES - size)
            left = ~ONE if x == 0 else ALL
            right = own >> ONE if x + size == columns else ALL
            start = row + x
            apart, wide, narrow = compare_ring(
                keys, start, step, around, (left, right), flip, rings
            )
            low, high = (wide, narrow) if flip else (narrow, wide)
            low &= own
            high &= own
            apart &= own
            while low:
                minima[lows] = start + count_trailing_zeros(low)
                low &= low - ONE
                lows += ONE
            while high:
                maxima[highs] = start + count_trailing_zeros(high)
                high &= high - ONE
                highs += ONE
            while apart:
                forks[count] = start + count_trailing_zeros(apart)
                apart &= apart - ONE
                count += ONE
        rings[row - 1] = rings[row + columns] = beyond
    for place in range(step):
        rings[place] = rings[place + (rows + 1) * step] = beyond
    return lows, highs, count
